#include "shim/scheduler/externally_scheduled_pods.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::scheduler {
namespace {

// Rounded to tenths of a second.
std::string InTenths(absl::Duration duration) {
  constexpr absl::Duration kTenth = absl::Milliseconds(100);
  return absl::FormatDuration(absl::Trunc(duration + kTenth / 2, kTenth));
}

}  // namespace

absl::Status ExternallyScheduledPods::Begin(const std::string& profile, const kube::PodObject& pod,
                                            absl::Time now, const framework::ProfilePlan** plan,
                                            framework::EvaluateRequest* request) {
  const framework::ProfilePlan* const found =
      state_.plans.For(profile, pod.pod, cluster().device_class_resources());
  if (found == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the hosts of profile \"", profile, "\" are not connected yet"));
  }
  *plan = found;
  for (size_t i = 0; i < found->num_algorithm_hosts(); ++i) {
    const std::string& name = found->host_names[i];
    HostRecord* const host = host_calls_.UsableHost(name);
    if (host == nullptr) {
      if (!found->CanDoWithout(i))
        return absl::UnavailableError(absl::StrCat("plugin host \"", name, "\" is unavailable"));
      request->hosts.push_back({nullptr, 0});
      continue;
    }
    host_calls_.SendChanges(host, now);
    request->hosts.push_back({host->client, state_.cluster.VersionOf(host->cursor)});
  }
  request->profile = &found->algorithm;
  request->pod_uid = pod.uid();
  request->cluster = &state_.cluster;
  request->pod = &pod;
  request->attempt_id = state_.NewAttemptId();
  request->budget = state_.options.cycle_deadline;
  return absl::OkStatus();
}

absl::Status ExternallyScheduledPods::EndCalls(const framework::ProfilePlan& plan,
                                               const framework::EvaluateRequest& request,
                                               const framework::NodeEvaluator& evaluator,
                                               absl::Status status, absl::Time now) {
  for (size_t i = 0; i < request.hosts.size(); ++i) {
    if (request.hosts[i].client == nullptr) continue;
    if (status.ok() || evaluator.plugin_failed())
      state_.hosts[plan.host_names[i]].breaker.OnAnswer(framework::HostCall::kAlgorithm);
  }
  if (status.ok() || evaluator.plugin_failed()) return status;
  const std::string& failed = plan.host_names[evaluator.failed_host()];
  if (const framework::HostClient* client = request.hosts[evaluator.failed_host()].client;
      client != nullptr) {
    state_.observer->OnProtocolError(failed, client->instance(), status);
    host_calls_.OnHostCallEnded(failed, framework::HostCall::kAlgorithm, status, now);
  }
  return absl::UnavailableError(NoAnswerFrom(failed, status));
}

absl::Status ExternallyScheduledPods::End(const framework::ProfilePlan& plan,
                                          const framework::EvaluateRequest& request,
                                          const framework::NodeEvaluator& evaluator,
                                          absl::Status status, absl::Time now) {
  for (size_t i = 0; i < request.hosts.size(); ++i) {
    if (request.hosts[i].client == nullptr) continue;
    state_.cluster.EndAttempt(state_.hosts[plan.host_names[i]].cursor, request.attempt_id);
  }
  return EndCalls(plan, request, evaluator, std::move(status), now);
}

absl::Status ExternallyScheduledPods::Evaluate(const std::string& profile,
                                               const kube::PodObject& pod,
                                               absl::Span<const uint32_t> slots, absl::Time now,
                                               framework::NodeEvaluation* out) {
  const framework::ProfilePlan* plan = nullptr;
  framework::EvaluateRequest request;
  if (absl::Status begun = Begin(profile, pod, now, &plan, &request); !begun.ok()) return begun;
  framework::NodeEvaluator evaluator(request);
  absl::Status evaluated = evaluator.Evaluate(
      slots, [this](uint32_t slot) { return cluster().NodeAt(slot)->key(); }, out);
  return End(*plan, request, evaluator, std::move(evaluated), now);
}

absl::Status ExternallyScheduledPods::EvaluateWithoutVictims(const std::string& profile,
                                                             const kube::PodObject& pod,
                                                             absl::Span<const Evictions> evictions,
                                                             absl::Time now,
                                                             std::vector<bool>* fits) {
  const framework::ProfilePlan* plan = nullptr;
  framework::EvaluateRequest request;
  if (absl::Status begun = Begin(profile, pod, now, &plan, &request); !begun.ok()) return begun;
  google::protobuf::RepeatedPtrField<v1beta1::SimulatedNode> hypotheses;
  for (const Evictions& eviction : evictions) {
    v1beta1::SimulatedNode& hypothesis = *hypotheses.Add();
    hypothesis.set_slot(eviction.slot);
    hypothesis.mutable_removed_pod_uids()->Assign(eviction.victim_uids.begin(),
                                                  eviction.victim_uids.end());
  }
  framework::NodeEvaluator evaluator(request);
  absl::Status evaluated = evaluator.EvaluateHypotheses(
      hypotheses, [this](uint32_t slot) { return cluster().NodeAt(slot)->key(); }, fits);
  return End(*plan, request, evaluator, std::move(evaluated), now);
}

