// For plugins that judge each node by itself.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_LOCAL_PLUGIN_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_LOCAL_PLUGIN_H_

namespace outboard::sdk {

// Derived from by a plugin whose verdict on a node, and whose raw score of it, depend on the
// attempt's pod by no more than its signature, of all other pods on none but those on the node, and
// not on the time. What it said of a node to one pod is then what it says to the next ones like it,
// until a pod comes to the node or goes, or anything but pods changes: where many are placed at
// once, it is asked again only about nodes that changed. Its PreFilter and PreScore may tell it
// more of the pod, but not of other nodes.
class NodeLocalPlugin {
 public:
  virtual ~NodeLocalPlugin() = default;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_LOCAL_PLUGIN_H_
