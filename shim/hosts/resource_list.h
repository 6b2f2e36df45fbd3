// Resources of a ResourceList by Kubernetes' name.
#ifndef OUTBOARD_SHIM_HOSTS_RESOURCE_LIST_H_
#define OUTBOARD_SHIM_HOSTS_RESOURCE_LIST_H_

#include <cstdint>
#include <iterator>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::hosts {

inline constexpr absl::string_view kCpu = "cpu";
inline constexpr absl::string_view kMemory = "memory";
inline constexpr absl::string_view kEphemeralStorage = "ephemeral-storage";
inline constexpr absl::string_view kPods = "pods";

// Calls `visit(name, amount)` for each resource that the list names, in its unit there.
template <typename Visit>
void ForEachResource(const v1beta1::ResourceList& list, Visit&& visit) {
  if (list.has_cpu_millis()) visit(kCpu, list.cpu_millis());
  if (list.has_memory_bytes()) visit(kMemory, list.memory_bytes());
  if (list.has_ephemeral_storage_bytes()) visit(kEphemeralStorage, list.ephemeral_storage_bytes());
  if (list.has_pods()) visit(kPods, list.pods());
  for (const auto& [name, amount] : list.scalar()) visit(absl::string_view(name), amount);
}

// Removes the resources without one of these names.
inline void KeepOnlyResources(const absl::flat_hash_set<std::string>& names,
                              v1beta1::ResourceList* list) {
  if (!names.contains(kCpu)) list->clear_cpu_millis();
  if (!names.contains(kMemory)) list->clear_memory_bytes();
  if (!names.contains(kEphemeralStorage)) list->clear_ephemeral_storage_bytes();
  if (!names.contains(kPods)) list->clear_pods();
  auto& scalar = *list->mutable_scalar();
  for (auto it = scalar.begin(); it != scalar.end();) {
    it = names.contains(it->first) ? std::next(it) : scalar.erase(it);
  }
}

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_RESOURCE_LIST_H_
