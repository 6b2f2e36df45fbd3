#include "cli/simulate/simulated_cluster.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "shim/framework/custom_resources.h"
#include "shim/framework/pod_effects.h"

namespace outboard::simulate {

bool SimulatedCluster::ReconcileVolumes(scheduler::Scheduler* scheduler, absl::Time now) {
  const auto changed = volumes_.Reconcile();
  for (const kube::ClusterObjectPtr& object : changed)
    scheduler->events()->OnObjectUpsert(object, now);
  return !changed.empty();
}

void SimulatedCluster::CarryOut(scheduler::Scheduler* scheduler, absl::Time now) {
  for (const auto& [uid, node] : std::exchange(nominations_, {})) {
    const kube::PodPtr pod = scheduler->cluster()->FindPod(uid);
    // Ignores the status of a pod that waits at Permit; the end of the wait counts.
    if (pod == nullptr || scheduler->cluster()->IsAssumed(uid)) continue;
    auto nominated = std::make_shared<kube::PodObject>(*pod);
    nominated->pod.set_nominated_node_name(node);
    nominated->resource_version = absl::StrCat("nominated-", ++changes_);
    scheduler->events()->OnPodUpsert(nominated, now);
  }
  while (!evictions_.empty()) {
    const scheduler::EvictOrder order = std::move(evictions_.front());
    evictions_.pop_front();
    scheduler->events()->OnPodDelete(order.victim->uid(), now);
    order.ordered_by->OnEvictionEnded(order.preemption_id, order.victim,
                                      scheduler::EvictEnd::kEvicted, "", now);
    if (callbacks_.on_evicted) callbacks_.on_evicted(order.victim, now);
  }
  while (!writes_.empty()) {
    const scheduler::EffectOrder order = std::move(writes_.front());
    writes_.pop_front();
    // Annotations, labels, conditions and events of the pod decide nothing in a simulation.
    if (framework::IsPodEffect(order.effect)) {
      order.ordered_by->OnEffectEnded(order, {absl::OkStatus(), ""}, now);
      continue;
    }
    if (framework::IsObjectWrite(order.effect)) {
      WriteObject(order, scheduler, now);
      continue;
    }
    if (order.effect.has_report_extended_resource_claim()) {
      auto reported = std::make_shared<kube::PodObject>(*order.pod);
      reported->pod.set_extended_resource_claim(
          order.effect.report_extended_resource_claim().claim_name());
      reported->resource_version = absl::StrCat("reported-", ++changes_);
      scheduler->events()->OnPodUpsert(reported, now);
      order.ordered_by->OnEffectEnded(order, {absl::OkStatus(), reported->resource_version}, now);
      continue;
    }
    std::vector<kube::ClusterObjectPtr> changed;
    absl::StatusOr<std::string> version = volumes_.Write(order.effect, &changed);
    for (const kube::ClusterObjectPtr& object : changed)
      scheduler->events()->OnObjectUpsert(object, now);
    order.ordered_by->OnEffectEnded(order, {version.status(), version.value_or("")}, now);
  }
  while (!orders_.empty()) {
    scheduler::BindOrder order = std::move(orders_.front());
    orders_.pop_front();
    auto bound = std::make_shared<kube::PodObject>(*order.pod);
    bound->pod.set_node_name(order.node_name);
    bound->phase = "Running";
    if (const kube::PodPtr known = scheduler->cluster()->FindPod(order.pod->uid());
        known != nullptr)
      bound->pod.set_extended_resource_claim(known->pod.extended_resource_claim());
    bound->resource_version = absl::StrCat("bound-", order.attempt_id);
    if (starts_pods_)
      bound->pod.set_start_unix_seconds(absl::ToUnixSeconds(
          absl::UnixEpoch() + absl::Ceil(now - absl::UnixEpoch(), absl::Seconds(1))));
    order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kBound, "", now);
    scheduler->events()->OnPodUpsert(bound, now);
    if (callbacks_.on_bound) callbacks_.on_bound(bound, now);
  }
}

void SimulatedCluster::WriteObject(const scheduler::EffectOrder& order,
                                   scheduler::Scheduler* scheduler, absl::Time now) {
  absl::StatusOr<CustomObjects::Outcome> outcome = custom_objects_.Write(order.effect);
  if (outcome.ok() && outcome->written != nullptr)
    scheduler->events()->OnObjectUpsert(outcome->written, now);
  if (outcome.ok() && outcome->deleted != nullptr)
    scheduler->events()->OnObjectDelete(outcome->deleted, now);
  scheduler::EffectEnd end = {outcome.status(), ""};
  if (outcome.ok()) end = {absl::OkStatus(), outcome->version, outcome->uid};
  order.ordered_by->OnEffectEnded(order, end, now);
}

}  // namespace outboard::simulate
