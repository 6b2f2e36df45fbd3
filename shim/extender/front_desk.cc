#include "shim/extender/front_desk.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace outboard::extender {
namespace {

using cycle::ClusterState;
using cycle::NodeJudgement;

// kube-scheduler asks about one pod at a time; several schedulers may ask.
constexpr size_t kMaxKept = 64;
// kube-scheduler scores with the snapshot that it has filtered with, and so do we: what Filter
// learned holds for the Prioritize of the same cycle, whatever the watch has brought since. That
// comes at once; what is older than this was a cycle that has ended.
constexpr absl::Duration kSameCycle = absl::Seconds(5);
// What waits for its pod is bounded by the server's threads; this is a second line.
constexpr size_t kMaxWaiting = 1024;

}  // namespace

int64_t ExtenderScore(int64_t mean) {
  constexpr int64_t kStep = NodeJudgement::kMaxScore / NodesAnswer::kMaxScore;
  return (mean + kStep / 2) / kStep;
}

void FrontDesk::WithPod(const PodName& pod, absl::Time give_up, absl::Time now, Work work) {
  if (kube::PodPtr known = pods_->cluster().FindPod(pod.uid); known != nullptr)
    return work(std::move(known), now);
  if (waiting_.size() >= kMaxWaiting)
    return work(absl::ResourceExhaustedError("too many requests wait for their pods"), now);
  waiting_.push_back({pod, give_up, std::move(work)});
}

void FrontDesk::OnPod(const std::string& uid, absl::Time now) {
  if (waiting_.empty()) return;
  const kube::PodPtr pod = pods_->cluster().FindPod(uid);
  if (pod == nullptr) return;
  std::vector<Work> due;
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (waiting.pod.uid != uid) return false;
    due.push_back(std::move(waiting.work));
    return true;
  });
  for (const Work& work : due) work(pod, now);
}

void FrontDesk::Tick(absl::Time now) {
  std::vector<Waiting> late;
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (waiting.give_up > now) return false;
    late.push_back(std::move(waiting));
    return true;
  });
  for (const Waiting& waiting : late) {
    waiting.work(absl::NotFoundError(absl::StrCat("pod ", waiting.pod.key, " (", waiting.pod.uid,
                                                  ") has not been heard of")),
                 now);
  }
}

absl::Time FrontDesk::NextTick() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Waiting& waiting : waiting_) next = std::min(next, waiting.give_up);
  return next;
}

absl::StatusOr<NodesAnswer> FrontDesk::Judge(const kube::PodObject& pod,
                                             const NodesQuestion& question, absl::Time now) {
  const ClusterState& cluster = pods_->cluster();
  if (const std::string node = cluster.NodeOf(pod.uid()); !node.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("pod ", pod.key(), " is on node ", node, " already"));
  }
  NodesAnswer answer;
  answer.verdicts.assign(question.names.size(), NodesAnswer::kUnknown);
  answer.scores.assign(question.names.size(), 0);
  // Each node once, whatever is asked.
  constexpr uint32_t kNotAsked = UINT32_MAX;
  std::vector<uint32_t> position_of_slot(cluster.slot_limit(), kNotAsked);
  std::vector<uint32_t> slot_of_name(question.names.size(), ClusterState::kNoSlot);
  std::vector<uint32_t> slots;
  slots.reserve(question.names.size());
  for (size_t i = 0; i < question.names.size(); ++i) {
    const uint32_t slot = cluster.SlotOf(question.names[i]);
    if (slot == ClusterState::kNoSlot) continue;
    slot_of_name[i] = slot;
    if (position_of_slot[slot] != kNotAsked) continue;
    position_of_slot[slot] = static_cast<uint32_t>(slots.size());
    slots.push_back(slot);
  }
  ++judged_;
  NodeJudgement judgement;
  if (absl::Status judged = pods_->Judge(profile_, pod, slots, now, &judgement); !judged.ok())
    return judged;
  for (size_t i = 0; i < question.names.size(); ++i) {
    if (slot_of_name[i] == ClusterState::kNoSlot) continue;
    const uint32_t position = position_of_slot[slot_of_name[i]];
    answer.verdicts[i] = judgement.verdicts[position];
    answer.scores[i] = ExtenderScore(judgement.scores[position]);
  }
  answer.reasons = std::move(judgement.reasons);
  answer.scoring = std::move(judgement.scoring);
  return answer;
}

void FrontDesk::Keep(const std::string& uid, Kept kept) {
  if (!kept_.contains(uid)) {
    kept_order_.push_back(uid);
    if (kept_order_.size() > kMaxKept) {
      kept_.erase(kept_order_.front());
      kept_order_.pop_front();
    }
  }
  kept_[uid] = std::move(kept);
}

