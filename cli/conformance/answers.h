// Checks whether answers are well formed, for any decision of the plugins; and runs whole rounds.
#ifndef OUTBOARD_CLI_CONFORMANCE_ANSWERS_H_
#define OUTBOARD_CLI_CONFORMANCE_ANSWERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/conformance/node_columns.h"
#include "cli/conformance/session.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "outboard/v1beta1/effect.pb.h"

namespace outboard::conformance {

using Plugins = std::vector<std::string>;

// All codes except SUCCESS and SKIP. `where` is for messages: "Filter's reason 3".
absl::Status CheckStatus(const v1beta1::PluginStatus& status, const std::string& where,
                         const Plugins& plugins, std::initializer_list<v1beta1::Code> codes,
                         const Rule& codes_rule, size_t max_reason_bytes = 1024);

absl::Status CheckPreFilter(const Kit& kit, const v1beta1::PreFilterResponse& response);

// Verdicts on the examined nodes, by slot: empty if feasible, else the serialized PluginStatus.
using Verdicts = std::map<uint32_t, std::string>;
// `list`: slots in the order of examination, from the start offset. `wanted`: how many feasible
// nodes are enough.
absl::Status CheckFilter(const Kit& kit, const v1beta1::FilterResponse& response,
                         const std::vector<uint32_t>& list, size_t wanted, Verdicts* verdicts,
                         std::vector<uint32_t>* feasible);
absl::Status CheckScore(const Kit& kit, const v1beta1::PreScoreResponse& before,
                        const v1beta1::ScoreResponse& response, size_t nodes);
absl::Status CheckEffects(const Kit& kit, const v1beta1::ReserveResponse& response);
absl::Status CheckStates(const Kit& kit, const v1beta1::ReserveResponse& response);
absl::Status CheckDecision(const v1beta1::WaitDecision& decision, const Plugins& plugins);

// PreFilter to Score of one pod, by plain calls. Parts without a call are empty.
struct Round {
  v1beta1::PreFilterResponse pre_filter;
  bool filtered = false;
  v1beta1::FilterResponse filter;
  std::vector<uint32_t> list;  // of the examined nodes
  Verdicts verdicts;
  std::vector<uint32_t> feasible;
  bool scored = false;
  v1beta1::PreScoreResponse pre_score;
  v1beta1::ScoreResponse score;
};
// Where a round ends.
enum class Until { kFilter, kScore };
// Checks each answer. `search`: of the Filter call; keeps its `nodes`; by default all nodes are
// searched. `order`: all slots in node order. Calls Score if more than one node is feasible.
absl::Status RunRound(const Session& session, uint64_t attempt, const std::string& uid,
                      const std::vector<uint32_t>& order, Round* round,
                      v1beta1::NodeSearch search = {}, Until until = Until::kScore);
absl::Status RunRound(const Session& session, uint64_t attempt, const std::string& uid,
                      Round* round, Until until = Until::kScore);
// Errors: `rule`, if the rounds have different answers.
absl::Status ExpectSame(const Round& one, const Round& other, const Rule& rule,
                        const std::string& what);

// How many nodes of a list a search for `wanted` feasible ones examines, by the verdicts of a round
// over all of them.
size_t ProcessedNodes(const Round& full, const std::vector<uint32_t>& list, size_t wanted);

// CycleRequest.percentage_of_nodes_to_score.
size_t EnoughNodes(size_t nodes, uint32_t percentage);

// `complete` of a host without a cache, with a node less and a node more than it names, must be
// refused.
template <typename Request>
absl::Status ExpectOtherNodesRefused(const Session& session, const Request& complete) {
  Request request = complete;
  if (complete.has_node_columns()) {
    RemoveLastNode(request.mutable_node_columns());
  } else {
    request.mutable_inline_nodes()->RemoveLast();
  }
  CONFORMANCE_TRY(
      ExpectError(session.Call(request), {v1beta1::CallError::REASON_INVALID}, kInlineComplete));
  request = complete;
  if (complete.has_node_columns()) {
    RepeatFirstNode(request.mutable_node_columns());
  } else {
    *request.add_inline_nodes() = complete.inline_nodes(0);
  }
  return ExpectError(session.Call(request), {v1beta1::CallError::REASON_INVALID}, kInlineComplete);
}

// Checks that the host refuses the last message on the session's stream as specified in
// cluster_state.proto, and accepts a snapshot on a new one. `what`: the message, in words.
absl::Status ExpectStreamRefused(Session* session, const std::string& what);

// Checks that the host answers at the session's version: by a PreFilter if it has such plugins,
// else by its readiness. The usual way to wait for a snapshot.
absl::Status ExpectAlive(const Session& session, uint64_t attempt);

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_ANSWERS_H_
