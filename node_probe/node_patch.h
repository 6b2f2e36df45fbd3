// What the probe writes to its Node.
#ifndef OUTBOARD_NODE_PROBE_NODE_PATCH_H_
#define OUTBOARD_NODE_PROBE_NODE_PATCH_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "shim/kube/api_client.h"
#include "shim/kube/cancel_token.h"

namespace outboard::node_probe {

// Values of the annotations; those that are unknown stay as they are in the cluster.
struct NodeAnnotations {
  std::optional<std::string> islands;   // accelerator.sched.io/gpu-islands
  std::optional<std::string> pod_gpus;  // accelerator.sched.io/pod-gpus
  friend bool operator==(const NodeAnnotations&, const NodeAnnotations&) = default;
  bool empty() const { return !islands && !pod_gpus; }
};

// A JSON merge patch of a Node, on one line.
std::string PatchText(const NodeAnnotations& annotations);

// Patches the Node. The API server writes nothing if the Node already has these values.
//
// Threading: blocks; not on the client's thread.
// Errors: of the API server, the message says what to do about 403 and 404; transport errors;
// CANCELLED.
absl::Status PatchNode(kube::ApiClient* api, const std::string& node,
                       const NodeAnnotations& annotations, const kube::CancelToken& cancel);

}  // namespace outboard::node_probe

#endif  // OUTBOARD_NODE_PROBE_NODE_PATCH_H_
