#include "plugins/gpu_packing/gpu_layout.h"

#include <algorithm>
#include <tuple>

namespace outboard::gpu_packing {
namespace {

void Take(int32_t milli, int32_t* idle) { *idle = std::max(0, *idle - milli); }

}  // namespace

int32_t PodGpus::MilliOn(int64_t gpu_memory_mib) const {
  if (memory_mib <= 0) return milli;
  if (gpu_memory_mib <= 0) return kWholeGpu;
  if (memory_mib > gpu_memory_mib) return kWholeGpu + 1;
  const double share =
      static_cast<double>(memory_mib) * kWholeGpu / static_cast<double>(gpu_memory_mib);
  const int32_t rounded_down = static_cast<int32_t>(share);
  return std::max(milli, rounded_down + (share > rounded_down ? 1 : 0));
}

void LayOut(std::vector<Tenant>* tenants, int32_t gpus, std::vector<int32_t>* idle) {
  idle->assign(static_cast<size_t>(std::clamp(gpus, 0, kMaxGpus)), kWholeGpu);
  if (idle->empty()) return;
  std::sort(tenants->begin(), tenants->end(), [](const Tenant& a, const Tenant& b) {
    return std::tie(a.created, a.uid) < std::tie(b.created, b.uid);
  });
  std::vector<std::string> names;
  std::vector<bool> held(idle->size(), false);
  for (Tenant& tenant : *tenants) {
    int32_t known = 0;
    for (const std::string& name : tenant.devices) {
      const size_t device =
          static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
      if (device == idle->size()) break;  // More names than GPUs.
      if (device == names.size()) names.push_back(name);
      if (tenant.holds_only) held[device] = true;
      if (!tenant.holds_only) Take(tenant.milli, &(*idle)[device]);
      ++known;
    }
    tenant.gpus = std::max(0, tenant.gpus - known);
  }
  std::vector<int32_t> chosen;
  for (const Tenant& tenant : *tenants) {
    if (tenant.gpus == 0) continue;
    Demand demand;
    demand.gpus = std::min(tenant.gpus, static_cast<int32_t>(idle->size()));
    demand.milli = tenant.milli;
    if (ChooseDevices(*idle, demand, &chosen)) {
      for (const int32_t device : chosen) {
        if (tenant.holds_only) {
          held[static_cast<size_t>(device)] = true;
        } else {
          Take(tenant.milli, &(*idle)[static_cast<size_t>(device)]);
        }
      }
      continue;
    }
    for (int32_t i = 0; i < demand.gpus; ++i) {
      Take(tenant.milli, &*std::max_element(idle->begin(), idle->end()));
    }
  }
  // A GPU reserved for shares is not whole.
  for (size_t i = 0; i < idle->size(); ++i) {
    if (held[i]) (*idle)[i] = std::min((*idle)[i], kWholeGpu - 1);
  }
}

}  // namespace outboard::gpu_packing
