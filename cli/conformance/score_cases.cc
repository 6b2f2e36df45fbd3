// Scores, by plain calls.
#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

// Runs `check(pod, attempt, round)` for each scored pending pod.
template <typename Check>
absl::Status ForEachScored(Session& session, Check check) {
  uint64_t attempt = 0;
  bool any = false;
  for (const Pod& pod : session.cluster().pending) {
    Round round;
    CONFORMANCE_TRY(RunRound(session, ++attempt, pod.uid(), &round));
    if (!round.scored || round.pre_score.has_error() || round.score.has_error()) continue;
    any = true;
    CONFORMANCE_TRY(check(pod, attempt, round));
  }
  return any ? absl::OkStatus() : Skipped("no pod of the kit has two feasible nodes");
}

absl::Status WellFormed(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  return ForEachScored(session,
                       [](const Pod&, uint64_t, const Round&) { return absl::OkStatus(); });
}

absl::Status Again(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  return ForEachScored(
      session, [&](const Pod& pod, uint64_t attempt, const Round& round) -> absl::Status {
        const auto again = session.Score(attempt, round.feasible);
        CONFORMANCE_TRY(ExpectOk(again));
        if (again.message.SerializeAsString() == round.score.SerializeAsString())
          return absl::OkStatus();
        return Wrong(kScoreReadOnly,
                     absl::StrCat("pod ", pod.name(), ": the second scores differ"));
      });
}

absl::Status SomeNodes(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  return ForEachScored(session,
                       [&](const Pod& pod, uint64_t attempt, const Round& round) -> absl::Status {
                         for (const size_t count : {size_t{1}, size_t{2}, round.feasible.size()}) {
                           const std::vector<uint32_t> some(round.feasible.rbegin(),
                                                            round.feasible.rbegin() + count);
                           PreScoreResponse before = round.pre_score;
                           if (kit.Has(EXTENSION_POINT_PRE_SCORE)) {
                             const auto pre_score = session.PreScore(attempt, some);
                             CONFORMANCE_TRY(ExpectOk(pre_score));
                             before = pre_score.message;
                           }
                           const auto score = session.Score(attempt, some);
                           CONFORMANCE_TRY(ExpectOk(score));
                           CONFORMANCE_TRY(CheckScore(kit, before, score.message, count));
                         }
                         return absl::OkStatus();
                       });
}

absl::Status InlineErrors(const Session& session) {
  CONFORMANCE_TRY(
      ExpectOtherNodesRefused(session, AboutNodes<ScoreRequest>(session, 1, {0, 1, 2})));
  if (!session.kit().Has(EXTENSION_POINT_PRE_SCORE)) return absl::OkStatus();
  return ExpectOtherNodesRefused(session, AboutNodes<PreScoreRequest>(session, 1, {0, 1, 2}));
}

absl::Status Errors(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  CONFORMANCE_TRY(ExpectOk(session.PreFilter(1, session.cluster().pending[0].uid())));
  if (session.is_inline()) return InlineErrors(session);
  CONFORMANCE_TRY(
      ExpectError(session.Score(1, {0, 9}), {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown));
  CONFORMANCE_TRY(
      ExpectError(session.Score(1, {0, 0}), {CallError::REASON_INVALID}, kNodeSetDistinct));
  if (!kit.Has(EXTENSION_POINT_PRE_SCORE)) return absl::OkStatus();
  CONFORMANCE_TRY(
      ExpectError(session.PreScore(1, {9}), {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown));
  return ExpectError(session.PreScore(1, {3, 3}), {CallError::REASON_INVALID}, kNodeSetDistinct);
}

}  // namespace

std::vector<Case> ScoreCases() {
  static constexpr char kService[] = "ScoreService";
  return {
      {kService, "well-formed", "a score from 0 to 100 per node and plugin, in profile order",
       WellFormed},
      {kService, "again", "the same nodes get the same scores", Again},
      {kService, "some-nodes", "as many scores as nodes, for few nodes too", SomeNodes},
      {kService, "errors",
       "unknown and duplicate slots return an error, or other nodes than the call names", Errors},
  };
}

}  // namespace outboard::conformance
