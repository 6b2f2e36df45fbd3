// Bodies and paths of the shim's write requests, built as text: no document tree on the hot path.
#ifndef OUTBOARD_SHIM_BIND_API_REQUESTS_H_
#define OUTBOARD_SHIM_BIND_API_REQUESTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/effect.pb.h"
#include "shim/kube/api_client.h"
#include "shim/kube/objects.h"

namespace outboard::bind {

// Binds a pod to a node.
struct BindRequest {
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;
  std::string node_name;
  std::string profile{};  // the scheduling profile; not sent
  // Another process sends or sent the binding: only read its outcome.
  bool bound_by_other_scheduler = false;
  // For the Binding's metadata.
  std::map<std::string, std::string> annotations{};
};

// The outcome of an attempt, for the pod's status.
struct StatusChange {
  // PodScheduled=False with this reason ("Unschedulable" or "SchedulerError") and message. Empty:
  // keep the condition.
  std::string reason;
  std::string message;
  // Sets status.nominatedNodeName, or clears it if empty. nullopt: keep it.
  std::optional<std::string> nominated_node_name;
};

// The fields of a pod that its status patch depends on.
struct PodFacts {
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;
  int64_t generation = 0;
  std::string nominated_node_name;
  kube::PodScheduledCondition scheduled;
};
PodFacts FactsOf(const kube::PodObject& pod);

// Appends `text` as a quoted JSON string. Invalid UTF-8 becomes U+FFFD.
void AppendJsonString(absl::string_view text, std::string* out);

std::string BindingPath(const BindRequest& request);
std::string BindingBody(const BindRequest& request);

std::string PodPath(absl::string_view pod_namespace, absl::string_view pod_name);
std::string PodStatusPath(absl::string_view pod_namespace, absl::string_view pod_name);
// The strategic merge patch that changes the pod's status to `change`, in kube-scheduler's form
// with the pod's UID as precondition; nullopt if nothing changes. `wall` is the time of the change.
std::optional<std::string> PodStatusPatchBody(const PodFacts& pod, const StatusChange& change,
                                              absl::Time wall);

// Evicts a pod for a pod with higher priority.
struct EvictRequest {
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;
  int64_t generation = 0;
  // The pod has the DisruptionTarget condition already.
  bool condition_is_set = false;
  // The condition's message.
  std::string message;
};
// The strategic merge patch that adds the condition DisruptionTarget, reason PreemptionByScheduler.
std::string DisruptionPatchBody(const EvictRequest& request, absl::Time wall);
// Deletes only the pod with this UID, not another one of the same name.
std::string DeleteBody(const EvictRequest& request);
// The answer to a request about a pod with its UID as precondition says that this pod no longer
// exists: 404, or a pod of the same name has another UID (409 to a delete, 422 to a patch).
bool IsPodGone(const kube::ApiResponse& answer);
// The answer to a status patch says that the pod is gone, or that it was bound meanwhile and so
// cannot have a nominated node. Neither is a fault.
bool IsPatchOutdated(const kube::ApiResponse& answer);

// The request for an effect, with the object's uid and resourceVersion as preconditions: a patch,
// or for custom resources the object itself. `pod` is the pod being scheduled; may be null.
//
// `wall` is the time of the write. Events are not requests of their own: see event_recorder.h.
// Errors: UNIMPLEMENTED for an unknown effect and for an event. INVALID_ARGUMENT for an object of
// another resource, for a name that would lead to another path, and for an effect that requires a
// pod if `pod` is null.
struct EffectRequest {
  kube::Method method = kube::Method::kPatch;
  std::string path;
  std::string content_type{kube::kStrategicMergePatch};
  std::string body;
  // RESOURCE.VERSION.GROUP of the object in the answer; empty: hosts do not watch this kind, or no
  // object. And the object's path, to read it if the outcome is unknown; empty: it is not read.
  std::string resource;
  std::string object_path;
};
absl::StatusOr<EffectRequest> RequestOf(const v1beta1::Effect& effect, const v1beta1::Pod* pod,
                                        absl::Time wall);

// An event of events.k8s.io/v1 about an object, usually a pod.
struct EventFields {
  std::string name;
  std::string object_namespace;  // empty: the object has none, and the event is in "default"
  std::string object_name;
  std::string object_uid;
  std::string object_resource_version;
  absl::Time event_time;
  std::string reporting_controller;
  std::string reporting_instance;
  std::string action;
  std::string reason;
  std::string note;
  std::string type;
  std::string kind = "Pod";
  std::string api_version = "v1";
  std::string plugin{};      // that wants the event; empty: the shim's own
  int32_t series_count = 0;  // 0: not a series
  absl::Time series_last_observed;
};
// The namespace of the event itself.
std::string NamespaceOf(const EventFields& event);
std::string EventsPath(absl::string_view event_namespace);
std::string EventPath(absl::string_view event_namespace, absl::string_view name);
std::string EventBody(const EventFields& event);
// The strategic merge patch that adds or updates the event's series.
std::string EventSeriesPatchBody(const EventFields& event);
// kube-scheduler's name for an event about `object_name`: the name and the time in hexadecimal
// nanoseconds, or a UUID if that name is invalid.
std::string EventName(absl::string_view object_name, absl::Time time);

// kube-scheduler's truncation of an event's note: at most 1024 bytes, ending in " ...". Unlike
// kube-scheduler's it does not split characters.
std::string TruncateNote(absl::string_view message);
// "Successfully assigned NS/POD to NODE"
std::string AssignedNote(const BindRequest& request);

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_API_REQUESTS_H_
