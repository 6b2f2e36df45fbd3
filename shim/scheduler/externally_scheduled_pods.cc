#include "shim/scheduler/externally_scheduled_pods.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace outboard::scheduler {

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

absl::Status ExternallyScheduledPods::End(const framework::ProfilePlan& plan,
                                          const framework::EvaluateRequest& request,
                                          const framework::NodeEvaluator& evaluator,
                                          absl::Status status, absl::Time now) {
  for (size_t i = 0; i < request.hosts.size(); ++i) {
    if (request.hosts[i].client == nullptr) continue;
    HostRecord& host = state_.hosts[plan.host_names[i]];
    state_.cluster.EndAttempt(host.cursor, request.attempt_id);
    if (status.ok() || evaluator.plugin_failed())
      host.breaker.OnAnswer(framework::HostCall::kAlgorithm);
  }
  if (status.ok() || evaluator.plugin_failed()) return status;
  const std::string& failed = plan.host_names[evaluator.failed_host()];
  if (const framework::HostClient* client = request.hosts[evaluator.failed_host()].client;
      client != nullptr) {
    state_.observer->OnProtocolError(failed, client->instance(), status);
    host_calls_.OnHostCallEnded(failed, framework::HostCall::kAlgorithm, status, now);
  }
  return absl::UnavailableError(
      absl::StrCat("plugin host \"", failed, "\" did not answer: ", status.message()));
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

void ExternallyScheduledPods::Bind(const std::string& profile, const kube::PodPtr& pod,
                                   const std::string& node_name, absl::Time now, Bound bound) {
  const framework::ProfilePlan* const plan = state_.plans.Find(profile);
  if (plan == nullptr) {
    return bound(absl::NotFoundError(
        absl::StrCat("the hosts of profile \"", profile, "\" are not connected yet")));
  }
  cache::ClusterState& cluster = state_.cluster;
  const uint32_t slot = cluster.SlotOf(node_name);
  if (slot == cache::ClusterState::kNoSlot)
    return bound(absl::NotFoundError(absl::StrCat("node ", node_name, " is not known")));
  absl::Status status = cluster.CheckFits(pod->uid(), slot, plan->guard);
  if (const std::string shortage = cache::ShortageOf(status); !shortage.empty())
    state_.observer->OnGuardRefusal(shortage);
  if (status.ok()) status = cluster.Assume(pod->uid(), slot);
  if (!status.ok()) return bound(status);
  const uint64_t id = state_.NewAttemptId();
  bindings_[id] = {pod, std::move(bound)};
  actions_.Bind({this, id, pod, node_name, profile}, now);
}

absl::Status ExternallyScheduledPods::Admit(const std::string& profile, const kube::PodPtr& pod,
                                            const std::string& node_name, bool dry_run,
                                            absl::Time now) {
  cache::ClusterState& cluster = state_.cluster;
  const auto is_it = [&](const Admission& admission) {
    return admission.order.pod->uid() == pod->uid();
  };
  if (const std::string on = cluster.NodeOf(pod->uid()); !on.empty()) {
    // Our own bind, a repeated request, or a request that the API server will reject. Only if we
    // had admitted another node, that bind has failed.
    if (on == node_name || absl::c_none_of(admissions_, is_it) || !cluster.IsAssumed(pod->uid()))
      return absl::OkStatus();
    if (!dry_run) {
      if (absl::Status forgotten = cluster.Forget(pod->uid()); !forgotten.ok()) return forgotten;
      std::erase_if(admissions_, is_it);
    }
  }
  const uint32_t slot = cluster.SlotOf(node_name);
  if (slot == cache::ClusterState::kNoSlot)
    return absl::OkStatus();  // we do not place pods there either
  const framework::ProfilePlan* const plan = state_.plans.Find(profile);
  absl::Status fits =
      cluster.CheckFits(pod->uid(), slot, plan == nullptr ? cache::GuardScope() : plan->guard);
  // Our own pods count by our attempts, and by the watch.
  if (!fits.ok() || dry_run || state_.plans.all().contains(pod->pod.scheduler_name())) return fits;
  if (absl::Status assumed = cluster.Assume(pod->uid(), slot); !assumed.ok()) return assumed;
  admissions_.push_back(
      {now + kSettleAfter, {this, 0, pod, node_name, profile, /*bound_by_other_scheduler=*/true}});
  return absl::OkStatus();
}

void ExternallyScheduledPods::Tick(absl::Time now) {
  while (NextTick() <= now) {
    BindOrder order = std::move(admissions_.front().order);
    admissions_.pop_front();
    const std::string& uid = order.pod->uid();
    if (!cluster().IsAssumed(uid) || cluster().NodeOf(uid) != order.node_name) continue;
    order.attempt_id = state_.NewAttemptId();
    bindings_[order.attempt_id] = {order.pod, [](const absl::Status&) {}};
    actions_.Bind(order, now);
  }
}

absl::Time ExternallyScheduledPods::NextTick() const {
  return admissions_.empty() ? absl::InfiniteFuture() : admissions_.front().settle_at;
}

void ExternallyScheduledPods::OnBindEnded(uint64_t attempt_id, BindEnd end,
                                          const std::string& message, absl::Time now) {
  const auto found = bindings_.find(attempt_id);
  if (found == bindings_.end()) return;
  const Binding binding = std::move(found->second);
  bindings_.erase(found);
  switch (end) {
    case BindEnd::kBound:
      return binding.bound(absl::OkStatus());
    case BindEnd::kUnknown:  // The pod stays on the node until the API server reports more.
      return binding.bound(
          absl::UnknownError("the bind was not settled before this process lost the lease"));
    case BindEnd::kNotBound:
    case BindEnd::kGone:
      break;
  }
  // NOT_FOUND: the informer has confirmed or removed the pod meanwhile; that stands.
  if (state_.cluster.Forget(binding.pod->uid()).ok()) {
    hints_.PublishAssumedPodDelete(*binding.pod);
    state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  }
  binding.bound(absl::AbortedError(message));
}

}  // namespace outboard::scheduler
