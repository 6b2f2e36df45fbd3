#include "shim/extender/extender_handler.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace outboard::extender {
namespace {

using cache::ClusterState;
using framework::NodeEvaluation;

// The server's threads bound the waiting requests; this is a second limit.
constexpr size_t kMaxWaiting = 1024;

// How long a bind waits for its pod: its other waits may be much longer.
constexpr absl::Duration kLongestPodWait = absl::Seconds(2);

}  // namespace

int64_t ExtenderScore(int64_t mean) {
  constexpr int64_t kStep = NodeEvaluation::kMaxScore / NodesAnswer::kMaxScore;
  return (mean + kStep / 2) / kStep;
}

void ExtenderHandler::WithPod(const PodName& pod, absl::Time give_up, absl::Time now, Work work) {
  kube::PodPtr known =
      pod.uid.empty() ? pods_->cluster().FindPodNamed(pod.key) : pods_->cluster().FindPod(pod.uid);
  if (known != nullptr) return work(std::move(known), now);
  if (waiting_.size() >= kMaxWaiting)
    return work(absl::ResourceExhaustedError("too many requests wait for unknown pods"), now);
  waiting_.push_back({pod, give_up, std::move(work)});
}

void ExtenderHandler::OnPod(const std::string& uid, absl::Time now) {
  if (waiting_.empty()) return;
  const kube::PodPtr pod = pods_->cluster().FindPod(uid);
  if (pod == nullptr) return;
  std::vector<Work> due;
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (waiting.pod.uid.empty() ? waiting.pod.key != pod->key() : waiting.pod.uid != uid)
      return false;
    due.push_back(std::move(waiting.work));
    return true;
  });
  for (const Work& work : due) work(pod, now);
}

void ExtenderHandler::Tick(absl::Time now) {
  pods_->Tick(now);
  std::vector<Waiting> late;
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (waiting.give_up > now) return false;
    late.push_back(std::move(waiting));
    return true;
  });
  for (const Waiting& waiting : late) {
    waiting.work(absl::NotFoundError(
                     absl::StrCat("pod ", waiting.pod.key, " (", waiting.pod.uid, ") is unknown")),
                 now);
  }
}

absl::Time ExtenderHandler::NextTick() const {
  absl::Time next = pods_->NextTick();
  for (const Waiting& waiting : waiting_) next = std::min(next, waiting.give_up);
  return next;
}

absl::StatusOr<NodesAnswer> ExtenderHandler::EvaluateKnown(const kube::PodObject& pod,
                                                           const NodesQuestion& question,
                                                           absl::Time now) {
  const ClusterState& cluster = pods_->cluster();
  if (const std::string node = cluster.NodeOf(pod.uid()); !node.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("pod ", pod.key(), " is already on node ", node));
  }
  NodesAnswer answer;
  answer.verdicts.assign(question.names.size(), NodesAnswer::kUnknown);
  answer.scores.assign(question.names.size(), 0);
  // Each node once, even if it is listed several times.
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
  NodeEvaluation evaluation;
  if (absl::Status evaluated = pods_->Evaluate(profile_, pod, slots, now, &evaluation);
      !evaluated.ok())
    return evaluated;
  for (size_t i = 0; i < question.names.size(); ++i) {
    if (slot_of_name[i] == ClusterState::kNoSlot) continue;
    const uint32_t position = position_of_slot[slot_of_name[i]];
    answer.verdicts[i] = evaluation.verdicts[position];
    answer.scores[i] = ExtenderScore(evaluation.scores[position]);
  }
  answer.reasons = std::move(evaluation.reasons);
  answer.scoring = std::move(evaluation.scoring);
  return answer;
}

void ExtenderHandler::Evaluate(std::shared_ptr<const NodesQuestion> question, absl::Time give_up,
                               absl::Time now, NodesReply reply) {
  const PodName pod = question->pod;
  WithPod(pod, give_up, now,
          [this, question = std::move(question), reply = std::move(reply)](
              const absl::StatusOr<kube::PodPtr>& known, absl::Time now) {
            if (!known.ok()) return reply(known.status());
            reply(EvaluateKnown(**known, *question, now));
          });
}

void ExtenderHandler::Preempt(std::shared_ptr<const PreemptionQuestion> question,
                              absl::Time give_up, absl::Time now, PreemptReply reply) {
  const PodName pod = question->pod;
  WithPod(pod, give_up, now,
          [this, question = std::move(question), reply = std::move(reply)](
              const absl::StatusOr<kube::PodPtr>& known, absl::Time now) {
            if (!known.ok()) return reply(known.status());
            const ClusterState& cluster = pods_->cluster();
            std::vector<scheduler::ExternallyScheduledPods::Evictions> evictions;
            std::vector<size_t> asked;
            absl::flat_hash_set<absl::string_view> seen;  // nodes and their pods
            for (size_t i = 0; i < question->nodes.size(); ++i) {
              const Victims& victims = question->nodes[i];
              scheduler::ExternallyScheduledPods::Evictions eviction;
              eviction.slot = cluster.SlotOf(victims.node);
              if (eviction.slot == ClusterState::kNoSlot || !seen.insert(victims.node).second)
                continue;
              for (const std::string& uid : victims.uids) {
                // A deleted or unknown pod uses no resources there.
                if (cluster.NodeOf(uid) == victims.node && seen.insert(uid).second)
                  eviction.victim_uids.push_back(uid);
              }
              evictions.push_back(std::move(eviction));
              asked.push_back(i);
            }
            std::vector<bool> fits;
            if (absl::Status evaluated =
                    pods_->EvaluateWithoutVictims(profile_, **known, evictions, now, &fits);
                !evaluated.ok()) {
              return reply(evaluated);
            }
            std::vector<bool> answer(question->nodes.size(), false);
            for (size_t i = 0; i < asked.size(); ++i) answer[asked[i]] = fits[i];
            reply(std::move(answer));
          });
}

void ExtenderHandler::Bind(std::shared_ptr<const BindingOrder> order, absl::Time give_up,
                           absl::Time now, BindReply reply) {
  const PodName pod = order->pod;
  WithPod(pod, std::min(give_up, now + kLongestPodWait), now,
          [this, order = std::move(order), give_up, reply = std::move(reply)](
              const absl::StatusOr<kube::PodPtr>& known, absl::Time now) {
            if (!known.ok()) return reply(known.status());
            pods_->Bind(profile_, *known, order->node, give_up, now, reply);
          });
}

void ExtenderHandler::Admit(std::shared_ptr<const BindReview> review, absl::Time give_up,
                            absl::Time now, AdmitReply reply) {
  const PodName pod = review->order.pod;
  WithPod(pod, give_up, now,
          [this, review = std::move(review), reply = std::move(reply)](
              const absl::StatusOr<kube::PodPtr>& known, absl::Time now) {
            if (!known.ok()) return reply(known.status());
            const absl::Status admitted =
                pods_->Admit(profile_, *known, review->order.node, review->dry_run, now);
            if (admitted.ok()) return reply("");
            if (absl::IsAborted(admitted)) return reply(std::string(admitted.message()));
            if (!absl::IsResourceExhausted(admitted)) return reply(admitted);
            reply(absl::StrCat("pod ", (*known)->key(), " does not fit on node ",
                               review->order.node, ": ", admitted.message()));
          });
}

}  // namespace outboard::extender
