// Whether a pod's exclusive resources can come from one NUMA zone of a node, as the kubelet's
// Topology Manager decides. Pure functions.
#ifndef OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NUMA_FIT_H_
#define OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NUMA_FIT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "plugins/gpu_model_match/numa_requests.h"

namespace outboard::gpu_model_match {

// The kubelet's topologyManagerPolicy and topologyManagerScope.
enum class NumaPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode };
enum class NumaScope { kContainer, kPod };

// A zone's amounts of a resource, as NodeResourceTopology has them; `cpu` in millis. Zones that do
// not list the resource have none of it.
struct NumaAmounts {
  bool listed = false;
  int64_t capacity = 0;
  int64_t allocatable = 0;
  friend bool operator==(const NumaAmounts&, const NumaAmounts&) = default;
};

struct NumaZone {
  int id = 0;                        // the kernel's number of the NUMA node: 0 to 63
  std::map<int, int64_t> distances;  // by id of the other zone, its own included (ACPI: 10 is near)
  friend bool operator==(const NumaZone&, const NumaZone&) = default;
};

// A node's zones. Amounts are in one vector: of zone z and resource r at z * resources.size() + r.
struct NumaTopology {
  NumaPolicy policy = NumaPolicy::kNone;
  NumaScope scope = NumaScope::kContainer;
  int64_t max_numa_nodes = 8;            // the kubelet's limit; scores are in shares of it
  std::vector<std::string> resources{};  // sorted; each is listed by at least one zone
  std::vector<NumaZone> zones{};         // by id
  std::vector<NumaAmounts> amounts{};
  friend bool operator==(const NumaTopology&, const NumaTopology&) = default;
};

// What is available, at the indices of NumaTopology::amounts.
using NumaAvailable = absl::InlinedVector<int64_t, 32>;

// What of the pod the kubelet cannot align, so that it rejects the pod.
enum class NumaMisfit { kNone, kPod, kInitContainer, kSidecar, kContainer };

// Follows the node's policy: NONE and BEST_EFFORT reject no pod. With more zones than
// kMaxZonesInSets, RESTRICTED rejects none either.
NumaMisfit FindMisfit(const NumaRequests& pod, const NumaTopology& topology,
                      const NumaAvailable& available);

// Sets of zones are tried one after another: 2^16 at most. The kubelet's own limit is 8 zones.
inline constexpr size_t kMaxZonesInSets = 16;

// How few zones are enough, whatever the policy.
struct NumaSpan {
  bool fits = false;
  // Of the container (or pod, by the scope) that needs the most; 0: it uses no resource that zones
  // list.
  int zones = 0;
  // Whether no other zones of that number, of each container, are closer to each other.
  bool closest = true;
};
NumaSpan FindSpan(const NumaRequests& pod, const NumaTopology& topology,
                  const NumaAvailable& available);

// 0..100, as scheduler-plugins' NodeResourceTopologyMatch with the strategy LeastNUMANodes: each
// zone costs a share of max_numa_nodes, and half a share comes back if the zones are the closest.
int64_t ScoreOf(const NumaSpan& span, int64_t max_numa_nodes);

// Subtracts what the kubelet will allocate to the pod, from the zones that it will choose; where it
// cannot choose, from the first zones that have some.
void TakeAsKubelet(const NumaRequests& pod, const NumaTopology& topology, NumaAvailable* available);
// Subtracts the pod's resources from every zone: no guess about the kubelet's choice, and so never
// too little.
void TakeFromEveryZone(const NumaRequests& pod, const NumaTopology& topology,
                       NumaAvailable* available);

}  // namespace outboard::gpu_model_match

#endif  // OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NUMA_FIT_H_
