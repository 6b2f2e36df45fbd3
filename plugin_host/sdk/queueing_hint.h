// Whether a change of an object helps a pod that a plugin rejected.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_QUEUEING_HINT_H_
#define OUTBOARD_PLUGIN_HOST_SDK_QUEUEING_HINT_H_

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

// An object before and after an event, of one kind. `old_…` is null for ADD, `new_…` for DELETE;
// otherwise both are set. A pod's node_name is also set while its place is only assumed.
//
// Threading: a value.
// Lifetime: within one call.
// Errors: none.
struct ObjectChange {
  absl::string_view resource;  // `Node`, `AssignedPod`, `UnscheduledPod`, `PersistentVolume`, …
  v1beta1::ClusterEvent::Action action = v1beta1::ClusterEvent::ACTION_UNSPECIFIED;
  const v1beta1::Node* old_node = nullptr;
  const v1beta1::Node* new_node = nullptr;
  const v1beta1::Pod* old_pod = nullptr;
  const v1beta1::Pod* new_pod = nullptr;
  const v1beta1::ClusterObject* old_object = nullptr;
  const v1beta1::ClusterObject* new_object = nullptr;
};

enum class Hint {
  kSkip,   // The plugin would reject the pod as before.
  kQueue,  // It may accept the pod; also in doubt.
};

// For plugins that can decide more exactly than by the kind of an event whether it helps. For other
// plugins all registered events (`PluginDescriptor::wake_up_events`) help. As in kube-scheduler,
// any change of taints helps a plugin that registered Node ADD without UPDATE_NODE_TAINT.
class QueueingHintPlugin {
 public:
  virtual ~QueueingHintPlugin() = default;
  // Only called for events that the plugin registered and pods that it rejected. `pod` has its
  // current state, which after an update of itself is `change.new_pod`.
  virtual Hint QueueingHint(const PodView& pod, const ObjectChange& change) const = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_QUEUEING_HINT_H_
