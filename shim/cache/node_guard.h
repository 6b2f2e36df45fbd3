// The shim's own arithmetic: the shim never overcommits a node, whatever a plugin host answers.
#ifndef OUTBOARD_SHIM_CACHE_NODE_GUARD_H_
#define OUTBOARD_SHIM_CACHE_NODE_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::cache {

// A port that a pod takes on its node.
struct HostPort {
  v1beta1::Protocol protocol = v1beta1::PROTOCOL_TCP;
  int32_t port = 0;
  std::string ip;  // "0.0.0.0": every address

  // Whether the two ports conflict on one node.
  bool ConflictsWith(const HostPort& other) const;
  bool operator==(const HostPort& other) const {
    return protocol == other.protocol && port == other.port && ip == other.ip;
  }
};

// How many DeviceClasses stand for a resource, by the resource's name in pods' requests.
using DeviceClassResources = absl::flat_hash_map<std::string, int>;

// What a pod takes from its node. Absent and zero are equal here.
struct PodDemand {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  int64_t ephemeral_storage_bytes = 0;
  // Sorted by name, no zeros.
  std::vector<std::pair<std::string, int64_t>> extended;
  std::vector<HostPort> ports;
};

// Kubernetes' effective request:
// - the larger of any init container (with the sidecars before it) and all containers with all
//   sidecars;
// - replaced by pod-level requests where these name a resource;
// - plus overhead.
// Of a container that is being resized, the largest of desired, allocated and actual resources.
// Sums saturate at the largest int64.
PodDemand DemandOf(const v1beta1::Pod& pod);

// How far the guard checks for a profile. Only the administrator can narrow it: by a profile
// without NodeResourcesFit or NodePorts, or by NodeResourcesFit's ignored resources. A host cannot.
struct GuardScope {
  bool resources = true;  // pod count too
  bool ports = true;
  std::vector<std::string> ignored_resources;        // extended ones, by full name
  std::vector<std::string> ignored_resource_groups;  // the part before the slash

  bool Ignores(absl::string_view resource) const;
};

// What is short, of a status of CheckFits: pods, cpu, memory, ephemeral_storage, extended_resource
// or host_port. Empty: the status is about something else.
std::string ShortageOf(const absl::Status& status);

// The sum of what the pods on one node take.
//
// Threading: thread-compatible.
// Errors: none; the sums are wide enough for any number of pods.
class NodeUsage {
 public:
  void Add(const PodDemand& demand);
  // Reverts an Add.
  void Remove(const PodDemand& demand);

  size_t pods() const { return pods_; }
  absl::int128 cpu_millis() const { return cpu_millis_; }
  absl::int128 memory_bytes() const { return memory_bytes_; }
  // The sums, including the number of pods; they saturate at the largest int64.
  void FillList(v1beta1::ResourceList* list) const;

  // OK if a pod with this demand fits beside the others; else RESOURCE_EXHAUSTED with the first
  // resource that is short (ShortageOf). A resource of a DeviceClass that the node does not list is
  // counted in devices, elsewhere. Only the resources that the pod requests are checked: a node
  // that is overcommitted in another resource still accepts it. `counted`: the pod is already
  // included in the sums.
  absl::Status CheckFits(const PodDemand& demand, const v1beta1::ResourceList& allocatable,
                         bool counted, const GuardScope& scope = {},
                         const DeviceClassResources& devices = {}) const;

 private:
  absl::Status CheckPorts(const PodDemand& demand, bool counted) const;

  size_t pods_ = 0;
  absl::int128 cpu_millis_ = 0;
  absl::int128 memory_bytes_ = 0;
  absl::int128 ephemeral_storage_bytes_ = 0;
  absl::flat_hash_map<std::string, absl::int128> extended_;
  // One entry per pod and port; short, because few pods use host ports.
  std::vector<HostPort> ports_;
};

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_NODE_GUARD_H_
