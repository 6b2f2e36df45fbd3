#include "plugin_host/sdk/node_facts/resource_slices.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_facts/fact_readers.h"
#include "plugin_host/sdk/quantity.h"

namespace outboard::sdk {
namespace {

using nlohmann::json;

// Also v1beta1 and v1beta2.
constexpr absl::string_view kResourcePrefix = "resourceslices.";
constexpr absl::string_view kResourceSuffix = ".resource.k8s.io";
// Names of devices and attributes: cmd/gpu-kubelet-plugin/deviceinfo.go of
// NVIDIA/k8s-dra-driver-gpu.
constexpr char kDriver[] = "gpu.nvidia.com";
constexpr double kBytesPerGb = 1024.0 * 1024 * 1024;

// A string or version of a device; empty if absent.
std::string Attribute(const json& attributes, const char* name, const char* type) {
  if (auto text = TextAt(attributes, {name, type})) return *text;
  const std::string qualified = absl::StrCat(kDriver, "/", name);
  return TextAt(attributes, {qualified.c_str(), type}).value_or("");
}

double MemoryOf(const json& device) {
  // A quantity in v1beta1 of 1.31, `{value: …}` since 1.32.
  std::optional<std::string> text = TextAt(device, {"capacity", "memory", "value"});
  if (!text) text = TextAt(device, {"capacity", "memory"});
  if (!text) return 0;
  const absl::StatusOr<int64_t> bytes = ParseQuantity(*text, 1);
  return bytes.ok() && *bytes > 0 ? std::round(static_cast<double>(*bytes) / kBytesPerGb) : 0;
}

// The effect None only informs: DeviceTaintEffect of k8s.io/api/resource/v1. NVIDIA's driver uses
// it for errors that are not critical: device_health.go of NVIDIA/k8s-dra-driver-gpu.
bool KeepsPodsAway(const json& taint) { return TextAt(taint, {"effect"}) != "None"; }

std::optional<SliceGpu> ReadGpu(const json& device) {
  // v1beta1 has the fields in `basic`.
  const json* basic = JsonAt(device, {"basic"});
  const json& content = basic == nullptr ? device : *basic;
  const json* attributes = JsonAt(content, {"attributes"});
  if (attributes == nullptr || !attributes->is_object()) return std::nullopt;
  if (const std::string type = Attribute(*attributes, "type", "string");
      !type.empty() && type != "gpu") {
    return std::nullopt;
  }
  SliceGpu gpu;
  gpu.product = Attribute(*attributes, "productName", "string");
  gpu.architecture = absl::StrReplaceAll(
      absl::AsciiStrToLower(Attribute(*attributes, "architecture", "string")), {{" ", "-"}});
  const std::vector<std::string> capability =
      absl::StrSplit(Attribute(*attributes, "cudaComputeCapability", "version"), '.');
  gpu.major = ParseCount(capability[0], kMaxCapability).value_or(0);
  if (capability.size() > 1) gpu.minor = ParseCount(capability[1], kMaxCapability).value_or(0);
  gpu.memory_gb = MemoryOf(content);
  const json* taints = JsonAt(content, {"taints"});
  gpu.tainted = taints != nullptr && taints->is_array() &&
                std::any_of(taints->begin(), taints->end(), KeepsPodsAway);
  return gpu;
}

}  // namespace

v1beta1::DeclaredResource ResourceSliceResource() {
  v1beta1::DeclaredResource resource;
  resource.set_resource(kResourceSlices);
  resource.set_optional(true);
  return resource;
}

bool IsResourceSlice(const v1beta1::ClusterObject& object) {
  return object.has_generic_object() &&
         absl::StartsWith(object.generic_object().resource(), kResourcePrefix) &&
         absl::EndsWith(object.generic_object().resource(), kResourceSuffix);
}

std::optional<ResourceSlices::Slice> ResourceSlices::Read(const v1beta1::GenericObject& object) {
  const json whole = ParseCustomObject(object);
  Slice slice;
  slice.node = TextAt(whole, {"spec", "nodeName"}).value_or("");
  if (slice.node.empty() || TextAt(whole, {"spec", "driver"}).value_or("") != kDriver)
    return std::nullopt;
  slice.pool = TextAt(whole, {"spec", "pool", "name"}).value_or("");
  const json* generation = JsonAt(whole, {"spec", "pool", "generation"});
  if (generation != nullptr && generation->is_number_integer())
    slice.generation = generation->get<int64_t>();
  const json* devices = JsonAt(whole, {"spec", "devices"});
  if (devices == nullptr || !devices->is_array()) return slice;
  for (const json& device : *devices) {
    if (std::optional<SliceGpu> gpu = ReadGpu(device)) slice.gpus.push_back(*std::move(gpu));
  }
  return slice;
}

std::string ResourceSlices::Set(const v1beta1::ClusterObject& object) {
  if (!IsResourceSlice(object)) return "";
  std::optional<Slice> slice = Read(object.generic_object());
  // A slice's node never changes.
  if (!slice) return Remove(object);
  const std::string& name = object.generic_object().name();
  const std::string node = slice->node;
  node_of_[name] = node;
  Node& slices_of = nodes_[node];
  slices_of.slices[name] = *std::move(slice);
  Update(&slices_of);
  return node;
}

std::string ResourceSlices::Remove(const v1beta1::ClusterObject& object) {
  if (!IsResourceSlice(object)) return "";
  const auto known = node_of_.find(object.generic_object().name());
  if (known == node_of_.end()) return "";
  const std::string node = known->second;
  node_of_.erase(known);
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return node;
  it->second.slices.erase(object.generic_object().name());
  Update(&it->second);
  if (it->second.slices.empty()) nodes_.erase(it);
  return node;
}

void ResourceSlices::Clear() {
  nodes_.clear();
  node_of_.clear();
}

const std::vector<SliceGpu>* ResourceSlices::Find(absl::string_view node) const {
  const auto it = nodes_.find(node);
  return it == nodes_.end() || it->second.gpus.empty() ? nullptr : &it->second.gpus;
}

// While a driver replaces a pool's slices, those of the highest generation are valid.
void ResourceSlices::Update(Node* node) {
  std::map<std::string, int64_t> generations;  // By pool.
  for (const auto& [name, slice] : node->slices) {
    const auto [it, added] = generations.emplace(slice.pool, slice.generation);
    if (!added) it->second = std::max(it->second, slice.generation);
  }
  node->gpus.clear();
  for (const auto& [name, slice] : node->slices) {
    if (slice.generation != generations[slice.pool]) continue;
    node->gpus.insert(node->gpus.end(), slice.gpus.begin(), slice.gpus.end());
  }
}

}  // namespace outboard::sdk
