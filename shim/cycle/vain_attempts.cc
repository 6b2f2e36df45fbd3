#include "shim/cycle/vain_attempts.h"

#include <algorithm>
#include <limits>

namespace outboard::cycle {
namespace {

constexpr size_t kMaxRemembered = 100000;

bool Same(const PodDemand& a, const PodDemand& b) {
  return a.cpu_millis == b.cpu_millis && a.memory_bytes == b.memory_bytes &&
         a.ephemeral_storage_bytes == b.ephemeral_storage_bytes && a.extended == b.extended &&
         a.ports == b.ports;
}

}  // namespace

bool VainAttempts::IsVain(const kube::PodObject& pod, const GuardScope& scope, bool may_preempt) {
  // Whose victims are on their way is about to have room.
  if (!pod.pod.nominated_node_name().empty()) return false;
  if (version_ != cluster_->version()) {
    version_ = cluster_->version();
    lowest_priority_.reset();
    known_.clear();
  }
  if (may_preempt && LowestPriority() < pod.pod.priority()) return false;
  return FitsNowhere(pod, scope);
}

bool VainAttempts::IsVainAgain(const kube::PodObject& pod, const GuardScope& scope,
                               bool may_preempt) {
  if (!IsVain(pod, scope, may_preempt)) {
    were_vain_.erase(pod.uid());
    return false;
  }
  // Pods that went are not told of. Whoever is forgotten with them is tried once more.
  if (were_vain_.size() >= kMaxRemembered) were_vain_.clear();
  return !were_vain_.insert(pod.uid()).second;
}

int32_t VainAttempts::LowestPriority() {
  if (!lowest_priority_) {
    lowest_priority_ = std::numeric_limits<int32_t>::max();
    cluster_->ForEachPod([&](const kube::PodPtr& pod, bool assumed) {
      if (assumed || !pod->pod.node_name().empty())
        lowest_priority_ = std::min(*lowest_priority_, pod->pod.priority());
    });
  }
  return *lowest_priority_;
}

bool VainAttempts::FitsNowhere(const kube::PodObject& pod, const GuardScope& scope) {
  PodDemand demand = DemandOf(pod.pod);
  for (const Known& known : known_) {
    if (known.scope == &scope && Same(known.demand, demand)) return known.fits_nowhere;
  }
  const bool fits_nowhere =
      std::none_of(cluster_->node_order().begin(), cluster_->node_order().end(),
                   [&](uint32_t slot) { return cluster_->CheckFits(pod.uid(), slot, scope).ok(); });
  known_.push_back({std::move(demand), &scope, fits_nowhere});
  return fits_nowhere;
}

}  // namespace outboard::cycle
