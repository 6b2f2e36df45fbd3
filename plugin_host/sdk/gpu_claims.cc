#include "plugin_host/sdk/gpu_claims.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plugin_host/sdk/cluster_objects.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/device_classes.h"

namespace outboard::sdk {
namespace {

using nlohmann::json;

// The API server accepts at most 32 devices in a claim (AllocationResultsMaxSize of k8s.io/api,
// resource/v1/types.go).
constexpr int64_t kMaxDevices = 32;

std::string KeyOf(const v1beta1::GenericObject& object) {
  return NamespacedKey(object.namespace_(), object.name());
}

bool IsTrue(const json& object, const char* field) {
  const json* value = JsonAt(object, {field});
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

// One request, or one alternative of a request: its class, and the least number of devices that
// satisfies it. With adminAccess it takes no device.
struct DeviceRequest {
  std::string name;  // `request`, or `request/alternative`.
  std::string device_class;
  int64_t count = 0;
};

DeviceRequest ReadRequest(const json& request, std::string name) {
  DeviceRequest result;
  result.name = std::move(name);
  result.device_class = TextAt(request, {"deviceClassName"}).value_or("");
  if (IsTrue(request, "adminAccess")) return result;
  const bool is_all = TextAt(request, {"allocationMode"}) == "All";
  const int64_t count = is_all ? 1 : IntAt(request, {"count"}).value_or(1);
  result.count = std::clamp<int64_t>(count, 0, kMaxDevices);
  return result;
}

const json* ListAt(const json& object, JsonPath path) {
  const json* list = JsonAt(object, path);
  return list != nullptr && list->is_array() ? list : nullptr;
}

}  // namespace

void DeclareGpuClaims(std::vector<v1beta1::DeclaredResource>* declared) {
  declared->push_back(ResourceSliceResource());
  for (const char* name : {kResourceClaims, kResourceClaimTemplates}) {
    v1beta1::DeclaredResource& resource = declared->emplace_back();
    resource.set_resource(name);
    resource.set_optional(true);
  }
}

bool GpuClaims::IsGpu(absl::string_view device_class) const {
  return std::find(classes_.begin(), classes_.end(), device_class) != classes_.end();
}

// Allocated: its devices. Otherwise what it asks for: of alternatives (firstAvailable) the least,
// none if one of them is not a GPU.
GpuClaims::Count GpuClaims::CountOf(const v1beta1::GenericObject& object, bool is_template) const {
  const json whole = ParseCustomObject(object);
  const json* requests = is_template ? ListAt(whole, {"spec", "spec", "devices", "requests"})
                                     : ListAt(whole, {"spec", "devices", "requests"});
  if (requests == nullptr) return {};
  int64_t wanted = 0;
  std::set<std::string> of_gpus;  // Requests whose devices are GPUs.
  const auto count_of = [&](const DeviceRequest& request) {
    if (!IsGpu(request.device_class)) return int64_t{0};
    if (request.count > 0) of_gpus.insert(request.name);
    return request.count;
  };
  for (const json& request : *requests) {
    const std::string name = TextAt(request, {"name"}).value_or("");
    if (const json* exactly = JsonAt(request, {"exactly"})) {
      wanted += count_of(ReadRequest(*exactly, name));
    } else if (const json* alternatives = ListAt(request, {"firstAvailable"})) {
      int64_t least = alternatives->empty() ? 0 : kMaxDevices;
      for (const json& one : *alternatives) {
        const std::string its = TextAt(one, {"name"}).value_or("");
        least = std::min(least, count_of(ReadRequest(one, absl::StrCat(name, "/", its))));
      }
      wanted += least;
    }
  }
  const json* results = ListAt(whole, {"status", "allocation", "devices", "results"});
  if (is_template || results == nullptr) return {std::min(wanted, kMaxDevices), false};
  std::set<std::string> devices;
  for (const json& result : *results) {
    if (!of_gpus.contains(TextAt(result, {"request"}).value_or(""))) continue;
    if (IsTrue(result, "adminAccess")) continue;
    devices.insert(absl::StrCat(TextAt(result, {"driver"}).value_or(""), "/",
                                TextAt(result, {"pool"}).value_or(""), "/",
                                TextAt(result, {"device"}).value_or("")));
  }
  return {static_cast<int64_t>(devices.size()), true};
}

bool GpuClaims::Set(const v1beta1::ClusterObject& object) {
  if (object.has_device_class()) {
    const v1beta1::DeviceClass& device_class = object.device_class();
    if (!IsGpu(device_class.name())) return false;
    if (device_class.extended_resource_name().empty())
      return resources_.erase(device_class.name()) > 0;
    const std::string& name = device_class.extended_resource_name();
    return std::exchange(resources_[device_class.name()], name) != name;
  }
  if (!object.has_generic_object()) return false;
  if (IsResourceSlice(object)) {
    const std::string node = slices_.Set(object);
    if (node.empty()) return false;
    const std::vector<SliceGpu>* gpus = slices_.Find(node);
    if (gpus == nullptr) return nodes_with_devices_.erase(node) > 0;
    const auto number = static_cast<int64_t>(gpus->size());
    return std::exchange(nodes_with_devices_[node], number) != number;
  }
  const v1beta1::GenericObject& generic = object.generic_object();
  const bool is_template = generic.resource() == kResourceClaimTemplates;
  if (!is_template && generic.resource() != kResourceClaims) return false;
  auto& counts = is_template ? templates_ : claims_;
  const std::string key = KeyOf(generic);
  const Count count = CountOf(generic, is_template);
  if (!is_template) {
    allocated_.erase(key);
    if (count.allocated) allocated_.insert(key);
  }
  if (count.gpus == 0) return counts.erase(key) > 0;
  return std::exchange(counts[key], count.gpus) != count.gpus;
}

bool GpuClaims::Remove(const v1beta1::ClusterObject& object) {
  if (object.has_device_class()) return resources_.erase(object.device_class().name()) > 0;
  if (!object.has_generic_object()) return false;
  if (IsResourceSlice(object)) {
    const std::string node = slices_.Remove(object);
    if (node.empty()) return false;
    const std::vector<SliceGpu>* gpus = slices_.Find(node);
    if (gpus == nullptr) return nodes_with_devices_.erase(node) > 0;
    nodes_with_devices_[node] = static_cast<int64_t>(gpus->size());
    return true;
  }
  const v1beta1::GenericObject& generic = object.generic_object();
  if (generic.resource() == kResourceClaims) {
    allocated_.erase(KeyOf(generic));
    return claims_.erase(KeyOf(generic)) > 0;
  }
  if (generic.resource() == kResourceClaimTemplates) return templates_.erase(KeyOf(generic)) > 0;
  return false;
}

void GpuClaims::Clear() {
  claims_.clear();
  allocated_.clear();
  templates_.clear();
  resources_.clear();
  slices_.Clear();
  nodes_with_devices_.clear();
}

void GpuClaims::AddClaims(const v1beta1::Pod& pod, std::map<std::string, int64_t>* claims) const {
  for (const v1beta1::PodResourceClaim& entry : pod.claims()) {
    // Empty: the pod needs none.
    if (entry.has_made_claim_name() && entry.made_claim_name().empty()) continue;
    const std::string& name =
        entry.has_made_claim_name() ? entry.made_claim_name() : entry.claim_name();
    const std::string key = name.empty() ? absl::StrCat(pod.uid(), " ", entry.name())
                                         : NamespacedKey(pod.namespace_(), name);
    const auto claim = name.empty() ? claims_.end() : claims_.find(key);
    if (claim != claims_.end()) {
      claims->emplace(key, claim->second);
      continue;
    }
    // The claim is not made, or not seen yet.
    if (entry.template_name().empty()) continue;
    const auto from = templates_.find(NamespacedKey(pod.namespace_(), entry.template_name()));
    if (from != templates_.end()) claims->emplace(key, from->second);
  }
}

int64_t GpuClaims::DemandOf(const v1beta1::Pod& pod, std::set<std::string>* counted) const {
  if (pod.claims().empty() || !active()) return 0;
  std::map<std::string, int64_t> claims;
  AddClaims(pod, &claims);
  int64_t sum = 0;
  for (const auto& [key, gpus] : claims)
    sum += counted == nullptr || counted->insert(key).second ? gpus : 0;
  return sum;
}

std::set<std::string> GpuClaims::AllocatedOf(const v1beta1::Pod& pod) const {
  std::set<std::string> allocated;
  if (pod.claims().empty() || !active()) return allocated;
  std::map<std::string, int64_t> claims;
  AddClaims(pod, &claims);
  for (const auto& [key, gpus] : claims) {
    if (allocated_.contains(key)) allocated.insert(key);
  }
  return allocated;
}

int64_t GpuClaims::UsedBy(const std::vector<PodRecord*>& pods, const v1beta1::Pod* except) const {
  if (!active()) return 0;
  std::map<std::string, int64_t> claims;
  for (const PodRecord* pod : pods) {
    if (!pod->pod.claims().empty()) AddClaims(pod->pod, &claims);
  }
  if (claims.empty()) return 0;
  std::map<std::string, int64_t> shared;
  if (except != nullptr && !except->claims().empty()) AddClaims(*except, &shared);
  int64_t sum = 0;
  for (const auto& [key, gpus] : claims) sum += shared.contains(key) ? 0 : gpus;
  return sum;
}

int64_t GpuClaims::DevicesOn(const std::string& node) const {
  const auto devices = nodes_with_devices_.find(node);
  return devices == nodes_with_devices_.end() ? 0 : devices->second;
}

std::vector<std::string> GpuClaims::Resources() const {
  std::vector<std::string> names;
  for (const std::string& device_class : classes_)
    names.push_back(absl::StrCat(kDeviceClassPrefix, device_class));
  for (const auto& [device_class, resource] : resources_) {
    if (std::find(names.begin(), names.end(), resource) == names.end()) names.push_back(resource);
  }
  return names;
}

}  // namespace outboard::sdk
