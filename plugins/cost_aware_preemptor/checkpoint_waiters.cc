#include "plugins/cost_aware_preemptor/checkpoint_waiters.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace outboard::cost_aware_preemptor {
namespace {

constexpr absl::Duration kRest = absl::Seconds(10);
// Far more than one second can handle.
constexpr size_t kMaxWritten = 256;

}  // namespace

void CheckpointWaiters::Clear() {
  waiters_.clear();
  turns_.clear();
  written_.clear();
}

void CheckpointWaiters::Add(const v1beta1::Pod& pod) {
  const auto [it, is_new] = waiters_.try_emplace(pod.uid());
  if (!is_new) return;
  it->second.turn = {0, -int64_t{pod.priority()}, pod.creation_unix_seconds(), pod.uid()};
  turns_.insert(it->second.turn);
}

void CheckpointWaiters::Remove(const std::string& uid) {
  const auto it = waiters_.find(uid);
  if (it == waiters_.end()) return;
  turns_.erase(it->second.turn);
  waiters_.erase(it);
  if (waiters_.empty()) written_.clear();
}

void CheckpointWaiters::OnCheckpoint(int32_t priority) {
  if (!waiters_.empty() && written_.size() < kMaxWritten) written_.push_back(priority);
}

std::vector<std::string> CheckpointWaiters::TakeDue(absl::Time now) {
  std::vector<std::string> due;
  std::vector<int32_t> later;
  // The highest priority first: the fewest pods may evict it.
  std::sort(written_.begin(), written_.end(), std::greater<>());
  for (const int32_t priority : std::exchange(written_, {})) {
    bool rests = false;
    const auto turn = std::find_if(turns_.begin(), turns_.end(), [&](const Turn& one) {
      if (-std::get<1>(one) <= priority) return false;
      const bool ready = now - waiters_.at(std::get<3>(one)).last >= kRest;
      rests |= !ready;
      return ready;
    });
    if (turn == turns_.end()) {
      if (rests) later.push_back(priority);
      continue;
    }
    Waiter& waiter = waiters_.at(std::get<3>(*turn));
    due.push_back(std::get<3>(*turn));
    turns_.erase(turn);
    ++std::get<0>(waiter.turn);
    waiter.last = now;
    turns_.insert(waiter.turn);
  }
  written_ = std::move(later);
  return due;
}

}  // namespace outboard::cost_aware_preemptor
