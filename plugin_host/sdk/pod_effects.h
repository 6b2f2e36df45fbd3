// Effects on the pod that is being placed, and events, for ReserveAnswer::effects.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_POD_EFFECTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_POD_EFFECTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/effect.pb.h"
#include "outboard/v1beta1/objects.pb.h"

namespace outboard::sdk {

// What to change of a pod's annotations and labels.
struct PodPatch {
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> labels;
  std::vector<std::string> remove_annotations;
  std::vector<std::string> remove_labels;
};

// A condition of a pod. `type` is DOMAIN/NAME; `reason` is CamelCase.
struct PodCondition {
  std::string type;
  v1beta1::ConditionStatus status = v1beta1::CONDITION_STATUS_TRUE;
  std::string reason;
  std::string message{};
};

// An event. `reason` and `action` are CamelCase; a note of more than 1 KiB is cut.
struct Event {
  std::string reason;
  std::string action;
  std::string note;
  bool is_warning = false;
};

// `key` names the effect among those of its attempt: [a-z0-9-]{1,63}.
//
// Threading: pure functions.
// Errors: none here; the shim rejects content that the contract (effect.proto) does not allow, and
// the pod then releases its node.
v1beta1::Effect PatchPod(absl::string_view key, const PodPatch& patch);
v1beta1::Effect SetPodCondition(absl::string_view key, const PodCondition& condition);
v1beta1::Effect RecordPodEvent(absl::string_view key, const Event& event);
// About an object in the cache, also in the background. `kind` is Kubernetes': "ConfigMap".
v1beta1::Effect RecordObjectEvent(absl::string_view key, const v1beta1::GenericObject& object,
                                  absl::string_view kind, const Event& event);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_POD_EFFECTS_H_
