#include "shim/cycle/vain_attempts.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::cycle {
namespace {

using queue::Place;
using queue::QueuedPod;

const absl::Time kStart = absl::FromUnixSeconds(1000);

// A node of 4 CPUs. Pods of one kind have a name that begins alike, "kind.name"; the amount is
// behind a colon.
class VainAttemptsTest : public testing::Test, private queue::PreEnqueueGate, queue::HintJudge {
 protected:
  void SetUp() override {
    AddNode("n");
    queue_.SetWakeUpEvents("", {{"NodeResourcesFit", {queue::AssignedPodDelete()}}});
  }

  void AddNode(const std::string& name) {
    auto node = std::make_shared<kube::NodeObject>();
    node->resource_version = "1";
    node->node.set_name(name);
    node->node.set_uid(name);
    node->node.mutable_allocatable()->set_cpu_millis(4000);
    node->node.mutable_allocatable()->set_pods(10);
    cluster_.UpsertNode(node);
  }
  void Add(const std::string& uid, int64_t cpu_millis, int32_t priority = 0,
           const std::string& node = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->resource_version = "1";
    pod->pod.set_uid(uid);
    pod->pod.set_name(uid);
    pod->pod.set_priority(priority);
    pod->pod.set_node_name(node);
    pod->pod.add_containers()->mutable_requests()->set_cpu_millis(cpu_millis);
    cluster_.UpsertPod(pod);
    if (node.empty()) queue_.Add(pod, now_);
  }
  // Tries whoever has a turn; the uids of those that were tried. `fits` says who finds a node.
  std::vector<std::string> TryAll(const std::function<bool(const std::string&)>& fits = nullptr) {
    std::vector<std::string> tried;
    vain_.BeginRound(now_);
    while (true) {
      vain_.TryNext(now_);
      QueuedPod* const info = queue_.Pop(now_);
      if (info == nullptr) {
        vain_.EndRound(now_);
        return tried;
      }
      if (vain_.Spare(*info, now_)) continue;
      const std::string uid = info->uid();
      tried.push_back(uid);
      if (fits != nullptr && fits(uid)) {
        EXPECT_TRUE(cluster_.Assume(uid, cluster_.SlotOf("n")).ok());
        queue_.Forget(uid);
        continue;
      }
      vain_.AddUnschedulable(uid, {{rejector_}, pending_}, now_);
    }
  }
  void End(const std::string& uid) {
    cluster_.RemovePod(uid);
    vain_.Happened(queue::AssignedPodDelete());
    now_ += absl::Seconds(20);
  }
  bool FitsOnN(const std::string& uid) {
    return cluster_.CheckFits(uid, cluster_.SlotOf("n"), scope_).ok();
  }
  std::vector<std::string> TryAllByRoom() {
    return TryAll([this](const std::string& uid) { return FitsOnN(uid); });
  }

  // queue::HintJudge: a host hears of whoever waits, and wakes nobody here.
  bool Judges(const kube::PodObject&, uint64_t) override { return true; }
  void OnWaiting(const QueuedPod& pod) override { told_.push_back(pod.uid()); }
  void OnNotWaiting(const QueuedPod&) override {}
  std::vector<queue::GateVerdict> Judge(absl::Span<const QueuedPod* const> pods,
                                        absl::Time) override {
    return std::vector<queue::GateVerdict>(pods.size());
  }
  bool Holds(const QueuedPod& pod) const override { return vain_.Holds(pod.uid()); }

