#include "shim/cycle/preemptions.h"

#include <algorithm>
#include <utility>

namespace outboard::cycle {

Preemptions::Step Preemptions::Begin(uint64_t id, Preemption preemption) {
  latest_[preemption.preemptor->uid()] = id;
  for (const std::string& uid : preemption.members) latest_[uid] = id;
  Running& running = running_[id];
  running.preemption = std::move(preemption);
  const std::vector<kube::PodPtr>& victims = running.preemption.victims;
  by_last_victim_[victims.back()->uid()].push_back(id);
  Step step;
  if (victims.size() == 1) {
    running.last_begun = true;
    step.evict = victims;
  } else {
    step.evict.assign(victims.begin(), victims.end() - 1);
  }
  running.under_way = step.evict.size();
  return step;
}

Preemptions::Step Preemptions::EvictionEnded(uint64_t id, bool failed, bool news_follows) {
  Step step;
  const auto it = running_.find(id);
  if (it == running_.end()) return step;
  Running& running = it->second;
  running.failed |= failed;
  if (--running.under_way > 0) return step;
  if (!running.failed && !running.last_begun) {
    running.last_begun = true;
    running.under_way = 1;
    step.evict.push_back(running.preemption.victims.back());
    return step;
  }
  step.failed = running.failed;
  if (running.failed || !news_follows) step.over = Forget(id);
  return step;
}

Preemption Preemptions::Forget(uint64_t id) {
  Preemption over = std::move(running_.extract(id).mapped().preemption);
  const auto same = by_last_victim_.find(over.victims.back()->uid());
  same->second.erase(std::find(same->second.begin(), same->second.end(), id));
  if (same->second.empty()) by_last_victim_.erase(same);
  const auto forget = [&](const std::string& uid) {
    const auto latest = latest_.find(uid);
    if (latest != latest_.end() && latest->second == id) latest_.erase(latest);
  };
  forget(over.preemptor->uid());
  for (const std::string& uid : over.members) forget(uid);
  return over;
}

std::vector<std::string> Preemptions::VictimLeft(absl::string_view uid) {
  std::vector<std::string> preemptors;
  const auto it = by_last_victim_.find(uid);
  if (it == by_last_victim_.end()) return preemptors;
  const std::vector<uint64_t> ids = it->second;
  for (const uint64_t id : ids) {
    const Running& running = running_.at(id);
    const Preemption& preemption = running.preemption;
    preemptors.push_back(preemption.preemptor->uid());
    preemptors.insert(preemptors.end(), preemption.members.begin(), preemption.members.end());
    if (running.last_begun && running.under_way == 0) Forget(id);
  }
  return preemptors;
}

const Preemption* Preemptions::Find(uint64_t id) const {
  const auto it = running_.find(id);
  return it == running_.end() ? nullptr : &it->second.preemption;
}

const std::string* Preemptions::GateOf(
    absl::string_view uid, absl::FunctionRef<bool(const std::string& victim)> is_leaving) const {
  const auto latest = latest_.find(uid);
  if (latest == latest_.end()) return nullptr;
  const Running& running = running_.at(latest->second);
  if (running.preemption.gate.empty()) return nullptr;
  // The answer about the last one may come after the news that it went.
  if (running.last_begun && is_leaving(running.preemption.victims.back()->uid())) return nullptr;
  return &running.preemption.gate;
}

}  // namespace outboard::cycle
