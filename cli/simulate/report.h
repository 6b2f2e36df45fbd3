// The simulator's output about attempts at pods.
#ifndef OUTBOARD_CLI_SIMULATE_REPORT_H_
#define OUTBOARD_CLI_SIMULATE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "shim/diagnostics/pod_report.h"
#include "shim/scheduler/cluster_actions.h"

namespace outboard::simulate {

// The values of AttemptReport::result, in the order of a summary.
inline constexpr char kScheduled[] = "scheduled";
inline constexpr char kPreempting[] = "preempting";  // has no node, and evicts pods for one
inline constexpr char kUnschedulable[] = "unschedulable";
inline constexpr char kError[] = "error";
inline constexpr char kPreempted[] = "preempted";  // was scheduled and then evicted
inline constexpr char kSkipped[] = "skipped";      // not for this scheduler to place

// An attempt at a pod, or why there was none. `output.schema.json` documents its JSON.
struct AttemptReport : diagnostics::PodReport {
  int32_t priority = 0;
  std::string scheduler;                       // spec.schedulerName
  int attempt = 0;                             // from 1; 0: no attempt
  absl::Duration time = absl::ZeroDuration();  // virtual, since the simulation began
  // How many nodes each reason excluded.
  std::map<std::string, uint32_t> reasons;
  // Placed together with its group: the group, as its host names it, and the placed pods.
  std::string group;
  size_t group_pods = 0;
  std::string why;  // the essence, as Why gives it

  // Not in the JSON of an attempt.
  std::map<std::string, int32_t> weights;  // of the score plugins
  uint32_t nodes = 0;
  uint32_t evaluated_nodes = 0;
  uint32_t feasible_nodes = 0;
  std::string pre_filter_message;   // set if PreFilter rejected the pod
  std::string post_filter_message;  // why preemption does not help
  std::string lost_node;            // the attempt had this node and lost it again
  bool was_nominated = false;       // to the node that it got
  std::string leader;               // the member of its group that preempts pods for all of them
};

nlohmann::ordered_json ToJson(const AttemptReport& report);
// One line without a newline.
std::string ToJsonLine(const AttemptReport& report);

// An effect as reports list it, as JSON; empty for effects on volumes, claims and the pod's status,
// which the placement explains. Pure.
std::string DescribeEffect(const v1beta1::Effect& effect);

// A report without an attempt, with `message` as the essence.
AttemptReport ReportOf(const kube::PodObject& pod, const std::string& result,
                       const std::string& message);

// Collects the reports of a running scheduler.
//
// Threading: the scheduler's thread.
// Lifetime: `cluster` must outlive it.
class Reporter final : public scheduler::Observer {
 public:
  using Sink = std::function<void(AttemptReport)>;
  // `*cluster` is set when the scheduler exists. `every_attempt`: otherwise only first attempts.
  Reporter(const cache::ClusterState* const* cluster, bool every_attempt, Sink sink)
      : cluster_(cluster), every_attempt_(every_attempt), sink_(std::move(sink)) {}

  // Since the simulation began.
  void SetTime(absl::Duration time) { time_ = time; }

  void OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile& profile,
                   const framework::AlgorithmResult& result, const v1beta1::PlanResponse& response,
                   absl::Duration elapsed) override;
  void OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                    const std::vector<kube::PodPtr>& victims, size_t to_evict) override;
  void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                    scheduler::AttemptResult result, const std::string& node_name,
                    const std::string& message, absl::Duration since_attempt_began) override;

  // A plugin orders a write or an event. Ignored if it is not for a pod.
  void OnWrite(const scheduler::EffectOrder& order);
  // The pod was evicted. Reported only if every attempt is, and the pod had one.
  void OnEvicted(const kube::PodObject& pod);

  // How many attempts at the pod have ended.
  int attempts(const std::string& uid) const {
    const auto found = attempts_.find(uid);
    return found == attempts_.end() ? 0 : found->second;
  }
  size_t all_attempts() const { return all_attempts_; }

 private:
  void Report(AttemptReport report);

  struct Group {
    std::string name;
    size_t pods = 0;
  };
  struct Open {
    AttemptReport report;
    std::string nodes_message;  // the first part of the message if no node fits
    std::vector<std::string> rejected_with;
  };

  const cache::ClusterState* const* const cluster_;
  const bool every_attempt_;
  const Sink sink_;
  absl::Duration time_ = absl::ZeroDuration();
  // By uid: the algorithm ran, the attempt has not ended.
  absl::flat_hash_map<std::string, Open> open_;
  // By uid of members that are placed in the attempt of another one.
  absl::flat_hash_map<std::string, Group> groups_;
  absl::flat_hash_map<std::string, int> attempts_;  // by uid
  size_t all_attempts_ = 0;
  // By uid of a member whose group's preemption has begun.
  absl::flat_hash_map<std::string, std::string> leaders_;
  // By uid of a victim: `default/p on node n1`.
  absl::flat_hash_map<std::string, std::string> preemptors_;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_REPORT_H_
