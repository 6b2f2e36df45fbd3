// For plugins that evaluate each node independently.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_LOCAL_PLUGIN_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_LOCAL_PLUGIN_H_

namespace outboard::sdk {

// A plugin derives from this if its verdict on a node and its raw score depend only on: the
// signature of the attempt's pod, the pods on the node, and objects other than pods; not on other
// nodes' pods or the time. The host then reuses its answer about a node for interchangeable pods
// until a pod is added to or removed from the node, or anything other than pods changes: when it
// places many pods, it calls the plugin again only for changed nodes. PreFilter and PreScore may
// compute more about the pod, but not about other nodes.
class NodeLocalPlugin {
 public:
  virtual ~NodeLocalPlugin() = default;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_LOCAL_PLUGIN_H_
