// The shim trusts no answer of a host: every answer is checked here before it is used.
#ifndef OUTBOARD_SHIM_FRAMEWORK_ANSWER_CHECK_H_
#define OUTBOARD_SHIM_FRAMEWORK_ANSWER_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/bind.pb.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "outboard/v1beta1/effect.pb.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/permit.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "outboard/v1beta1/post_filter.pb.h"
#include "outboard/v1beta1/pre_bind.pb.h"
#include "outboard/v1beta1/reserve.pb.h"
#include "outboard/v1beta1/score.pb.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::framework {

struct HostExtensionPoint;

// A plugin at Score with the profile's weight.
struct WeightedPlugin {
  std::string name;
  int64_t weight = 1;
};

// The code of an answer with `rejection`, which is absent on success. Pure.
template <typename Response>
v1beta1::Code CodeOfAnswer(const Response& answer) {
  return answer.has_rejection() ? answer.rejection().code() : v1beta1::CODE_SUCCESS;
}

// The PreFilter answer in a Plan answer of any outcome; empty if there is none. Pure.
const v1beta1::PreFilterResponse& PreFilterOf(const v1beta1::PlanResponse& response);

// The answers point by point in a Plan answer; only PreFilter's if nodes were not evaluated. Pure.
v1beta1::CycleEvaluation AnswersOf(v1beta1::PlanResponse response);

// Checks the form of a Plan or Cycle answer: that it has an outcome that belongs to its PreFilter
// answer. Its parts are checked where they are used. Pure. Errors: INTERNAL, with the fault.
absl::Status CheckCycle(const v1beta1::PlanResponse& response);

// Checks a PreFilterResponse. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckPreFilter(const v1beta1::PreFilterResponse& response);

// How many bits of a bitmap are set.
uint32_t CountSetBits(absl::string_view bitmap);

// Brings an answer with `verdicts` into the form with bitmaps, which all other functions expect;
// indices are checked by CheckFilter. Pure.
// Errors: INTERNAL, with the fault.
absl::Status ExpandVerdicts(v1beta1::FilterResponse* response);

// Checks the answer about a list of `num_nodes`, of which `num_to_find` feasible nodes are enough,
// and puts the positions of feasible nodes (0 = the first node examined) into `feasible`. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckFilter(const v1beta1::FilterResponse& response, uint32_t num_nodes,
                         uint32_t num_to_find, std::vector<uint32_t>* feasible);

// Checks the form of a PostFilterResponse of these plugins, not whether its nodes and victims
// exist. `others_filter`: other hosts can answer questions. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckPostFilter(const v1beta1::PostFilterResponse& response,
                             const std::vector<std::string>& plugins, bool others_filter);

// Checks the nodes that a host found for several pods at once: `pod_uid` is the pod of the request,
// `next` were offered with it. Does not check whether the nodes exist. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckPlacements(const v1beta1::CyclePlan& plan, const std::string& pod_uid,
                             absl::Span<const std::string> next, bool place_group);

// Checks the other pods of a group's rejection, not whether they wait. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckRejectedGroup(const v1beta1::PlannedGroup& group, const std::string& pod_uid);

// Checks the scores of `num_nodes` nodes and puts the weighted sums into `totals`. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckScores(const v1beta1::ScoreResponse& response, uint32_t num_nodes,
                         const std::vector<WeightedPlugin>& plugins, std::vector<int64_t>* totals);

// Checks a PreScoreResponse. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckPreScore(const v1beta1::PreScoreResponse& response);

// Whether all verdicts are from these plugins: their names become metric labels, and pods wait for
// their events. Pure.
// Errors: INTERNAL, with the unknown plugin.
absl::Status CheckNames(const v1beta1::PreFilterResponse& response,
                        const std::vector<std::string>& plugins);
absl::Status CheckNames(const v1beta1::FilterResponse& response,
                        const std::vector<std::string>& plugins);
// Checks the PreFilter answer in a Plan answer, and its names: where a group was rejected, any
// plugin that evaluated the members may have done it. Pure. Errors: INTERNAL, with the fault.
absl::Status CheckPreFilterOf(const v1beta1::PlanResponse& response,
                              const std::vector<std::string>& pre_filter_plugins,
                              const std::vector<std::string>& filter_plugins);

// Checks one verdict of PreEnqueue. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckGate(const v1beta1::PluginStatus& verdict, const HostExtensionPoint& share);

// Checks the answer of one host's plugins about a pod on a node. CheckPreBind checks only the
// plugins of effects; CheckEffects and its siblings check the effects. CheckReserve also bounds
// what plugins keep for the pod. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckReserve(const v1beta1::ReserveResponse& response, const HostExtensionPoint& share,
                          const v1beta1::Pod& pod, const std::string& node_name);
absl::Status CheckPermit(const v1beta1::PermitResponse& response, const HostExtensionPoint& share);
absl::Status CheckPreBind(const v1beta1::PreBindResponse& response,
                          const absl::flat_hash_set<std::string>& plugins);
// Of the one plugin that was asked. `allowed_keys` as CheckPodEffect (pod_effects.h).
absl::Status CheckBind(const v1beta1::BindResponse& response, const std::string& plugin,
                       const std::vector<std::string>& allowed_keys);
absl::Status CheckDecision(const v1beta1::WaitDecision& decision);

// Whether the names and versions in an effect have an allowed length. Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckEffectSize(const v1beta1::Effect& effect);

// Whether an effect has a key of an allowed length. Pure.
bool HasKey(const v1beta1::Effect& effect);

// Checks the effects that Reserve and PreBind request for a pod on a node; `point` is the one whose
// answer is checked, for the fault: only on the pod's own claims and
// volumes for them, each at most once. Writes of objects are checked by CheckObjectWrite
// (custom_resources.h), changes of the pod and events by CheckPodEffect (pod_effects.h). Pure.
// Errors: INTERNAL, with the fault.
absl::Status CheckEffects(const google::protobuf::RepeatedPtrField<v1beta1::Effect>& effects,
                          absl::string_view point, const v1beta1::Pod& pod,
                          const std::string& node_name);

// The contract's limit for a text that people read. Longer texts of a host are cut.
inline constexpr size_t kMaxMessageBytes = 1024;
// At most `max_bytes`, cut at a character boundary: contract strings are UTF-8, and half a
// character makes the whole message unreadable. Pure.
std::string CutText(absl::string_view text, size_t max_bytes = kMaxMessageBytes);
// INTERNAL: what is wrong with an answer. Cut, because a quoted part of it may have any length.
absl::Status WrongAnswer(absl::string_view what);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_ANSWER_CHECK_H_
