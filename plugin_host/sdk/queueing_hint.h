// Whether a change of an object helps a pod that a plugin rejected.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_QUEUEING_HINT_H_
#define OUTBOARD_PLUGIN_HOST_SDK_QUEUEING_HINT_H_

#include "absl/strings/string_view.h"
#include "plugin_host/sdk/views.h"
#include "proto/outboard/v1alpha1/objects.pb.h"
#include "proto/outboard/v1alpha1/plugin_host.pb.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::sdk {

// An object before and after an event; one kind of object in each. `old_…` is null if it appeared
// (ADD), `new_…` if it went (DELETE); otherwise both are there. A pod's node_name is also set while
// it has its place in the shim's books only.
//
// Threading: a value. Lifetime: within one call. Errors: none.
struct ObjectChange {
  absl::string_view resource;  // `Node`, `AssignedPod`, `UnscheduledPod`, `PersistentVolume`, …
  v1alpha1::ClusterEvent::Action action = v1alpha1::ClusterEvent::ACTION_UNSPECIFIED;
  const v1alpha1::Node* old_node = nullptr;
  const v1alpha1::Node* new_node = nullptr;
  const v1alpha1::Pod* old_pod = nullptr;
  const v1alpha1::Pod* new_pod = nullptr;
  const v1alpha1::ClusterObject* old_object = nullptr;
  const v1alpha1::ClusterObject* new_object = nullptr;
};

enum class Hint {
  kSkip,   // The plugin would reject the pod as before.
  kQueue,  // It may not; in doubt too.
};

// For plugins that can tell more exactly than by the kind of an event whether it helps. The other
// events that a plugin registered (`PluginDescriptor::wake_up_events`) always help, and as in
// kube-scheduler any change of taints does if it registered Node ADD and no UPDATE_NODE_TAINT.
class QueueingHintPlugin {
 public:
  virtual ~QueueingHintPlugin() = default;
  // Only asked about events that the plugin registered and pods that it rejected. The pod is as it
  // is now, which after an update of itself is `change.new_pod`.
  virtual Hint QueueingHint(const PodView& pod, const ObjectChange& change) const = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_QUEUEING_HINT_H_
