#include "shim/cycle/vain_attempts.h"

#include <algorithm>

#include "shim/queue/pod_heap.h"

namespace outboard::cycle {
namespace {

using queue::Place;
using queue::QueuedPod;

// Of the plugins that reject pods for which there is no room, the one that events help which give
// some back.
constexpr char kFit[] = "NodeResourcesFit";

bool IsItsTurn(const QueuedPod& pod) {
  return pod.place == Place::kActive || pod.place == Place::kBackoff ||
         pod.place == Place::kErrorBackoff;
}

}  // namespace

bool VainAttempts::Holds(const std::string& uid) const {
  const auto held = held_.find(uid);
  return held != held_.end() && held->second.waits;
}

const QueuedPod* VainAttempts::Waiting(const Held& held) const {
  if (!held.waits) return nullptr;
  const QueuedPod* const info = queue_->Find(held.uid);
  return info != nullptr && info->place == Place::kUnschedulable ? info : nullptr;
}

void VainAttempts::Happened(const queue::ClusterEvent& event) {
  // Whom a pod that got a node, or another that waits, may help is not known here; pods that look
  // at others are like no other (Likeness).
  if (event.resource == queue::kUnscheduledPod || event == queue::AssignedPodAdd()) return;
  happened_ = true;
}

void VainAttempts::BeginRound(absl::Time now) {
  if (likeness_of_ == nullptr || in_round_ || !happened_) return;
  happened_ = false;
  in_round_ = true;
  ++round_;
  for (auto& [name, kind] : kinds_) {
    kind.turns.clear();
    kind.next = 0;
  }
  struct Turn {
    absl::Time backoff;
    const QueuedPod* info;
    Held* held;
  };
  // As the queue would have them take turns: whoever backs off still, last.
  const auto before = [](const Turn& a, const Turn& b) {
    if (a.backoff != b.backoff) return a.backoff < b.backoff;
    return queue::ActiveOrder()(*a.info, *b.info);
  };
  std::vector<Turn> turns;
  turns.reserve(order_.size());
  for (Held* held : order_) {
    if (const QueuedPod* info = Waiting(*held); info != nullptr) {
      turns.push_back({queue_->BackoffLeft(held->uid, now), info, held});
    } else {
      held_.erase(held->uid);
    }
  }
  if (!std::is_sorted(turns.begin(), turns.end(), before))
    std::sort(turns.begin(), turns.end(), before);
  order_.clear();
  for (const Turn& turn : turns) {
    turn.held->had_turn = false;
    turn.held->kind->turns.push_back(turn.held);
    order_.push_back(turn.held);
  }
  in_order_ = order_.size();
}

void VainAttempts::TryNext(absl::Time now) {
  if (!in_round_) return;
  std::vector<std::string> uids;
  for (auto& [name, kind] : kinds_) {
    if (kind.next == kind.turns.size()) continue;
    if (!kind.active.empty()) {
      const QueuedPod* const active = queue_->Find(kind.active);
      if (active != nullptr && IsItsTurn(*active)) continue;
      kind.active.clear();
    }
    const int64_t bound = kind.round == round_ ? kind.bound : kAll;
    const QueuedPod* info = nullptr;
    for (; kind.next < kind.turns.size(); ++kind.next) {
      const Held& held = *kind.turns[kind.next];
      if (held.amount < bound && !held.had_turn && (info = Waiting(held)) != nullptr) break;
    }
    if (info == nullptr) continue;
    const std::optional<Terms> terms = terms_of_(*info->pod);
    if (!terms.has_value() || !MayFit(&kind, *info->pod, *terms)) continue;
    kind.active = info->uid();
    kind.turns[kind.next]->waits = false;
    ++kind.next;
    uids.push_back(kind.active);
  }
  if (!uids.empty()) queue_->TryAgain(uids, now);
}

void VainAttempts::EndRound(absl::Time now) {
  if (!in_round_) return;
  in_round_ = false;
  for (size_t i = 0; i < in_order_; ++i) {
    const Held& held = *order_[i];
    if (Waiting(held) != nullptr) queue_->RejectAgain(held.uid, !held.had_turn, now);
  }
}

std::optional<VainAttempts::Found> VainAttempts::Find(const kube::PodObject& pod) {
  if (likeness_of_ == nullptr || !pod.pod.nominated_node_name().empty()) return std::nullopt;
  const Likeness likeness = likeness_of_(pod);
  if (likeness.kind.empty()) return std::nullopt;
  Kind& kind = kinds_[likeness.kind];
  if (kind.round != round_) {
    kind.round = round_;
    kind.bound = kAll;
    kind.failed = absl::InfinitePast();
  }
  return Found{&kind, likeness.amount};
}

bool VainAttempts::AddUnschedulable(const std::string& uid,
                                    queue::SchedulingQueue::Rejectors rejectors, absl::Time now) {
  const QueuedPod* const info = queue_->Find(uid);
  // Whoever else rejected it may be helped by what is no event here.
  if (info == nullptr || !rejectors.pending.empty() || !rejectors.unschedulable.contains(kFit))
    return queue_->AddUnschedulable(uid, std::move(rejectors), now);
  const std::optional<Found> as = Find(*info->pod);
  if (!as.has_value()) return queue_->AddUnschedulable(uid, std::move(rejectors), now);
  as->kind->bound = std::min(as->kind->bound, as->amount);
  as->kind->failed = now;
  return Wait(uid, *as, std::move(rejectors), now);
}

bool VainAttempts::Wait(const std::string& uid, const Found& as,
                        queue::SchedulingQueue::Rejectors rejectors, absl::Time now) {
  const auto [at, is_new] = held_.try_emplace(uid);
  Held& held = at->second;
  if (is_new) {
    held.uid = uid;
    order_.push_back(&held);
  }
  held.kind = as.kind;
  held.amount = as.amount;
  held.had_turn = true;
  // Before the queue has it wait: it asks.
  held.waits = true;
  const bool waits = queue_->AddUnschedulable(uid, std::move(rejectors), now);
  held.waits = Waiting(held) != nullptr;
  return waits;
}

bool VainAttempts::Spare(const QueuedPod& info, absl::Time now) {
  if (likeness_of_ == nullptr) return false;
  if (const auto held = held_.find(info.uid()); held != held_.end()) held->second.waits = false;
  if (info.deleted || info.pod->pod.deletion_unix_seconds() != 0) return false;
  // Somebody has to have said why it waits.
  if (info.unschedulable_count == 0 || info.consecutive_errors > 0 || !info.pending_plugins.empty())
    return false;
  const std::optional<Terms> terms = terms_of_(*info.pod);
  if (!terms.has_value()) return false;
  const std::optional<Found> as = Find(*info.pod);
  if (!as.has_value()) return false;
  const bool as_another = as->kind->failed == now && as->amount >= as->kind->bound;
  if (!as_another && MayFit(as->kind, *info.pod, *terms)) return false;
  queue::SchedulingQueue::Rejectors rejectors;
  rejectors.unschedulable = info.unschedulable_plugins;
  rejectors.unschedulable.insert(kFit);
  Wait(info.uid(), *as, std::move(rejectors), now);
  return true;
}

bool VainAttempts::MayFit(Kind* kind, const kube::PodObject& pod, const Terms& terms) {
  if (terms.may_preempt && LowestPriority() < pod.pod.priority()) return true;
  if (kind->scope != terms.scope) kind->nodes.clear();
  kind->scope = terms.scope;
  kind->nodes.resize(cluster_->slot_limit());
  for (const uint32_t slot : cluster_->node_order()) {
    OnNode& node = kind->nodes[slot];
    if (const uint64_t generation = cluster_->NodeGeneration(slot); generation != node.generation) {
      node.generation = generation;
      node.fits = cluster_->CheckFits(pod.uid(), slot, *terms.scope).ok();
    }
    if (node.fits) return true;
  }
  return false;
}

int32_t VainAttempts::LowestPriority() {
  lowest_.resize(cluster_->slot_limit());
  int32_t lowest = std::numeric_limits<int32_t>::max();
  for (const uint32_t slot : cluster_->node_order()) {
    Lowest& node = lowest_[slot];
    if (const uint64_t generation = cluster_->NodeGeneration(slot); generation != node.generation) {
      node = {generation, std::numeric_limits<int32_t>::max()};
      cluster_->ForEachPodOn(slot, [&](const kube::PodPtr& pod) {
        node.priority = std::min(node.priority, pod->pod.priority());
      });
    }
    lowest = std::min(lowest, node.priority);
  }
  return lowest;
}

}  // namespace outboard::cycle
