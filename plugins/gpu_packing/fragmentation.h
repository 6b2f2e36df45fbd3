// How much of a node's idle GPU capacity a target workload could not use: the measure of
// Fragmentation Gradient Descent (FGD). Plain arithmetic, independent of pods, nodes and plugins.
//
// Unit of GPU capacity everywhere: thousandths of one GPU ("milli"), so 1000 is a whole GPU.
#ifndef OUTBOARD_PLUGINS_GPU_PACKING_FRAGMENTATION_H_
#define OUTBOARD_PLUGINS_GPU_PACKING_FRAGMENTATION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace outboard::gpu_packing {

inline constexpr int32_t kWholeGpu = 1000;

// A pod's demand: `gpus` devices, `milli` of each. gpus == 0: no GPUs.
struct Demand {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  int32_t gpus = 0;
  int32_t milli = kWholeGpu;  // 1..1000.

  friend bool operator==(const Demand&, const Demand&) = default;
};

// One kind of pod of the target workload.
struct Shape {
  Demand demand;
  std::vector<uint32_t> models;  // Ids of GPU models that it can run on; empty: any. Sorted.
  double weight = 0;             // Share of all pods; the weights of a workload sum up to 1.

  friend bool operator==(const Shape&, const Shape&) = default;
};

// A node's free resources.
struct NodeRoom {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  uint32_t model = 0;              // Id; 0: unknown, which no shape that names models can run on.
  absl::Span<const int32_t> idle;  // Of each GPU, 0..1000.
};

// The expected idle milli that a pod drawn from `shapes` could not use. If the pod cannot run
// there, or uses no GPU: all that is idle; otherwise the idle part of GPUs with less than it needs
// of one.
double Fragmentation(const NodeRoom& room, absl::Span<const Shape> shapes);

// Chooses the indices of the demand's devices: for whole GPUs the first free ones; for shares those
// with the least room that is enough. False, and nothing chosen, if there are too few.
bool ChooseDevices(absl::Span<const int32_t> idle, const Demand& demand,
                   std::vector<int32_t>* chosen);

// Scratch memory, so that scoring many nodes does not allocate.
struct Scratch {
  std::vector<int32_t> idle;
  std::vector<int32_t> chosen;
};

// How far the node's fragmentation falls if it takes the demand (possibly without GPUs); negative:
// it rises. `before` is Fragmentation(room, shapes). A demand without room counts as if it took no
// GPU.
double FragmentationGain(const NodeRoom& room, absl::Span<const Shape> shapes, double before,
                         const Demand& demand, Scratch* scratch);

// A gain as a score: ⌊100·sigmoid(gain / 1000)⌋, so 50 for no gain. Coarse on purpose: nodes with
// almost equal gains tie, and packing decides.
int64_t GainScore(double gain);

}  // namespace outboard::gpu_packing

#endif  // OUTBOARD_PLUGINS_GPU_PACKING_FRAGMENTATION_H_
