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
#include "plugin_host/mirror/mirror.h"
#include "plugin_host/runtime/evaluator.h"
#include "plugin_host/runtime/node_opinions.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/runtime/signatures.h"
#include "plugin_host/runtime/topology_domains.h"
#include "plugin_host/sdk/group_plugin.h"
#include "plugin_host/sdk/group_preemption.h"

namespace outboard::runtime {

// What all searches of a plan have in common.
struct PlanContext {
  std::shared_ptr<const Profile> profile;
  absl::Time now;  // what plugins take for the time
  SearchOptions options;
  absl::Time deadline;  // of the machine's clock: when the search is to have ended
  // For groups: on these nodes only; empty: on any. And whether to keep in mind what failed.
  absl::Span<const sdk::Slot> among;
  bool remembers = true;
};

// A pod, its node, and the attempt that PreFilter began for it.
struct PlannedPod {
  const sdk::PodRecord* pod = nullptr;
  sdk::Slot slot = sdk::kNoSlot;
  uint32_t processed = 0;
  uint32_t feasible = 0;
  std::unique_ptr<AttemptRecord> attempt;
};

// A group's plan: at least `needed` pods, or none and why.
struct GroupOutcome {
  std::vector<PlannedPod> placed;  // the attempt's pod first
  uint32_t fitting = 0;            // how many could be placed at most, as far as the search went
  std::string reason;              // for people, what stands in the way; empty if placed
  std::set<std::string> rejected_by;
  std::vector<std::string> also;  // other members of which the same holds, by uid
  std::string error;              // of a plugin that failed; nothing is placed then

  // Of one that placed nothing.
  GroupOutcome Copy() const;
};

// What plans are made with.
struct PlanTools {
  mirror::Mirror* mirror;
  Evaluator* evaluator;
  Signatures* signatures;
  TopologyDomains* domains;
};

// Plans on the mirror itself: places, has plugins look at what that makes of the cluster, and takes
// all back.
//
// Threading: thread-compatible; the mirror's thread. Lifetime: mirror and evaluator outlive it.
// Errors:    in the outcome.
class Planner {
 public:
  Planner(mirror::Mirror* mirror, Evaluator* evaluator, Signatures* signatures);

  // How many of `pods` have nodes, one after the other; ends at the first that has none.
  // `offset_after` of the search before them is options.start_offset. Attempts are numbered from
  // `first_id`. `placed`: a pod that has one already, and its node.
  std::vector<PlannedPod> PlaceNext(const PlanContext& context, const PlannedPod& placed,
                                    absl::Span<const sdk::PodRecord* const> pods,
                                    uint64_t first_id);

  GroupOutcome PlaceGroup(const PlanContext& context, const sdk::GroupToPlace& group,
                          const sdk::PodRecord& first);

  // What if pods were gone? The group is cut down to as many members as have to have a node. What
  // it is made of must outlive it.
  std::unique_ptr<sdk::GroupDryRun> MakeDryRun(const PlanContext& context,
                                               const sdk::GroupToPlace& group,
                                               const sdk::PodRecord& first);

 private:
  // Forgets the opinions unless they are those of pods with this signature.
  void PrepareOpinions(const std::shared_ptr<const Profile>& profile, const std::string& signature);

  // What stood in the way of groups of the same shape, for as long as nothing has changed.
  struct Failure {
    absl::Time until;
    GroupOutcome outcome;
  };

  mirror::Mirror* const mirror_;
  Evaluator* const evaluator_;
  Signatures* const signatures_;
  TopologyDomains domains_;
  NodeOpinions opinions_;
  // Whose they are, and as of what: pods come in many batches of the same kind.
  struct OpinionsOf {
    std::weak_ptr<const Profile> profile;
    std::string signature;
    uint64_t surroundings_version = 0;
  };
  OpinionsOf opinions_of_;
  absl::flat_hash_map<std::string, Failure> failures_;  // by the group's shape
  uint64_t failures_room_version_ = 0;
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_PLANNER_H_
