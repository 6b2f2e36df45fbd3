// Instances that fail, hang or misbehave, and how their sessions end.
#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shim/clock.h"
#include "shim/framework/answer_check.h"
#include "shim/hosts/host_registry.h"

namespace outboard::hosts {
namespace {

// A call without an answer in time may be chance. An unusable answer, or a host that reports its
// own failure, is not.
bool IsBroken(const absl::Status& status) {
  return absl::IsInternal(status) || absl::IsInvalidArgument(status) ||
         absl::IsOutOfRange(status) || absl::IsDataLoss(status) || absl::IsUnknown(status) ||
         absl::IsUnimplemented(status);
}

}  // namespace

void HostRegistry::OnLost(const std::string& name, Instance* instance, const std::string& why,
                          absl::Time now) {
  LOG(WARNING) << "Host \"" << name << "\" lost " << instance->text() << " while it was "
               << StateName(instance->state) << ": " << why;
  const std::string address = instance->endpoint.address;
  Host& host = hosts_[name];
  host.pauses.Add(instance->id(), now - instance->began, why, now);
  if (host.serving == instance) {
    if (Instance* next = host.NewestReady(instance)) {
      Serve(name, next, "lost", absl::StrCat(instance->id(), " was lost"), now);
    }
  }
  Remove(name, instance, now);
  callbacks_.on_lost(address);
  RecallReplaced(name);
}

void HostRegistry::RecallReplaced(const std::string& name) {
  Host& host = hosts_[name];
  const bool another_is_left =
      std::any_of(host.instances.begin(), host.instances.end(), [](const auto& instance) {
        return instance->state != InstanceState::kQuarantined &&
               instance->state != InstanceState::kRefused &&
               instance->state != InstanceState::kDraining;
      });
  if (another_is_left || host.replaced.empty()) return;
  LOG(WARNING) << "Host \"" << name << "\" has no other instance left; calling those again that "
               << "were replaced";
  for (const std::string& address : host.TakeReplaced([](const std::string&) { return true; }))
    callbacks_.on_lost(address);
}

void HostRegistry::OnSilent(const std::string& name, const std::string& id, absl::Duration silence,
                            absl::Time now) {
  const auto it = hosts_.find(name);
  if (it == hosts_.end()) return;
  for (const auto& instance : it->second.instances) {
    if (instance->id() != id) continue;
    if (silence >= limits_.silent_until_lost) {
      return OnLost(name, instance.get(),
                    absl::StrCat("it has not answered a probe for ",
                                 absl::FormatDuration(absl::Trunc(silence, absl::Seconds(1)))),
                    now);
    }
    if (silence < limits_.silent_until_held_back || it->second.serving != instance.get()) return;
    if (Instance* const next = it->second.NewestReady(instance.get()))
      return Serve(name, next, "lost", absl::StrCat(id, " does not answer probes"), now);
    return scheduler_->OnProbesUnanswered(name, silence, now);
  }
}

void HostRegistry::OnGone(const std::string& name, const std::string& id, absl::Time now) {
  Host& host = hosts_[name];
  for (const auto& instance : host.instances) {
    // Streams of connected instances report their own loss.
    if (instance->id() != id || instance->grpc_client != nullptr) continue;
    return OnLost(name, instance.get(), "no process listens at its address", now);
  }
}

void HostRegistry::OnHostCallFailed(const std::string& id, const absl::Status& status) {
  for (auto& [name, host] : hosts_) {
    if (host.serving == nullptr || host.serving->id() != id) continue;
    const bool is_broken = IsBroken(status);
    host.serving->failures += is_broken ? config_->shim.replacement.rollback_failures : 1;
    host.serving->is_broken |= is_broken;
    ++host.serving->bad_calls;
    host.serving->last_failure = std::string(status.message());
  }
}

void HostRegistry::GiveUp(const std::string& name, Host* host, Instance* previous,
                          const std::string& why, absl::Time now) {
  Instance* const bad = host->serving;
  Serve(name, previous, "rollback", absl::StrCat(bad->id(), " was rolled back: ", why), now);
  if (host->serving != previous) return;  // Must be configured again; the next Tick does.
  Quarantine(name, bad, why, now);
}

void HostRegistry::Quarantine(const std::string& name, Instance* instance, const std::string& why,
                              absl::Time now) {
  Host& host = hosts_[name];
  const std::string build = instance->build_key();
  if (host.serving != nullptr && host.serving != instance && host.serving->build_key() == build) {
    const std::string serving = host.serving->id();
    return OnLost(
        name, instance,
        absl::StrCat(why, "; its build is not quarantined, because ", serving, " serves with it"),
        now);
  }
  host.quarantined.Add(build, why);
  for (const auto& of_build : host.instances) {
    if (of_build->build_key() != build || of_build->state == InstanceState::kQuarantined) continue;
    Disconnect(of_build.get());
    Enter(name, of_build.get(), InstanceState::kQuarantined, why, now);
  }
}

void HostRegistry::EndMisbehaving(const std::string& name, Host* host, Instance* instance,
                                  const std::string& why, absl::Time now) {
  Instance* const other = host->NewestReady(instance);
  if (other == nullptr) {
    // Its build may be the only one there is.
    OnLost(name, instance, why, now);
  } else if (host->serving == instance) {
    GiveUp(name, host, other, why, now);
  } else {
    Quarantine(name, instance, why, now);
  }
}

void HostRegistry::EndIfBroken(const std::string& name, Host* host, Instance* instance,
                               absl::Time now) {
  const GrpcHostClient& client = *instance->grpc_client;
  if (client.pushed_too_much()) {
    const std::string why =
        absl::StrCat("it pushed more than the shim takes, ", limits_.pushes, " messages or ",
                     limits_.push_bytes >> 20, " MiB within a second");
    return EndMisbehaving(name, host, instance, why, now);
  }
  std::string why;
  if (client.lost()) {
    why = "the connection broke";
  } else if (SteadyNow() - client.unread_since() >= limits_.unread) {
    why =
        absl::StrCat("it has not read what it was sent for ", absl::FormatDuration(limits_.unread));
  } else if (IsStuckInSnapshot(instance)) {
    why = absl::StrCat("it has not gone on with its snapshot for ",
                       absl::FormatDuration(limits_.unacknowledged));
  } else if (host->serving != instance) {
    return TakePushes(name, instance, now);
  } else if (scheduler_->WantsNewSession(name)) {
    why = "its cluster cache differs from the shim's";
  }
  if (!why.empty()) OnLost(name, instance, why, now);
}

void HostRegistry::TakePushes(const std::string& name, Instance* instance, absl::Time now) {
  // All other pushes are about the scheduler's state, which is handed over when it serves: it is
  // asked again about every pod then. An acknowledgement here is of a version that was not sent,
  // which makes it no more ready. None of them is answered: results begin with the pushes of an
  // instance that serves, and end with them.
  for (const v1beta1::SyncResponse& push : instance->grpc_client->TakePushes()) {
    if (push.has_resync()) {
      return OnLost(
          name, instance,
          absl::StrCat("it asks for a new snapshot: ", framework::CutText(push.resync().reason())),
          now);
    }
  }
}

}  // namespace outboard::hosts
