// Backfill's reservations together with the other placing plugins: groups placed in one pass, and
// preemptors that reclaim lent room. The test's own accounting shares no code with the plugin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugins/plans_harness.h"

namespace outboard::plans::backfill_plans_test {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Plugins(const std::string& preemptor) {
  return {"NodeUnschedulable", "TaintToleration", "NodeAffinity",
          "NodeResourcesFit",  "Backfill",        "NodeResourcesBalancedAllocation",
          "InterPodAffinity",  preemptor,         "AtomicReplicaCoordinator"};
}

constexpr int64_t kBegin = 1'800'000'000;
constexpr int64_t kForever = INT64_MAX;

v1beta1::Node NodeOf(size_t number, int gpus) {
  return NodeBuilder(absl::StrCat("n", number))
      .Allocatable({{"cpu", "64"}, {"nvidia.com/gpu", absl::StrCat(gpus)}});
}

// A pod of a job; `members`: the job's number of members. `run` in seconds.
struct PodSpec {
  std::string job;
  int member = 0, members = 1;
  int gpus = 1;
  int64_t run = kForever;
  int64_t created = 0;  // seconds after kBegin
  int priority = 0;
};

v1beta1::Pod PodOf(const PodSpec& spec) {
  PodBuilder pod(absl::StrCat(spec.job, "-", spec.member));
  pod.Requests({{"nvidia.com/gpu", absl::StrCat(spec.gpus)}}).Label("job-name", spec.job);
  if (spec.run != kForever) pod.Annotation("outboard/run-seconds", absl::StrCat(spec.run));
  if (spec.members > 1) pod.Annotation("outboard/min-replicas", absl::StrCat(spec.members));
  pod.Priority(spec.priority);
  pod.proto().set_scheduler_name("p");
  pod.proto().set_creation_unix_seconds(kBegin + spec.created);
  return pod;
}

std::string UidOf(const std::string& job, int member) {
  return absl::StrCat("default/", job, "-", member);
}

v1beta1::Pod OnNode(v1beta1::Pod pod, size_t node, int64_t start) {
  pod.set_node_name(absl::StrCat("n", node));
  pod.set_start_unix_seconds(kBegin + start);
  return pod;
}

size_t NumberOf(const std::string& node) { return static_cast<size_t>(std::stoi(node.substr(1))); }

class BackfillPlansTest : public ::testing::Test {
 protected:
  // The nodes that a job's members would get now, by member; empty: none.
  static std::vector<size_t> TryJob(PlansHarness* harness, const std::string& job, int members) {
    const std::string uid = UidOf(job, 0);
    const v1beta1::PlanResponse response = harness->Plan(uid, 0, {}, true);
    std::vector<size_t> nodes(static_cast<size_t>(members));
    if (members == 1) {
      const Place place = harness->Choose(uid, 0, response);
      if (place.node.empty()) return {};
      return {NumberOf(place.node)};
    }
    EXPECT_TRUE((response.plan().has_group() || response.rejection().has_group()))
        << response.DebugString();
    if (response.plan().placements().empty()) return {};
    EXPECT_EQ(response.plan().placements_size(), members);
    for (const v1beta1::PlannedPlacement& placement : response.plan().placements()) {
      const Place place = harness->PlaceOf(placement);
      const size_t member =
          static_cast<size_t>(std::stoi(place.pod.substr(place.pod.rfind('-') + 1)));
      nodes.at(member) = NumberOf(place.node);
    }
    return nodes;
  }
  std::vector<v1beta1::Pod> Members(PodSpec spec) {
    std::vector<v1beta1::Pod> pods;
    for (spec.member = 0; spec.member < spec.members; ++spec.member) pods.push_back(PodOf(spec));
    return pods;
  }
  void Add(const PodSpec& spec) {
    for (const v1beta1::Pod& pod : Members(spec)) harness_.UpsertPod(pod);
  }