  absl::Time now_ = kStart;
  ClusterState cluster_;
  queue::SchedulingQueue queue_{{}, kStart, this, this};
  GuardScope scope_;
  bool may_preempt_ = false;
  std::string rejector_ = "NodeResourcesFit";
  absl::btree_set<std::string> pending_;
  std::vector<std::string> told_;
  VainAttempts vain_{&cluster_, &queue_,
                     [](const kube::PodObject& pod) {
                       Likeness likeness;
                       likeness.kind = pod.uid().substr(0, pod.uid().find('.'));
                       if (const size_t colon = pod.uid().find(':'); colon != std::string::npos)
                         likeness.amount = std::stoi(pod.uid().substr(colon + 1));
                       return likeness;
                     },
                     [this](const kube::PodObject&) -> std::optional<VainAttempts::Terms> {
                       return VainAttempts::Terms{&scope_, may_preempt_};
                     }};
};

using Uids = std::vector<std::string>;

TEST_F(VainAttemptsTest, WhoFitsNowhereIsNotTriedUntilThereIsRoom) {
  Add("runs.1", 2000, 0, "n");
  Add("runs.2", 2000, 0, "n");
  Add("large.1", 4000);
  Add("small.1", 1000);
  EXPECT_EQ(TryAllByRoom(), (Uids{"large.1", "small.1"})) << "each once, to know why it waits";
  EXPECT_EQ(told_, Uids{}) << "nobody else is told";
  EXPECT_EQ(TryAllByRoom(), Uids{});
  End("runs.1");
  EXPECT_EQ(TryAllByRoom(), (Uids{"small.1"}));
  End("runs.2");
  EXPECT_EQ(TryAllByRoom(), Uids{});
  End("small.1");
  EXPECT_EQ(TryAllByRoom(), (Uids{"large.1"}));
}

TEST_F(VainAttemptsTest, TheOneThatFailsSpeaksForItsKindUntilSomethingHappens) {
  Add("a.1", 1000);
  Add("a.2", 1000);
  Add("b.1", 1000);
  EXPECT_EQ(TryAll(), (Uids{"a.1", "a.2", "b.1"}));
  now_ += absl::Seconds(1);
  EXPECT_EQ(TryAll(), Uids{}) << "nothing has happened";
  vain_.Happened(queue::AssignedPodAdd());
  EXPECT_EQ(TryAll(), Uids{}) << "nothing that helps";
  End("none");
  EXPECT_EQ(TryAll(), (Uids{"a.1", "b.1"}));
  End("none");
  EXPECT_EQ(TryAll(), (Uids{"a.1", "b.1"})) << "they keep their turns";
  Add("c.1", 1000);
  EXPECT_EQ(TryAll(), (Uids{"c.1"})) << "one that is new";
}

TEST_F(VainAttemptsTest, WhenTheFirstOfAKindFitsTheNextIsTried) {
  Add("runs.1", 2000, 0, "n");
  Add("runs.2", 2000, 0, "n");
  for (const char* uid : {"a.1", "a.2", "a.3"}) Add(uid, 1000);
  TryAllByRoom();
  End("runs.1");
  EXPECT_EQ(TryAllByRoom(), (Uids{"a.1", "a.2"})) << "there is room for two";
  End("runs.2");
  EXPECT_EQ(TryAllByRoom(), (Uids{"a.3"}));
}

TEST_F(VainAttemptsTest, WhoAsksForLessIsTriedStill) {
  for (const char* uid : {"a.1:50", "a.2:70", "a.3:20", "a.4:30", "a.5:10"}) Add(uid, 1000);
  TryAll();
  End("none");
  EXPECT_EQ(TryAll(), (Uids{"a.1:50", "a.3:20", "a.5:10"}));
  End("none");
  EXPECT_EQ(TryAll([](const std::string& uid) { return uid == "a.3:20"; }),
            (Uids{"a.1:50", "a.3:20", "a.4:30", "a.5:10"}));
}

TEST_F(VainAttemptsTest, TurnsAreThoseOfTheQueue) {
  Add("a.1", 1000);
  Add("b.1", 1000);
  Add("b.urgent", 1000, 1);
  TryAll();
  Add("c.1", 1000);
  End("none");
  EXPECT_EQ(TryAll(), (Uids{"b.urgent", "a.1", "c.1"}));
  queue_.SetSortKey("a.1", queue::SchedulingQueue::DefaultSortKey(2));
  End("none");
  EXPECT_EQ(TryAll(), (Uids{"a.1", "b.urgent", "c.1"}));
}

TEST_F(VainAttemptsTest, WhoMayMakeOthersLeaveIsTried) {
  Add("runs.1", 4000, 5, "n");
  Add("same.1", 2000, 5);
  Add("higher.1", 2000, 6);
  may_preempt_ = true;
  TryAll();
  End("none");
  EXPECT_EQ(TryAll(), (Uids{"higher.1"}));
  may_preempt_ = false;
  End("none");
  EXPECT_EQ(TryAll(), Uids{});
}

TEST_F(VainAttemptsTest, OthersThanThoseWithoutRoomWaitForTheirPlugins) {
  rejector_ = "Other";
  Add("a.1", 1000);
  TryAll();
  EXPECT_EQ(told_, (Uids{"a.1"}));
  rejector_ = "NodeResourcesFit";
  pending_ = {"Another"};
  Add("a.2", 1000);
  TryAll();
  EXPECT_EQ(told_, (Uids{"a.1", "a.2"}));
}

TEST_F(VainAttemptsTest, WhoeverIsWokenOtherwiseIsSparedTheSameWay) {
  Add("runs.1", 4000, 0, "n");
  for (const char* uid : {"a.1", "a.2"}) Add(uid, 1000);
  TryAll();
  now_ += absl::Minutes(6);
  queue_.FlushDue(now_);
  EXPECT_EQ(queue_.counts().active, 2u);
  EXPECT_EQ(TryAll(), Uids{}) << "there is no room still";
  End("runs.1");
  now_ += absl::Minutes(6);
  queue_.FlushDue(now_);
  EXPECT_EQ(TryAll(), (Uids{"a.1"})) << "there is, but the first finds none";
}

TEST_F(VainAttemptsTest, WhoIsGoneIsForgotten) {
  Add("runs.1", 4000, 0, "n");
  for (const char* uid : {"a.1", "a.2"}) Add(uid, 1000);
  TryAll();
  cluster_.RemovePod("a.1");
  queue_.Delete("a.1");
  End("runs.1");
  EXPECT_EQ(TryAllByRoom(), (Uids{"a.2"}));
}

// Pods of a few kinds come to three nodes and go again.
class Player : private queue::PreEnqueueGate, queue::HintJudge {
 public:
  Player(unsigned seed, bool spares) : random_(seed), spares_(spares) {
    for (const char* name : {"n1", "n2", "n3"}) {
      auto node = std::make_shared<kube::NodeObject>();
      node->resource_version = "1";
      node->node.set_name(name);
      node->node.set_uid(name);
      node->node.mutable_allocatable()->set_cpu_millis(8000);
      node->node.mutable_allocatable()->set_pods(100);
      cluster_.UpsertNode(node);
    }
    queue_.SetWakeUpEvents("", {{"NodeResourcesFit", {queue::AssignedPodDelete()}}});
  }

