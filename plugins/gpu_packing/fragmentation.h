// How much of a node's idle GPU capacity a target workload could not use: the measure of
// Fragmentation Gradient Descent (FGD). Plain arithmetic; knows no pods, nodes or plugins.
//
// Unit of GPU capacity everywhere: thousandths of one GPU ("milli"), so 1000 is a whole GPU.
#ifndef OUTBOARD_PLUGINS_GPU_PACKING_FRAGMENTATION_H_
#define OUTBOARD_PLUGINS_GPU_PACKING_FRAGMENTATION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace outboard::gpu_packing {

inline constexpr int32_t kWholeGpu = 1000;

// What a pod takes: `gpus` devices, `milli` of each. No GPUs: gpus == 0.
struct Demand {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  int32_t gpus = 0;
  int32_t milli = kWholeGpu;  // 1..1000.

  friend bool operator==(const Demand&, const Demand&) = default;
};

// One of the pods that the cluster is to have room for.
struct Shape {
  Demand demand;
  std::vector<uint32_t> models;  // Ids of GPU models that it can run on; empty: any. Sorted.
  double weight = 0;             // Share of all pods; the weights of a workload sum up to 1.

  friend bool operator==(const Shape&, const Shape&) = default;
};

// What a node has left.
struct NodeRoom {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  uint32_t model = 0;              // Id; 0: unknown, which no shape that names models can run on.
  absl::Span<const int32_t> idle;  // Of each GPU, 0..1000.
};

// The expected idle milli that a pod drawn from `shapes` could not use: all that is idle where the
// pod cannot run, or wants no GPU; else what is idle on GPUs with less than it needs of one. A GPU
// that is idle in part counts in part.
double Fragmentation(const NodeRoom& room, absl::Span<const Shape> shapes);

// Indices of the devices that the demand gets: whole GPUs the first free ones; parts those with the
// least left that have enough. False, and nothing chosen, if there are too few.
bool ChooseDevices(absl::Span<const int32_t> idle, const Demand& demand,
                   std::vector<int32_t>* chosen);

// Scratch memory, so that scoring many nodes allocates nothing.
struct Scratch {
  std::vector<int32_t> idle;
  std::vector<int32_t> chosen;
};

// By how much the node's fragmentation falls if it takes the demand (which may be one without
// GPUs); below 0: it rises. `before` is Fragmentation(room, shapes). A demand for which there is no
// room is counted as if it took no GPU.
double FragmentationGain(const NodeRoom& room, absl::Span<const Shape> shapes, double before,
                         const Demand& demand, Scratch* scratch);

// A gain as a score: ⌊100·sigmoid(gain / 1000)⌋, so 50 for none. Coarse on purpose: nodes between
// which the measure hardly tells are equal, and packing decides.
int64_t GainScore(double gain);

}  // namespace outboard::gpu_packing

#endif  // OUTBOARD_PLUGINS_GPU_PACKING_FRAGMENTATION_H_
