// Hosts with SINGLE_SESSION: a new session replaces the one before.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"
#include "proto/short_names.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr absl::Duration kBetweenProbes = absl::Milliseconds(20);

// Waits until the host names this session as its own; empty: none. A host notices the end of a
// stream some time after the client ended it.
absl::Status ExpectCurrent(const Session& session, const std::string& id, const char* when) {
  const absl::Time give_up = absl::Now() + kSoon;
  while (true) {
    const auto answer = session.Call(ProbeRequest());
    CONFORMANCE_TRY(ExpectOk(answer));
    const std::string& current = answer.message.current_session_id();
    if (current == id) return absl::OkStatus();
    if (absl::Now() > give_up)
      return Wrong(kCurrentSession,
                   absl::StrCat(when, " it is \"", current, "\" instead of \"", id, "\""));
    absl::SleepFor(kBetweenProbes);
  }
}

absl::Status ExpectUnknownInCalls(const Session& session, uint64_t attempt) {
  const std::string uid = session.cluster().pending[0].uid();
  if (session.kit().HasAlgorithm() && !session.is_inline()) {
    CONFORMANCE_TRY(ExpectError(session.PreFilter(attempt, uid),
                                {CallError::REASON_SESSION_UNKNOWN}, kSingleReplaced));
  }
  if (session.kit().Has(EXTENSION_POINT_FILTER)) {
    CONFORMANCE_TRY(
        ExpectError(session.Filter(attempt), {CallError::REASON_SESSION_UNKNOWN}, kSingleReplaced));
  }
  const auto probe = session.Probe();
  CONFORMANCE_TRY(ExpectOk(probe));
  if (probe.message.state() == ProbeResponse::STATE_INITIALIZING) return absl::OkStatus();
  return Wrong(kSingleReplaced,
               absl::StrCat("Probe of the session says ", ShortName(probe.message.state())));
}

// The calls and the stream of a session that another one has replaced.
absl::Status ExpectReplaced(Session* session, uint64_t attempt) {
  CONFORMANCE_TRY(ExpectUnknownInCalls(*session, attempt));
  if (session->is_inline()) return absl::OkStatus();
  session->SendDelta({});
  grpc::Status end;
  if (!session->sync().AwaitEnd(kSoon, &end))
    return Wrong(kSingleReplaced, "the Sync stream of the session goes on");
  return ExpectError("Sync", end, {CallError::REASON_SESSION_UNKNOWN}, kSingleReplaced);
}

absl::Status SecondReplacesFirst(const Kit& kit) {
  Session first(kit);
  CONFORMANCE_TRY(first.Open(MakeCluster()));
  CONFORMANCE_TRY(ExpectAlive(first, 1));
  // Calls without a cache carry the pod of this attempt.
  CONFORMANCE_TRY(ExpectOk(first.PreFilter(1, first.cluster().pending[0].uid())));
  CONFORMANCE_TRY(ExpectCurrent(first, first.id(), "once a session is ready"));
  Session second(kit);
  CONFORMANCE_TRY(second.Open(MakeCluster()));
  CONFORMANCE_TRY(ExpectAlive(second, 1));
  CONFORMANCE_TRY(ExpectCurrent(second, second.id(), "after another session was configured"));
  CONFORMANCE_TRY(ExpectReplaced(&first, 1));
  return ExpectAlive(second, 2);
}

absl::Status OnlyConfigurationsInForceReplace(const Kit& kit) {
  Session first(kit);
  CONFORMANCE_TRY(first.Open(MakeCluster()));
  CONFORMANCE_TRY(ExpectAlive(first, 1));
  Session second(kit);
  CONFORMANCE_TRY(second.Connect());
  ConfigureRequest check = second.Configuration();
  check.set_validate_only(true);
  CONFORMANCE_TRY(ExpectOk(second.Call(check)));
  CONFORMANCE_TRY(ExpectCurrent(first, first.id(), "after a check for another session"));
  ConfigureRequest refused = second.Configuration();
  refused.mutable_profiles(0)->mutable_points(0)->add_plugins("NoSuchPlugin");
  CONFORMANCE_TRY(ExpectOk(second.Call(refused)));
  CONFORMANCE_TRY(ExpectCurrent(first, first.id(), "after a refused configuration"));
  return ExpectAlive(first, 2);
}

absl::Status NoSessionAfterItsEnd(const Kit& kit) {
  Session ended(kit);
  CONFORMANCE_TRY(ended.Open(MakeCluster()));
  CONFORMANCE_TRY(ExpectAlive(ended, 1));
  EndSessionRequest end;
  end.set_session_id(ended.id());
  for (int i = 0; i < 2; ++i) CONFORMANCE_TRY(ExpectOk(ended.Call(end)));
  CONFORMANCE_TRY(ExpectCurrent(ended, "", "after EndSession"));
  const auto probe = ended.Probe();
  CONFORMANCE_TRY(ExpectOk(probe));
  if (probe.message.state() == ProbeResponse::STATE_READY)
    return Wrong(kProbeDraining, "after EndSession, Probe says READY");
  // The end of one session is not the end of the host.
  Session next(kit);
  CONFORMANCE_TRY(next.Open(MakeCluster()));
  CONFORMANCE_TRY(ExpectAlive(next, 1));
  // A late EndSession of a shim that was replaced does not end the session of its successor.
  CONFORMANCE_TRY(ExpectOk(next.Call(end)));
  CONFORMANCE_TRY(ExpectCurrent(next, next.id(), "after EndSession of an earlier session"));
  CONFORMANCE_TRY(ExpectAlive(next, 2));
  if (next.is_inline()) return absl::OkStatus();
  // Its shim is gone.
  next.sync().CloseSending();
  return ExpectCurrent(next, "", "after the end of its Sync stream");
}

}  // namespace

std::vector<Case> SingleSessionCases() {
  static constexpr char kService[] = "PluginHostService";
  return {
      {kService, "single-session", "a second session replaces the first", SecondReplacesFirst},
      {kService, "single-session-stays", "a configuration without effect replaces no session",
       OnlyConfigurationsInForceReplace},
      {kService, "single-session-ends", "the host names no session once it has ended",
       NoSessionAfterItsEnd},
  };
}

}  // namespace outboard::conformance
