#include "cli/simulate/trace/equivalence_cache.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::simulate::trace {
namespace {

using queue::Place;
using queue::QueuedPod;
using Uids = std::vector<std::string>;

constexpr char kFit[] = "NodeResourcesFit", kByAmount[] = "ByAmount";
constexpr absl::string_view kAmountField = "Pod.metadata.annotations['amount']";

// Pods, and a host that evaluates hints: the end of a pod wakes all pods that the host knows to
// wait. Pods of one kind have the same prefix, as "kind.name"; the amount follows a colon.
class World : private queue::PreEnqueueGate, queue::QueueingHintDelegate {
 public:
  explicit World(bool skips)
      : cache_(&cluster_, &queue_, skips ? EquivalenceCache::ClassOf(Like) : nullptr,
               [](const std::string& plugin, absl::string_view field) {
                 return plugin == kByAmount && field == kAmountField;
               }) {
    queue_.SetWakeUpEvents(
        "", {{kFit, {queue::AssignedPodDelete()}}, {kByAmount, {queue::AssignedPodDelete()}}});
  }

  void AddNode(const std::string& name, int cpus) {
    auto node = std::make_shared<kube::NodeObject>();
    node->resource_version = "1";
    node->node.set_name(name);
    node->node.set_uid(name);
    node->node.mutable_allocatable()->set_cpu_millis(cpus * 1000);
    node->node.mutable_allocatable()->set_pods(100);
    cluster_.UpsertNode(node);
  }
  void Add(const std::string& uid, int cpus = 1, int32_t priority = 0) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->resource_version = "1";
    pod->pod.set_uid(uid);
    pod->pod.set_name(uid);
    pod->pod.set_creation_unix_seconds(++created_);
    pod->pod.set_priority(priority);
    pod->pod.add_containers()->mutable_requests()->set_cpu_millis(cpus * 1000);
    cluster_.UpsertPod(pod);
    cache_.Happened(queue::UnscheduledPodAdd());
    queue_.Add(pod, now_);
  }
  // Why an attempt fails; empty: it succeeds.
  using RejectorsOf = std::function<absl::btree_set<std::string>(const QueuedPod&)>;
  // Tries all pods in their turns; returns the uids of those that were tried.
  Uids TryAll(const RejectorsOf& rejectors_of) {
    Uids tried;
    queue_.FlushDue(now_);
    while (true) {
      cache_.Release(now_);
      QueuedPod* const info = queue_.Pop(now_);
      if (info == nullptr) return tried;
      if (cache_.Skip(*info, now_)) continue;
      const std::string uid = info->uid();
      tried.push_back(uid);
      absl::btree_set<std::string> rejectors = rejectors_of(*info);
      if (rejectors.empty()) {
        queue_.Forget(uid);
        continue;
      }
      queue_.AddUnschedulable(uid, {std::move(rejectors), pending_}, now_);
      cache_.Failed(uid, now_);
    }
  }
  void PodEnds(const std::string& uid) {
    cluster_.RemovePod(uid);
    cache_.Happened(queue::AssignedPodDelete());
    const uint64_t number = queue_.TakeEventNumber();
    std::vector<queue::SchedulingQueue::Hint> hints;
    for (const std::string& waiting : waiting_) {
      const auto& plugins = queue_.Find(waiting)->unschedulable_plugins;
      hints.push_back({waiting, *plugins.begin(), queue::AssignedPodDelete(), number});
    }
    queue_.ApplyHints(hints, now_);
  }
  void Pass(absl::Duration time) { now_ += time; }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  cache::ClusterState cluster_;
  queue::SchedulingQueue queue_{{}, now_, this, this};
  absl::btree_set<std::string> pending_;
  std::set<std::string> waiting_;  // waiting pods, as the host knows

 private:
  static EquivalenceClass Like(const kube::PodObject& pod) {
    EquivalenceClass equivalence_class;
    equivalence_class.kind =
        absl::StrCat(pod.uid().substr(0, pod.uid().find('.')), "/", pod.pod.priority());
    if (const size_t colon = pod.uid().find(':'); colon != std::string::npos) {
      equivalence_class.amount = std::stoi(pod.uid().substr(colon + 1));
      equivalence_class.amount_field = kAmountField;
    }
    return equivalence_class;
  }

  bool EvaluatesEvents(const kube::PodObject&, uint64_t) override { return true; }
  void OnWaiting(const QueuedPod& pod) override { waiting_.insert(pod.uid()); }
  void OnNotWaiting(const QueuedPod& pod) override {
    cache_.OnNotWaiting(pod.uid());
    waiting_.erase(pod.uid());
  }
  std::vector<queue::PreEnqueueResult> PreEnqueue(absl::Span<const QueuedPod* const> pods,
                                                  absl::Time) override {
    return std::vector<queue::PreEnqueueResult>(pods.size());
  }
  bool IgnoresEvents(const QueuedPod& pod) const override {
    return cache_.IgnoresEvents(pod.uid());
  }

