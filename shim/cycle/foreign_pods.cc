#include "shim/cycle/foreign_pods.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace outboard::cycle {

absl::Status ForeignPods::Begin(const std::string& profile, const kube::PodObject& pod,
                                absl::Time now, const ProfilePlan** plan, JudgeRequest* request) {
  const ProfilePlan* const found =
      scheduler_->plans_.For(profile, pod.pod, cluster().device_class_resources());
  if (found == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the hosts of profile \"", profile, "\" have not come yet"));
  }
  *plan = found;
  for (size_t i = 0; i < found->num_algorithm_hosts(); ++i) {
    const std::string& name = found->host_names[i];
    Scheduler::Host* const host = scheduler_->UsableHost(name);
    if (host == nullptr) {
      if (!found->CanDoWithout(i))
        return absl::UnavailableError(absl::StrCat("plugin host \"", name, "\" is away"));
      request->hosts.push_back({nullptr, 0});
      continue;
    }
    scheduler_->SendChanges(host, now);
    request->hosts.push_back({host->client, scheduler_->cluster_.VersionOf(host->cursor)});
  }
  request->profile = &found->algorithm;
  request->pod_uid = pod.uid();
  request->attempt_id = ++scheduler_->last_attempt_id_;
  request->budget = scheduler_->options_.cycle_deadline;
  return absl::OkStatus();
}

absl::Status ForeignPods::End(const ProfilePlan& plan, const JudgeRequest& request,
                              const NodeJudge& judge, absl::Status status, absl::Time now) {
  for (size_t i = 0; i < request.hosts.size(); ++i) {
    if (request.hosts[i].client == nullptr) continue;
    Scheduler::Host& host = scheduler_->hosts_[plan.host_names[i]];
    scheduler_->cluster_.EndAttempt(host.cursor, request.attempt_id);
    if (status.ok() || judge.plugin_failed()) host.breaker.OnAnswer();
  }
  if (status.ok() || judge.plugin_failed()) return status;
  const std::string& silent = plan.host_names[judge.silent_host()];
  if (const HostClient* client = request.hosts[judge.silent_host()].client; client != nullptr) {
    scheduler_->observer_->OnProtocolError(client->info().host_instance(), status);
    scheduler_->OnCallFailed(silent, &Scheduler::Host::breaker, status, now);
  }
  return absl::UnavailableError(
      absl::StrCat("plugin host \"", silent, "\" gave no answer: ", status.message()));
}

absl::Status ForeignPods::Judge(const std::string& profile, const kube::PodObject& pod,
                                absl::Span<const uint32_t> slots, absl::Time now,
                                NodeJudgement* out) {
  const ProfilePlan* plan = nullptr;
  JudgeRequest request;
  if (absl::Status begun = Begin(profile, pod, now, &plan, &request); !begun.ok()) return begun;
  NodeJudge judge(request);
  absl::Status judged = judge.Judge(
      slots, [this](uint32_t slot) { return cluster().NodeAt(slot)->key(); }, out);
  return End(*plan, request, judge, std::move(judged), now);
}

absl::Status ForeignPods::JudgeVictims(const std::string& profile, const kube::PodObject& pod,
                                       absl::Span<const Evictions> evictions, absl::Time now,
                                       std::vector<bool>* fits) {
  const ProfilePlan* plan = nullptr;
  JudgeRequest request;
  if (absl::Status begun = Begin(profile, pod, now, &plan, &request); !begun.ok()) return begun;
  google::protobuf::RepeatedPtrField<v1alpha1::Hypothesis> hypotheses;
  for (const Evictions& eviction : evictions) {
    v1alpha1::Hypothesis& hypothesis = *hypotheses.Add();
    hypothesis.set_slot(eviction.slot);
    hypothesis.mutable_removed_pod_uids()->Assign(eviction.victim_uids.begin(),
                                                  eviction.victim_uids.end());
  }
  NodeJudge judge(request);
  absl::Status judged = judge.JudgeHypotheses(
      hypotheses, [this](uint32_t slot) { return cluster().NodeAt(slot)->key(); }, fits);
  return End(*plan, request, judge, std::move(judged), now);
}

