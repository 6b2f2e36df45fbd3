// Fakes of the queue's surroundings, and pods for tests.
#ifndef OUTBOARD_SHIM_QUEUE_TESTING_FAKE_SEAMS_H_
#define OUTBOARD_SHIM_QUEUE_TESTING_FAKE_SEAMS_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/queue/queue_seams.h"

namespace outboard::queue::testing {

// Gates pods by uid, with a plugin's name, or returns no answer for them.
class FakeGate : public PreEnqueueGate {
 public:
  std::map<std::string, std::string> gated_by;        // uid -> plugin
  std::map<std::string, std::string> unavailable_at;  // uid -> host
  std::set<std::string> held;                         // uids
  std::vector<std::vector<std::string>> calls;        // uids of each batch

  bool IgnoresEvents(const QueuedPod& pod) const override { return held.count(pod.uid()) > 0; }

  std::vector<PreEnqueueResult> PreEnqueue(absl::Span<const QueuedPod* const> pods,
                                           absl::Time) override {
    std::vector<PreEnqueueResult> verdicts;
    calls.emplace_back();
    for (const QueuedPod* pod : pods) {
      calls.back().push_back(pod->uid());
      PreEnqueueResult verdict;
      if (auto it = gated_by.find(pod->uid()); it != gated_by.end()) {
        verdict.kind = PreEnqueueResult::Kind::kGated;
        verdict.plugin = it->second;
        verdict.message = absl::StrCat("gated by ", it->second);
      } else if (auto host = unavailable_at.find(pod->uid()); host != unavailable_at.end()) {
        verdict.kind = PreEnqueueResult::Kind::kUnavailable;
        verdict.host = host->second;
      }
      verdicts.push_back(std::move(verdict));
    }
    return verdicts;
  }
};

// Keeps the counters of the metrics.
class CountingObserver : public QueueObserver {
 public:
  std::map<std::string, int> incoming;       // "queue/event"
  std::map<std::string, int> unschedulable;  // "plugin/profile"
  std::map<std::string, int> pods;           // times that a pod came or changed, by uid
  std::vector<std::string> left;             // uids

  void OnPod(const kube::PodObject& pod) override { ++pods[pod.uid()]; }
  void OnPodLeft(const kube::PodObject& pod) override { left.push_back(pod.uid()); }
  void OnIncoming(absl::string_view queue, absl::string_view event) override {
    ++incoming[absl::StrCat(queue, "/", event)];
  }
  void OnUnschedulableReason(const std::string& plugin, const std::string& profile,
                             int delta) override {
    const std::string key = absl::StrCat(plugin, "/", profile);
    if ((unschedulable[key] += delta) == 0) unschedulable.erase(key);
  }
};

// A host that evaluates events from a number on, and records the waiting pods.
class FakeDelegate : public QueueingHintDelegate {
 public:
  bool evaluates = true;
  uint64_t knows_from = 0;
  std::map<std::string, uint64_t> waiting;  // uid -> since

  bool EvaluatesEvents(const kube::PodObject& pod, uint64_t since) override {
    return evaluates && since >= knows_from;
  }
  void OnWaiting(const QueuedPod& pod) override { waiting[pod.uid()] = pod.delegated_since; }
  void OnNotWaiting(const QueuedPod& pod) override { waiting.erase(pod.uid()); }
};

inline kube::PodPtr MakePod(const std::string& uid, int32_t priority = 0,
                            const std::string& version = "1") {
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_uid(uid);
  pod->pod.set_namespace_("ns");
  pod->pod.set_name(uid);
  pod->pod.set_scheduler_name("default");
  pod->pod.set_priority(priority);
  pod->resource_version = version;
  return pod;
}

}  // namespace outboard::queue::testing

#endif  // OUTBOARD_SHIM_QUEUE_TESTING_FAKE_SEAMS_H_
