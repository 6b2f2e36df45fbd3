#include "shim/scheduler/object_writes.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/custom_resources.h"
#include "shim/framework/pod_effects.h"
#include "shim/scheduler/cluster_event_handler.h"

namespace outboard::scheduler {
namespace {

using v1beta1::PushResult;

// Of all plugins. Further writes are dropped, and the plugins push them again.
constexpr size_t kMaxBackgroundWrites = 256;

std::string WriteKey(const v1beta1::Effect& effect) {
  return absl::StrCat(effect.plugin(), "/", effect.key());
}

PushEnd::Outcome OutcomeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return PushResult::OUTCOME_APPLIED;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kNotFound:
      return PushResult::OUTCOME_CONFLICT;
    case absl::StatusCode::kPermissionDenied:
      return PushResult::OUTCOME_FORBIDDEN;
    default:
      return PushResult::OUTCOME_FAILED;
  }
}

}  // namespace

PushEnd ObjectWrites::HandleBackgroundWrite(const std::string& name, HostRecord* host,
                                            const v1beta1::SyncResponse& push, absl::Time now) {
  const v1beta1::Effect& effect = push.effect();
  if (!state_.Serves(name, effect.plugin())) return PushEnd::NotServed(effect.plugin());
  const absl::Status allowed =
      framework::CheckObjectWrite(effect, host->client->info(), state_.options.custom_resources);
  if (absl::IsPermissionDenied(allowed)) {
    VLOG(3) << allowed.message();
    return PushEnd::NotApplied(PushResult::OUTCOME_FORBIDDEN, allowed.message());
  }
  if ((!framework::IsObjectWrite(effect) && !framework::IsObjectEvent(effect)) ||
      !effect.patch_object().after().empty()) {
    return PushEnd::Refused(
        absl::InternalError("a host pushes an effect that only a pod's bind can have"));
  }
  if (!framework::HasKey(effect))
    return PushEnd::Refused(absl::InternalError("a host pushes an effect without a key"));
  if (!allowed.ok()) return PushEnd::Refused(allowed);
  if (absl::Status wrong = framework::CheckPodEffect(effect, {}); !wrong.ok())
    return PushEnd::Refused(wrong);
  if (absl::Status size = framework::CheckEffectSize(effect); !size.ok())
    return PushEnd::Refused(size);
  const auto dropped = [&](PushEnd::Outcome outcome, absl::string_view why) {
    VLOG(3) << "Background write of " << effect.plugin() << " dropped: " << why << ": "
            << effect.key();
    return PushEnd::NotApplied(outcome, why);
  };
  MarkCachesSynced(host, now);
  if (paused_ || host->pushes_from < *host->caches_synced)
    return dropped(PushResult::OUTCOME_FAILED, "the host's cache is not synced");
  const std::string key = WriteKey(effect);
  if (running_.contains(key)) {
    return dropped(PushResult::OUTCOME_SUPERSEDED,
                   "a write with this plugin and key is in progress");
  }
  if (running_.size() >= kMaxBackgroundWrites)
    return dropped(PushResult::OUTCOME_FAILED, "too many writes are in progress");
  running_[key] = {name, host->instances, push.push_id()};
  state_.actions->Write({this, 0, nullptr, effect, ProfileOf(effect.plugin(), name)}, now);
  return PushEnd();
}

std::string ObjectWrites::ProfileOf(const std::string& plugin, const std::string& host) const {
  std::string first;
  for (const auto& [profile, plan] : state_.plans.all()) {
    if (plan.Serves(host, plugin) && (first.empty() || profile < first)) first = profile;
  }
  return first;
}

void ObjectWrites::Answer(const Source& source, const absl::Status& status) {
  const auto host = state_.hosts.find(source.host_name);
  if (host == state_.hosts.end() || host->second.instances != source.instance) return;
  host->second.push_results.Add(source.push_id, OutcomeOf(status), status.message());
}

void ObjectWrites::OnEffectEnded(const EffectOrder& order, const EffectEnd& end, absl::Time now) {
  const v1beta1::Effect& effect = order.effect;
  events_.OnObjectWritten(end, now);
  if (const auto ended = running_.extract(WriteKey(effect)); !ended.empty())
    Answer(ended.mapped(), end.status);
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
