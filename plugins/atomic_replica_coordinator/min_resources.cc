#include "plugins/atomic_replica_coordinator/min_resources.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace outboard::atomic_replica_coordinator {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

// An overcommitted node does not reduce the free resources of other nodes.
int64_t FreeOf(const std::vector<int64_t>& allocatable, const std::vector<int64_t>& taken) {
  int64_t free = 0;
  for (size_t slot = 0; slot < allocatable.size(); ++slot)
    free += std::max<int64_t>(0, allocatable[slot] - taken[slot]);
  return free;
}

}  // namespace

std::string ShortOf(const v1beta1::ResourceList& wanted, int64_t size, const sdk::NodeTable& nodes,
                    const std::vector<const sdk::PodRecord*>& members) {
  std::vector<std::string> gaps;
  const auto compare = [&](int64_t want, int64_t free, auto own, absl::string_view name,
                           absl::string_view suffix = "", int64_t unit = 1) {
    for (const sdk::PodRecord* member : members) free += own(*member);
    if (free >= want) return;
    gaps.push_back(absl::StrCat(free / unit, suffix, " of ", (want + unit - 1) / unit, suffix, " ",
                                name, " are free"));
  };
  if (wanted.has_cpu_millis()) {
    compare(
        wanted.cpu_millis(), FreeOf(nodes.allocatable_cpu, nodes.requested_cpu),
        [](const sdk::PodRecord& pod) { return pod.usage.requests.cpu_millis; }, "cpu", "m");
  }
  if (wanted.has_memory_bytes()) {
    compare(
        wanted.memory_bytes(), FreeOf(nodes.allocatable_memory, nodes.requested_memory),
        [](const sdk::PodRecord& pod) { return pod.usage.requests.memory_bytes; }, "memory", "Mi",
        kMebibyte);
  }
  if (wanted.has_ephemeral_storage_bytes()) {
    compare(
        wanted.ephemeral_storage_bytes(),
        FreeOf(nodes.allocatable_ephemeral, nodes.requested_ephemeral),
        [](const sdk::PodRecord& pod) { return pod.usage.requests.ephemeral_storage_bytes; },
        "ephemeral-storage", "Mi", kMebibyte);
  }
  for (const auto& [name, amount] :
       std::map<std::string, int64_t>(wanted.scalar().begin(), wanted.scalar().end())) {
    const auto column = nodes.extended_by_name.find(name);
    int64_t free = 0;
    if (column != nodes.extended_by_name.end()) {
      const sdk::ExtendedColumn& of = nodes.extended[column->second];
      free = FreeOf(of.allocatable, of.requested);
    }
    compare(
        amount, free,
        [&name = name](const sdk::PodRecord& pod) { return pod.usage.requests.Get(name); }, name);
  }
  compare(
      size, FreeOf(nodes.allocatable_pods, nodes.pod_count),
      [](const sdk::PodRecord&) { return int64_t{1}; }, "places for pods");
  if (gaps.empty()) return "";
  return absl::StrCat(absl::StrJoin(gaps, ", "), " (minResources)");
}

}  // namespace outboard::atomic_replica_coordinator