  PlansHarness harness_{Plugins("DefaultPreemption")};
};

TEST_F(BackfillPlansTest, GroupsGoBesideWhatIsKeptOrNowhere) {
  harness_.SetCluster({NodeOf(0, 8), NodeOf(1, 4)},
                      {OnNode(PodOf({.job = "a", .gpus = 4, .run = 3600}), 0, 0)});
  Add({.job = "train", .gpus = 8, .created = 1});
  Add({.job = "small", .members = 3, .created = 2});
  EXPECT_EQ(TryJob(&harness_, "small", 3), (std::vector<size_t>{1, 1, 1}));
  Add({.job = "large", .members = 5, .created = 2});
  EXPECT_THAT(TryJob(&harness_, "large", 5), IsEmpty());
  EXPECT_THAT(
      harness_.Plan(UidOf("large", 0), 0, {}, true).rejection().pre_filter().rejection().reasons(0),
      HasSubstr("4 of 5 members fit; 1 Insufficient nvidia.com/gpu, 1 node is reserved for "
                "default/train-0 from "));
  Add({.job = "late", .members = 5, .run = 3601, .created = 2});
  EXPECT_THAT(TryJob(&harness_, "late", 5), IsEmpty());
  Add({.job = "short", .members = 5, .run = 3600, .created = 2});
  EXPECT_EQ(TryJob(&harness_, "short", 5).size(), 5u);
  // A second call in another order has the same result.
  EXPECT_THAT(TryJob(&harness_, "late", 5), IsEmpty());
  EXPECT_EQ(TryJob(&harness_, "small", 3), (std::vector<size_t>{1, 1, 1}));
}

TEST_F(BackfillPlansTest, TheFirstGroupIsPlacedAtOnceWhereThereIsRoom) {
  harness_.SetCluster({NodeOf(0, 8), NodeOf(1, 8)}, {});
  Add({.job = "first", .members = 4, .gpus = 4, .created = 1});
  Add({.job = "second", .members = 2, .gpus = 1, .created = 2});
  EXPECT_THAT(TryJob(&harness_, "second", 2), IsEmpty()) << "everything is reserved for the first";
  EXPECT_EQ(TryJob(&harness_, "first", 4).size(), 4u);
}

// Room that a preemptible pod uses without a declared end goes to the first in line once it fits.
void ExpectTakenBack(const std::string& preemptor, int members) {
  PlansHarness harness(Plugins(preemptor));
  harness.SetCluster({NodeOf(0, 8)},
                     {OnNode(PodOf({.job = "a", .gpus = 4, .run = 3600, .priority = 10}), 0, 0)});
  const int each = 8 / members;
  for (int member = 0; member < members; ++member)
    harness.UpsertPod(PodOf({.job = "train",
                             .member = member,
                             .members = members,
                             .gpus = each,
                             .created = 1,
                             .priority = 10}));
  const auto choose = [&](const std::string& job) {
    const std::string uid = UidOf(job, 0);
    return harness.Choose(uid, 0, harness.Plan(uid, 0, {}, true)).node;
  };
  harness.UpsertPod(PodOf({.job = "endless", .gpus = 4, .created = 2}));
  EXPECT_EQ(choose("endless"), "");
  v1beta1::Pod borrower = PodOf({.job = "borrower", .gpus = 4, .created = 2});
  (*borrower.mutable_annotations())["outboard/preemptible"] = "true";
  harness.UpsertPod(borrower);
  ASSERT_EQ(choose("borrower"), "n0");
  borrower = OnNode(borrower, 0, 0);
  harness.UpsertPod(borrower);

  harness.now += absl::Hours(1);
  harness.RemovePod(UidOf("a", 0));
  EXPECT_EQ(choose("endless"), "") << "half is free, but reserved";
  const std::string uid = UidOf("train", 0);
  const v1beta1::PlanResponse response = harness.Plan(uid, 0, {}, true);
  ASSERT_TRUE(members > 1 ? response.plan().placements().empty()
                          : harness.Choose(uid, 0, response).node.empty());
  const v1beta1::PostFilterResponse leave = harness.PostFilter();
  ASSERT_EQ(leave.candidates().candidates_size(), 1) << leave.DebugString();
  EXPECT_THAT(leave.candidates().candidates(0).victim_uids(), ElementsAre(UidOf("borrower", 0)));
  borrower.set_deletion_unix_seconds(absl::ToUnixSeconds(harness.now) + 30);
  harness.UpsertPod(borrower);
  EXPECT_EQ(choose("endless"), "");
  harness.RemovePod(UidOf("borrower", 0));
  EXPECT_EQ(choose("endless"), "");
  const v1beta1::PlanResponse again = harness.Plan(uid, 0, {}, true);
  if (members > 1) {
    EXPECT_EQ(again.plan().placements_size(), members);
  } else {
    EXPECT_EQ(harness.Choose(uid, 0, again).node, "n0");
  }
}

TEST(BackfillLendingTest, WhatWasLentIsTakenBackByDefaultPreemption) {
  ExpectTakenBack("DefaultPreemption", 1);
}
TEST(BackfillLendingTest, WhatWasLentIsTakenBackByCostAwarePreemptor) {
  ExpectTakenBack("CostAwarePreemptor", 1);
}
TEST(BackfillLendingTest, WhatWasLentIsTakenBackForGroups) {
  ExpectTakenBack("DefaultPreemption", 2);
  ExpectTakenBack("CostAwarePreemptor", 2);
}

// The free GPUs, and the jobs that use the others, with their ends.
struct GpuUsage {
  std::vector<int> free;
  struct Use {
    size_t node;
    int gpus;
    int64_t end;
  };
  std::vector<Use> uses;