bool FrontDesk::Recall(const kube::PodObject& pod, const NodesQuestion& question, absl::Time now,
                       NodesAnswer* answer) {
  const auto found = kept_.find(pod.uid());
  if (found == kept_.end()) return false;
  const Kept kept = std::move(found->second);
  kept_.erase(found);
  std::erase(kept_order_, pod.uid());
  if (now - kept.when > kSameCycle) return false;
  // kube-scheduler asks about nodes that passed, in the order in which it was told them.
  const std::vector<std::string>& known = kept.question->names;
  answer->scores.reserve(question.names.size());
  size_t at = 0;
  for (const std::string& name : question.names) {
    while (at < known.size() && known[at] != name) ++at;
    if (at == known.size()) return false;
    answer->scores.push_back(kept.scores[at]);
  }
  return true;
}

void FrontDesk::Filter(std::shared_ptr<const NodesQuestion> question, absl::Time give_up,
                       absl::Time now, NodesReply reply) {
  const PodName pod = question->pod;
  WithPod(pod, give_up, now,
          [this, question = std::move(question), reply = std::move(reply)](
              const absl::StatusOr<kube::PodPtr>& known, absl::Time now) {
            if (!known.ok()) return reply(known.status());
            absl::StatusOr<NodesAnswer> answer = Judge(**known, *question, now);
            if (answer.ok() && answer->scoring.ok())
              Keep((*known)->uid(), {now, question, answer->scores});
            reply(std::move(answer));
          });
}

void FrontDesk::Prioritize(std::shared_ptr<const NodesQuestion> question, absl::Time give_up,
                           absl::Time now, NodesReply reply) {
  const PodName pod = question->pod;
  WithPod(pod, give_up, now,
          [this, question = std::move(question), reply = std::move(reply)](
              const absl::StatusOr<kube::PodPtr>& known, absl::Time now) {
            if (!known.ok()) return reply(known.status());
            NodesAnswer recalled;
            if (Recall(**known, *question, now, &recalled)) {
              ++reused_;
              return reply(std::move(recalled));
            }
            absl::StatusOr<NodesAnswer> answer = Judge(**known, *question, now);
            if (answer.ok() && !answer->scoring.ok()) return reply(answer->scoring);
            reply(std::move(answer));
          });
}

void FrontDesk::Preempt(std::shared_ptr<const PreemptionQuestion> question, absl::Time give_up,
                        absl::Time now, PreemptReply reply) {
  const PodName pod = question->pod;
  WithPod(pod, give_up, now,
          [this, question = std::move(question), reply = std::move(reply)](
              const absl::StatusOr<kube::PodPtr>& known, absl::Time now) {
            if (!known.ok()) return reply(known.status());
            const ClusterState& cluster = pods_->cluster();
            std::vector<cycle::ForeignPods::Evictions> evictions;
            std::vector<size_t> asked;
            absl::flat_hash_set<absl::string_view> seen;  // nodes, and pods that are on them
            for (size_t i = 0; i < question->nodes.size(); ++i) {
              const Victims& victims = question->nodes[i];
              cycle::ForeignPods::Evictions eviction;
              eviction.slot = cluster.SlotOf(victims.node);
              if (eviction.slot == ClusterState::kNoSlot || !seen.insert(victims.node).second)
                continue;
              for (const std::string& uid : victims.uids) {
                // One that has gone by now, or has not been heard of, takes no room there.
                if (cluster.NodeOf(uid) == victims.node && seen.insert(uid).second)
                  eviction.victim_uids.push_back(uid);
              }
              evictions.push_back(std::move(eviction));
              asked.push_back(i);
            }
            std::vector<bool> fits;
            if (absl::Status judged = pods_->JudgeVictims(profile_, **known, evictions, now, &fits);
                !judged.ok()) {
              return reply(judged);
            }
            std::vector<bool> answer(question->nodes.size(), false);
            for (size_t i = 0; i < asked.size(); ++i) answer[asked[i]] = fits[i];
            reply(std::move(answer));
          });
}

void FrontDesk::Bind(std::shared_ptr<const BindingOrder> order, absl::Time give_up, absl::Time now,
                     BindReply reply) {
  const PodName pod = order->pod;
  WithPod(pod, give_up, now,
          [this, order = std::move(order), reply = std::move(reply)](
              const absl::StatusOr<kube::PodPtr>& known, absl::Time now) {
            if (!known.ok()) return reply(known.status());
            pods_->Bind(profile_, *known, order->node, now, reply);
          });
}

}  // namespace outboard::extender