absl::Status ExternallyScheduledPods::CheckBind(const framework::ProfilePlan& plan,
                                                const kube::PodObject& pod,
                                                const std::string& node_name) const {
  if (binds_.size() >= max_binds_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        binds_.size(), " binds are in progress, the most at a time (extender.maxBinds)"));
  }
  // For example a repeated request: the client ended its own before this process did.
  if (const std::string on = cluster().NodeOf(pod.uid()); !on.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("pod ", pod.key(), " is already on node ", on));
  }
  const uint32_t slot = cluster().SlotOf(node_name);
  if (slot == cache::ClusterState::kNoSlot)
    return absl::NotFoundError(absl::StrCat("node ", node_name, " is not known"));
  absl::Status fits = cluster().CheckFits(pod.uid(), slot, plan.guard);
  if (const std::string shortage = cache::ShortageOf(fits); !shortage.empty())
    state_.observer->OnGuardRefusal(shortage);
  return fits;
}

absl::Status ExternallyScheduledPods::BeginBind(const framework::ProfilePlan& plan,
                                                const kube::PodObject& pod, uint32_t slot,
                                                absl::Time now, uint64_t* attempt_id) {
  if (!state_.IsInterested(plan.reserve, pod.pod) && !state_.IsInterested(plan.permit, pod.pod)) {
    *attempt_id = state_.NewAttemptId();
    return absl::OkStatus();
  }
  const framework::ProfilePlan* same_plan = nullptr;
  framework::EvaluateRequest request;
  if (absl::Status begun = Begin(plan.algorithm.name, pod, now, &same_plan, &request); !begun.ok())
    return begun;
  *attempt_id = request.attempt_id;
  framework::NodeEvaluator evaluator(request);
  framework::NodeEvaluation node;
  absl::Status status = evaluator.Evaluate(
      {slot}, [this](uint32_t its) { return cluster().NodeAt(its)->key(); }, &node);
  status = EndCalls(plan, request, evaluator, std::move(status), now);
  if (status.ok() && node.verdicts[0] != framework::NodeEvaluation::kFeasible) {
    const auto& reasons = node.reasons[static_cast<size_t>(node.verdicts[0])].reasons();
    status = absl::FailedPreconditionError(absl::StrJoin(reasons, ", "));
  }
  if (!status.ok()) host_calls_.EndAttempt(plan, *attempt_id);
  return status;
}

void ExternallyScheduledPods::Bind(const std::string& profile, const kube::PodPtr& pod,
                                   const std::string& node_name, absl::Time give_up, absl::Time now,
                                   Bound bound) {
  const framework::ProfilePlan* const plan =
      state_.plans.For(profile, pod->pod, cluster().device_class_resources());
  if (plan == nullptr) {
    return bound(absl::NotFoundError(
        absl::StrCat("the hosts of profile \"", profile, "\" are not connected yet")));
  }
  if (absl::Status wrong = CheckBind(*plan, *pod, node_name); !wrong.ok()) return bound(wrong);
  const uint32_t slot = cluster().SlotOf(node_name);
  auto attempt = std::make_unique<Attempt>();
  if (absl::Status begun = BeginBind(*plan, *pod, slot, now, &attempt->id); !begun.ok())
    return bound(begun);
  attempt->pod = pod;
  attempt->plan = plan;
  attempt->began = now;
  const auto place = binds_.emplace(give_up, attempt->id).first;
  attempt->on_external_end = [this, open = *place,
                              bound = std::move(bound)](const absl::Status& outcome) {
    binds_.erase(open);
    bound(outcome);
  };
  cycle_.AssumeAndReserve(std::move(attempt), slot, now);
}

void ExternallyScheduledPods::EndLateBinds(absl::Time now) {
  while (!binds_.empty() && binds_.begin()->first <= now) {
    const uint64_t attempt_id = binds_.extract(binds_.begin()).value().second;
    Attempt* const attempt = state_.attempts.Find(attempt_id);
    if (attempt == nullptr) continue;
    const std::string after = InTenths(now - attempt->began);
    if (waits_.Waits(attempt_id)) {
      waits_.Reject(attempt_id,
                    absl::StrCat("not allowed within ", after, ": ", attempt->wait_reason), now);
    } else if (binding_.FindInPreBind(attempt->pod->uid()) != nullptr) {
      binding_.CancelPreBind(attempt, absl::StrCat("not ready within ", after), now);
    }
    // Otherwise its bind is under way, and only the API server knows its outcome.
  }
}

void ExternallyScheduledPods::Tick(absl::Time now) {
  EndLateBinds(now);
  admitted_.Tick(now);
}

absl::Time ExternallyScheduledPods::NextTick() const {
  return std::min(admitted_.NextTick(),
                  binds_.empty() ? absl::InfiniteFuture() : binds_.begin()->first);
}

}  // namespace outboard::scheduler
