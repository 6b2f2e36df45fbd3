#include "shim/cache/node_guard.h"

#include <algorithm>
#include <limits>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace outboard::cache {
namespace {

using v1beta1::Container;
using v1beta1::ContainerStatus;
using v1beta1::Pod;
using v1beta1::ResourceList;

int64_t AddSaturating(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::numeric_limits<int64_t>::max();
  return sum;
}

// Combines two sorted lists of named amounts; a missing name counts as 0.
template <typename Op>
void Merge(std::vector<std::pair<std::string, int64_t>>& into,
           const std::vector<std::pair<std::string, int64_t>>& from, Op op) {
  for (const auto& [name, amount] : from) {
    const auto it =
        std::lower_bound(into.begin(), into.end(), name,
                         [](const auto& entry, const std::string& n) { return entry.first < n; });
    if (it != into.end() && it->first == name) {
      it->second = op(it->second, amount);
    } else {
      into.insert(it, {name, op(0, amount)});
    }
  }
}

template <typename Op>
void Combine(PodDemand& into, const PodDemand& from, Op op) {
  into.cpu_millis = op(into.cpu_millis, from.cpu_millis);
  into.memory_bytes = op(into.memory_bytes, from.memory_bytes);
  into.ephemeral_storage_bytes = op(into.ephemeral_storage_bytes, from.ephemeral_storage_bytes);
  Merge(into.extended, from.extended, op);
}

void AddTo(PodDemand& into, const PodDemand& from) { Combine(into, from, AddSaturating); }
void RaiseTo(PodDemand& into, const PodDemand& from) {
  Combine(into, from, [](int64_t a, int64_t b) { return std::max(a, b); });
}

PodDemand FromList(const ResourceList& list) {
  PodDemand demand;
  demand.cpu_millis = list.cpu_millis();
  demand.memory_bytes = list.memory_bytes();
  demand.ephemeral_storage_bytes = list.ephemeral_storage_bytes();
  for (const auto& [name, amount] : list.scalar()) demand.extended.emplace_back(name, amount);
  std::sort(demand.extended.begin(), demand.extended.end());
  return demand;
}

// While a container is resized in place, the node must have room for its desired, allocated and
// actual resources. If the node can never do the resize, the desired resources do not count.
PodDemand ResizedDemand(const Pod& pod, const ResourceList& wanted, const ResourceList& actual,
                        const ResourceList& allocated) {
  PodDemand demand = FromList(actual);
  RaiseTo(demand, FromList(allocated));
  if (!pod.resize_infeasible()) RaiseTo(demand, FromList(wanted));
  return demand;
}

PodDemand ContainerDemand(const Pod& pod, const Container& container) {
  for (const ContainerStatus& status : pod.container_statuses()) {
    if (status.name() != container.name() || !status.has_actual_requests()) continue;
    return ResizedDemand(pod, container.requests(), status.actual_requests(),
                         status.allocated_requests());
  }
  return FromList(container.requests());
}

void CollectPorts(const Container& container, std::vector<HostPort>& ports) {
  for (const v1beta1::ContainerPort& port : container.ports()) {
    if (port.host_port() <= 0) continue;
    HostPort taken;
    if (port.protocol() != v1beta1::PROTOCOL_UNSPECIFIED) taken.protocol = port.protocol();
    taken.port = port.host_port();
    taken.ip = port.host_ip().empty() ? "0.0.0.0" : port.host_ip();
    ports.push_back(std::move(taken));
  }
}

void ApplyPodLevel(const Pod& pod, PodDemand& demand) {
  const ResourceList& requests = pod.pod_requests();
  const PodDemand wanted =
      pod.has_pod_actual_requests()
          ? ResizedDemand(pod, requests, pod.pod_actual_requests(), pod.pod_allocated_requests())
          : FromList(requests);
  if (requests.has_cpu_millis()) demand.cpu_millis = wanted.cpu_millis;
  if (requests.has_memory_bytes()) demand.memory_bytes = wanted.memory_bytes;
  for (const auto& [name, unused] : requests.scalar()) {
    if (!absl::StartsWith(name, "hugepages-")) continue;
    const auto amount =
        std::find_if(wanted.extended.begin(), wanted.extended.end(),
                     [&resource = name](const auto& entry) { return entry.first == resource; });
    Merge(demand.extended, {{name, amount == wanted.extended.end() ? 0 : amount->second}},
          [](int64_t, int64_t replacement) { return replacement; });
  }
}

constexpr char kShortage[] = "outboard.Shortage";

absl::Status Exhausted(absl::string_view what, const std::string& message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kShortage, absl::Cord(what));
  return status;
}

std::string Short(absl::string_view resource, absl::int128 wanted, absl::int128 used,
                  int64_t allocatable) {
  // The values fit in any sane cluster; the cast is for the message only.
  return absl::StrCat("Insufficient ", resource, ": ", static_cast<int64_t>(wanted), " requested, ",
                      static_cast<int64_t>(used), " of ", allocatable, " used");
}

}  // namespace

std::string ShortageOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kShortage);
  return payload.has_value() ? std::string(*payload) : "";
}

bool HostPort::ConflictsWith(const HostPort& other) const {
  return protocol == other.protocol && port == other.port &&
         (ip == other.ip || ip == "0.0.0.0" || other.ip == "0.0.0.0");
}

