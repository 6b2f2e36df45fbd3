#include "plugin_host/sdk/gpu_resources.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {

GpuResources GpuResources::Read(const ArgsObject& root) {
  GpuResources gpus;
  gpus.names_ = root.Strings("gpuResourceNames", {"nvidia.com/gpu"});
  if (gpus.names_.empty())
    root.Problem("gpuResourceNames", RequiredValue("at least one resource must be named"));
  for (size_t i = 0; i < gpus.names_.size(); ++i) {
    const std::string& name = gpus.names_[i];
    const std::string field = absl::StrCat("gpuResourceNames[", i, "]");
    const auto before = gpus.names_.begin() + static_cast<std::ptrdiff_t>(i);
    if (!IsExtendedResourceName(name)) {
      root.Problem(field, InvalidValue(name, "must be the name of an extended resource"));
    } else if (std::count(gpus.names_.begin(), before, name) > 0) {
      root.Problem(field, DuplicateValue(name));
    }
  }
  return gpus;
}

std::vector<std::pair<std::string, int64_t>> GpuResources::DemandByName(
    const v1beta1::Pod& pod) const {
  std::vector<std::pair<std::string, int64_t>> demand;
  for (const std::string& name : names_) {
    const int64_t amount = ExtendedRequestOf(pod, name);
    if (amount > 0) demand.emplace_back(name, amount);
  }
  return demand;
}

int64_t GpuResources::DemandOf(const v1beta1::Pod& pod) const {
  int64_t sum = 0;
  for (const std::string& name : names_) sum += std::max<int64_t>(0, ExtendedRequestOf(pod, name));
  return sum;
}

int64_t GpuResources::AllocatableOn(const NodeView& node) const {
  int64_t sum = 0;
  for (const std::string& name : names_) sum += node.Allocatable(name);
  return sum;
}

}  // namespace outboard::sdk
