// GPUs among extended resources: which of them are GPUs, how many a pod asks for, and how many a
// node has left.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_GPU_RESOURCES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_GPU_RESOURCES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/views.h"
#include "proto/outboard/v1alpha1/objects.pb.h"

namespace outboard::sdk {

// Part of a JSON schema: the argument that Read reads.
inline constexpr char kGpuResourceNamesSchema[] =
    R"json("gpuResourceNames": {"type": "array", "minItems": 1, "items": {"type": "string"},
      "default": ["nvidia.com/gpu"], "description": "Extended resources that are GPUs."})json";

class GpuResources {
 public:
  // The argument `gpuResourceNames`; what is wrong with it is reported there.
  static GpuResources Read(const ArgsObject& root);

  const std::vector<std::string>& names() const { return names_; }
  // What the pod asks for (requests, limits where they are absent; init containers as Kubernetes
  // counts them), each resource with an amount above 0. Empty: it wants no GPUs.
  std::vector<std::pair<std::string, int64_t>> DemandByName(const v1alpha1::Pod& pod) const;
  // The sum of that.
  int64_t DemandOf(const v1alpha1::Pod& pod) const;
  // Of a node, over all names. Free: what pods on the node leave, never below 0.
  int64_t AllocatableOn(const NodeView& node) const;
  int64_t RequestedOn(const NodeView& node) const;
  int64_t FreeOn(const NodeView& node) const;

 private:
  std::vector<std::string> names_ = {"nvidia.com/gpu"};
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GPU_RESOURCES_H_
