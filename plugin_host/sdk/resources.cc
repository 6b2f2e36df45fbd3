#include "plugin_host/sdk/resources.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {
namespace {

constexpr absl::string_view kHugePages = "hugepages-";

// Calls fn(into, amount) for every resource in `from`; creates `into` if absent.
template <typename Fn>
void Merge(const v1beta1::ResourceList& from, Resources* into, Fn fn) {
  if (from.has_cpu_millis()) {
    fn(&into->cpu_millis, from.cpu_millis(), into->has_cpu);
    into->has_cpu = true;
  }
  if (from.has_memory_bytes()) {
    fn(&into->memory_bytes, from.memory_bytes(), into->has_memory);
    into->has_memory = true;
  }
  if (from.has_ephemeral_storage_bytes()) {
    fn(&into->ephemeral_storage_bytes, from.ephemeral_storage_bytes(), into->has_ephemeral_storage);
    into->has_ephemeral_storage = true;
  }
  for (const auto& [name, amount] : from.scalar()) {
    auto [it, inserted] = into->extended.try_emplace(name, 0);
    fn(&it->second, amount, !inserted);
  }
}

template <typename Fn>
void Merge(const Resources& from, Resources* into, Fn fn) {
  if (from.has_cpu) {
    fn(&into->cpu_millis, from.cpu_millis, into->has_cpu);
    into->has_cpu = true;
  }
  if (from.has_memory) {
    fn(&into->memory_bytes, from.memory_bytes, into->has_memory);
    into->has_memory = true;
  }
  if (from.has_ephemeral_storage) {
    fn(&into->ephemeral_storage_bytes, from.ephemeral_storage_bytes, into->has_ephemeral_storage);
    into->has_ephemeral_storage = true;
  }
  for (const auto& [name, amount] : from.extended) {
    auto [it, inserted] = into->extended.try_emplace(name, 0);
    fn(&it->second, amount, !inserted);
  }
}

void AddAmount(int64_t* into, int64_t amount, bool) { *into += amount; }
void MaxAmount(int64_t* into, int64_t amount, bool present) {
  *into = present ? std::max(*into, amount) : amount;
}
void SetAmount(int64_t* into, int64_t amount, bool) { *into = amount; }

template <typename From>
void Add(const From& from, Resources* into) {
  Merge(from, into, AddAmount);
}
template <typename From>
void Max(const From& from, Resources* into) {
  Merge(from, into, MaxAmount);
}

// During a resize: the maximum of wanted, actual and allocated; without wanted if the node can
// never do the resize.
Resources EffectiveRequests(const v1beta1::Pod& pod, const v1beta1::ResourceList& wanted,
                            const v1beta1::ResourceList& actual,
                            const v1beta1::ResourceList& allocated) {
  Resources requests;
  if (!pod.resize_infeasible()) Max(wanted, &requests);
  Max(actual, &requests);
  Max(allocated, &requests);
  return requests;
}

using StatusByName = absl::flat_hash_map<absl::string_view, const v1beta1::ContainerStatus*>;

// One container's request: its spec, resizes, and assumed defaults.
Resources ContainerRequests(const v1beta1::Pod& pod, const v1beta1::Container& container,
                            const StatusByName& statuses, const PodRequestsOptions& options) {
  Resources requests;
  auto status = statuses.find(container.name());
  if (status != statuses.end() && status->second->has_actual_requests()) {
    requests = EffectiveRequests(pod, container.requests(), status->second->actual_requests(),
                                 status->second->allocated_requests());
  } else {
    Add(container.requests(), &requests);
  }
  if (options.missing_cpu_millis && !requests.has_cpu) {
    requests.cpu_millis = *options.missing_cpu_millis;
    requests.has_cpu = true;
  }
  if (options.missing_memory_bytes && !requests.has_memory) {
    requests.memory_bytes = *options.missing_memory_bytes;
    requests.has_memory = true;
  }
  return requests;
}

Resources AggregateContainers(const v1beta1::Pod& pod, const PodRequestsOptions& options) {
  StatusByName statuses;
  if (options.use_status) {
    for (const auto& status : pod.container_statuses()) statuses[status.name()] = &status;
  }
  Resources sum;
  for (const auto& container : pod.containers()) {
    Add(ContainerRequests(pod, container, statuses, options), &sum);
  }
  // The sidecars before an init container run at the same time.
  const StatusByName no_statuses;
  Resources sidecars, highest;
  for (const auto& container : pod.init_containers()) {
    Resources requests = ContainerRequests(
        pod, container, container.restart_policy_always() ? statuses : no_statuses, options);
    if (container.restart_policy_always()) {
      Add(requests, &sum);
      Add(requests, &sidecars);
      requests = sidecars;
    } else {
      Add(sidecars, &requests);
    }
    Max(requests, &highest);
  }
  Max(highest, &sum);
  return sum;
}

}  // namespace

