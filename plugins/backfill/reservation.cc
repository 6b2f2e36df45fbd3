#include "plugins/backfill/reservation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/selectors.h"
#include "plugin_host/sdk/tolerations.h"

namespace outboard::backfill {
namespace {

// By slot: whether the node's labels and taints admit the pod.
std::vector<char> MayUse(const v1beta1::Pod& pod, const sdk::ClusterView& cluster) {
  const sdk::NodeTable& table = cluster.nodes();
  const sdk::RequiredNodeAffinity affinity(pod);
  std::vector<char> may_use(table.occupied.size(), 0);
  for (const sdk::Slot slot : cluster.node_order()) {
    if (table.unschedulable[slot] != 0) continue;
    const sdk::NodeView node = cluster.node(slot);
    if (table.taint_set[slot] != 0 &&
        sdk::FindUntoleratedTaint(node.taints(), pod.tolerations()) != nullptr)
      continue;
    if (!affinity.empty() && !affinity.Matches(node).value_or(false)) continue;
    may_use[slot] = 1;
  }
  return may_use;
}

// Everything except the size that decides which nodes admit a pod.
std::string PlacesOf(const v1beta1::Pod& pod) {
  std::string places;
  const std::map<std::string, std::string> selector(pod.node_selector().begin(),
                                                    pod.node_selector().end());
  for (const auto& [key, value] : selector) absl::StrAppend(&places, key, "=", value, "\n");
  if (pod.has_affinity()) absl::StrAppend(&places, pod.affinity().SerializeAsString());
  for (const v1beta1::Toleration& toleration : pod.tolerations())
    absl::StrAppend(&places, "\n", toleration.SerializeAsString());
  return places;
}

Rooms AllocatableLess(const std::vector<Resource>& resources, const sdk::ClusterView& cluster,
                      int64_t share) {
  const sdk::NodeTable& nodes = cluster.nodes();
  Rooms rooms(nodes.occupied.size(), resources.size());
  for (size_t r = 0; r < resources.size(); ++r) {
    const std::vector<int64_t>& allocatable = resources[r].Allocatable(nodes);
    const std::vector<int64_t>& requested = resources[r].Requested(nodes);
    for (const sdk::Slot slot : cluster.node_order())
      rooms.At(slot)[r] = allocatable[slot] - share * requested[slot];
  }
  return rooms;
}

}  // namespace

const std::vector<int64_t>& Resource::Allocatable(const sdk::NodeTable& nodes) const {
  switch (kind) {
    case Kind::kCpu:
      return nodes.allocatable_cpu;
    case Kind::kMemory:
      return nodes.allocatable_memory;
    case Kind::kEphemeral:
      return nodes.allocatable_ephemeral;
    case Kind::kPods:
      return nodes.allocatable_pods;
    case Kind::kExtended:
      break;
  }
  return nodes.extended[column].allocatable;
}

const std::vector<int64_t>& Resource::Requested(const sdk::NodeTable& nodes) const {
  switch (kind) {
    case Kind::kCpu:
      return nodes.requested_cpu;
    case Kind::kMemory:
      return nodes.requested_memory;
    case Kind::kEphemeral:
      return nodes.requested_ephemeral;
    case Kind::kPods:
      return nodes.pod_count;
    case Kind::kExtended:
      break;
  }
  return nodes.extended[column].requested;
}

int64_t Resource::AskedBy(const sdk::PodRecord& pod) const {
  const sdk::Resources& requests = pod.usage.requests;
  int64_t amount = 0;
  switch (kind) {
    case Kind::kCpu:
      amount = requests.cpu_millis;
      break;
    case Kind::kMemory:
      amount = requests.memory_bytes;
      break;
    case Kind::kEphemeral:
      amount = requests.ephemeral_storage_bytes;
      break;
    case Kind::kPods:
      return 1;
    case Kind::kExtended:
      for (const auto& [its, asked] : pod.extended)
        if (its == column) amount = asked;
      break;
  }
  return std::max<int64_t>(0, amount);
}

std::optional<int32_t> Unit::OutranksBelow() const {
  std::optional<int32_t> lowest;
  for (const sdk::PodRecord* pod : pending) {
    if (pod->pod.preemption_policy() == v1beta1::PREEMPTION_POLICY_NEVER) return std::nullopt;
    lowest = std::min(lowest.value_or(pod->pod.priority()), pod->pod.priority());
  }
  return lowest;
}

bool ResourcesOf(const Unit& unit, const sdk::NodeTable& nodes, std::vector<Resource>* resources) {
  using Kind = Resource::Kind;
  std::map<std::string, Resource> wanted;
  bool cpu = false, memory = false, ephemeral = false;
  for (const sdk::PodRecord* pod : unit.pending) {
    const sdk::Resources& requests = pod->usage.requests;
    cpu |= requests.cpu_millis > 0;
    memory |= requests.memory_bytes > 0;
    ephemeral |= requests.ephemeral_storage_bytes > 0;
    for (const auto& [name, amount] : requests.extended) {
      if (amount <= 0 || !sdk::IsScalarResourceName(name)) continue;
      const auto column = nodes.extended_by_name.find(name);
      if (column == nodes.extended_by_name.end()) return false;
      wanted[name] = {name, Kind::kExtended, column->second};
    }
  }
  resources->push_back({"pods", Kind::kPods});
  if (ephemeral) resources->push_back({"ephemeral-storage", Kind::kEphemeral});
  if (memory) resources->push_back({"memory", Kind::kMemory});
  if (cpu) resources->push_back({"cpu", Kind::kCpu});
  for (auto& [name, resource] : wanted) resources->push_back(std::move(resource));
  return true;
}

std::vector<Demand> DemandsOf(const Unit& unit, const std::vector<Resource>& resources,
                              const sdk::ClusterView& cluster) {
  std::map<std::pair<Amounts, std::string>, std::pair<const sdk::PodRecord*, int64_t>> kinds;
  for (const sdk::PodRecord* pod : unit.pending) {
    Amounts each;
    for (const Resource& resource : resources) each.push_back(resource.AskedBy(*pod));
    auto& [first, count] = kinds[{std::move(each), PlacesOf(pod->pod)}];
    if (first == nullptr) first = pod;
    ++count;
  }
  std::vector<Demand> demands;
  for (const auto& [kind, members] : kinds)
    demands.push_back({kind.first, members.second, MayUse(members.first->pod, cluster)});
  // By extended resources, then CPU, then memory.
  std::stable_sort(demands.begin(), demands.end(), [](const Demand& a, const Demand& b) {
    return std::lexicographical_compare(b.each.rbegin(), b.each.rend(), a.each.rbegin(),
                                        a.each.rend());
  });
  int64_t left = unit.needed;
  for (Demand& demand : demands) left -= demand.count = std::min(demand.count, left);
  std::erase_if(demands, [](const Demand& demand) { return demand.count == 0; });
  return demands;
}

Rooms FreeRooms(const std::vector<Resource>& resources, const sdk::ClusterView& cluster) {
  return AllocatableLess(resources, cluster, 1);
}

Rooms EmptyRooms(const std::vector<Resource>& resources, const sdk::ClusterView& cluster) {
  return AllocatableLess(resources, cluster, 0);
}

}  // namespace outboard::backfill