PodDemand DemandOf(const Pod& pod) {
  PodDemand demand;
  for (const Container& container : pod.containers()) {
    AddTo(demand, ContainerDemand(pod, container));
    CollectPorts(container, demand.ports);
  }
  PodDemand sidecars;  // those started so far
  PodDemand starting;  // the largest need at any moment of the start
  for (const Container& container : pod.init_containers()) {
    if (container.restart_policy_always()) {
      const PodDemand own = ContainerDemand(pod, container);
      AddTo(demand, own);
      AddTo(sidecars, own);
      RaiseTo(starting, sidecars);
      CollectPorts(container, demand.ports);
    } else {
      PodDemand moment = FromList(container.requests());
      AddTo(moment, sidecars);
      RaiseTo(starting, moment);
    }
  }
  RaiseTo(demand, starting);
  ApplyPodLevel(pod, demand);
  AddTo(demand, FromList(pod.overhead()));
  demand.extended.erase(std::remove_if(demand.extended.begin(), demand.extended.end(),
                                       [](const auto& entry) { return entry.second == 0; }),
                        demand.extended.end());
  return demand;
}

void NodeUsage::Add(const PodDemand& demand) {
  ++pods_;
  cpu_millis_ += demand.cpu_millis;
  memory_bytes_ += demand.memory_bytes;
  ephemeral_storage_bytes_ += demand.ephemeral_storage_bytes;
  for (const auto& [name, amount] : demand.extended) extended_[name] += amount;
  ports_.insert(ports_.end(), demand.ports.begin(), demand.ports.end());
}

void NodeUsage::Remove(const PodDemand& demand) {
  --pods_;
  cpu_millis_ -= demand.cpu_millis;
  memory_bytes_ -= demand.memory_bytes;
  ephemeral_storage_bytes_ -= demand.ephemeral_storage_bytes;
  for (const auto& [name, amount] : demand.extended) {
    const auto it = extended_.find(name);
    if (it == extended_.end()) continue;
    it->second -= amount;
    if (it->second == 0) extended_.erase(it);
  }
  for (const HostPort& port : demand.ports) {
    const auto it = std::find(ports_.begin(), ports_.end(), port);
    if (it != ports_.end()) ports_.erase(it);
  }
}

void NodeUsage::FillList(ResourceList* list) const {
  const auto bounded = [](absl::int128 sum) {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    return sum > kMax ? kMax : static_cast<int64_t>(sum);
  };
  list->set_cpu_millis(bounded(cpu_millis_));
  list->set_memory_bytes(bounded(memory_bytes_));
  list->set_ephemeral_storage_bytes(bounded(ephemeral_storage_bytes_));
  list->set_pods(static_cast<int64_t>(pods_));
  for (const auto& [name, sum] : extended_) (*list->mutable_scalar())[name] = bounded(sum);
}

bool GuardScope::Ignores(absl::string_view resource) const {
  const auto contains = [](const std::vector<std::string>& list, absl::string_view wanted) {
    return std::find(list.begin(), list.end(), wanted) != list.end();
  };
  if (ignored_resources.empty() && ignored_resource_groups.empty()) return false;
  return contains(ignored_resources, resource) ||
         contains(ignored_resource_groups, resource.substr(0, resource.find('/')));
}

absl::Status NodeUsage::CheckFits(const PodDemand& demand, const ResourceList& allocatable,
                                  bool counted, const GuardScope& scope,
                                  const DeviceClassResources& devices) const {
  if (!scope.resources) return scope.ports ? CheckPorts(demand, counted) : absl::OkStatus();
  const size_t others = pods_ - (counted ? 1 : 0);
  if (allocatable.pods() < 0 || others + 1 > static_cast<uint64_t>(allocatable.pods())) {
    return Exhausted("pods", absl::StrCat("Too many pods: ", others, " of ", allocatable.pods()));
  }
  absl::Status problem;
  const auto check = [&](const char* what, absl::string_view name, int64_t wanted,
                         absl::int128 used, int64_t limit) {
    if (wanted <= 0 || !problem.ok()) return;
    if (counted) used -= wanted;
    if (used + wanted > limit) problem = Exhausted(what, Short(name, wanted, used, limit));
  };
  check("cpu", "cpu", demand.cpu_millis, cpu_millis_, allocatable.cpu_millis());
  check("memory", "memory", demand.memory_bytes, memory_bytes_, allocatable.memory_bytes());
  check("ephemeral_storage", "ephemeral-storage", demand.ephemeral_storage_bytes,
        ephemeral_storage_bytes_, allocatable.ephemeral_storage_bytes());
  for (const auto& [name, wanted] : demand.extended) {
    if (scope.Ignores(name)) continue;
    const auto used = extended_.find(name);
    const auto found = allocatable.scalar().find(name);
    const int64_t limit = found == allocatable.scalar().end() ? 0 : found->second;
    if (limit <= 0 && devices.contains(name)) continue;
    check("extended_resource", name, wanted,
          used == extended_.end() ? absl::int128(0) : used->second, limit);
  }
  if (!problem.ok()) return problem;
  return scope.ports ? CheckPorts(demand, counted) : absl::OkStatus();
}

absl::Status NodeUsage::CheckPorts(const PodDemand& demand, bool counted) const {
  for (const HostPort& port : demand.ports) {
    const auto conflicts = [&](const HostPort& other) { return port.ConflictsWith(other); };
    auto taken = std::count_if(ports_.begin(), ports_.end(), conflicts);
    // The pod's own entries are not a conflict.
    if (counted) taken -= std::count_if(demand.ports.begin(), demand.ports.end(), conflicts);
    if (taken > 0)
      return Exhausted("host_port", absl::StrCat("Host port ", port.port, " is taken"));
  }
  return absl::OkStatus();
}

}  // namespace outboard::cache
