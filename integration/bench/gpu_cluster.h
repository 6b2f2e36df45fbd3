// A cluster as clouds rent it out for training and inference, for measurements: nodes without GPUs,
// and with GPUs of four models; prices, spot, zones, racks, NVLink islands, and pods that run.
#ifndef OUTBOARD_INTEGRATION_BENCH_GPU_CLUSTER_H_
#define OUTBOARD_INTEGRATION_BENCH_GPU_CLUSTER_H_

#include <string>
#include <vector>

#include "shim/kube/objects.h"

namespace outboard::bench {

// Every second of five has GPUs. The same number gives the same node.
kube::NodePtr GpuClusterNode(int index);
// What runs on it.
std::vector<kube::PodPtr> RunningOn(int index);

// Kinds of pods that come.
struct PodKind {
  const char* name;
  bool gpus;
};
const std::vector<PodKind>& PodKinds();
// A pod of PodKinds()[kind], for the profile `scheduler`.
kube::PodPtr ArrivingPod(size_t kind, int index, const std::string& scheduler);

}  // namespace outboard::bench

#endif  // OUTBOARD_INTEGRATION_BENCH_GPU_CLUSTER_H_
