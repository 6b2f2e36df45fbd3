// Random jobs on small clusters: the first in line starts no later than it would if no job
// overtook it. The test's own accounting shares no code with the plugin.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/backfill/backfill.h"

namespace outboard::backfill {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

constexpr int64_t kBegin = 1767614400;

struct Job {
  int number = 0;
  int64_t arrival = 0, run = 0;
  int members = 1, gpus = 1;
  std::vector<int> nodes;  // of its members; empty: it waits
  int64_t start = -1;
  // The latest start, computed when it became the first in line.
  std::optional<int64_t> promised;

  int64_t end() const { return start + run; }
  std::string PodName(int member) const { return absl::StrCat("job-", 1000 + number, "-", member); }
};

class Weeks {
 public:
  Weeks(uint32_t seed, bool with_plugin) : with_plugin_(with_plugin) {
    std::mt19937 random(seed);
    const auto between = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    harness_ = *PluginHarness::Create(Descriptor());
    free_.assign(static_cast<size_t>(between(1, 4)), static_cast<int>(between(2, 6)));
    for (size_t i = 0; i < free_.size(); ++i)
      harness_->AddNode(
          NodeBuilder(NodeName(i)).Allocatable({{"nvidia.com/gpu", absl::StrCat(free_[i])}}));
    const int largest = free_[0];
    int64_t when = 0;
    for (int i = 0; i < 30; ++i) {
      Job job;
      job.number = i;
      job.arrival = when += between(0, 40);
      job.run = between(1, 200);
      job.gpus = static_cast<int>(between(1, largest));
      if (between(0, 2) == 0) {
        job.members =
            static_cast<int>(between(1, static_cast<int64_t>(free_.size()) * (largest / job.gpus)));
      }
      jobs_.push_back(job);
    }
  }

  // Per instant: ends, arrivals, starts. A violation fails the test.
  void Run() {
    for (int64_t now = 0; now < 100000; ++now) {
      const auto is_over = [&](const Job& job) { return job.start >= 0 && job.end() <= now; };
      bool changed = false;
      for (Job& job : jobs_) {
        if (!is_over(job) || job.nodes.empty()) continue;
        End(&job);
        changed = true;
      }
      for (Job& job : jobs_) {
        if (job.arrival != now) continue;
        for (int m = 0; m < job.members; ++m) harness_->AddPod(PodOf(job, m));
        changed = true;
      }
      if (!changed) continue;
      harness_->SetNow(absl::FromUnixSeconds(kBegin + now));
      Schedule(now);
      if (std::all_of(jobs_.begin(), jobs_.end(), [](const Job& j) { return j.start >= 0; }))
        return;
    }
    ADD_FAILURE() << "not all jobs start";
  }

  int overtaken() const { return overtaken_; }
  int broken() const { return broken_; }

 private:
  static std::string NodeName(size_t node) { return absl::StrCat("n", node); }
  v1beta1::Pod PodOf(const Job& job, int member) const {
    PodBuilder pod(job.PodName(member));
    pod.Requests({{"nvidia.com/gpu", absl::StrCat(job.gpus)}})
        .Label("job-name", absl::StrCat("job-", 1000 + job.number))
        .Annotation("outboard/run-seconds", absl::StrCat(job.run));
    if (job.members > 1) pod.Annotation("outboard/min-replicas", absl::StrCat(job.members));
    pod.proto().set_creation_unix_seconds(kBegin + job.arrival);
    return pod;
  }
  void End(Job* job) {
    for (size_t m = 0; m < job->nodes.size(); ++m) {
      free_[static_cast<size_t>(job->nodes[m])] += job->gpus;
      harness_->RemovePod(absl::StrCat("default/", job->PodName(static_cast<int>(m))));
    }
    job->nodes.clear();
  }

