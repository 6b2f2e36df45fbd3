#include "plugin_host/sdk/gpu_resources.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {

GpuResources GpuResources::Read(const ArgsObject& root, bool counts_claims) {
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
  if (!counts_claims) return gpus;
  gpus.claims_ = std::make_shared<GpuClaims>(root.Strings("gpuDeviceClasses", {"gpu.nvidia.com"}));
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
  if (!claims_->active()) return sum;
  for (const std::string& name : claims_->Resources()) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end())
      sum += std::max<int64_t>(0, ExtendedRequestOf(pod, name));
  }
  return sum + claims_->DemandOf(pod);
}

std::vector<std::string> GpuResources::AllNames() const {
  std::vector<std::string> all = names_;
  for (std::string& name : claims_->Resources()) {
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(std::move(name));
  }
  return all;
}

GpuColumnIds GpuResources::ColumnIdsOf(const ClusterView& cluster) const {
  return claims_->active() ? GpuColumns::Find(cluster.nodes(), AllNames())
                           : GpuColumns::Find(cluster.nodes(), names_);
}

// Claims on a node with a device plugin take of its GPUs, too. On others the pods' requests for
// resources of device classes are for the driver's devices.
int64_t GpuColumns::FreeWithClaims(Slot slot, int64_t of_columns) const {
  const int64_t claimed = Claimed(slot, pod_);
  const int64_t offered = Sum([slot](const Column& column) { return column.allocatable[slot]; });
  if (offered > 0) return std::max<int64_t>(0, of_columns - claimed);
  const int64_t requested = Sum([slot](const Column& column) { return column.requested[slot]; });
  return std::max<int64_t>(0, Devices(slot) - requested - claimed);
}

int64_t GpuResources::AllocatableOn(const NodeView& node) const {
  int64_t sum = 0;
  for (const std::string& name : names_) sum += node.Allocatable(name);
  return sum == 0 && claims_->active() ? claims_->DevicesOn(std::string(node.name())) : sum;
}

}  // namespace outboard::sdk
