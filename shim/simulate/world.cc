#include "shim/simulate/world.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "shim/cycle/custom_resources.h"

namespace outboard::simulate {

bool World::ReconcileVolumes(cycle::Scheduler* scheduler, absl::Time now) {
  const auto changed = volumes_.Reconcile();
  for (const kube::ClusterObjectPtr& object : changed) scheduler->OnObjectUpsert(object, now);
  return !changed.empty();
}

void World::CarryOut(cycle::Scheduler* scheduler, absl::Time now) {
  for (const auto& [uid, node] : std::exchange(nominations_, {})) {
    const kube::PodPtr pod = scheduler->cluster()->FindPod(uid);
    // While it waits at Permit the simulated status says nothing; its end does.
    if (pod == nullptr || scheduler->cluster()->IsAssumed(uid)) continue;
    auto nominated = std::make_shared<kube::PodObject>(*pod);
    nominated->pod.set_nominated_node_name(node);
    nominated->resource_version = absl::StrCat("nominated-", ++changes_);
    scheduler->OnPodUpsert(nominated, now);
  }
  while (!evictions_.empty()) {
    const cycle::EvictOrder order = std::move(evictions_.front());
    evictions_.pop_front();
    scheduler->OnPodDelete(order.victim->uid(), now);
    scheduler->OnEvictionEnded(order.preemption_id, order.victim, cycle::EvictEnd::kEvicted, "",
                               now);
    if (callbacks_.on_evicted) callbacks_.on_evicted(order.victim, now);
  }
  while (!writes_.empty()) {
    const cycle::EffectOrder order = std::move(writes_.front());
    writes_.pop_front();
    if (cycle::IsObjectWrite(order.effect)) {
      WriteObject(order, scheduler, now);
      continue;
    }
    if (order.effect.has_report_extended_resource_claim()) {
      auto reported = std::make_shared<kube::PodObject>(*order.pod);
      reported->pod.set_extended_resource_claim(
          order.effect.report_extended_resource_claim().claim_name());
      reported->resource_version = absl::StrCat("reported-", ++changes_);
      scheduler->OnPodUpsert(reported, now);
      scheduler->OnEffectEnded(order.attempt_id, {absl::OkStatus(), reported->resource_version},
                               now);
      continue;
    }
    std::vector<kube::ClusterObjectPtr> changed;
    absl::StatusOr<std::string> version = volumes_.Write(order.effect, &changed);
    for (const kube::ClusterObjectPtr& object : changed) scheduler->OnObjectUpsert(object, now);
    scheduler->OnEffectEnded(order.attempt_id, {version.status(), version.value_or("")}, now);
  }
  while (!orders_.empty()) {
    cycle::BindOrder order = std::move(orders_.front());
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
    scheduler->OnBindEnded(order.attempt_id, cycle::BindEnd::kBound, "", now);
    scheduler->OnPodUpsert(bound, now);
    if (callbacks_.on_bound) callbacks_.on_bound(bound, now);
  }
}

void World::WriteObject(const cycle::EffectOrder& order, cycle::Scheduler* scheduler,
                        absl::Time now) {
  absl::StatusOr<CustomObjects::Outcome> outcome = custom_objects_.Write(order.effect);
  if (outcome.ok() && outcome->written != nullptr) scheduler->OnObjectUpsert(outcome->written, now);
  if (outcome.ok() && outcome->deleted != nullptr) scheduler->OnObjectDelete(outcome->deleted, now);
  cycle::EffectEnd end = {outcome.status(), ""};
  if (outcome.ok()) end = {absl::OkStatus(), outcome->version, outcome->uid};
  if (order.attempt_id == 0) return scheduler->OnOwnEffectEnded(order.effect, end, now);
  scheduler->OnEffectEnded(order.attempt_id, end, now);
}

}  // namespace outboard::simulate
