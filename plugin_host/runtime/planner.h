// Nodes for several pods, each placement counting for the next.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_PLANNER_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_PLANNER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/runtime/evaluator.h"
#include "plugin_host/runtime/node_verdict_cache.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/runtime/signatures.h"
#include "plugin_host/runtime/topology_domains.h"
#include "plugin_host/sdk/group_plugin.h"
#include "plugin_host/sdk/group_preemption.h"

namespace outboard::runtime {

// Shared by all searches of a plan.
struct PlanContext {
  std::shared_ptr<const Profile> profile;
  absl::Time now;  // the plugins' time
  SearchOptions options;
  absl::Time deadline;  // end of the search, by the machine's clock
  // For groups: only on these nodes; empty: on any. And whether to cache failures.
  absl::Span<const sdk::Slot> among;
  bool remembers = true;
  bool explain = false;  // for people: keep the scores by which members of a group got their nodes
};

// A pod, its node, and the attempt that PreFilter began for it.
struct PlannedPod {
  const sdk::PodRecord* pod = nullptr;
  sdk::Slot slot = sdk::kNoSlot;
  uint32_t processed = 0;
  uint32_t feasible = 0;
  std::unique_ptr<AttemptRecord> attempt;
  // With PlanContext.explain, if the node was selected by scores; only these two fields.
  std::unique_ptr<v1beta1::PlannedPlacement> scores;
};

// A group's plan: at least `needed` pods, or none and why.
struct GroupOutcome {
  std::vector<PlannedPod> placed;  // the attempt's pod first
  uint32_t fitting = 0;            // maximum that could be placed, as far as the search went
  std::string reason;              // for people, why not; empty if placed
  std::set<std::string> rejected_by;
  std::vector<std::string> also;  // other members with the same outcome, by uid
  std::string error;              // of a failed plugin; then nothing is placed

  // Only for an outcome without placements.
  GroupOutcome Copy() const;
};

// The parts that plans use.
struct PlanTools {
  host_cache::ClusterCache* cache;
  Evaluator* evaluator;
  Signatures* signatures;
  TopologyDomains* domains;
};

// Plans on the cache itself: places pods, evaluates plugins on the result, and undoes everything.
//
// Threading: thread-compatible; the cache's thread.
// Lifetime: cache and evaluator outlive it.
// Errors:    in the outcome.
class Planner {
 public:
  Planner(host_cache::ClusterCache* cache, Evaluator* evaluator, Signatures* signatures);

  // Places `pods` one after the other; ends at the first without a node. options.start_offset is
  // where the previous search ended. Attempts are numbered from `first_id`. `placed`: an already
  // placed pod, and its node.
  std::vector<PlannedPod> PlaceNext(const PlanContext& context, const PlannedPod& placed,
                                    absl::Span<const sdk::PodRecord* const> pods,
                                    uint64_t first_id);

  GroupOutcome PlaceGroup(const PlanContext& context, const sdk::GroupToPlace& group,
                          const sdk::PodRecord& first);

  // A dry run without some pods, for the needed members of the group, on the nodes of
  // context.among. The arguments must outlive it, but not these nodes.
  std::unique_ptr<sdk::GroupDryRun> MakeDryRun(const PlanContext& context,
                                               const sdk::GroupToPlace& group,
                                               const sdk::PodRecord& first);

 private:
  // Clears the verdict cache unless it is for pods with this signature.
  void PrepareVerdictCache(const std::shared_ptr<const Profile>& profile,
                           const std::string& signature);

  // Why groups of the same shape failed, valid while nothing changes.
  struct Failure {
    absl::Time until;
    GroupOutcome outcome;
  };

  host_cache::ClusterCache* const cache_;
  Evaluator* const evaluator_;
  Signatures* const signatures_;
  TopologyDomains domains_;
  NodeVerdictCache verdict_cache_;
  // What the verdict cache is for: pods often come in many batches of the same kind.
  struct VerdictCacheOf {
    std::weak_ptr<const Profile> profile;
    std::string signature;
    uint64_t surroundings_version = 0;
  };
  VerdictCacheOf verdict_cache_of_;
  absl::flat_hash_map<std::string, Failure> failures_;  // by the group's shape
  uint64_t failures_room_version_ = 0;
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_PLANNER_H_