  int64_t created_ = 0;

 public:
  EquivalenceCache cache_;
};

class EquivalenceCacheTest : public ::testing::Test, protected World {
 protected:
  EquivalenceCacheTest() : World(true) {}

  // Only `fits` finds a node.
  Uids Try(const Uids& fits = {}, const char* rejector = kFit) {
    return TryAll([&](const QueuedPod& pod) -> absl::btree_set<std::string> {
      if (absl::c_linear_search(fits, pod.uid())) return {};
      return {rejector};
    });
  }
  void Event() {
    Pass(absl::Seconds(20));
    PodEnds("none");
  }
};

TEST_F(EquivalenceCacheTest, AFailedPodRepresentsItsClass) {
  for (const char* uid : {"a.1", "a.2", "b.1", "a.3"}) Add(uid);
  EXPECT_EQ(Try(), (Uids{"a.1", "a.2", "b.1", "a.3"})) << "each once, to know why it waits";
  EXPECT_EQ(Try(), Uids{}) << "nothing has happened";
  for (int i = 0; i < 3; ++i) {
    Event();
    EXPECT_EQ(Try(), (Uids{"a.1", "b.1"}));
    EXPECT_EQ(waiting_, (std::set<std::string>{"a.1", "b.1"}))
        << "the host does not know the others";
  }
  EXPECT_EQ(queue_.Find("a.3")->attempts, 4) << "as if they had been tried";
  EXPECT_EQ(queue_.Find("a.3")->unschedulable_plugins, absl::btree_set<std::string>{kFit});
  Event();
  EXPECT_EQ(Try({"a.1"}), (Uids{"a.1", "a.2", "b.1"}));
}

TEST_F(EquivalenceCacheTest, OnlyUntilSomethingChanges) {
  AddNode("n", 4);
  for (const char* uid : {"a.1", "b.1", "a.2", "a.3"}) Add(uid);
  Try();
  Event();
  const Uids all = TryAll([&](const QueuedPod& pod) -> absl::btree_set<std::string> {
    if (pod.uid() != "b.1") return {kFit};
    EXPECT_TRUE(cluster_.Assume("b.1", cluster_.SlotOf("n")).ok());
    return {};
  });
  EXPECT_EQ(all, (Uids{"a.1", "b.1", "a.2"})) << "b.1 may have made room elsewhere";
  Event();
  Try();
  cache_.Happened(queue::AssignedPodAdd());
  queue_.Activate(Uids{"a.2"}, now_);
  EXPECT_EQ(Try(), Uids{"a.2"});
  Pass(absl::Milliseconds(1));
  queue_.Activate(Uids{"a.3"}, now_);
  EXPECT_EQ(Try(), Uids{"a.3"}) << "time passes, too";
}

TEST_F(EquivalenceCacheTest, APodThatRequestsLessOrCameEarlierIsTriedIfPluginsUseThat) {
  for (const char* uid : {"a.1:50", "a.2:70", "a.3:20", "a.4:30", "a.5:10"}) Add(uid);
  Try({}, kByAmount);
  Event();
  EXPECT_EQ(Try({}, kByAmount), (Uids{"a.1:50", "a.3:20", "a.5:10"}));
  // The queue's order may differ.
  queue_.SetSortKey("a.4:30", queue::SchedulingQueue::DefaultSortKey(3));
  queue_.SetSortKey("a.3:20", queue::SchedulingQueue::DefaultSortKey(2));
  Event();
  EXPECT_EQ(Try({}, kByAmount), (Uids{"a.4:30", "a.3:20", "a.1:50", "a.5:10"}));
  Event();
  EXPECT_EQ(Try({}, kFit), (Uids{"a.4:30"})) << "a plugin that checks room does not";
}

TEST_F(EquivalenceCacheTest, AFollowerMovesWithItsLeader) {
  for (const char* uid : {"a.1", "a.2", "a.3"}) Add(uid);
  Try();
  Event();
  Try();
  EXPECT_TRUE(cache_.IgnoresEvents("a.2"));
  Pass(absl::Seconds(20));
  queue_.Activate(Uids{"a.1"}, now_);
  EXPECT_EQ(Try({"a.1", "a.2"}), (Uids{"a.1", "a.2", "a.3"}));
  EXPECT_FALSE(cache_.IgnoresEvents("a.2"));
}

TEST_F(EquivalenceCacheTest, AFollowerWithoutItsLeaderIsTried) {
  for (const char* uid : {"a.1", "a.2", "a.3"}) Add(uid);
  Try();
  Event();
  Try();
  Pass(absl::Seconds(20));
  cluster_.RemovePod("a.1");
  queue_.Delete("a.1");
  EXPECT_EQ(Try(), (Uids{"a.2"}));
  EXPECT_EQ(waiting_, std::set<std::string>{"a.2"});
}

