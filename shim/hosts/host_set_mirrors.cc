// How instances that do not serve are kept up to date, and compared with the one that does.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/hosts/host_set.h"

namespace outboard::hosts {
namespace {

// What is told of a snapshot between two cycles: some twenty pods.
constexpr size_t kSnapshotPiece = 16 << 10;
// From one piece to the next while another instance serves, so that the new one, which takes them
// in, leaves the cores to the cycles.
constexpr absl::Duration kSnapshotPause = absl::Milliseconds(2);

}  // namespace

bool HostSet::CanBeShadowed(const std::string& name) const {
  return std::all_of(plans_->profiles.begin(), plans_->profiles.end(),
                     [&](const cycle::ProfilePlan& plan) {
                       const auto& hosts = plan.host_names;
                       return plan.num_algorithm_hosts() == 1 ||
                              std::find(hosts.begin(), hosts.end(), name) == hosts.end();
                     });
}

void HostSet::OnCycle(const cycle::AnsweredCycle& cycle, absl::Time now) {
  const auto host = hosts_.find(cycle.host_name);
  if (host == hosts_.end()) return;
  for (const auto& instance : host->second.instances) {
    if (instance->state != InstanceState::kShadow || instance->shadow_cycle.has_value()) continue;
    Follow(instance.get(), now);
    v1alpha1::CycleRequest request = cycle.request;
    request.mutable_header()->set_snapshot_version(
        scheduler_->cluster()->VersionOf(instance->cursor));
    if (!instance->client->StartCycle(request)) continue;
    ShadowCycle& shadow = instance->shadow_cycle.emplace(cycle);
    // The serving one had as long.
    shadow.deadline = now + config_->shim.deadlines.cycle;
    for (const uint32_t slot : cycle.result.examined_slots) {
      const kube::NodePtr& node = scheduler_->cluster()->NodeAt(slot);
      shadow.node_names.push_back(node == nullptr ? "" : node->key());
    }
  }
}

bool HostSet::ShadowIsOver(const std::string& name, Instance* instance, absl::Time now) {
  const config::Replacement& replacement = config_->shim.replacement;
  if (instance->shadow_cycle.has_value()) {
    ShadowCycle& served = *instance->shadow_cycle;
    auto answer = instance->client->TakeCycle();
    if (!answer.has_value() && now < served.deadline) return false;
    if (!answer.has_value()) {
      instance->client->DropCycle();
      answer = absl::DeadlineExceededError("it did not answer in time");
    }
    absl::Status compared = answer->status();
    if (answer->ok()) compared = CompareCycle(served, **answer, &instance->shadow);
    scheduler_->cluster()->EndAttempt(instance->cursor, served.attempt_id);
    const std::string pod = std::move(served.pod);
    instance->shadow_cycle.reset();
    if (!compared.ok()) {
      Quarantine(name, instance, absl::StrCat("in the shadow, pod ", pod, ": ", compared.message()),
                 now);
      return false;
    }
  }
  return instance->shadow.cycles >= replacement.shadow_cycles ||
         now - instance->since >= replacement.shadow_timeout;
}

cycle::HostClient* HostSet::Instance::Face(const cycle::ClusterState* cluster) {
  if (!cycle::KeepsNoMirror(info)) return client.get();
  inline_host = std::make_unique<cycle::InlineHost>(
      client.get(), cluster, cycle::PartsOf(info, NeededFields(info)), configured);
  return inline_host.get();
}

void HostSet::BeginMirror(Instance* instance, absl::Time now) {
  if (cycle::KeepsNoMirror(instance->info)) return instance->client->AwaitReady();
  instance->cursor = scheduler_->cluster()->AddHost(NeededFields(instance->info));
  instance->snapshot = scheduler_->cluster()->TakeSnapshot(instance->cursor, now);
}

void HostSet::TellSnapshot(const Host& host, Instance* instance) {
  // By the machine's clock, for it is the machine that is spared.
  const absl::Time now = absl::Now();
  if (instance->snapshot == nullptr || instance->client->sending() || now < instance->next_piece)
    return;
  if (const auto piece = instance->snapshot->Next(kSnapshotPiece)) {
    if (host.serving != nullptr) instance->next_piece = now + kSnapshotPause;
    return instance->client->SendChanges(*piece);
  }
  instance->client->AwaitSnapshot(instance->snapshot->version());
  instance->snapshot = nullptr;
}

absl::Time HostSet::NextWakeup() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, host] : hosts_) {
    for (const auto& instance : host.instances) {
      if (instance->snapshot != nullptr && !instance->client->sending())
        next = std::min(next, instance->next_piece);
    }
  }
  return next;
}

void HostSet::Follow(Instance* instance, absl::Time now) {
  if (!scheduler_->cluster()->HasChanges(instance->cursor)) return;
  for (const v1alpha1::SyncRequest& chunk :
       scheduler_->cluster()->TakeChanges(instance->cursor, now)) {
    instance->client->SendChanges(chunk);
  }
}

}  // namespace outboard::hosts
