#include "shim/extender/score_cache.h"

#include <utility>

namespace outboard::extender {
namespace {

// One kube-scheduler asks about one pod at a time, but there may be several schedulers.
constexpr size_t kMaxPods = 64;
// Prioritize follows at once. Older entries belong to a finished cycle.
constexpr absl::Duration kSameCycle = absl::Seconds(5);

}  // namespace

void ScoreCache::Keep(const NodesQuestion& question, const NodesAnswer& answer, absl::Time now) {
  Kept kept = {now, question.names, answer.scores};
  absl::MutexLock lock(&mutex_);
  if (!by_uid_.contains(question.pod.uid)) {
    uids_.push_back(question.pod.uid);
    if (uids_.size() > kMaxPods) {
      by_uid_.erase(uids_.front());
      uids_.pop_front();
    }
  }
  by_uid_[question.pod.uid] = std::move(kept);
}

std::optional<std::vector<int64_t>> ScoreCache::Take(const NodesQuestion& question,
                                                     absl::Time now) {
  Kept kept;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = by_uid_.find(question.pod.uid);
    if (found == by_uid_.end()) return std::nullopt;
    kept = std::move(found->second);
    by_uid_.erase(found);
    std::erase(uids_, question.pod.uid);
  }
  if (now - kept.when > kSameCycle) return std::nullopt;
  // kube-scheduler asks about nodes that passed, in the order of Filter's answer.
  std::vector<int64_t> scores;
  scores.reserve(question.names.size());
  size_t at = 0;
  for (const std::string& name : question.names) {
    while (at < kept.names.size() && kept.names[at] != name) ++at;
    if (at == kept.names.size()) return std::nullopt;
    scores.push_back(kept.scores[at]);
  }
  return scores;
}

}  // namespace outboard::extender