TEST_F(EquivalenceCacheTest, AFollowerMayBeTriedWithItsLeader) {
  for (const char* uid : {"a.1", "a.2"}) Add(uid);
  Try();
  Event();
  Try();
  queue_.Activate(Uids{"a.2"}, now_);
  EXPECT_EQ(Try(), Uids{}) << "it is rejected as before";
  EXPECT_TRUE(cache_.IgnoresEvents("a.2"));
  Pass(absl::Seconds(1));
  queue_.Activate(Uids{"a.2"}, now_);
  EXPECT_EQ(Try(), Uids{"a.2"}) << "its leader was not tried at this time";
  Pass(absl::Seconds(20));
  queue_.Activate(Uids{"a.1"}, now_);
  EXPECT_EQ(Try(), Uids{"a.1"}) << "who followed it does not any more";
}

TEST_F(EquivalenceCacheTest, OthersHaveTheirOwnReasons) {
  pending_ = {"Another"};
  for (const char* uid : {"a.1", "a.2", ".1", ".2"}) Add(uid);
  EXPECT_EQ(Try(), (Uids{"a.1", "a.2", ".1", ".2"}));
  Event();
  EXPECT_EQ(Try().size(), 4u) << "a plugin will speak of each by itself";
}

// Pods of a few kinds are placed on three nodes, and end.
class Player : public World {
 public:
  Player(unsigned seed, bool skips) : World(skips), random_(seed) {
    for (const char* name : {"n1", "n2", "n3"}) AddNode(name, 8);
  }

  // Which pod got which node, in order, and the state of the waiting pods.
  std::string Play() {
    for (int step = 0; step < 400; ++step) {
      Pass(absl::Milliseconds(random_() % 9000));
      if (random_() % 100 < 55) {
        const int cpus = 1 << (random_() % 4);
        Add(absl::StrCat(cpus, ".", step, ":", random_() % 5), cpus, random_() % 8 == 0 ? 1 : 0);
      } else if (!running_.empty()) {
        const size_t which = random_() % running_.size();
        PodEnds(running_[which]);
        running_.erase(running_.begin() + which);
      }
      const Uids tried = TryAll([&](const QueuedPod& pod) { return Place(pod); });
      attempts_ += tried.size();
    }
    std::set<std::string> waiting;
    queue_.ForEach([&](const QueuedPod& pod) {
      waiting.insert(absl::StrCat(pod.uid(), " ", pod.attempts, " ", pod.unschedulable_count, " ",
                                  absl::StrJoin(pod.unschedulable_plugins, ","), " ",
                                  absl::FormatTime(pod.timestamp), "\n"));
    });
    return absl::StrCat(placed_, absl::StrJoin(waiting, ""));
  }
  size_t attempts() const { return attempts_; }

 private:
  // As two plugins: one checks room, one prefers small amounts or early creation.
  absl::btree_set<std::string> Place(const QueuedPod& pod) {
    const std::string uid = pod.uid();
    absl::btree_set<std::string> rejectors;
    int64_t first = pod.pod->pod.creation_unix_seconds();
    queue_.ForEach([&](const QueuedPod& other) {
      first = std::min(first, other.pod->pod.creation_unix_seconds());
    });
    const bool has_to_keep_off = std::stoi(uid.substr(uid.find(':') + 1)) > 2 &&
                                 running_.size() > 4 &&
                                 first < pod.pod->pod.creation_unix_seconds();
    for (const uint32_t slot : cluster_.node_order()) {
      if (!cluster_.CheckFits(uid, slot, scope_).ok()) {
        rejectors.insert(kFit);
      } else if (has_to_keep_off) {
        rejectors.insert(kByAmount);
      } else {
        EXPECT_TRUE(cluster_.Assume(uid, slot).ok());
        running_.push_back(uid);
        absl::StrAppend(&placed_, uid, " ", slot, " at ", absl::FormatTime(now_), "\n");
        return {};
      }
    }
    return rejectors;
  }

  std::mt19937 random_;
  const cache::GuardScope scope_;
  std::vector<std::string> running_;
  std::string placed_;
  size_t attempts_ = 0;
};

TEST(EquivalenceCacheRandomTest, SkippingAttemptsDoesNotChangeResults) {
  size_t made = 0, all = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Player skips(seed, true), tries_all(seed, false);
    ASSERT_EQ(tries_all.Play(), skips.Play()) << "seed " << seed;
    made += skips.attempts();
    all += tries_all.attempts();
  }
  EXPECT_LT(made * 2, all);
}

}  // namespace
}  // namespace outboard::simulate::trace
