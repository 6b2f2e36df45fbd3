#include "plugins/gpu_load/placed_pods.h"

#include <algorithm>

namespace outboard::gpu_load {

void PlacedPods::Clear() {
  by_slot_.clear();
  known_.clear();
}

int64_t PlacedPods::GpusOf(const sdk::PodRecord& pod) const {
  int64_t sum = 0;
  for (const std::string& name : gpus_->names())
    sum += std::max<int64_t>(0, pod.usage.requests.Get(name));
  return sum;
}

void PlacedPods::Added(const sdk::PodRecord& pod, sdk::Slot slot, absl::Time now) {
  const int64_t gpus = GpusOf(pod);
  if (gpus == 0) return;
  const auto [known, is_new] = known_.try_emplace(pod.pod.uid(), absl::InfiniteFuture());
  if (known->second == absl::InfiniteFuture()) {
    const bool was_there = is_new && pod.place == sdk::Place::kBound;
    known->second = was_there ? absl::FromUnixSeconds(pod.pod.creation_unix_seconds()) : now;
  }
  const absl::Time started = absl::FromUnixSeconds(pod.pod.start_unix_seconds());
  if (slot >= by_slot_.size()) by_slot_.resize(slot + 1);
  by_slot_[slot].push_back({pod.pod.uid(), std::max(known->second, started), gpus});
}

void PlacedPods::Removed(const sdk::PodRecord& pod, sdk::Slot slot) {
  if (slot >= by_slot_.size()) return;
  auto& placed = by_slot_[slot];
  placed.erase(std::remove_if(placed.begin(), placed.end(),
                              [&](const Placed& p) { return p.uid == pod.pod.uid(); }),
               placed.end());
}

void PlacedPods::Changed(const sdk::PodRecord& pod) {
  if (pod.on_node() || GpusOf(pod) == 0) return;
  // A pod that is bound to a node not known yet does not wait.
  if (pod.place == sdk::Place::kNone || pod.place == sdk::Place::kNominated)
    known_[pod.pod.uid()] = absl::InfiniteFuture();
}

void PlacedPods::Gone(const sdk::PodRecord& pod) { known_.erase(pod.pod.uid()); }

int64_t PlacedPods::GpusPlacedAfter(sdk::Slot slot, absl::Time since) const {
  if (slot >= by_slot_.size()) return 0;
  int64_t sum = 0;
  for (const Placed& placed : by_slot_[slot]) {
    if (placed.since > since) sum += placed.gpus;
  }
  return sum;
}

}  // namespace outboard::gpu_load
