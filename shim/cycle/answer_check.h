// Nothing that a host answers is trusted: every answer is checked here before it is used.
#ifndef OUTBOARD_SHIM_CYCLE_ANSWER_CHECK_H_
#define OUTBOARD_SHIM_CYCLE_ANSWER_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/outboard/v1alpha1/cycle.pb.h"
#include "proto/outboard/v1alpha1/effect.pb.h"
#include "proto/outboard/v1alpha1/filter.pb.h"
#include "proto/outboard/v1alpha1/permit.pb.h"
#include "proto/outboard/v1alpha1/post_filter.pb.h"
#include "proto/outboard/v1alpha1/pre_bind.pb.h"
#include "proto/outboard/v1alpha1/reserve.pb.h"
#include "proto/outboard/v1alpha1/score.pb.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::cycle {

struct PointShare;

// A plugin at Score with the profile's weight.
struct WeightedPlugin {
  std::string name;
  int64_t weight = 1;
};

// Checks a PreFilterResponse. Errors: INTERNAL, naming what is wrong. Pure.
absl::Status CheckPreFilter(const v1alpha1::PreFilterResponse& response);

// How many bits of a bitmap are set.
uint32_t CountSetBits(absl::string_view bitmap);

// Checks the answer about a list of `num_nodes` of which `num_to_find` feasible ones are enough,
// and puts the positions of feasible nodes (0 = the first node examined) into `feasible`. Errors:
// INTERNAL, naming what is wrong. Pure.
absl::Status CheckFilter(const v1alpha1::FilterResponse& response, uint32_t num_nodes,
                         uint32_t num_to_find, std::vector<uint32_t>* feasible);

// Checks the form of a PostFilterResponse of these plugins; whether nodes and victims are what it
// takes them for is not looked at. Errors: INTERNAL, naming what is wrong. Pure.
absl::Status CheckPostFilter(const v1alpha1::PostFilterResponse& response,
                             const std::vector<std::string>& plugins);

// Checks a PostFilterResponse with questions: they come alone, and only where somebody can answer.
// Errors: INTERNAL, naming what is wrong. Pure.
absl::Status CheckQuestions(const v1alpha1::PostFilterResponse& response, bool others_filter);

// Checks the nodes that a host found for several pods at once: `pod_uid` is the one asked about,
// `next` were offered with it. Whether there are such nodes is not looked at. Errors: INTERNAL,
// naming what is wrong. Pure.
absl::Status CheckPlacements(const v1alpha1::CycleResponse& response, const std::string& pod_uid,
                             absl::Span<const std::string> next, bool place_group);

// Checks which other pods a group's rejection is about; which of them wait is not looked at.
// Errors: INTERNAL, naming what is wrong. Pure.
absl::Status CheckRejectedGroup(const v1alpha1::PlannedGroup& group, const std::string& pod_uid);

// Checks the scores of `num_nodes` nodes and puts the weighted sums into `totals`. Errors:
// INTERNAL, naming what is wrong. Pure.
absl::Status CheckScores(const v1alpha1::ScoreResponse& response, uint32_t num_nodes,
                         const std::vector<WeightedPlugin>& plugins, std::vector<int64_t>* totals);

// Checks a PreScoreResponse. Errors: INTERNAL, naming what is wrong. Pure.
absl::Status CheckPreScore(const v1alpha1::PreScoreResponse& response);

// Whether verdicts are those of these plugins, and of no others: their names become labels of
// metrics, and pods wait in their name. Errors: INTERNAL, naming the stranger. Pure.
absl::Status CheckNames(const v1alpha1::PreFilterResponse& response,
                        const std::vector<std::string>& plugins);
absl::Status CheckNames(const v1alpha1::FilterResponse& response,
                        const std::vector<std::string>& plugins);

// Checks one verdict of PreEnqueue. Errors: INTERNAL, naming what is wrong. Pure.
absl::Status CheckGate(const v1alpha1::PluginStatus& verdict, const PointShare& share);

// Checks the answer of one host's plugins about a pod on a node. Errors: INTERNAL, naming what is
// wrong. Pure.
absl::Status CheckReserve(const v1alpha1::ReserveResponse& response, const PointShare& share,
                          const v1alpha1::Pod& pod, const std::string& node_name);
absl::Status CheckPermit(const v1alpha1::PermitResponse& response, const PointShare& share);
absl::Status CheckPreBind(const v1alpha1::PreBindResponse& response);
absl::Status CheckDecision(const v1alpha1::WaitDecision& decision);

// Whether an effect has a key, of a length that the contract allows. Pure.
bool HasKey(const v1alpha1::Effect& effect);

// Checks what Reserve wants carried out for a pod on a node: it may touch the pod's own claims and
// volumes for them, each once, and nothing else. Errors: INTERNAL, naming what is wrong. Pure.
// Writes of objects are CheckObjectWrite's (custom_resources.h).
absl::Status CheckEffects(const google::protobuf::RepeatedPtrField<v1alpha1::Effect>& effects,
                          const v1alpha1::Pod& pod, const std::string& node_name);

// What the contract allows a message for people. Beyond it texts of a host are cut.
inline constexpr size_t kMaxMessageBytes = 1024;
// At most so many bytes, cut at a character's beginning: contract strings are UTF-8, and half a
// character makes a whole message unreadable. Pure.
std::string CutText(absl::string_view text, size_t max_bytes = kMaxMessageBytes);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_ANSWER_CHECK_H_