  void Take(const std::vector<size_t>& nodes, int gpus, int64_t end) {
    for (const size_t node : nodes) {
      free[node] -= gpus;
      ASSERT_GE(free[node], 0);
      uses.push_back({node, gpus, end});
    }
  }
  void EndUntil(int64_t now) {
    for (const Use& use : uses)
      if (use.end <= now) free[use.node] += use.gpus;
    std::erase_if(uses, [&](const Use& use) { return use.end <= now; });
  }
  bool HasRoom(int members, int gpus) const {
    int room = 0;
    for (const int its : free) room += its / gpus;
    return room >= members;
  }
  // When a job fits if no other job starts; kForever: never.
  int64_t Earliest(int members, int gpus, int64_t now) const {
    GpuUsage later = *this;
    std::set<int64_t> times = {now};
    for (const Use& use : uses)
      if (use.end != kForever) times.insert(std::max(use.end, now));
    for (const int64_t when : times) {
      later.EndUntil(when);
      if (later.HasRoom(members, gpus)) return when;
    }
    return kForever;
  }
};

TEST_F(BackfillPlansTest, GroupsNeverTakeWhatTheFirstInLineNeeds) {
  int placed = 0, not_placed = 0, kept_out = 0;
  for (uint32_t seed = 1; seed <= 1500; ++seed) {
    std::mt19937 random(seed);
    const auto between = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    GpuUsage usage;
    std::vector<v1beta1::Node> nodes;
    const int num_nodes = between(1, 4);
    for (int i = 0; i < num_nodes; ++i) {
      usage.free.push_back(between(1, 8));
      nodes.push_back(NodeOf(static_cast<size_t>(i), usage.free.back()));
    }
    std::vector<v1beta1::Pod> pods;
    for (int i = between(0, 6); i > 0; --i) {
      const auto node = static_cast<size_t>(between(0, num_nodes - 1));
      if (usage.free[node] == 0) continue;
      const int gpus = between(1, usage.free[node]);
      const int64_t run = between(0, 9) == 0 ? kForever : between(1, 5) * 100;
      usage.Take({node}, gpus, run);
      pods.push_back(
          OnNode(PodOf({.job = absl::StrCat("running", i), .gpus = gpus, .run = run}), node, 0));
    }
    const PodSpec first = {
        .job = "first", .members = between(1, 4), .gpus = between(1, 5), .run = 50, .created = 1};
    const PodSpec group = {.job = "group",
                           .members = between(2, 5),
                           .gpus = between(1, 3),
                           .run = between(0, 2) == 0 ? kForever : between(1, 6) * 100,
                           .created = 2};
    for (const PodSpec& spec : {first, group}) {
      const auto members = Members(spec);
      pods.insert(pods.end(), members.begin(), members.end());
    }
    harness_.SetCluster(nodes, pods);
    const int64_t promised = usage.Earliest(first.members, first.gpus, 0);
    const std::vector<size_t> at = TryJob(&harness_, "group", group.members);
    ASSERT_EQ(TryJob(&harness_, "group", group.members), at) << "seed " << seed;
    if (at.empty()) {
      ++not_placed;
      const bool has_room = usage.HasRoom(group.members, group.gpus);
      kept_out += has_room;
      ASSERT_FALSE(has_room && group.run != kForever && group.run <= promised) << "seed " << seed;
      ASSERT_FALSE(has_room && promised == kForever) << "seed " << seed;
      continue;
    }
    ++placed;
    usage.Take(at, group.gpus, group.run);
    ASSERT_LE(usage.Earliest(first.members, first.gpus, 0), promised) << "seed " << seed;
  }
  printf("1500 groups: %d placed, %d not, of which %d only because of reservations\n", placed,
         not_placed, kept_out);
  EXPECT_GT(placed, 300);
  EXPECT_GT(kept_out, 100);
}

// Jobs arrive, run and end, and are placed by the host's planner. They are tried in the order that
// is worst for the plugin, latest first.
TEST(BackfillWeeksTest, TheFirstInLineNeverStartsLaterThanPromised) {
  struct Job {
    PodSpec spec;
    int64_t start = -1;
    std::optional<int64_t> promised;
  };
  int overtaken = 0, groups = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const auto between = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    PlansHarness harness(Plugins("DefaultPreemption"));
    GpuUsage usage;
    const int gpus_each = static_cast<int>(between(2, 6));
    usage.free.assign(static_cast<size_t>(between(1, 4)), gpus_each);
    std::vector<v1beta1::Node> nodes;
    for (size_t i = 0; i < usage.free.size(); ++i) nodes.push_back(NodeOf(i, gpus_each));
    harness.SetCluster(nodes, {});
    std::vector<Job> jobs;
    int64_t when = 0;
    for (int i = 0; i < 25; ++i) {
      Job job;
      when += between(0, 40);
      const int gpus = static_cast<int>(between(1, gpus_each));
      const auto most = static_cast<int64_t>(usage.free.size()) * (gpus_each / gpus);
      job.spec = {.job = absl::StrCat("job", 100 + i),
                  .members = between(0, 1) == 0 ? static_cast<int>(between(1, most)) : 1,
                  .gpus = gpus,
                  .run = between(1, 200),
                  .created = when};
      groups += job.spec.members > 1;
      jobs.push_back(job);
    }
    for (int64_t now = 0;; ++now) {
      ASSERT_LT(now, 100000) << "not all jobs start";
      bool changed = false;
      harness.now = absl::FromUnixSeconds(kBegin + now);
      for (const Job& job : jobs) {
        if (job.start >= 0 && job.start + job.spec.run == now) {
          for (int m = 0; m < job.spec.members; ++m) harness.RemovePod(UidOf(job.spec.job, m));
          changed = true;
        }
        if (job.spec.created == now) {
          PodSpec spec = job.spec;
          for (spec.member = 0; spec.member < spec.members; ++spec.member)
            harness.UpsertPod(PodOf(spec));
          changed = true;
        }
      }
      usage.EndUntil(now);
      const auto first = [&]() -> Job* {
        for (Job& job : jobs)
          if (job.start < 0 && job.spec.created <= now) return &job;
        return nullptr;
      };
      const auto promise = [&] {
        Job* const job = first();
        if (job != nullptr && !job->promised)
          job->promised = usage.Earliest(job->spec.members, job->spec.gpus, now);
      };
      for (bool started = changed; started;) {
        started = false;
        for (size_t i = jobs.size(); i-- > 0;) {
          Job& job = jobs[i];
          if (job.start >= 0 || job.spec.created > now) continue;
          promise();
          const v1beta1::PlanResponse response = harness.Plan(UidOf(job.spec.job, 0), 0, {}, true);
          std::vector<std::pair<int, size_t>> places;
          if (job.spec.members == 1) {
            const Place place = harness.Choose(UidOf(job.spec.job, 0), 0, response);
            if (!place.node.empty()) places.emplace_back(0, NumberOf(place.node));
          } else {
            for (const auto& placement : response.plan().placements()) {
              const Place place = harness.PlaceOf(placement);
              places.emplace_back(std::stoi(place.pod.substr(place.pod.rfind('-') + 1)),
                                  NumberOf(place.node));
            }
          }
          if (places.empty()) continue;
          ASSERT_EQ(places.size(), static_cast<size_t>(job.spec.members));
          started = true;
          overtaken += first() != &job;
          job.start = now;
          std::vector<size_t> at;
          for (const auto& [member, node] : places) {
            at.push_back(node);
            PodSpec spec = job.spec;
            spec.member = member;
            harness.Assume(UidOf(spec.job, member), absl::StrCat("n", node));
            harness.UpsertPod(OnNode(PodOf(spec), node, now));
          }
          usage.Take(at, job.spec.gpus, now + job.spec.run);
          ASSERT_FALSE(job.promised && *job.promised < now)
              << "seed " << seed << ": " << job.spec.job << " was promised " << *job.promised
              << " and starts at " << now;
        }
      }
      promise();
      if (std::all_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.start >= 0; }))
        break;
    }
  }
  printf("1000 jobs, %d groups: %d overtook the first in line, 0 made it late\n", groups,
         overtaken);
  EXPECT_GT(overtaken, 100) << "no job is backfilled";
}

}  // namespace
}  // namespace outboard::plans::backfill_plans_test
