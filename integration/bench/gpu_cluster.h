// A cluster for measurements, like a cloud's for training and inference: nodes without GPUs and
// with GPUs of four models; prices, spot, zones, racks, NVLink islands, and running pods.
#ifndef OUTBOARD_INTEGRATION_BENCH_GPU_CLUSTER_H_
#define OUTBOARD_INTEGRATION_BENCH_GPU_CLUSTER_H_

#include <string>
#include <vector>

#include "shim/kube/objects.h"

namespace outboard::bench {

// Two nodes of five have GPUs. The same index gives the same node.
kube::NodePtr GpuClusterNode(int index);
// The pods that run on it.
std::vector<kube::PodPtr> RunningOn(int index);

// Kinds of arriving pods.
struct PodKind {
  const char* name;
  bool gpus;
};
const std::vector<PodKind>& PodKinds();
// A pod of PodKinds()[kind], for the profile `scheduler`.
kube::PodPtr ArrivingPod(size_t kind, int index, const std::string& scheduler);

}  // namespace outboard::bench

#endif  // OUTBOARD_INTEGRATION_BENCH_GPU_CLUSTER_H_
