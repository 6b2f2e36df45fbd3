// Random operations. After each of them the queue's counters must balance, and in the end no pod
// may be lost.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/queue/scheduling_queue.h"
#include "shim/queue/testing/fake_seams.h"

namespace outboard::queue {
namespace {

using testing::CountingObserver;
using testing::FakeDelegate;
using testing::FakeGate;
using testing::MakePod;

class RandomRun {
 public:
  explicit RandomRun(uint32_t seed) : random_(seed) {
    queue_.SetWakeUpEvents("default",
                           {{"Fit", {NodeEvent(kAdd), {"Pod", kDelete, ""}}},
                            {"Taints", {NodeEvent(kUpdateNodeTaint)}},
                            {"Gates", {{"Pod", kUpdatePodSchedulingGatesEliminated, ""}}},
                            {"Quiet", {}}});
  }

  void Go(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) {
      Step();
      Check();
    }
    Finish();
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % n); }
  std::string AnyUid() { return absl::StrCat("p", Pick(40)); }
  std::string AnyInFlight() {
    if (in_flight_.empty()) return "none";
    auto it = in_flight_.begin();
    std::advance(it, Pick(static_cast<int>(in_flight_.size())));
    return *it;
  }
  kube::PodPtr NewVersion(const std::string& uid) {
    return MakePod(uid, Pick(3), absl::StrCat(++version_));
  }
  SchedulingQueue::Rejectors AnyRejectors() {
    SchedulingQueue::Rejectors rejectors;
    for (const char* plugin : {"Fit", "Taints", "Quiet"}) {
      if (Pick(3) == 0) (Pick(4) == 0 ? rejectors.pending : rejectors.unschedulable).insert(plugin);
    }
    return rejectors;
  }

  void Step() {
    const std::string uid = AnyUid();
    switch (Pick(16)) {
      case 0:
      case 1:
      case 2:
        // A pod that is in flight and deleted may not come back before its attempt has ended;
        // informers do not deliver that.
        if (in_flight_.count(uid) == 0) {
          queue_.Add(NewVersion(uid), now_);
          alive_.insert(uid);
        }
        break;
      case 3:
        if (alive_.count(uid) != 0) {
          queue_.Update(NewVersion(uid), {{"UnscheduledPod", kUpdatePodLabel, ""}}, now_);
        }
        break;
      case 4:
        queue_.Delete(uid);
        alive_.erase(uid);
        break;
      case 5:
      case 6:
      case 7:
        if (QueuedPod* pod = queue_.Pop(now_)) {
          ASSERT_TRUE(in_flight_.insert(pod->uid()).second) << "popped twice";
          ASSERT_EQ(alive_.count(pod->uid()), 1u) << "popped after its deletion";
        }
        break;
      case 8:
      case 9:
      case 10: {
        const std::string back = AnyInFlight();
        if (Pick(4) == 0) queue_.Done(back);
        const bool kept = queue_.AddUnschedulable(back, AnyRejectors(), now_);
        ASSERT_EQ(kept, in_flight_.count(back) != 0 && alive_.count(back) != 0);
        in_flight_.erase(back);
        break;
      }
      case 11: {
        const std::string back = AnyInFlight();
        const bool kept = queue_.Park(back, Pick(2) == 0 ? "h1" : "h2", now_);
        ASSERT_EQ(kept, in_flight_.count(back) != 0 && alive_.count(back) != 0);
        in_flight_.erase(back);
        break;
      }
      case 12: {
        const std::string bound = AnyInFlight();
        queue_.Forget(bound);
        alive_.erase(bound);
        in_flight_.erase(bound);
        break;
      }
      case 13: {
        const ClusterEvent events[] = {NodeEvent(kAdd),
                                       AssignedPodDelete(),
                                       AssignedPodAdd(),
                                       NodeEvent(kUpdateNodeTaint),
                                       {"*", kAllActions, "Forced"}};
        queue_.MoveAllToActiveOrBackoff(events[Pick(5)], now_);
        break;
      }
      case 14:
        now_ += absl::Milliseconds(Pick(4000));
        queue_.FlushDue(now_);
        break;
      case 15:
        switch (Pick(9)) {
          case 0:
            queue_.HostReturned(Pick(2) == 0 ? "h1" : "h2", now_);
            break;
          case 1:
            gate_.gated_by[uid] = "Gates";
            break;
          case 2:
            gate_.gated_by.erase(uid);
            queue_.RecheckGates({{uid}}, now_);
            break;
          case 3:
            queue_.Activate({{uid}}, now_);
            break;
          case 4:
            queue_.SetSortKey(uid,
                              Pick(2) == 0 ? "" : std::string(1, static_cast<char>(Pick(256))));
            break;
          case 5:
            if (Pick(2) == 0) {
              gate_.unavailable_at[uid] = "h1";
            } else {
              gate_.unavailable_at.erase(uid);
            }
            break;
          case 6: {
            const SchedulingQueue::Hint hint{
                uid, Pick(2) == 0 ? "Fit" : "Gates", NodeEvent(kAdd),
                Pick(3) == 0 ? 0 : queue_.next_event_number() - Pick(2)};
            queue_.ApplyHints({&hint, 1}, now_);
            break;
          }
          case 7:
            delegate_.evaluates = Pick(2) == 0;
            delegate_.knows_from = queue_.next_event_number();
            break;
          case 8:
            queue_.DelegateReset("default", now_);
            break;
        }
        break;
    }
  }

