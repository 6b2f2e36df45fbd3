// How instances that do not serve are kept up to date.
#include <algorithm>

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

bool HostSet::Instance::is_fused() const {
  const auto& capabilities = info.capabilities();
  return std::find(capabilities.begin(), capabilities.end(), v1alpha1::FUSED_CYCLE) !=
         capabilities.end();
}

cycle::InlineHost* HostSet::Instance::Inline(const cycle::ClusterState* cluster) {
  if (!cycle::KeepsNoMirror(info)) return nullptr;
  if (inline_host == nullptr) {
    inline_host = std::make_unique<cycle::InlineHost>(
        client.get(), cluster, cycle::PartsOf(info, NeededFields(info)), configured);
  }
  return inline_host.get();
}

cycle::HostClient* HostSet::Instance::Face(const cycle::ClusterState* cluster) {
  if (cycle::InlineHost* face = Inline(cluster)) return face;
  return client.get();
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
  absl::Time next = patience_ends_;
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
