// The target workload: the pods to keep room for, from the arguments, or learnt from the cluster's
// pods.
#ifndef OUTBOARD_PLUGINS_GPU_PACKING_WORKLOAD_H_
#define OUTBOARD_PLUGINS_GPU_PACKING_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/views.h"
#include "plugins/gpu_packing/gpu_layout.h"

namespace outboard::gpu_packing {

// The target workload, and numbers for the models of GPUs.
//
// Threading: thread-compatible.
// Lifetime: a value; a learnt workload depends only on the cluster cache's pods.
class Workload {
 public:
  static constexpr size_t kMaxShapes = 256;

  // The arguments `targetWorkload`, `maxShapes`, `coveragePercent` and `modelLabel`.
  static Workload Read(const sdk::ArgsObject& root);

  bool learns() const { return learns_; }
  const std::string& model_label() const { return model_label_; }
  absl::Span<const Shape> shapes() const { return shapes_; }
  // The largest demand of a shape: a node with more room can run all shapes.
  int64_t highest_cpu_millis() const { return highest_cpu_millis_; }
  int64_t highest_memory_bytes() const { return highest_memory_bytes_; }

  // 0 for an empty name.
  uint32_t ModelId(absl::string_view name);

  // Returns true if the pod is counted in its current state.
  bool Knows(const sdk::PodRecord& pod) const;
  // A pod appeared or changed, with its demand; or it was removed.
  void Count(const sdk::PodRecord& pod, const PodGpus& gpus);
  void Forget(const sdk::PodRecord& pod);
  void Clear();
  // True if pods were counted since Learn.
  bool stale() const { return stale_; }
  // Builds shapes from the counted pods: the most frequent ones, up to the coverage or the maximum
  // number. GPUs have at least `gpu_memory_mib` (0: unknown), which the demands of pods that
  // request memory depend on. Returns true if anything changed.
  bool Learn(int64_t gpu_memory_mib);

 private:
  struct Kind {
    int64_t cpu_millis = 0;
    PodGpus gpus;
    std::vector<std::string> models;
    bool operator<(const Kind& other) const;
  };
  std::vector<std::string> ModelsOf(const v1beta1::Pod& pod) const;
  // Returns false if they are unchanged.
  bool SetShapes(std::vector<Shape> shapes);

  bool learns_ = true;
  size_t max_shapes_ = 64;
  double coverage_ = 0.95;
  std::string model_label_;
  std::vector<Shape> shapes_;
  int64_t highest_cpu_millis_ = 0;
  int64_t highest_memory_bytes_ = 0;
  std::map<std::string, uint32_t, std::less<>> model_ids_;

  using Kinds = std::map<Kind, int64_t>;
  Kinds kinds_;
  int64_t counted_ = 0;
  // The pod's generation, and its kind.
  absl::flat_hash_map<const sdk::PodRecord*, std::pair<uint64_t, Kinds::iterator>> by_pod_;
  bool stale_ = false;
};

}  // namespace outboard::gpu_packing

#endif  // OUTBOARD_PLUGINS_GPU_PACKING_WORKLOAD_H_
