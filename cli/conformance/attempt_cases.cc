// Headers of calls: errors for wrong sessions, attempts and pods.
#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr int kWaitingCalls = 24;
constexpr absl::Duration kShort = absl::Milliseconds(60);
constexpr absl::Duration kNotLate = absl::Seconds(2);

PreFilterRequest Request(const Session& session, uint64_t attempt) {
  PreFilterRequest request;
  *request.mutable_header() = session.Header(attempt);
  request.set_pod_uid(session.cluster().pending[0].uid());
  return request;
}

// Why PreFilter cannot be observed; empty: it can. A host with a cache gets the call in any case.
std::string WithoutPreFilter(const Kit& kit) {
  if (!kit.Can(CAPABILITY_INLINE_NODES) || kit.Has(EXTENSION_POINT_PRE_FILTER)) return "";
  return "no plugin at PRE_FILTER, and a host with INLINE_NODES gets no such call without one";
}

// Runs `check` with a complete request of each kind that the host gets in an attempt before
// Reserve. A host without a cache may get any of them first; another one PreFilter.
template <typename Check>
absl::Status ForEachFirstCall(const Session& session, Check check) {
  const Kit& kit = session.kit();
  CONFORMANCE_TRY(ExpectOk(session.PreFilter(2, session.cluster().pending[0].uid())));
  PreFilterRequest pre_filter = Request(session, 2);
  session.Complete(&pre_filter);
  if (!session.is_inline() || kit.Has(EXTENSION_POINT_PRE_FILTER))
    CONFORMANCE_TRY(check(pre_filter));
  if (!session.is_inline()) return absl::OkStatus();
  if (kit.Has(EXTENSION_POINT_FILTER)) CONFORMANCE_TRY(check(FilterOf(session, 2, {0, 1})));
  if (kit.Has(EXTENSION_POINT_PRE_SCORE))
    CONFORMANCE_TRY(check(AboutNodes<PreScoreRequest>(session, 2, {0, 1})));
  if (kit.Has(EXTENSION_POINT_SCORE))
    CONFORMANCE_TRY(check(AboutNodes<ScoreRequest>(session, 2, {0, 1})));
  return absl::OkStatus();
}

// `request` with one wrong name at a time in its header.
template <typename Request>
absl::Status ExpectWrongNamesRefused(const Session& session, const Request& complete) {
  Request request = complete;
  request.mutable_header()->set_session_id("no-such-session");
  CONFORMANCE_TRY(
      ExpectError(session.Call(request), {CallError::REASON_SESSION_UNKNOWN}, kSessionUnknown));
  request = complete;
  request.mutable_header()->set_profile("no-such-profile");
  return ExpectError(session.Call(request), {CallError::REASON_NOT_CONFIGURED}, kNotConfigured);
}

// `request` without its header, and without its profile.
template <typename Request>
absl::Status ExpectMissingNamesRefused(const Session& session, const Request& complete) {
  // A missing header names no session.
  Request request = complete;
  request.clear_header();
  CONFORMANCE_TRY(ExpectError(session.Call(request),
                              {CallError::REASON_SESSION_UNKNOWN, CallError::REASON_INVALID},
                              kInvalid));
  request = complete;
  request.mutable_header()->clear_profile();
  return ExpectError(session.Call(request),
                     {CallError::REASON_NOT_CONFIGURED, CallError::REASON_INVALID}, kNotConfigured);
}

absl::Status WellFormed(const Kit& kit) {
  if (const std::string why = WithoutPreFilter(kit); !why.empty()) return Skipped(why);
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    const auto answer = session.PreFilter(++attempt, pod.uid());
    CONFORMANCE_TRY(ExpectOk(answer));
    CONFORMANCE_TRY(CheckPreFilter(kit, answer.message));
  }
  return absl::OkStatus();
}

absl::Status Again(const Kit& kit) {
  if (const std::string why = WithoutPreFilter(kit); !why.empty()) return Skipped(why);
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    Round round;
    Round again;
    CONFORMANCE_TRY(RunRound(session, ++attempt, pod.uid(), &round));
    CONFORMANCE_TRY(RunRound(session, attempt, pod.uid(), &again));
    CONFORMANCE_TRY(
        ExpectSame(round, again, kPreFilterAgain,
                   absl::StrCat("when the attempt of pod ", pod.name(), " starts again")));
  }
  return absl::OkStatus();
}