int64_t Resources::Get(absl::string_view name) const {
  if (name == "cpu") return cpu_millis;
  if (name == "memory") return memory_bytes;
  if (name == "ephemeral-storage") return ephemeral_storage_bytes;
  auto it = extended.find(name);
  return it == extended.end() ? 0 : it->second;
}

bool HasPodLevelRequests(const v1beta1::Pod& pod) {
  if (!pod.has_pod_requests()) return false;
  const v1beta1::ResourceList& requests = pod.pod_requests();
  if (requests.has_cpu_millis() || requests.has_memory_bytes()) return true;
  return std::any_of(requests.scalar().begin(), requests.scalar().end(),
                     [](const auto& entry) { return absl::StartsWith(entry.first, kHugePages); });
}

Resources ComputePodRequests(const v1beta1::Pod& pod, const PodRequestsOptions& options) {
  Resources requests = AggregateContainers(pod, options);
  if (!options.skip_pod_level && HasPodLevelRequests(pod)) {
    v1beta1::ResourceList supported;
    const v1beta1::ResourceList& named = pod.pod_requests();
    const bool resized = options.use_status && pod.has_pod_actual_requests();
    const Resources effective = resized ? EffectiveRequests(pod, named, pod.pod_actual_requests(),
                                                            pod.pod_allocated_requests())
                                        : Resources();
    const auto amount_of = [&](const std::string& name, int64_t amount) {
      return resized ? effective.Get(name) : amount;
    };
    if (named.has_cpu_millis()) supported.set_cpu_millis(amount_of("cpu", named.cpu_millis()));
    if (named.has_memory_bytes())
      supported.set_memory_bytes(amount_of("memory", named.memory_bytes()));
    for (const auto& [name, amount] : named.scalar()) {
      if (absl::StartsWith(name, kHugePages))
        (*supported.mutable_scalar())[name] = amount_of(name, amount);
    }
    Merge(supported, &requests, SetAmount);
  }
  Add(pod.overhead(), &requests);
  return requests;
}

int64_t ExtendedRequestOf(const v1beta1::Pod& pod, const std::string& name) {
  if (!pod.init_containers().empty() || pod.has_pod_requests())
    return ComputePodRequests(pod).Get(name);
  const auto amount_in = [&](const v1beta1::ResourceList& list) {
    const auto it = list.scalar().find(name);
    return it == list.scalar().end() ? 0 : it->second;
  };
  int64_t sum = amount_in(pod.overhead());
  for (const v1beta1::Container& container : pod.containers())
    sum += amount_in(container.requests());
  return sum;
}

PodUsage ComputePodUsage(const v1beta1::Pod& pod) {
  PodUsage usage;
  PodRequestsOptions options;
  options.use_status = true;
  usage.requests = ComputePodRequests(pod, options);
  // With pod-level requests, defaults apply only if neither the pod nor its containers name the
  // resource.
  const bool pod_level = HasPodLevelRequests(pod);
  if (!pod_level || !usage.requests.has_cpu) options.missing_cpu_millis = kDefaultCpuMillis;
  if (!pod_level || !usage.requests.has_memory) options.missing_memory_bytes = kDefaultMemoryBytes;
  const Resources nonzero = ComputePodRequests(pod, options);
  usage.nonzero_cpu_millis = nonzero.cpu_millis;
  usage.nonzero_memory_bytes = nonzero.memory_bytes;
  // The node's sums contain only scalar resources.
  for (auto it = usage.requests.extended.begin(); it != usage.requests.extended.end();) {
    it = IsScalarResourceName(it->first) ? std::next(it) : usage.requests.extended.erase(it);
  }
  return usage;
}

bool IsNativeResourceName(absl::string_view name) {
  return !absl::StrContains(name, '/') || absl::StrContains(name, "kubernetes.io/");
}

bool IsExtendedResourceName(absl::string_view name) {
  if (IsNativeResourceName(name) || absl::StartsWith(name, "requests.")) return false;
  return QualifiedNameErrors(absl::StrCat("requests.", name)).empty();
}

bool IsScalarResourceName(absl::string_view name) {
  return absl::StartsWith(name, kHugePages) || absl::StrContains(name, "kubernetes.io/") ||
         absl::StartsWith(name, "attachable-volumes-") || IsExtendedResourceName(name);
}

}  // namespace outboard::sdk
