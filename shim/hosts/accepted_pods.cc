#include "shim/hosts/accepted_pods.h"

#include <algorithm>

namespace outboard::hosts {

void AcceptedPods::SetLeading(bool leads, absl::Time now) {
  if (leads && !leads_) leads_since_ = now;
  leads_ = leads;
}

void AcceptedPods::Set(std::vector<GatedInstance> all) {
  if (all == all_) return;
  all_ = std::move(all);
  changed_ = true;
}

Acceptance AcceptedPods::Of(const std::string& address) const {
  for (const GatedInstance& gated : all_) {
    if (gated.address == address)
      return gated.is_accepted ? Acceptance::kAccepted : Acceptance::kAwaited;
  }
  return Acceptance::kNotAsked;
}

bool AcceptedPods::AnotherIsComing(const std::string& name, const HostInstances& host) const {
  return std::any_of(all_.begin(), all_.end(), [&](const GatedInstance& gated) {
    if (gated.host != name || !gated.is_accepted) return false;
    const auto known = std::find_if(
        host.instances.begin(), host.instances.end(),
        [&](const auto& instance) { return instance->endpoint.address == gated.address; });
    return known == host.instances.end() || (*known)->state == InstanceState::kWaiting ||
           (*known)->state == InstanceState::kSyncing;
  });
}

}  // namespace outboard::hosts