absl::Status WrongHeaders(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  CONFORMANCE_TRY(ForEachFirstCall(
      session, [&](const auto& request) { return ExpectWrongNamesRefused(session, request); }));
  // A host without a cache keeps nothing under an attempt, and knows no other pods than those sent.
  if (session.is_inline()) return absl::OkStatus();
  CONFORMANCE_TRY(ExpectError(session.Call(Request(session, 0)), {CallError::REASON_INVALID},
                              kAttemptRequired));
  PreFilterRequest request = Request(session, 2);
  request.set_pod_uid("unknown");
  return ExpectError(session.Call(request), {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown);
}

absl::Status MissingFields(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  CONFORMANCE_TRY(ForEachFirstCall(session, [&](const auto& complete) -> absl::Status {
    CONFORMANCE_TRY(ExpectMissingNamesRefused(session, complete));
    if (!session.is_inline()) return absl::OkStatus();
    auto request = complete;
    request.clear_pod();
    return ExpectError(session.Call(request), {CallError::REASON_INVALID}, kInlineComplete);
  }));
  if (session.is_inline()) return absl::OkStatus();
  PreFilterRequest request = Request(session, 2);
  request.clear_pod_uid();
  return ExpectError(session.Call(request),
                     {CallError::REASON_OBJECT_UNKNOWN, CallError::REASON_INVALID}, kObjectUnknown);
}

absl::Status UnknownAttempt(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(5)));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  if (kit.Has(EXTENSION_POINT_FILTER))
    CONFORMANCE_TRY(
        ExpectError(session.Filter(77), {CallError::REASON_ATTEMPT_UNKNOWN}, kAttemptUnknown));
  if (kit.Has(EXTENSION_POINT_PRE_SCORE))
    CONFORMANCE_TRY(ExpectError(session.PreScore(77, {0, 1}), {CallError::REASON_ATTEMPT_UNKNOWN},
                                kAttemptUnknown));
  if (kit.Has(EXTENSION_POINT_SCORE))
    CONFORMANCE_TRY(ExpectError(session.Score(77, {0, 1}), {CallError::REASON_ATTEMPT_UNKNOWN},
                                kAttemptUnknown));
  if (kit.Has(EXTENSION_POINT_POST_FILTER)) {
    PostFilterRequest request;
    *request.mutable_header() = session.Header(77);
    CONFORMANCE_TRY(
        ExpectError(session.Call(request), {CallError::REASON_ATTEMPT_UNKNOWN}, kAttemptUnknown));
  }
  return absl::OkStatus();
}

// Two concurrent attempts of different pods, step by step.
absl::Status AttemptsApart(const Kit& kit) {
  if (!kit.Has(EXTENSION_POINT_FILTER)) return Skipped("no plugin at FILTER to observe");
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  const auto& pending = session.cluster().pending;
  for (size_t i = 0; i + 1 < pending.size(); ++i) {
    Round one;
    Round two;
    CONFORMANCE_TRY(RunRound(session, 1, pending[i].uid(), &one));
    CONFORMANCE_TRY(RunRound(session, 2, pending[i + 1].uid(), &two));
    CONFORMANCE_TRY(ExpectOk(session.PreFilter(11, pending[i].uid())));
    CONFORMANCE_TRY(ExpectOk(session.PreFilter(12, pending[i + 1].uid())));
    for (const auto& [attempt, round] : {std::pair{11, &one}, std::pair{12, &two}}) {
      if (!round->filtered || round->pre_filter.has_node_names()) continue;
      const auto filter = session.Filter(attempt);
      CONFORMANCE_TRY(ExpectOk(filter));
      if (filter.message.SerializeAsString() != round->filter.SerializeAsString())
        return Wrong(kFilterReadOnly, absl::StrCat("attempt ", attempt,
                                                   " has other verdicts beside another attempt"));
    }
  }
  return absl::OkStatus();
}

absl::Status ShortDeadlines(const Kit& kit) {
  Session session(kit);
  if (session.acks_every_version()) return Skipped(kIgnoresVersions);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  CONFORMANCE_TRY(ExpectAlive(session, 1));
  // All wait for a version that never comes; all must end.
  std::vector<std::thread> callers;
  for (int i = 0; i < kWaitingCalls; ++i) {
    callers.emplace_back([&, i] {
      PreFilterRequest request = Request(session, 100 + i);
      request.mutable_header()->set_exact_version(session.version() + 1000);
      session.Call(request, kShort);
    });
  }
  for (std::thread& caller : callers) caller.join();
  const auto after = session.PreFilter(2, session.cluster().pending[0].uid());
  CONFORMANCE_TRY(ExpectOk(after));
  if (after.took > kNotLate) {
    return Late(
        Wrong(kVersionWaits, absl::StrCat("after ", kWaitingCalls,
                                          " calls that waited without result, the next one takes ",
                                          absl::FormatDuration(after.took))));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Case> AttemptCases() {
  static constexpr char kService[] = "PreFilterService";
  return {
      {kService, "well-formed", "rejections, restrictions, plugins and names are valid",
       WellFormed},
      {kService, "again", "a restarted attempt gets the same answers", Again},
      {kService, "wrong-headers", "wrong sessions, profiles, attempts and pods return their errors",
       WrongHeaders},
      {kService, "missing-fields", "missing required fields return an error", MissingFields},
      {kService, "unknown-attempt", "calls of an unknown attempt return an error", UnknownAttempt},
      {kService, "attempts-apart", "concurrent attempts do not affect each other", AttemptsApart},
      {kService, "short-deadlines", "calls that wait without result end, and do not block others",
       ShortDeadlines},
  };
}

}  // namespace outboard::conformance