  // Tries the waiting jobs in the order that is worst for the plugin, latest first, until none
  // starts.
  void Schedule(int64_t now) {
    bool started = true;
    while (started) {
      started = false;
      for (size_t i = jobs_.size(); i-- > 0;) {
        Job& job = jobs_[i];
        if (job.start >= 0 || job.arrival > now) continue;
        NotePromise(now);
        if (!TryToStart(&job, now)) continue;
        started = true;
        if (FirstWaiting(now) != nullptr && FirstWaiting(now)->number < job.number) ++overtaken_;
      }
    }
    NotePromise(now);
    for (const Job& job : jobs_)
      if (job.start == now && job.promised && *job.promised < now) ++broken_;
  }
  Job* FirstWaiting(int64_t now) {
    for (Job& job : jobs_)
      if (job.start < 0 && job.arrival <= now) return &job;
    return nullptr;
  }
  // When the first in line would start if no other job started.
  void NotePromise(int64_t now) {
    Job* const first = FirstWaiting(now);
    if (first == nullptr || first->promised) return;
    std::vector<int> free = free_;
    std::multimap<int64_t, const Job*> ends;
    for (const Job& job : jobs_)
      if (!job.nodes.empty()) ends.emplace(job.end(), &job);
    const auto fits = [&] {
      int members = 0;
      for (const int gpus : free) members += gpus / first->gpus;
      return members >= first->members;
    };
    first->promised = now;
    for (auto next = ends.begin(); !fits(); ++next) {
      ASSERT_NE(next, ends.end());
      for (const int node : next->second->nodes)
        free[static_cast<size_t>(node)] += next->second->gpus;
      first->promised = next->first;
    }
  }
  bool TryToStart(Job* job, int64_t now) {
    for (int m = 0; m < job->members; ++m) {
      const std::optional<int> node = FindNode(PodOf(*job, m), job->gpus);
      if (!node) {
        for (size_t back = 0; back < job->nodes.size(); ++back) {
          free_[static_cast<size_t>(job->nodes[back])] += job->gpus;
          harness_->Place(absl::StrCat("default/", job->PodName(static_cast<int>(back))),
                          v1beta1::PLACEMENT_STATE_UNPLACED, "");
        }
        job->nodes.clear();
        return false;
      }
      job->nodes.push_back(*node);
      free_[static_cast<size_t>(*node)] -= job->gpus;
      harness_->Place(absl::StrCat("default/", job->PodName(m)), v1beta1::PLACEMENT_STATE_WAITING,
                      NodeName(static_cast<size_t>(*node)));
    }
    for (int m = 0; m < job->members; ++m) {
      v1beta1::Pod pod = PodOf(*job, m);
      pod.set_node_name(NodeName(static_cast<size_t>(job->nodes[static_cast<size_t>(m)])));
      pod.set_start_unix_seconds(kBegin + now);
      harness_->AddPod(pod);
    }
    job->start = now;
    return true;
  }
  // The first node with room that the plugin allows.
  std::optional<int> FindNode(const v1beta1::Pod& pod, int gpus) {
    std::map<std::string, sdk::Verdict> verdicts;
    if (with_plugin_) {
      const sdk::Verdict verdict = harness_->PreFilter(pod).verdict;
      if (verdict.ok()) verdicts = harness_->Filter(pod);
      if (!verdict.ok() && !verdict.skip()) return std::nullopt;
    }
    for (size_t i = 0; i < free_.size(); ++i) {
      if (free_[i] < gpus) continue;
      const auto its = verdicts.find(NodeName(i));
      if (its == verdicts.end() || its->second.ok()) return static_cast<int>(i);
    }
    return std::nullopt;
  }

  const bool with_plugin_;
  std::unique_ptr<PluginHarness> harness_;
  std::vector<int> free_;  // GPUs, by node
  std::vector<Job> jobs_;
  int overtaken_ = 0, broken_ = 0;
};

TEST(RandomWeeksTest, TheFirstInLineStartsNoLaterThanWithoutOvertaking) {
  int overtaken = 0, overtaken_without = 0, broken_without = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    Weeks weeks(seed, /*with_plugin=*/true);
    weeks.Run();
    ASSERT_EQ(weeks.broken(), 0) << "seed " << seed;
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    overtaken += weeks.overtaken();
    Weeks without(seed, /*with_plugin=*/false);
    without.Run();
    broken_without += without.broken();
    overtaken_without += without.overtaken();
  }
  printf("1800 jobs: %d overtook the first in line, 0 made it late; without the plugin %d and %d\n",
         overtaken, overtaken_without, broken_without);
  EXPECT_GT(overtaken, 200) << "no job is backfilled";
  EXPECT_GT(broken_without, 20) << "the test cannot detect a late start";
}

}  // namespace
}  // namespace outboard::backfill