  void Check() {
    QueueCounts seen;
    size_t pods = 0;
    std::map<std::string, int> reasons;
    queue_.ForEach([&](const QueuedPod& pod) {
      ++pods;
      switch (pod.place) {
        case Place::kNone:
          ADD_FAILURE() << pod.uid() << " is in no place";
          break;
        case Place::kActive:
          ++seen.active;
          break;
        case Place::kBackoff:
        case Place::kErrorBackoff:
          ++seen.backoff;
          break;
        case Place::kUnschedulable:
          ++seen.unschedulable;
          break;
        case Place::kGated:
          ++seen.gated;
          break;
        case Place::kParked:
          ++seen.parked;
          break;
        case Place::kInFlight:
          ++seen.in_flight;
          break;
      }
      ASSERT_EQ(pod.place == Place::kInFlight, in_flight_.count(pod.uid()) != 0) << pod.uid();
      ASSERT_EQ(pod.place == Place::kInFlight || !pod.recording, true);
      ASSERT_EQ(pod.delegated, delegate_.waiting.count(pod.uid()) != 0) << pod.uid();
      if (pod.delegated) {
        ASSERT_TRUE(pod.place == Place::kUnschedulable || pod.place == Place::kGated);
      }
      ASSERT_EQ(pod.deleted, alive_.count(pod.uid()) == 0) << pod.uid();
      if (pod.place == Place::kInFlight) return;
      std::set<std::string> plugins(pod.unschedulable_plugins.begin(),
                                    pod.unschedulable_plugins.end());
      plugins.insert(pod.pending_plugins.begin(), pod.pending_plugins.end());
      for (const std::string& plugin : plugins) ++reasons[plugin + "/default"];
    });
    const QueueCounts counts = queue_.counts();
    ASSERT_EQ(counts.active, seen.active);
    ASSERT_EQ(counts.backoff, seen.backoff);
    ASSERT_EQ(counts.unschedulable, seen.unschedulable);
    ASSERT_EQ(counts.gated, seen.gated);
    ASSERT_EQ(counts.parked, seen.parked);
    ASSERT_EQ(counts.in_flight, seen.in_flight);
    for (const std::string& uid : alive_) ASSERT_NE(queue_.Find(uid), nullptr) << uid << " is lost";
    ASSERT_EQ(observer_.unschedulable, reasons);
  }

  // With every attempt over, every gate open and every host back, time alone must give each living
  // pod its turn, in order.
  void Finish() {
    const std::set<std::string> open = in_flight_;
    for (const std::string& uid : open) queue_.AddUnschedulable(uid, {{"Quiet"}, {}}, now_);
    in_flight_.clear();
    gate_.gated_by.clear();
    gate_.unavailable_at.clear();
    queue_.RecheckGates([](const QueuedPod&) { return true; }, now_);
    queue_.HostReturned("h1", now_);
    queue_.HostReturned("h2", now_);
    std::set<std::string> tried;
    for (absl::Time next = now_;
         next - now_ < absl::Minutes(10) && next != absl::InfiniteFuture();) {
      queue_.FlushDue(next);
      std::optional<std::pair<std::string, absl::Time>> last;
      while (queue_.counts().active > 0) {
        QueuedPod* pod = queue_.Pop(next);
        const auto key = std::make_pair(pod->sort_key, pod->timestamp);
        if (last.has_value()) {
          ASSERT_LE(*last, key);
        }
        last = key;
        tried.insert(pod->uid());
        queue_.Forget(std::string(pod->uid()));
      }
      const absl::Time wakeup = queue_.NextWakeup();
      ASSERT_TRUE(wakeup > next) << "requests a wake-up without need";
      next = wakeup;
    }
    EXPECT_EQ(tried, alive_);
  }

  std::mt19937 random_;
  absl::Time now_ = absl::FromUnixMillis(1000500);
  FakeGate gate_;
  CountingObserver observer_;
  FakeDelegate delegate_;
  SchedulingQueue queue_{QueueOptions{}, now_, &gate_, &delegate_, &observer_};
  std::set<std::string> alive_;      // in the cluster and unbound
  std::set<std::string> in_flight_;  // popped; the attempt has not ended
  int version_ = 0;
};

TEST(SchedulingQueueRandomTest, EveryPodIsInExactlyOnePlace) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomRun(seed).Go(1500);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace outboard::queue
