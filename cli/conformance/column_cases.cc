// Calls of hosts that get nodes in columns. What they answer about nodes is in the cases of Filter
// and Score, which send columns to such hosts.
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

// `complete` with an entry less and an entry more in each column must be refused.
template <typename Request>
absl::Status ExpectOtherEntriesRefused(const Session& session, const Request& complete) {
  CONFORMANCE_TRY(ExpectOk(session.Call(complete)));
  for (auto* change : {&RemoveLastNode, &RepeatFirstNode}) {
    Request request = complete;
    change(request.mutable_node_columns());
    CONFORMANCE_TRY(
        ExpectError(session.Call(request), {CallError::REASON_INVALID}, kColumnEntries));
  }
  Request request = complete;
  request.clear_node_columns();
  return ExpectError(session.Call(request), {CallError::REASON_INVALID}, kColumnEntries);
}

template <typename Request>
Request About(const Session& session, const std::vector<uint32_t>& slots) {
  Request request;
  *request.mutable_header() = session.Header(1);
  request.mutable_nodes()->mutable_slots()->Add(slots.begin(), slots.end());
  session.Complete(&request);
  return request;
}

absl::Status FilterColumns(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  CONFORMANCE_TRY(ExpectOk(session.PreFilter(1, session.cluster().pending[0].uid())));
  FilterRequest request;
  *request.mutable_header() = session.Header(1);
  for (const uint32_t slot : {4u, 0u, 7u})
    request.mutable_search()->mutable_nodes()->add_slots(slot);
  request.mutable_search()->set_num_feasible_nodes_to_find(3);
  session.Complete(&request);
  CONFORMANCE_TRY(ExpectOtherEntriesRefused(session, request));
  FilterRequest simulated;
  *simulated.mutable_header() = session.Header(1);
  // The same node twice.
  for (const uint32_t slot : {4u, 0u, 4u})
    simulated.mutable_simulation()->add_nodes()->set_slot(slot);
  session.Complete(&simulated);
  return ExpectOtherEntriesRefused(session, simulated);
}

absl::Status ScoreColumns(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  CONFORMANCE_TRY(ExpectOk(session.PreFilter(1, session.cluster().pending[0].uid())));
  if (kit.Has(EXTENSION_POINT_PRE_SCORE)) {
    CONFORMANCE_TRY(ExpectOtherEntriesRefused(session, About<PreScoreRequest>(session, {4, 0, 7})));
  }
  return ExpectOtherEntriesRefused(session, About<ScoreRequest>(session, {4, 0, 7}));
}

}  // namespace

std::vector<Case> ColumnCases() {
  static constexpr char kWhat[] =
      "node columns with an entry less or more than nodes return an error";
  return {
      {"FilterService", "columns", kWhat, FilterColumns},
      {"ScoreService", "columns", kWhat, ScoreColumns},
  };
}

}  // namespace outboard::conformance
