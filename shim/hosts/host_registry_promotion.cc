// Which instance serves next.
#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "shim/hosts/host_registry.h"

namespace outboard::hosts {

void HostRegistry::TakeAcceptances() {
  if (!accepted_pods_.TakeChanged()) return;
  for (auto& [name, host] : hosts_) {
    for (const auto& instance : host.instances)
      instance->acceptance = accepted_pods_.Of(instance->endpoint.address);
    if (host.serving == nullptr || !host.serving->unproven()) continue;
    // It may have replaced an accepted instance.
    const auto is_accepted = [this](const std::string& address) {
      return accepted_pods_.Of(address) == Acceptance::kAccepted;
    };
    for (const std::string& address : host.TakeReplaced(is_accepted)) callbacks_.on_lost(address);
  }
}

// Moves each instance that is ready for its next state.
void HostRegistry::Promote(const std::string& name, Host* host, absl::Time now) {
  if (host->serving == nullptr || !host->serving->ready()) {
    Instance* const next = host->NewestReady(host->serving);
    const bool may_wait = next != nullptr && next->unproven() &&
                          now - next->since < AcceptedPods::kFirst &&
                          accepted_pods_.AnotherIsComing(name, *host);
    if (next != nullptr && !may_wait) Serve(name, next, "newer", "no other instance is ready", now);
    return;
  }
  if (Instance* const unproven = host->serving; unproven->unproven()) {
    Instance* const proven = host->NewestReady(unproven);
    if (proven != nullptr && !proven->unproven()) {
      Serve(name, proven, "accepted",
            absl::StrCat("no leader has accepted ", unproven->id(), " yet"), now);
      // To be compared, like a new one.
      if (host->serving == proven) Begin(name, unproven, now);
      return;
    }
  }
  // By index: serving one instance may restart others, and one in the shadow may be removed.
  for (size_t i = 0; i < host->instances.size(); ++i) {
    Instance* const instance = host->instances[i].get();
    if (!instance->ready()) continue;
    const bool is_new = instance->state == InstanceState::kSyncing;
    const bool was_compared =
        instance->state == InstanceState::kShadow && ShadowIsOver(name, instance, now);
    if (!is_new && !was_compared) continue;
    // Until the leader accepts it. In the shadow it is where this replica can compare it at once.
    const bool follows = !accepted_pods_.leads() && instance->unproven();
    const std::string& serving = host->serving->id();
    // A newer one may have begun to serve meanwhile.
    if (instance->started <= host->serving->started) {
      Enter(name, instance, InstanceState::kStandby, absl::StrCat("it is older than ", serving),
            now);
      continue;
    }
    if (is_new && config_->shim.replacement.shadow_cycles > 0 && EnterShadow(name, instance, now))
      continue;
    if (follows) continue;
    instance->approved = accepted_pods_.leads();
    if (was_compared) {
      LOG(INFO) << "Host \"" << name << "\": " << instance->text() << " in the shadow of "
                << serving << ": " << instance->shadow.Summary();
    }
    Serve(name, instance, "newer", absl::StrCat("it is newer than ", serving), now);
  }
}

}  // namespace outboard::hosts
