#include "cli/simulate/trace/equivalence_cache.h"

#include <utility>

#include "absl/algorithm/container.h"

namespace outboard::simulate::trace {

using queue::Place;
using queue::QueuedPod;

void EquivalenceCache::Happened(const queue::ClusterEvent& event) {
  // A rejection updates the waiting pod itself.
  if (event.resource == queue::kUnscheduledPod && event.actions != queue::kAdd) return;
  ForgetFailures();
}

void EquivalenceCache::ForgetFailures() {
  for (const size_t kind : failed_kinds_) failures_[kind].clear();
  failed_kinds_.clear();
}

void EquivalenceCache::Renew(absl::Time now) {
  const uint64_t placements = cluster_->placements_generation();
  if (now == failed_at_ && placements == placements_) return;
  ForgetFailures();
  failed_at_ = now;
  placements_ = placements;
}

const EquivalenceCache::Known* EquivalenceCache::Find(const kube::PodPtr& pod) {
  if (!pod->pod.nominated_node_name().empty()) return nullptr;
  if (known_.size() > next_sweep_) {
    absl::erase_if(known_, [&](const auto& entry) { return queue_->Find(entry.first) == nullptr; });
    next_sweep_ = 2 * known_.size() + 1024;
  }
  Known& known = known_[pod->uid()];
  if (known.pod.owner_before(pod) || pod.owner_before(known.pod)) {
    const EquivalenceClass equivalence_class = equivalence_class_of_(*pod);
    known.pod = pod;
    known.kind = equivalence_class.kind.empty()
                     ? kNoKind
                     : kinds_.try_emplace(equivalence_class.kind, kinds_.size()).first->second;
    known.amount = equivalence_class.amount;
    known.amount_field = equivalence_class.amount_field;
    known.turn = {pod->pod.creation_unix_seconds(), pod->pod.namespace_(), pod->pod.name()};
    failures_.resize(kinds_.size());
  }
  return known.kind == kNoKind ? nullptr : &known;
}

const EquivalenceCache::Failure* EquivalenceCache::LeaderOf(size_t kind, int64_t amount,
                                                            const Turn& turn) const {
  const auto leader = absl::c_find_if(failures_[kind], [&](const Failure& failure) {
    return failure.amount <= amount && failure.turn <= turn;
  });
  return leader == failures_[kind].end() ? nullptr : &*leader;
}

void EquivalenceCache::Failed(const std::string& uid, absl::Time now) {
  if (equivalence_class_of_ == nullptr) return;
  Renew(now);
  const QueuedPod* const info = queue_->Find(uid);
  if (info == nullptr || info->place != Place::kUnschedulable || !info->pending_plugins.empty())
    return;
  const Known* const known = Find(info->pod);
  if (known == nullptr) return;
  // Covers all of its kind, unless a plugin uses amounts.
  Failure failed = {
      std::numeric_limits<int64_t>::min(), {std::numeric_limits<int64_t>::min(), "", ""}, uid};
  if (!known->amount_field.empty() &&
      absl::c_any_of(info->unschedulable_plugins, [&](const std::string& plugin) {
        return reads_(plugin, known->amount_field);
      })) {
    failed.amount = known->amount;
    failed.turn = known->turn;
  }
  if (LeaderOf(known->kind, failed.amount, failed.turn) != nullptr) return;
  std::vector<Failure>& failures = failures_[known->kind];
  if (failures.empty()) failed_kinds_.push_back(known->kind);
  std::erase_if(failures, [&](const Failure& other) {
    return failed.amount <= other.amount && failed.turn <= other.turn;
  });
  failures.push_back(std::move(failed));
}

bool EquivalenceCache::Skip(const QueuedPod& info, absl::Time now) {
  if (equivalence_class_of_ == nullptr) return false;
  const std::string uid = info.uid();
  leader_of_.erase(uid);
  Renew(now);
  // Only pods whose rejectors are known.
  if (failed_kinds_.empty() || info.deleted || info.pod->pod.deletion_unix_seconds() != 0 ||
      info.unschedulable_count == 0 || info.consecutive_errors > 0)
    return false;
  const Known* const known = Find(info.pod);
  if (known == nullptr) return false;
  const Failure* const leader = LeaderOf(known->kind, known->amount, known->turn);
  const QueuedPod* const its = leader == nullptr ? nullptr : queue_->Find(leader->uid);
  // Events move a leader whose hosts do not evaluate hints, without a notice here.
  if (its == nullptr || its->place != Place::kUnschedulable || !its->delegated) return false;
  queue::SchedulingQueue::Rejectors rejectors;
  rejectors.unschedulable = its->unschedulable_plugins;
  rejectors.post_filter = its->post_filter_plugins;
  // Before AddUnschedulable, because the queue asks IgnoresEvents.
  leader_of_[uid] = leader->uid;
  followers_[leader->uid].push_back(uid);
  queue_->AddUnschedulable(uid, std::move(rejectors), now);
  return true;
}

void EquivalenceCache::OnNotWaiting(const std::string& uid) {
  if (followers_.contains(uid)) released_.push_back(uid);
}

void EquivalenceCache::Release(absl::Time now) {
  if (released_.empty()) return;
  std::vector<std::string> uids;
  for (const std::string& leader : std::exchange(released_, {})) {
    auto followers = followers_.extract(leader);
    if (followers.empty()) continue;
    for (std::string& uid : followers.mapped()) {
      const auto its = leader_of_.find(uid);
      if (its == leader_of_.end() || its->second != leader) continue;
      leader_of_.erase(its);
      uids.push_back(std::move(uid));
    }
  }
  queue_->TryAgain(uids, now);
}

}  // namespace outboard::simulate::trace
