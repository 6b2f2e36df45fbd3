// How instances that do not serve are kept up to date.
#include <algorithm>
#include <utility>

#include "shim/clock.h"
#include "shim/fail_point.h"
#include "shim/hosts/host_registry.h"
#include "shim/hosts/needed_fields.h"

namespace outboard::hosts {
namespace {

// The piece of a snapshot that is sent between two cycles: some twenty pods.
constexpr size_t kSnapshotPiece = 16 << 10;
// The pause between two pieces while another instance serves, so that the new instance, which
// processes them, leaves the cores to the cycles.
constexpr absl::Duration kSnapshotPause = absl::Milliseconds(2);

}  // namespace

void HostRegistry::BeginCacheSync(const std::string& name, Instance* instance, absl::Time now) {
  if (hosts::KeepsNoCache(instance->info)) return instance->grpc_client->AwaitReady();
  cache::HostFields fields = NeededFields(instance->info);
  fields.host_name = name;
  instance->cursor = scheduler_->cluster()->AddHost(std::move(fields));
  instance->snapshot = scheduler_->cluster()->TakeSnapshot(instance->cursor, now);
  instance->progressed = SteadyNow();
  instance->progressed_to = 0;
}

bool HostRegistry::IsStuckInSnapshot(Instance* instance) const {
  if (instance->state != InstanceState::kSyncing || instance->cursor == 0) return false;
  const absl::Time now = SteadyNow();
  const int64_t acknowledged = instance->grpc_client->acknowledged_version();
  if (std::exchange(instance->progressed_to, acknowledged) != acknowledged)
    instance->progressed = now;
  return now - instance->progressed >= limits_.unacknowledged;
}

void HostRegistry::SendSnapshotPiece(const Host& host, Instance* instance) {
  // By the machine's clock, because the pause spares the machine.
  const absl::Time now = SteadyNow();
  if (instance->snapshot == nullptr || instance->grpc_client->sending() ||
      now < instance->next_piece)
    return;
  instance->progressed = now;
  if (const auto piece = instance->snapshot->Next(kSnapshotPiece)) {
    if (host.serving != nullptr) instance->next_piece = now + kSnapshotPause;
    instance->grpc_client->SendChanges(*piece);
    OUTBOARD_FAIL_POINT(snapshot_piece_sent);
    return;
  }
  instance->grpc_client->AwaitSnapshot(instance->snapshot->version());
  instance->snapshot = nullptr;
}

absl::Time HostRegistry::NextSession() const {
  absl::Time next = absl::InfiniteFuture();
  if (!plans_.has_value()) return next;
  for (const auto& [name, host] : hosts_) {
    for (const auto& instance : host.instances) {
      if (instance->state == InstanceState::kWaiting && WhyNoSession(*instance).empty())
        next = std::min(next, instance->not_before);
    }
  }
  return next;
}

absl::Time HostRegistry::NextWakeup() const {
  absl::Time next = std::min(hosts_deadline_, NextSession());
  for (const auto& [name, host] : hosts_) {
    for (const auto& instance : host.instances) {
      if (instance->snapshot != nullptr && !instance->grpc_client->sending())
        next = std::min(next, instance->next_piece);
    }
  }
  return next;
}

void HostRegistry::Follow(Instance* instance, absl::Time now) {
  if (!scheduler_->cluster()->HasChanges(instance->cursor)) return;
  for (const v1beta1::SyncRequest& chunk :
       scheduler_->cluster()->TakeChanges(instance->cursor, now)) {
    instance->grpc_client->SendChanges(chunk);
  }
}

}  // namespace outboard::hosts
