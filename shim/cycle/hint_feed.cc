#include "shim/cycle/hint_feed.h"

#include <utility>

namespace outboard::cycle {

void HintFeed::Waits(const queue::QueuedPod& pod) {
  v1alpha1::WaitingPod waiting;
  waiting.set_uid(pod.uid());
  for (const std::string& plugin : pod.unschedulable_plugins) waiting.add_rejected_by(plugin);
  for (const std::string& plugin : pod.pending_plugins) waiting.add_pending_by(plugin);
  if (pod.place == queue::Place::kGated) waiting.set_gated_by(pod.gating_plugin);
  waiting.set_since(pod.judged_since);
  pods_[pod.uid()] = std::move(waiting);
}

void HintFeed::Happened(v1alpha1::QueueEvent event) {
  if (events_.size() >= kMaxEvents) {
    overflowed_ = true;
    return;
  }
  events_.push_back(std::move(event));
}

void HintFeed::TakeInto(uint64_t events_needed_from, v1alpha1::SyncRequest* request) {
  for (auto& [uid, waiting] : pods_) {
    if (waiting.has_value()) {
      *request->add_waiting_pods() = *std::move(waiting);
    } else {
      request->add_no_longer_waiting(uid);
    }
  }
  for (v1alpha1::QueueEvent& event : events_) *request->add_events() = std::move(event);
  request->set_events_needed_from(events_needed_from);
  Clear();
}

void HintFeed::Clear() {
  pods_.clear();
  events_.clear();
  overflowed_ = false;
}

}  // namespace outboard::cycle