void ForeignPods::Bind(const std::string& profile, const kube::PodPtr& pod,
                       const std::string& node_name, absl::Time now, Bound bound) {
  const ProfilePlan* const plan = scheduler_->plans_.Find(profile);
  if (plan == nullptr) {
    return bound(absl::NotFoundError(
        absl::StrCat("the hosts of profile \"", profile, "\" have not come yet")));
  }
  ClusterState& cluster = scheduler_->cluster_;
  const uint32_t slot = cluster.SlotOf(node_name);
  if (slot == ClusterState::kNoSlot)
    return bound(absl::NotFoundError(absl::StrCat("node ", node_name, " is not known")));
  absl::Status status = cluster.CheckFits(pod->uid(), slot, plan->guard);
  if (status.ok()) status = cluster.Assume(pod->uid(), slot);
  if (!status.ok()) return bound(status);
  const uint64_t id = ++scheduler_->last_attempt_id_;
  bindings_[id] = {pod, std::move(bound)};
  effects_->Bind({id, pod, node_name, profile}, now);
}

absl::Status ForeignPods::Admit(const std::string& profile, const kube::PodPtr& pod,
                                const std::string& node_name, bool dry_run, absl::Time now) {
  ClusterState& cluster = scheduler_->cluster_;
  const auto is_it = [&](const Admission& admission) {
    return admission.order.pod->uid() == pod->uid();
  };
  if (const std::string on = cluster.NodeOf(pod->uid()); !on.empty()) {
    // Our own bind, one that was asked about before, or one that the API server will refuse. Only
    // where we had admitted another node does this say that nothing came of that.
    if (on == node_name || absl::c_none_of(admissions_, is_it) || !cluster.IsAssumed(pod->uid()))
      return absl::OkStatus();
    if (!dry_run) {
      if (absl::Status forgotten = cluster.Forget(pod->uid()); !forgotten.ok()) return forgotten;
      std::erase_if(admissions_, is_it);
    }
  }
  const uint32_t slot = cluster.SlotOf(node_name);
  if (slot == ClusterState::kNoSlot) return absl::OkStatus();  // nor do we place pods there
  const ProfilePlan* const plan = scheduler_->plans_.Find(profile);
  absl::Status fits =
      cluster.CheckFits(pod->uid(), slot, plan == nullptr ? GuardScope() : plan->guard);
  // Pods that are ours to place have a place by our own attempts, and by the watch.
  if (!fits.ok() || dry_run || scheduler_->plans_.all().contains(pod->pod.scheduler_name()))
    return fits;
  if (absl::Status assumed = cluster.Assume(pod->uid(), slot); !assumed.ok()) return assumed;
  admissions_.push_back({now + kSettleAfter, {0, pod, node_name, profile, /*is_anothers=*/true}});
  return absl::OkStatus();
}

void ForeignPods::Tick(absl::Time now) {
  while (NextTick() <= now) {
    cycle::BindOrder order = std::move(admissions_.front().order);
    admissions_.pop_front();
    const std::string& uid = order.pod->uid();
    if (!cluster().IsAssumed(uid) || cluster().NodeOf(uid) != order.node_name) continue;
    order.attempt_id = ++scheduler_->last_attempt_id_;
    bindings_[order.attempt_id] = {order.pod, [](const absl::Status&) {}};
    effects_->Bind(order, now);
  }
}

absl::Time ForeignPods::NextTick() const {
  return admissions_.empty() ? absl::InfiniteFuture() : admissions_.front().settle_at;
}

bool ForeignPods::OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string& message,
                              absl::Time now) {
  const auto found = bindings_.find(attempt_id);
  if (found == bindings_.end()) return false;
  const Binding binding = std::move(found->second);
  bindings_.erase(found);
  switch (end) {
    case BindEnd::kBound:
      binding.bound(absl::OkStatus());
      return true;
    case BindEnd::kUnknown:  // The place stays taken until the API server says more.
      binding.bound(
          absl::UnknownError("the bind was not settled before this process lost the lease"));
      return true;
    case BindEnd::kNotBound:
    case BindEnd::kGone:
      break;
  }
  // NOT_FOUND: the informer confirmed the pod or took it away meanwhile, and its word counts.
  if (scheduler_->cluster_.Forget(binding.pod->uid()).ok()) {
    scheduler_->AnnouncePlaceGivenBack(*binding.pod);
    scheduler_->queue_.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  }
  binding.bound(absl::AbortedError(message));
  return true;
}

}  // namespace outboard::cycle
