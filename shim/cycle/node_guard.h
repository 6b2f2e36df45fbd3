// The shim's own arithmetic: whatever a plugin host says, no node is overcommitted by us.
#ifndef OUTBOARD_SHIM_CYCLE_NODE_GUARD_H_
#define OUTBOARD_SHIM_CYCLE_NODE_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::cycle {

// A port that a pod takes on its node.
struct HostPort {
  v1alpha1::Protocol protocol = v1alpha1::TCP;
  int32_t port = 0;
  std::string ip;  // "0.0.0.0": every address

  // Whether the two cannot be on one node.
  bool ConflictsWith(const HostPort& other) const;
  bool operator==(const HostPort& other) const {
    return protocol == other.protocol && port == other.port && ip == other.ip;
  }
};

// Resources for which a DeviceClass stands, by their names in pods' requests, and how often.
using DeviceClassResources = absl::flat_hash_map<std::string, int>;

// What a pod takes from its node. Absent and zero are the same here.
struct PodDemand {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  int64_t ephemeral_storage_bytes = 0;
  // Sorted by name, no zeros.
  std::vector<std::pair<std::string, int64_t>> extended;
  std::vector<HostPort> ports;
};

// Kubernetes' effective request: the larger of any init container (with the sidecars before it) and
// all containers with all sidecars; replaced by pod-level requests where these name a resource;
// plus overhead. Of a container being resized, the largest of what it wants, has been allotted and
// has. Sums stop at the largest int64.
PodDemand DemandOf(const v1alpha1::Pod& pod);

// How far the guard goes for a profile. The administrator narrows it, by a profile without
// NodeResourcesFit or NodePorts or by the resources that NodeResourcesFit is told to ignore; a host
// cannot.
struct GuardScope {
  bool resources = true;  // pod count too
  bool ports = true;
  std::vector<std::string> ignored_resources;        // extended ones, by full name
  std::vector<std::string> ignored_resource_groups;  // what stands before the slash

  bool Ignores(absl::string_view resource) const;
};

// What the pods on one node take together.
//
// Threading: thread-compatible. Errors: none; sums are wide enough for any number of pods.
class NodeBooks {
 public:
  void Add(const PodDemand& demand);
  // Takes off what Add put there.
  void Remove(const PodDemand& demand);

  size_t pods() const { return pods_; }
  absl::int128 cpu_millis() const { return cpu_millis_; }
  absl::int128 memory_bytes() const { return memory_bytes_; }
  // The sums, the number of pods among them; they stop at the largest int64.
  void FillList(v1alpha1::ResourceList* list) const;

  // OK if a pod with this demand fits beside the others; else RESOURCE_EXHAUSTED naming the first
  // thing that is short. A resource for which a DeviceClass stands, and of which the node has none,
  // is counted in devices, elsewhere. Only what the pod asks for is looked at: a node that others
  // overcommitted in something else still takes it. `counted`: the pod is in these books already.
  absl::Status CheckFits(const PodDemand& demand, const v1alpha1::ResourceList& allocatable,
                         bool counted, const GuardScope& scope = {},
                         const DeviceClassResources& devices = {}) const;

 private:
  absl::Status CheckPorts(const PodDemand& demand, bool counted) const;

  size_t pods_ = 0;
  absl::int128 cpu_millis_ = 0;
  absl::int128 memory_bytes_ = 0;
  absl::int128 ephemeral_storage_bytes_ = 0;
  absl::flat_hash_map<std::string, absl::int128> extended_;
  // One entry for each pod that takes it; short, for few pods take host ports.
  std::vector<HostPort> ports_;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_NODE_GUARD_H_
