// Instances of hosts that keep a single session: whether this shim has it, or another shim.
#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shim/framework/answer_check.h"
#include "shim/hosts/host_registry.h"

namespace outboard::hosts {
namespace {

// A probe that the host answered before it was configured may be handled after that: it had a
// second, and then waited for the scheduling thread.
constexpr absl::Duration kEarlierProbe = absl::Seconds(3);

}  // namespace

std::string HostRegistry::WhyNoSession(const Instance& instance) const {
  if (!KeepsOneSession(instance.info)) return "";
  return single_sessions_.WhyNot(instance.id(), SessionOf(instance));
}

bool HostRegistry::WaitsToLead(const Host& host) const {
  return !single_sessions_.leads() && host.serving == nullptr &&
         std::any_of(host.instances.begin(), host.instances.end(), [](const auto& instance) {
           return instance->state == InstanceState::kWaiting && KeepsOneSession(instance->info);
         });
}

bool HostRegistry::YieldsToAnotherShim() const {
  return std::any_of(hosts_.begin(), hosts_.end(), [this](const auto& entry) {
    const Host& host = entry.second;
    return host.serving == nullptr &&
           std::any_of(host.instances.begin(), host.instances.end(), [&](const auto& instance) {
             return instance->state == InstanceState::kWaiting && KeepsOneSession(instance->info) &&
                    single_sessions_.IsTaken(instance->id(), SessionOf(*instance));
           });
  });
}

void HostRegistry::TakeProbedSession(const std::string& name, Instance* instance,
                                     const std::string& current, absl::Time now) {
  if (!KeepsOneSession(instance->info)) return;
  const std::string before = WhyNoSession(*instance);
  single_sessions_.OnProbe(instance->id(), current);
  if (instance->state == InstanceState::kWaiting) {
    // The next Tick begins with it as soon as it may.
    const std::string why = WhyNoSession(*instance);
    if (why.empty() || why == before) return;
    LOG(WARNING) << "Host \"" << name << "\": " << instance->text() << " is not used: " << why;
    return Enter(name, instance, InstanceState::kWaiting, why, now);
  }
  // The calls and the stream of a lost session report it, too, but a session without a call or a
  // stream has only this.
  if (!single_sessions_.IsTaken(instance->id(), SessionOf(*instance))) return;
  if (instance->grpc_client == nullptr || now - instance->began < limits_.configure + kEarlierProbe)
    return;
  OnLost(name, instance,
         absl::StrCat("another shim replaced this shim's session by session ",
                      framework::CutText(current, 63), ", and the host keeps a single one"),
         now);
}

}  // namespace outboard::hosts
