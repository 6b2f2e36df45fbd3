#include "shim/scheduler/bind_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/scheduler/binding_messages.h"

namespace outboard::scheduler {
namespace {

// The decision in a usable answer; not for `skip`.
BindDecision DecisionOf(v1beta1::BindResponse answer, const framework::HostExtensionPoint& point) {
  BindDecision decision;
  decision.plugin = point.plugins.front().name;
  decision.host_name = point.host_name;
  if (answer.has_rejection()) {
    decision.kind = BindDecision::Kind::kFailed;
    decision.message =
        BindFailure(decision.plugin, absl::StrJoin(answer.rejection().reasons(), ", "));
  } else if (answer.has_bound()) {
    decision.kind = BindDecision::Kind::kReadOutcome;
  } else {
    decision.annotations = std::move(*answer.mutable_shim_binds()->mutable_annotations());
  }
  return decision;
}

}  // namespace

BindDecision BindCalls::Decide(const Attempt& attempt, absl::Time now) {
  for (const framework::HostExtensionPoint& point : attempt.plan->bind) {
    if (!state_.IsInterested(point.plugins, attempt.pod->pod)) continue;
    if (host_calls_.UsableHost(point.host_name) == nullptr) {
      // It was not asked, so it does not bind: the next plugin may.
      if (host_calls_.IsFailureIgnored(point, v1beta1::EXTENSION_POINT_BIND)) continue;
      BindDecision unavailable;
      unavailable.kind = BindDecision::Kind::kHostUnavailable;
      unavailable.host_name = point.host_name;
      unavailable.status = absl::UnavailableError("the host is unavailable");
      return unavailable;
    }
    absl::StatusOr<v1beta1::BindResponse> answer = host_calls_.Bind(attempt, point, now);
    if (!answer.ok()) {
      BindDecision open;
      open.kind = BindDecision::Kind::kReadOutcome;
      open.plugin = point.plugins.front().name;
      open.host_name = point.host_name;
      open.message = absl::StrCat("host \"", point.host_name,
                                  "\" did not answer: ", answer.status().message());
      return open;
    }
    if (!answer->has_skip()) return DecisionOf(*std::move(answer), point);
  }
  BindDecision decision;
  if (!attempt.plan->shim_binds) {
    decision.kind = BindDecision::Kind::kFailed;
    decision.message = "binding rejected: every Bind plugin of the profile skipped the pod";
  }
  return decision;
}

void BindCalls::SendPostBind(const Attempt& attempt, absl::Time now) {
  for (const framework::HostExtensionPoint& point : attempt.plan->post_bind) {
    if (state_.IsInterested(point.plugins, attempt.pod->pod))
      host_calls_.SendPostBind(attempt, point.host_name, now);
  }
}

}  // namespace outboard::scheduler
