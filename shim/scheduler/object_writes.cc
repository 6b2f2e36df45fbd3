#include "shim/scheduler/object_writes.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/custom_resources.h"
#include "shim/scheduler/cluster_event_handler.h"

namespace outboard::scheduler {
namespace {

// Of all plugins. Further writes are dropped, and the plugins push them again.
constexpr size_t kMaxBackgroundWrites = 256;

std::string WriteKey(const v1beta1::Effect& effect) {
  return absl::StrCat(effect.plugin(), "/", effect.key());
}

}  // namespace

absl::Status ObjectWrites::HandleBackgroundWrite(HostRecord* host, const v1beta1::Effect& effect,
                                                 absl::Time now) {
  const absl::Status allowed =
      framework::CheckObjectWrite(effect, host->client->info(), state_.options.custom_resources);
  if (absl::IsPermissionDenied(allowed)) {
    VLOG(3) << allowed.message();
    return absl::OkStatus();
  }
  if (!framework::IsObjectWrite(effect) || !effect.patch_object().after().empty())
    return absl::InternalError("a host pushes an effect that only a pod's bind can have");
  if (!framework::HasKey(effect))
    return absl::InternalError("a host pushes an effect without a key");
  if (!allowed.ok()) return allowed;
  if (absl::Status size = framework::CheckEffectSize(effect); !size.ok()) return size;
  MarkCachesSynced(host, now);
  if (paused_ || host->pushes_from < *host->caches_synced) {
    VLOG(3) << "Background write of " << effect.plugin()
            << " dropped: the host's cache is not synced: " << effect.key();
    return absl::OkStatus();
  }
  if (running_.size() >= kMaxBackgroundWrites || !running_.insert(WriteKey(effect)).second) {
    VLOG(3) << "Background write of " << effect.plugin()
            << " dropped: too many, or the same one is under way: " << effect.key();
    return absl::OkStatus();
  }
  state_.actions->Write({this, 0, nullptr, effect}, now);
  return absl::OkStatus();
}

void ObjectWrites::OnEffectEnded(const EffectOrder& order, const EffectEnd& end, absl::Time now) {
  const v1beta1::Effect& effect = order.effect;
  events_.OnObjectWritten(end, now);
  running_.erase(WriteKey(effect));
  const std::string& name = framework::WrittenObject(effect);
  if (end.status.ok()) {
    VLOG(2) << "Wrote " << name << " for " << effect.plugin() << ", version "
            << end.resource_version;
    return;
  }
  // Another client was faster, or another process leads: the plugin sees the current object.
  if (absl::IsAborted(end.status) || absl::IsAlreadyExists(end.status) ||
      absl::IsNotFound(end.status) || absl::IsFailedPrecondition(end.status)) {
    VLOG(1) << "Write of " << name << " for " << effect.plugin() << " failed: " << end.status;
    return;
  }
  LOG_EVERY_N(WARNING, 20) << "Write of " << name << " for " << effect.plugin()
                           << " failed: " << end.status.message();
}

void ObjectWrites::MarkCachesSynced(HostRecord* host, absl::Time now) {
  if (paused_ || host->caches_synced.has_value()) return;
  host_calls_.SendChanges(host, now);
  host->caches_synced = state_.cluster.VersionOf(host->cursor);
}

void ObjectWrites::FindObjectWriters(const std::string& name, HostRecord* host) {
  host->writes_objects = false;
  if (host->client == nullptr) return;
  for (const auto& [profile, plan] : state_.plans.all()) {
    if (!plan.object_writers.contains(name)) continue;
    host->writes_objects = true;
    state_.cluster.NotifyBindsOf(profile);
  }
}

void ObjectWrites::MarkObjectWriters(absl::Time now) {
  for (auto& [name, host] : state_.hosts) {
    if (host.writes_objects && host.client->usable()) MarkCachesSynced(&host, now);
  }
}

}  // namespace outboard::scheduler
