// What happened in the cluster, in the queue's terms: kube-scheduler's ClusterEvent.
#ifndef OUTBOARD_SHIM_QUEUE_CLUSTER_EVENT_H_
#define OUTBOARD_SHIM_QUEUE_CLUSTER_EVENT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::queue {

// Kinds of change; bits, so that a registration can name several. Bit n stands for
// v1beta1::ClusterEvent::Action n + 1.
enum Action : uint32_t {
  kNoAction = 0,
  kAdd = 1u << 0,
  kDelete = 1u << 1,
  kUpdateNodeAllocatable = 1u << 2,
  kUpdateNodeLabel = 1u << 3,
  kUpdateNodeTaint = 1u << 4,
  kUpdateNodeCondition = 1u << 5,
  kUpdateNodeAnnotation = 1u << 6,
  kUpdatePodLabel = 1u << 7,
  kUpdatePodScaleDown = 1u << 8,
  kUpdatePodToleration = 1u << 9,
  kUpdatePodSchedulingGatesEliminated = 1u << 10,
  // Any other change. kube-scheduler calls the label of such an event "Update".
  kUpdate = 1u << 11,
  kUpdateNodeDeclaredFeature = 1u << 12,
  kAllActions = (1u << 13) - 1,
};

// Resources with a special meaning. Others are identified by their Kubernetes names.
inline constexpr absl::string_view kAnyResource = "*";
inline constexpr absl::string_view kPod = "Pod";
// Events distinguish pods that have a node from pods that wait for one; a registration for "Pod"
// matches both. kube-scheduler's labels call the latter "UnschedulablePod".
inline constexpr absl::string_view kAssignedPod = "AssignedPod";
inline constexpr absl::string_view kUnscheduledPod = "UnscheduledPod";
inline constexpr absl::string_view kNode = "Node";

// One kind of event. A value type; equal events are interchangeable.
struct ClusterEvent {
  std::string resource;
  uint32_t actions = kNoAction;
  // Replaces the label built from resource and action; only special events have one.
  std::string custom_label;

  bool is_wildcard() const { return resource == kAnyResource && actions == kAllActions; }
  // kube-scheduler's label, for metrics and logs: "NodeAdd", "AssignedPodDelete",
  // "storage.k8s.io/CSINodeAdd", "UnschedulableTimeout", …
  std::string Label() const;

  friend bool operator==(const ClusterEvent& a, const ClusterEvent& b) {
    return a.actions == b.actions && a.resource == b.resource && a.custom_label == b.custom_label;
  }
  template <typename H>
  friend H AbslHashValue(H h, const ClusterEvent& e) {
    return H::combine(std::move(h), e.resource, e.actions, e.custom_label);
  }
};

ClusterEvent AssignedPodAdd();
ClusterEvent AssignedPodDelete();
ClusterEvent UnscheduledPodAdd();
ClusterEvent NodeEvent(Action action);

// Whether this build knows an action of the contract by its number.
bool IsKnownAction(int action);
// A registration of the contract. An action that this build does not know counts as every action on
// the resource, so that no pod waits for an event that never comes.
ClusterEvent FromContract(const v1beta1::ClusterEvent& event);
v1beta1::ClusterEvent ToContract(const ClusterEvent& event);

// Whether an incoming event matches a plugin's registration.
bool Matches(const ClusterEvent& registered, const ClusterEvent& incoming);

// Labels of moves without a cluster event.
inline constexpr absl::string_view kScheduleAttemptFailure = "ScheduleAttemptFailure";
inline constexpr absl::string_view kBackoffComplete = "BackoffComplete";
inline constexpr absl::string_view kPopFromBackoffQ = "PopFromBackoffQ";
inline constexpr absl::string_view kForceActivate = "ForceActivate";
inline constexpr absl::string_view kUnschedulableTimeout = "UnschedulableTimeout";
inline constexpr absl::string_view kUnscheduledPodAdd = "UnschedulablePodAdd";
inline constexpr absl::string_view kUnscheduledPodUpdate = "UnschedulablePodUpdate";
// The shim's own labels, without a counterpart in kube-scheduler.
inline constexpr absl::string_view kGateChanged = "GateChanged";
inline constexpr absl::string_view kHostReturned = "HostReturned";
inline constexpr absl::string_view kHostUnavailable = "HostUnavailable";

}  // namespace outboard::queue

#endif  // OUTBOARD_SHIM_QUEUE_CLUSTER_EVENT_H_
