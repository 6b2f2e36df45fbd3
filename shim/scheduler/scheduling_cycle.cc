#include "shim/scheduler/scheduling_cycle.h"

#include <glog/logging.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/trace_context/trace_context.h"
#include "shim/clock.h"
#include "shim/fail_point.h"
#include "shim/framework/answer_check.h"
#include "shim/scheduler/group_calls.h"

namespace outboard::scheduler {
namespace {

using queue::QueuedPod;
using Outcome = framework::AlgorithmResult::Outcome;

// A cycle of which only the outcome is known.
const v1beta1::PlanResponse& OutcomeOnly() {
  static const v1beta1::PlanResponse& outcome_only = *[] {
    auto* const response = new v1beta1::PlanResponse;
    response->mutable_evaluation()->mutable_pre_filter();
    response->mutable_evaluation()->mutable_filter();
    return response;
  }();
  return outcome_only;
}

// What the plugins wait for, for people; empty: none waits.
std::string ReasonOf(const v1beta1::PermitResponse& permit) {
  return absl::StrJoin(permit.waits(), "; ", [](std::string* out, const v1beta1::PermitWait& its) {
    out->append(its.reason().empty() ? its.plugin() : its.reason());
  });
}

}  // namespace

void SchedulingCycle::Run(std::unique_ptr<Attempt> attempt, absl::Time now) {
  if (state_.cluster.node_order().empty()) return failures_.FailNoNodes(std::move(attempt), now);
  absl::InlinedVector<HostRecord*, 2> hosts;
  for (const std::string& name : attempt->plan->host_names) {
    HostRecord* host = host_calls_.UsableHost(name);
    if (host == nullptr && !attempt->plan->CanDoWithout(hosts.size())) {
      return failures_.FailHostUnavailable(std::move(attempt), name,
                                           absl::UnavailableError("the host is unavailable"), now);
    }
    hosts.push_back(host);
  }
  hosts.resize(attempt->plan->num_algorithm_hosts());
  framework::AlgorithmRequest request = RequestFor(attempt.get(), hosts, now);
  GroupCalls group_calls(&state_, &host_calls_, attempt.get(), now);
  if (request.place_group && !attempt->plan->placement_generate.empty())
    request.group_points = &group_calls;
  framework::CallRecorder recorder;
  for (size_t i = 0; state_.shadow_observer != nullptr && i < request.hosts.size(); ++i) {
    if (state_.shadow_observer->RecordsCalls(attempt->plan->host_names[i])) recorder.Want(i);
  }
  request.recorder = recorder.empty() ? nullptr : &recorder;
  OUTBOARD_FAIL_POINT(before_cycle);
  const absl::Time began = SteadyNow();
  const framework::AlgorithmResult& result = algorithm_.Run(request);
  OUTBOARD_FAIL_POINT(cycle_checked);
  const absl::Duration elapsed =
      (SteadyNow() - began) / (1 + result.others.size() + result.rejected_with.size());
  state_.observer->OnAlgorithm(*attempt->pod, attempt->plan->algorithm, result,
                               algorithm_.response(), elapsed);
  host_calls_.OnAlgorithmEnded(*attempt, request, result, hosts, now);
  ReportToShadow(*attempt, result, recorder, now);
  AdvanceStart(result.processed_nodes);

  switch (result.outcome) {
    case Outcome::kPlaced: {
      const uint64_t id = attempt->id;
      const framework::ProfilePlan& plan = *attempt->plan;
      const BatchPlacement others(result, elapsed);
      state_.last_attempt_id += others.size();
      const bool placed = PlaceOnNode(std::move(attempt), result.slot, now);
      return PlaceOthers(plan, id, placed, others, now);
    }
    case Outcome::kUnschedulable:
      attempt->rejected_with = result.rejected_with;
      attempt->elapsed = elapsed;
      if (result.rejected_at_group_point)
        return failures_.FailUnschedulable(std::move(attempt), result.diagnosis, now);
      return RunPostFilter(std::move(attempt), result.diagnosis, now);
    case Outcome::kError:
      return failures_.FailError(std::move(attempt), std::string(result.status.message()), now);
    case Outcome::kNoAnswer: {
      if (!result.failed_group_host.empty()) {
        return failures_.FailHostUnavailable(std::move(attempt), result.failed_group_host,
                                             result.status, now);
      }
      const std::string& failed = attempt->plan->host_names[result.failed_host];
      if (const framework::HostClient* client = request.hosts[result.failed_host].client)
        state_.observer->OnProtocolError(failed, client->instance(), result.status);
      return failures_.FailHostUnavailable(std::move(attempt), failed, result.status, now);
    }
  }
}

framework::AlgorithmRequest SchedulingCycle::RequestFor(Attempt* attempt, Hosts hosts,
                                                        absl::Time now) {
  framework::AlgorithmRequest request;
  request.explain = state_.options.explain;
  // All hosts see the same cluster until the last one has scored.
  for (HostRecord* host : hosts) {
    if (host == nullptr) {
      request.hosts.push_back({nullptr, 0});
      continue;
    }
    host_calls_.SendChanges(host, now);
    request.hosts.push_back({host->client, state_.cluster.VersionOf(host->cursor)});
  }
  request.profile = &attempt->plan->algorithm;
  request.pod = attempt->pod.get();
  request.attempt_id = attempt->id;
  request.start_offset = next_start_;
  request.budget = state_.options.cycle_deadline;
  request.place_group = state_.IsInterested(attempt->plan->permit, attempt->pod->pod);
  if (!request.place_group) request.next_pod_uids = BatchPlacement::NextPods(state_, *attempt);
  for (const auto& host : request.hosts) {
    if (host.client != nullptr) HostCalls::NoteCall(attempt, *host.client);
  }
  return request;
}

void SchedulingCycle::ReportToShadow(const Attempt& attempt,
                                     const framework::AlgorithmResult& result,
                                     const framework::CallRecorder& recorder, absl::Time now) {
  if (state_.shadow_observer == nullptr || result.outcome == Outcome::kNoAnswer) return;
  const framework::ProfilePlan& plan = *attempt.plan;
  const uint32_t candidates = algorithm_.num_candidates();
  const uint32_t to_find = framework::Algorithm::NumToFind(plan.algorithm, candidates);
  if (const auto& fused = algorithm_.fused_answer();
      fused.has_value() && !algorithm_.response().has_plan()) {
    state_.shadow_observer->OnCycle(
        {plan.host_names[fused->host], *attempt.pod, plan.algorithm, *fused->request,
         *fused->response, result, candidates, to_find},
        now);
  }
  for (const framework::HostCallTrace& trace : recorder.exchanges()) {
    if (!trace.pre_filter.has_value()) continue;  // It was not asked point by point.
    state_.shadow_observer->OnCallsRecorded(
        {plan.host_names[trace.host], *attempt.pod, plan.algorithm, attempt.id, trace, result,
         candidates, to_find},
        now);
  }
}

void SchedulingCycle::RunPostFilter(std::unique_ptr<Attempt> attempt,
                                    framework::Diagnosis diagnosis, absl::Time now) {
  const framework::ProfilePlan& plan = *attempt->plan;
  if (std::optional<std::string> message = post_filter_.MessageWithoutCalls(plan)) {
    diagnosis.post_filter_message = *std::move(message);
    return failures_.FailUnschedulable(std::move(attempt), diagnosis, now);
  }
  const PostFilterOutcome outcome = post_filter_.Ask(*attempt, now);
  if (!outcome.status.ok()) {
    return failures_.FailHostUnavailable(std::move(attempt), plan.host_names[outcome.failed_host],
                                         outcome.status, now);
  }
  diagnosis.post_filter_message = post_filter_.Message(plan, outcome);
  if (!outcome.candidate.has_value()) {
    // The plugins may find a candidate after a later event.
    for (std::string& plugin : post_filter_.PluginsAsked(plan))
      diagnosis.post_filter_plugins.insert(std::move(plugin));
    attempt->keeps_nomination = outcome.keeps_nomination;
    return failures_.FailUnschedulable(std::move(attempt), diagnosis, now);
  }
  if (std::optional<std::string> limit =
          preemption_.FindLimit(*attempt->pod, *outcome.candidate, now)) {
    diagnosis.post_filter_message = *std::move(limit);
    // No event would come: without plugins to wait for, the pod is tried again after its backoff.
    diagnosis.unschedulable_plugins.clear();
    diagnosis.pending_plugins.clear();
    attempt->keeps_nomination = true;
    return failures_.FailUnschedulable(std::move(attempt), diagnosis, now);
  }
  preemption_.Preempt(std::move(attempt), diagnosis, *outcome.candidate, now);
}

bool SchedulingCycle::PlaceOnNode(std::unique_ptr<Attempt> attempt, uint32_t slot, absl::Time now) {
  if (absl::Status fits = state_.cluster.CheckFits(attempt->pod->uid(), slot, attempt->plan->guard);
      !fits.ok()) {
    // The host's sums differ from ours. We never overcommit a node.
    const std::string message =
        absl::StrCat("plugin host placed the pod on node ", state_.cluster.NodeAt(slot)->key(),
                     ", which cannot take it: ", fits.message());
    if (const std::string shortage = cache::ShortageOf(fits); !shortage.empty())
      state_.observer->OnGuardRefusal(shortage);
    host_calls_.OnBadPlacement(attempt->plan->host_names.front(), fits);
    failures_.FailError(std::move(attempt), message, now);
    return false;
  }
  return AssumeAndReserve(std::move(attempt), slot, now);
}

bool SchedulingCycle::AssumeAndReserve(std::unique_ptr<Attempt> attempt, uint32_t slot,
                                       absl::Time now) {
  attempt->slot = slot;
  attempt->node_name = state_.cluster.NodeAt(slot)->key();
  if (absl::Status assumed = state_.cluster.Assume(attempt->pod->uid(), slot); !assumed.ok()) {
    failures_.FailError(std::move(attempt), std::string(assumed.message()), now);
    return false;
  }
  attempt->assumed = true;
  OUTBOARD_FAIL_POINT(pod_assumed);
  if (!Reserve(&attempt, now)) return false;
  // Cannot fail, because the pod has just been assumed.
  if (!attempt->effects.empty()) {
    state_.cluster.SetEffects(attempt->pod->uid(), attempt->effects).IgnoreError();
  }
  if (!attempt->states.empty()) {
    state_.cluster.SetStates(attempt->pod->uid(), std::move(attempt->states)).IgnoreError();
  }
  Permit(std::move(attempt), now);
  return true;
}

bool SchedulingCycle::Reserve(std::unique_ptr<Attempt>* pending, absl::Time now) {
  Attempt* const attempt = pending->get();
  for (const framework::HostExtensionPoint& point : attempt->plan->reserve) {
    if (!state_.IsInterested(point.plugins, attempt->pod->pod)) continue;
    const absl::StatusOr<v1beta1::ReserveResponse> answer =
        host_calls_.Reserve(attempt, point, now);
    if (!answer.ok() && host_calls_.IsFailureIgnored(point, v1beta1::EXTENSION_POINT_RESERVE))
      continue;
    if (!answer.ok()) {
      failures_.UnreserveAndForget(attempt, "reserve was not answered", now);
      failures_.FailHostUnavailable(std::move(*pending), point.host_name, answer.status(), now);
      return false;
    }
    if (answer->has_rejection()) {
      const v1beta1::PluginStatus& rejection = answer->rejection();
      failures_.UnreserveAndForget(attempt, "reserve was rejected", now);
      if (rejection.code() == v1beta1::CODE_ERROR) {
        failures_.FailError(std::move(*pending), absl::StrJoin(rejection.reasons(), ", "), now);
      } else {
        failures_.FailUnschedulable(std::move(*pending),
                                    framework::DiagnosisOfRejectedNode(rejection), now);
      }
      return false;
    }
    for (const v1beta1::Effect& effect : answer->effects()) {
      attempt->asks_pre_bind |= attempt->plan->pre_bind_plugins.contains(effect.plugin());
    }
    for (const v1beta1::PluginState& state : answer->states())
      attempt->states.push_back({point.host_name, state});
    if (answer->effects().empty()) continue;
    attempt->effects.insert(attempt->effects.end(), answer->effects().begin(),
                            answer->effects().end());
    attempt->effect_hosts.resize(attempt->effects.size(), point.host_name);
  }
  return true;
}

void SchedulingCycle::Permit(std::unique_ptr<Attempt> attempt, absl::Time now) {
  v1beta1::PermitResponse permit;  // of all hosts, without their decisions
  std::vector<HostDecisions> decisions;
  const auto apply_decisions = [&] {
    for (const HostDecisions& its : decisions) waits_.ApplyDecisions(its, now);
  };
  for (const framework::HostExtensionPoint& point : attempt->plan->permit) {
    if (!state_.IsInterested(point.plugins, attempt->pod->pod)) continue;
    absl::StatusOr<v1beta1::PermitResponse> answer =
        host_calls_.Permit(attempt.get(), point, /*resumed=*/false, now);
    if (!answer.ok() && host_calls_.IsFailureIgnored(point, v1beta1::EXTENSION_POINT_PERMIT))
      continue;
    if (!answer.ok()) {
      failures_.UnreserveAndForget(attempt.get(), "permit was not answered", now);
      failures_.FailHostUnavailable(std::move(attempt), point.host_name, answer.status(), now);
      return apply_decisions();
    }
    for (const v1beta1::PermitWait& wait : answer->waits()) {
      VLOG(4) << "Pod " << attempt->pod->key() << " has to wait on permit for " << wait.plugin()
              << " of host \"" << point.host_name << "\"";
    }
    decisions.push_back({point.host_name, std::move(*answer->mutable_decisions())});
    answer->clear_decisions();
    permit.MergeFrom(*answer);
    if (permit.has_rejection()) break;
  }
  if (permit.has_rejection()) {
    failures_.UnreserveAndForget(attempt.get(), "permit was rejected", now);
    if (permit.rejection().code() == v1beta1::CODE_ERROR) {
      failures_.FailError(std::move(attempt), absl::StrJoin(permit.rejection().reasons(), ", "),
                          now);
    } else {
      failures_.FailUnschedulable(std::move(attempt),
                                  framework::DiagnosisOfRejectedNode(permit.rejection()), now);
    }
    return apply_decisions();
  }
  EnterBinding(std::move(attempt), permit, now);
  apply_decisions();
}

void SchedulingCycle::EnterBinding(std::unique_ptr<Attempt> attempt,
                                   const v1beta1::PermitResponse& permit, absl::Time now) {
  Attempt* const pending = attempt.get();
  pending->binding = true;
  state_.attempts.Add(std::move(attempt));
  if (pending->is_external()) {
    pending->wait_reason = ReasonOf(permit);
  } else {
    AnnounceNode(*pending, !permit.waits().empty(), now);
  }
  if (permit.waits().empty()) {
    binding_.Begin(pending, now);
  } else {
    waits_.Begin(pending, permit, now);
  }
}

void SchedulingCycle::AnnounceNode(const Attempt& attempt, bool has_to_wait, absl::Time now) {
  VLOG(2) << "Pod " << attempt.pod->key() << " goes to node " << attempt.node_name << ": attempt "
          << attempt.id << " of " << absl::StrJoin(attempt.asked, ", ") << ", "
          << SteadyNow() - attempt.info->timestamp << " after it was queued, of which "
          << SteadyNow() - attempt.began << " in this cycle, "
          << SteadyNow() - attempt.info->initial_attempt_time.value_or(attempt.began)
          << " after it was first tried, trace " << trace_context::TraceId(attempt.pod->uid());
  if (!has_to_wait && !binding_.WillRunPreBind(attempt)) return;
  // A cluster autoscaler, for example, sees where the pod is about to go.
  state_.actions->PatchStatus(*attempt.pod, std::nullopt, attempt.node_name, now);
}

void SchedulingCycle::PlaceOthers(const framework::ProfilePlan& plan, uint64_t first_id,
                                  bool first_placed, const BatchPlacement& others, absl::Time now) {
  bool in_turn = first_placed;
  for (size_t i = 0; i < others.size(); ++i) {
    const uint64_t attempt_id = first_id + 1 + i;
    std::unique_ptr<Attempt> attempt =
        others.TakeForBatch(&state_, plan, attempt_id, i, in_turn, now);
    if (attempt == nullptr) {
      in_turn = false;
      host_calls_.EndAttempt(plan, attempt_id);
      continue;
    }
    VLOG(3) << "Attempting to schedule pod " << attempt->pod->key()
            << " together with others: attempt " << attempt_id << ", trace "
            << trace_context::TraceId(attempt->pod->uid());
    framework::AlgorithmResult result = others.ResultOf(i);
    if (state_.options.explain)
      framework::AddExplanation(others.placement(i), plan.algorithm.score_plugins, &result);
    state_.observer->OnAlgorithm(*attempt->pod, plan.algorithm, result, OutcomeOnly(),
                                 others.elapsed());
    AdvanceStart(result.processed_nodes);
    in_turn = PlaceOnNode(std::move(attempt), result.slot, now);
  }
}

// --- BatchPlacement

std::vector<std::string> BatchPlacement::NextPods(const SchedulerState& state,
                                                  const Attempt& attempt) {
  std::vector<std::string> uids;
  const SchedulerOptions& options = state.options;
  if (options.batch_size <= 1 || options.explain || attempt.plan->num_algorithm_hosts() != 1)
    return uids;
  // A shadow is compared pod by pod.
  if (state.shadow_observer != nullptr &&
      state.shadow_observer->RecordsCalls(attempt.plan->host_names[0]))
    return uids;
  const auto goes_alone = [&](const kube::PodObject& object) {
    const v1beta1::Pod& pod = object.pod;
    return state.PlanOf(object) != attempt.plan || pod.deletion_unix_seconds() != 0 ||
           !pod.nominated_node_name().empty() || state.IsInterested(attempt.plan->reserve, pod) ||
           state.IsInterested(attempt.plan->permit, pod);
  };
  if (goes_alone(*attempt.pod)) return uids;
  for (const QueuedPod* next : state.queue.Next(options.batch_size - 1)) {
    if (goes_alone(*next->pod)) break;
    uids.push_back(next->uid());
  }
  if (uids.size() + 1 < options.min_batch_size) uids.clear();
  return uids;
}

std::unique_ptr<Attempt> BatchPlacement::TakeForBatch(SchedulerState* state,
                                                      const framework::ProfilePlan& plan,
                                                      uint64_t attempt_id, size_t i, bool in_turn,
                                                      absl::Time now) const {
  const std::string& uid = placements_[i].pod_uid();
  const QueuedPod* const known = state->queue.Find(uid);
  if (known == nullptr || state->PlanOf(*known->pod) != &plan ||
      known->pod->pod.deletion_unix_seconds() != 0)
    return nullptr;
  QueuedPod* info = nullptr;
  if (is_group_) {
    info = state->queue.Take(uid, now);
  } else if (in_turn && absl::c_linear_search(state->queue.Next(1), known)) {
    // The pods before it may have changed the order.
    info = state->queue.Pop(now);
  }
  if (info == nullptr) return nullptr;
  auto attempt = std::make_unique<Attempt>();
  attempt->id = attempt_id;
  attempt->plan = &plan;
  attempt->began = now;
  attempt->info = info;
  attempt->pod = info->pod;
  return attempt;
}

framework::AlgorithmResult BatchPlacement::ResultOf(size_t i) const {
  const v1beta1::PlannedPlacement& placement = placements_[i];
  framework::AlgorithmResult result;
  result.outcome = Outcome::kPlaced;
  result.placed_together = true;
  result.slot = placement.slot();
  result.snapshot_version = snapshot_version_;
  result.feasible_nodes = placement.feasible();
  result.evaluated_nodes = result.processed_nodes = placement.processed();
  return result;
}

}  // namespace outboard::scheduler
