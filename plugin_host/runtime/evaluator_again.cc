// Placing interchangeable pods one after another: evaluates only changed nodes.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "plugin_host/runtime/evaluator.h"

namespace outboard::runtime {

using sdk::PodRecord;
using sdk::Slot;
using sdk::Verdict;

Evaluator::Choice Evaluator::ChooseAgain(AttemptRecord& attempt, const PodRecord& pod,
                                         absl::Time now, absl::Span<const Slot> nodes,
                                         const SearchOptions& options,
                                         NodeVerdictCache* verdict_cache) {
  Choice choice;
  if (!SearchAgain(attempt, pod, now, nodes, options, verdict_cache, &choice.processed))
    return Choose(attempt, pod, now, nodes, options, &filter_);
  ChooseAmongFeasible(attempt, pod, now, verdict_cache, &choice);
  return choice;
}

bool Evaluator::SearchAgain(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                            absl::Span<const Slot> nodes, const SearchOptions& options,
                            NodeVerdictCache* verdict_cache, uint32_t* processed) {
  const Profile& profile = *attempt.profile;
  const std::vector<uint32_t>& filters = profile.at(v1beta1::EXTENSION_POINT_FILTER);
  const bool all_local = std::all_of(filters.begin(), filters.end(), [&](uint32_t index) {
    return attempt.skip_filter[index] != 0 || profile.plugins()[index].node_local;
  });
  if (!all_local || cache_->nominations() > 0) return false;
  feasible_.clear();
  verdicts_.Clear();
  any_nominated_ = false;
  verdict_cache->CatchUp(cache_->view().nodes());
  const auto n = static_cast<uint32_t>(nodes.size());
  if (n == 0) return true;
  PluginTimes::Evaluation times(&profile.times(), v1beta1::EXTENSION_POINT_FILTER,
                                sdk::LogName(sdk::PodView(&pod)));
  filter_times_ = &times;
  const absl::Cleanup ended = [this] { filter_times_ = nullptr; };
  const uint32_t wanted = FeasibleNodesToFind(n, options);
  const auto node = [slots = nodes.data(), n, start = options.start_offset % n](uint32_t i) {
    const uint32_t at = start + i;
    return slots[at < n ? at : at - n];
  };
  using CachedVerdict = NodeVerdictCache::CachedVerdict;
  const CachedVerdict* const verdicts = verdict_cache->OfFilter();
  // Evaluates the unknown ones of 64 nodes, because neighbours are probably unknown too; false if a
  // plugin fails.
  const auto evaluate_unknown = [&](uint32_t from) {
    strip_.size = 0;
    strip_.place = sdk::NodeBlock::kNoPlace;
    for (uint32_t i = from; i < std::min(n, from + 64); ++i) {
      if (verdicts[node(i)] == CachedVerdict::kUnknown) strip_.slots[strip_.size++] = node(i);
    }
    RunFilters(attempt, pod, now, /*stable=*/true, &strip_);
    for (int k = 0; k < strip_.size; ++k)
      verdict_cache->SetFeasible(strip_.slots[k], ((strip_.feasible[0] >> k) & 1) != 0);
    return strip_.failed[0] == 0;
  };
  feasible_.reserve(wanted);
  uint32_t i = 0;
  for (; i < n; ++i) {
    const Slot slot = node(i);
    if (verdicts[slot] == CachedVerdict::kUnknown && !evaluate_unknown(i)) return false;
    if (verdicts[slot] == CachedVerdict::kNotFeasible) continue;
    if (feasible_.size() == wanted) break;
    feasible_.push_back(slot);
  }
  *processed = i;
  return true;
}

Verdict Evaluator::ScoreUnknown(AttemptRecord& attempt, uint32_t plugin, const PodRecord& pod,
                                absl::Time now, absl::Span<const Slot> nodes,
                                absl::Span<int64_t> raw, NodeVerdictCache* verdict_cache) {
  verdict_cache->ScoresOf(plugin, nodes, raw, &unknown_);
  if (unknown_.empty()) return Verdict::Success();
  unknown_slots_.clear();
  for (const uint32_t i : unknown_) unknown_slots_.push_back(nodes[i]);
  unknown_scores_.assign(unknown_.size(), 0);
  const Verdict verdict = attempt.profile->plugins()[plugin].score->Score(
      View(attempt, plugin, pod, now), unknown_slots_, absl::MakeSpan(unknown_scores_));
  if (!verdict.ok()) return verdict;
  for (size_t k = 0; k < unknown_.size(); ++k) {
    raw[unknown_[k]] = unknown_scores_[k];
    verdict_cache->SetScore(plugin, unknown_slots_[k], unknown_scores_[k]);
  }
  return verdict;
}

}  // namespace outboard::runtime
