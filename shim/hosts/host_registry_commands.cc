// Commands of an administrator to the hosts.
#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/hosts/host_registry.h"

namespace outboard::hosts {

absl::StatusOr<HostRegistry::Host*> HostRegistry::FindHost(const std::string& name) {
  const auto it = hosts_.find(name);
  if (it == hosts_.end()) return absl::NotFoundError(absl::StrCat("unknown host \"", name, "\""));
  return &it->second;
}

absl::Status HostRegistry::Swap(const std::string& name, const std::string& id, absl::Time now) {
  absl::StatusOr<Host*> found = FindHost(name);
  if (!found.ok()) return found.status();
  Host& host = **found;
  Instance* next = nullptr;
  if (id.empty()) {
    next = host.NewestReady(host.serving);
    if (next == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("no other instance of host \"", name, "\" is ready"));
    }
  }
  for (const auto& instance : host.instances) {
    if (!id.empty() && instance->id() == id) next = instance.get();
  }
  if (next == nullptr) {
    return absl::NotFoundError(absl::StrCat("host \"", name, "\" has no instance ", id));
  }
  if (next == host.serving)
    return absl::FailedPreconditionError(
        absl::StrCat("instance ", next->id(), " is already serving"));
  if (!next->ready()) {
    return absl::FailedPreconditionError(
        absl::StrCat("instance ", next->id(), " is ", StateName(next->state), ": ", next->why));
  }
  next->approved = true;
  Serve(name, next, "manual", "requested by an administrator", now);
  return absl::OkStatus();
}

absl::Status HostRegistry::Rollback(const std::string& name, absl::Time now) {
  absl::StatusOr<Host*> found = FindHost(name);
  if (!found.ok()) return found.status();
  Host& host = **found;
  Instance* const previous = host.NewestOfAnotherBuild();
  if (host.serving == nullptr || previous == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no ready instance of host \"", name, "\" has another build than ",
        host.serving == nullptr ? "the last instance" : host.serving->id(),
        "; the predecessor is kept ", absl::FormatDuration(config_->shim.replacement.keep_warm),
        " after a replacement (replacement.keepWarm)"));
  }
  previous->approved = true;
  GiveUp(name, &host, previous, "requested by an administrator", now);
  return absl::OkStatus();
}

absl::Status HostRegistry::ClearQuarantine(const std::string& name, absl::Time now) {
  absl::StatusOr<Host*> found = FindHost(name);
  if (!found.ok()) return found.status();
  (*found)->quarantined.Clear();
  (*found)->pauses = Pauses();
  single_sessions_.Clear();
  for (const auto& instance : (*found)->instances) {
    if (instance->state == InstanceState::kQuarantined)
      Enter(name, instance.get(), InstanceState::kWaiting, "it is tried again", now);
    instance->not_before = absl::InfinitePast();
  }
  return BeginWaiting(now);
}

std::vector<HostRegistry::View> HostRegistry::Describe() const {
  std::vector<View> all;
  for (const auto& [name, host] : hosts_) {
    for (const auto& instance : host.instances) {
      View& view = all.emplace_back();
      view.host = name;
      view.instance = instance->id();
      view.address = instance->endpoint.address;
      view.pod = instance->endpoint.pod;
      view.build = instance->identity.build();
      view.build_digest = instance->identity.build_digest();
      view.state = instance->state;
      view.why = instance->why;
      view.warning = instance->warning();
      view.since = instance->since;
      view.started = instance->started;
      view.failures = instance->bad_calls;
      view.held_back = host.serving == instance.get() && scheduler_->IsHeldBack(name);
      view.shadow = instance->shadow;
      if (instance->grpc_client == nullptr) continue;
      view.usable = instance->grpc_client->usable();
      if (instance->cursor == 0) continue;
      view.sent_version = scheduler_->cluster()->VersionOf(instance->cursor);
      view.acknowledged_version = instance->grpc_client->acknowledged_version();
    }
  }
  return all;
}

}  // namespace outboard::hosts
