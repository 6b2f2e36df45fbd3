// Asks the kubelet which devices the pods of this node use.
#ifndef OUTBOARD_NODE_PROBE_POD_RESOURCES_H_
#define OUTBOARD_NODE_PROBE_POD_RESOURCES_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "node_probe/gpu_inventory.h"
#include "plugin_host/sdk/gpu_devices.h"
#include "shim/kube/cancel_token.h"

namespace v1 {
class ListPodResourcesResponse;
}

namespace outboard::node_probe {

// The same limit as the kubelet's own clients have.
inline constexpr int kMaxPodResourcesBytes = 16 << 20;

struct PodDevices {
  sdk::PodGpus gpus;
  // Devices named like GPUs (`GPU-…`, `MIG-…`) that the inventory lacks.
  size_t unknown_devices = 0;
  // Pods without a valid namespace and name.
  size_t unnamed_pods = 0;
};

// The pods that use GPUs of the inventory, by any resource and container. Pure.
PodDevices GpusOfPods(const v1::ListPodResourcesResponse& pods, const GpuInventory& inventory);

// Connects for each call.
//
// Threading: thread-safe; blocks.
// Errors: as of gRPC, the message names the socket: UNAVAILABLE without a kubelet,
// PERMISSION_DENIED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED for an answer above
// kMaxPodResourcesBytes, CANCELLED.
class PodResourcesClient {
 public:
  PodResourcesClient(std::string socket, absl::Duration timeout);

  absl::StatusOr<PodDevices> List(const GpuInventory& inventory,
                                  const kube::CancelToken& cancel) const;

 private:
  const std::string socket_;
  const absl::Duration timeout_;
};

}  // namespace outboard::node_probe

#endif  // OUTBOARD_NODE_PROBE_POD_RESOURCES_H_
