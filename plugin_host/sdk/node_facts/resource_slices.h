// GPUs in the ResourceSlices of NVIDIA's DRA driver (gpu.nvidia.com), by node.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_RESOURCE_SLICES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_RESOURCE_SLICES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::sdk {

// Their resource, and the name of its events.
inline constexpr char kResourceSlices[] = "resourceslices.v1.resource.k8s.io";
// For PluginDescriptor::declared_resources: the plugin gets ResourceSlices where the shim's
// configuration names them, and works without them.
v1beta1::DeclaredResource ResourceSliceResource();
bool IsResourceSlice(const v1beta1::ClusterObject& object);

// A whole GPU, without MIG devices. Absent attributes are empty or 0.
struct SliceGpu {
  std::string product;           // `NVIDIA H100 80GB HBM3`
  std::string architecture;      // `hopper`, `ada-lovelace`
  int64_t major = 0, minor = 0;  // CUDA compute capability.
  double memory_gb = 0;          // Rounded to whole GB.
  bool tainted = false;          // No new pod may use it, because of an error.
};

// Threading: thread-compatible.
// Lifetime:  a pointer is valid until the next change.
// Errors:    none; what cannot be read counts as absent.
class ResourceSlices {
 public:
  // Returns the name of the node whose GPUs may have changed; empty: none.
  std::string Set(const v1beta1::ClusterObject& object);
  std::string Remove(const v1beta1::ClusterObject& object);
  void Clear();
  // Null if no slice describes the node. Not empty.
  const std::vector<SliceGpu>* Find(absl::string_view node) const;

 private:
  struct Slice {
    std::string node;
    std::string pool;
    int64_t generation = 0;
    std::vector<SliceGpu> gpus;
  };
  struct Node {
    std::map<std::string, Slice> slices;  // By the object's name.
    std::vector<SliceGpu> gpus;           // Of the valid slices.
  };
  static std::optional<Slice> Read(const v1beta1::GenericObject& object);
  static void Update(Node* node);

  absl::flat_hash_map<std::string, Node> nodes_;
  absl::flat_hash_map<std::string, std::string> node_of_;  // By the object's name.
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_RESOURCE_SLICES_H_
