#include "plugins/gpu_model_match/numa_requests.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "plugin_host/sdk/resources.h"

namespace outboard::gpu_model_match {
namespace {

using Amounts = std::map<std::string, int64_t>;

// Sums of a pod's containers, and of a node's zones, stay far from overflow.
int64_t Bounded(int64_t amount) { return std::clamp<int64_t>(amount, 0, kMaxNumaAmount); }

// CPU and memory, which determine a pod's class. Absent and 0 are the same there.
struct Core {
  int64_t cpu = 0;
  int64_t memory = 0;
  friend bool operator==(const Core&, const Core&) = default;
};
Core CoreOf(const v1beta1::ResourceList& list) {
  return {Bounded(list.cpu_millis()), Bounded(list.memory_bytes())};
}

// Guaranteed: every container limits CPU and memory, and requests as much as its limits. Limits and
// requests are compared as sums, as Kubernetes' ComputePodQOS does.
bool IsGuaranteed(const v1beta1::Pod& pod) {
  Core requests, limits;
  for (const auto* containers : {&pod.containers(), &pod.init_containers()}) {
    for (const v1beta1::Container& container : *containers) {
      const Core limit = CoreOf(container.limits());
      if (limit.cpu == 0 || limit.memory == 0) return false;
      const Core request = CoreOf(container.requests());
      requests.cpu += request.cpu;
      requests.memory += request.memory;
      limits.cpu += limit.cpu;
      limits.memory += limit.memory;
    }
  }
  return requests == limits;
}

Amounts ExclusiveOf(const v1beta1::Container& container, bool guaranteed) {
  const v1beta1::ResourceList& requests = container.requests();
  Amounts amounts;
  if (guaranteed) {
    if (requests.cpu_millis() > 0 && requests.cpu_millis() % 1000 == 0)
      amounts["cpu"] = Bounded(requests.cpu_millis());
    if (requests.memory_bytes() > 0) amounts["memory"] = Bounded(requests.memory_bytes());
  }
  for (const auto& [name, amount] : requests.scalar()) {
    if (amount <= 0) continue;
    const bool exclusive =
        !sdk::IsNativeResourceName(name) || (guaranteed && absl::StartsWith(name, "hugepages-"));
    if (exclusive) amounts[name] = Bounded(amount);
  }
  return amounts;
}

NumaPart PartOf(NumaPart::Kind kind, const Amounts& amounts) {
  NumaPart part;
  part.kind = kind;
  part.amounts.assign(amounts.begin(), amounts.end());
  return part;
}

void AddTo(const Amounts& amounts, Amounts* sum) {
  for (const auto& [name, amount] : amounts) (*sum)[name] += amount;
}

}  // namespace

NumaRequests NumaRequestsOf(const v1beta1::Pod& pod) {
  using Kind = NumaPart::Kind;
  const bool pod_level = pod.has_pod_requests() || pod.has_pod_limits();
  const bool guaranteed = !pod_level && IsGuaranteed(pod);
  NumaRequests requests;
  Amounts sidecars, running, highest;
  const auto add = [&](Kind kind, const v1beta1::Container& container) {
    Amounts amounts = ExclusiveOf(container, guaranteed);
    if (!amounts.empty()) requests.containers.push_back(PartOf(kind, amounts));
    return amounts;
  };
  for (const v1beta1::Container& container : pod.init_containers()) {
    if (container.restart_policy_always()) {
      AddTo(add(Kind::kSidecar, container), &sidecars);
      continue;
    }
    // It runs beside the sidecars that started before it.
    for (const auto& [name, amount] : add(Kind::kInitContainer, container)) {
      const auto beside = sidecars.find(name);
      const int64_t at_once = amount + (beside == sidecars.end() ? 0 : beside->second);
      highest[name] = std::max(highest[name], at_once);
    }
  }
  for (const v1beta1::Container& container : pod.containers())
    AddTo(add(Kind::kContainer, container), &running);
  AddTo(sidecars, &running);
  for (const auto& [name, amount] : running) highest[name] = std::max(highest[name], amount);
  requests.pod = PartOf(Kind::kPod, highest);
  return requests;
}

}  // namespace outboard::gpu_model_match