  // Who got which node, in order, and the state of those that wait.
  std::string Play() {
    for (int step = 0; step < 400; ++step) {
      now_ += absl::Milliseconds(random_() % 9000);
      if (random_() % 100 < 55) {
        Arrive(step);
      } else if (!running_.empty()) {
        const size_t which = random_() % running_.size();
        cluster_.RemovePod(running_[which]);
        running_.erase(running_.begin() + which);
        vain_.Happened(queue::AssignedPodDelete());
        if (!spares_) queue_.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now_);
      }
      queue_.FlushDue(now_);
      vain_.BeginRound(now_);
      while (true) {
        vain_.TryNext(now_);
        QueuedPod* const info = queue_.Pop(now_);
        if (info == nullptr) break;
        if (!vain_.Spare(*info, now_)) Try(info->uid());
      }
      vain_.EndRound(now_);
    }
    queue_.ForEach([&](const QueuedPod& pod) {
      waiting_.insert(absl::StrCat(pod.uid(), " ", pod.unschedulable_count, " ",
                                   absl::FormatTime(pod.timestamp), "\n"));
    });
    return absl::StrCat(told_, absl::StrJoin(waiting_, ""));
  }
  int attempts() const { return attempts_; }

 private:
  void Arrive(int step) {
    auto pod = std::make_shared<kube::PodObject>();
    const int cpus = 1 << (random_() % 4);
    // As a plugin that lets those in who ask for little.
    const int amount = static_cast<int>(random_() % 5);
    pod->resource_version = "1";
    pod->pod.set_uid(absl::StrCat(cpus, "-", step, ":", amount));
    pod->pod.set_name(pod->uid());
    pod->pod.set_priority(static_cast<int32_t>(random_() % 8 == 0));
    pod->pod.add_containers()->mutable_requests()->set_cpu_millis(cpus * 1000);
    cluster_.UpsertPod(pod);
    queue_.Add(pod, now_);
  }
  void Try(const std::string& uid) {
    ++attempts_;
    for (const uint32_t slot : cluster_.node_order()) {
      if (!cluster_.CheckFits(uid, slot, scope_).ok()) continue;
      if (std::stoi(uid.substr(uid.find(':') + 1)) > 2 && running_.size() > 4) continue;
      EXPECT_TRUE(cluster_.Assume(uid, slot).ok());
      running_.push_back(uid);
      queue_.Forget(uid);
      absl::StrAppend(&told_, uid, " ", slot, " at ", absl::FormatTime(now_), "\n");
      return;
    }
    vain_.AddUnschedulable(uid, {{"NodeResourcesFit"}, {}}, now_);
  }

  bool Judges(const kube::PodObject&, uint64_t) override { return spares_; }
  void OnWaiting(const QueuedPod& pod) override { ADD_FAILURE() << pod.uid(); }
  void OnNotWaiting(const QueuedPod&) override {}
  std::vector<queue::GateVerdict> Judge(absl::Span<const QueuedPod* const> pods,
                                        absl::Time) override {
    return std::vector<queue::GateVerdict>(pods.size());
  }
  bool Holds(const QueuedPod& pod) const override { return vain_.Holds(pod.uid()); }

  std::mt19937 random_;
  const bool spares_;
  absl::Time now_ = kStart;
  ClusterState cluster_;
  queue::SchedulingQueue queue_{{}, kStart, this, this};
  const GuardScope scope_;
  std::vector<std::string> running_;
  std::string told_;
  std::set<std::string> waiting_;
  int attempts_ = 0;
  VainAttempts vain_{&cluster_, &queue_,
                     spares_ ? LikenessOf([](const kube::PodObject& pod) {
                       Likeness likeness;
                       likeness.kind = absl::StrCat(pod.uid().substr(0, pod.uid().find('-')), "/",
                                                    pod.pod.priority());
                       likeness.amount = std::stoi(pod.uid().substr(pod.uid().find(':') + 1));
                       return likeness;
                     })
                             : nullptr,
                     [this](const kube::PodObject&) -> std::optional<VainAttempts::Terms> {
                       return VainAttempts::Terms{&scope_, false};
                     }};
};

TEST(VainAttemptsRandomTest, SparedOrNotTheSameComesOfIt) {
  int made = 0, all = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Player spares(seed, true), tries_all(seed, false);
    ASSERT_EQ(tries_all.Play(), spares.Play()) << "seed " << seed;
    made += spares.attempts();
    all += tries_all.attempts();
  }
  EXPECT_LT(made * 3, all);
}

}  // namespace
}  // namespace outboard::cycle
