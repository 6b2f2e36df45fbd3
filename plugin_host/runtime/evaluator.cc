#include "plugin_host/runtime/evaluator.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/runtime/cut_text.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::runtime {
namespace {

using sdk::PodRecord;
using sdk::Slot;
using sdk::Verdict;

constexpr int kMaxReasons = 16;
constexpr size_t kMaxReasonBytes = 1024;

// Kubernetes prints a list of plugins like a Go slice.
std::string GoList(const std::vector<std::string>& sorted) {
  return absl::StrCat("[", absl::StrJoin(sorted, " "), "]");
}

}  // namespace

void FillStatus(const std::string& plugin, const Verdict& verdict, v1beta1::PluginStatus* status) {
  status->set_plugin(plugin);
  status->set_code(verdict.code());
  for (const std::string& reason : verdict.reasons()) {
    if (status->reasons_size() == kMaxReasons) break;
    status->add_reasons(TextForPeople(reason, kMaxReasonBytes));
  }
}

void FillErrorStatus(const std::string& plugin, const std::string& message,
                     v1beta1::PluginStatus* status) {
  status->set_plugin(plugin);
  status->set_code(v1beta1::CODE_ERROR);
  status->add_reasons(TextForPeople(message, kMaxReasonBytes));
}

std::string ErrorText(const Verdict& verdict) { return absl::StrJoin(verdict.reasons(), ", "); }

sdk::Attempt Evaluator::View(AttemptRecord& attempt, uint32_t plugin, const PodRecord& pod,
                             absl::Time now) const {
  return sdk::Attempt(attempt.id, sdk::PodView(&pod), cache_->view(), now, &attempt.states[plugin]);
}

void Evaluator::PreFilter(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                          v1beta1::PreFilterResponse* response) {
  response->Clear();
  const Profile& profile = *attempt.profile;
  std::set<std::string> allowed;
  std::vector<std::string> restricting;
  bool restricted = false;
  PluginTimes::Evaluation times(&profile.times(), v1beta1::EXTENSION_POINT_PRE_FILTER,
                                sdk::LogName(sdk::PodView(&pod)));
  for (uint32_t index : profile.at(v1beta1::EXTENSION_POINT_PRE_FILTER)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    sdk::PreFilterResult result;
    const Verdict verdict = plugin.pre_filter->PreFilter(View(attempt, index, pod, now), &result);
    times.Ended(index);
    if (verdict.skip()) {
      attempt.skip_filter[index] = 1;
      continue;
    }
    if (verdict.rejected()) {
      response->mutable_rejection()->Clear();
      FillStatus(plugin.name, verdict, response->mutable_rejection());
      response->add_rejected_by(plugin.name);
      attempt.other_nodes = verdict.code();
      if (verdict.code() == v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE) return;
      continue;
    }
    if (!verdict.ok()) {
      response->Clear();
      FillErrorStatus(plugin.name,
                      absl::StrCat("running PreFilter plugin ", sdk::Quote(plugin.name), ": ",
                                   ErrorText(verdict)),
                      response->mutable_rejection());
      return;
    }
    if (!result.node_names) continue;
    restricting.push_back(plugin.name);
    if (!restricted) {
      allowed = *std::move(result.node_names);
      restricted = true;
    } else {
      std::erase_if(allowed, [&](const auto& name) { return !result.node_names->contains(name); });
    }
    if (allowed.empty()) {
      std::vector<std::string> sorted = restricting;
      std::sort(sorted.begin(), sorted.end());
      // As in kube-scheduler, this rejection has no single plugin, unless only one restricted the
      // nodes.
      attempt.other_nodes = v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
      response->mutable_rejection()->Clear();
      FillStatus(sorted.size() == 1 ? sorted[0] : "",
                 Verdict::Unresolvable(
                     sorted.size() == 1 ? absl::StrCat("node(s) didn't satisfy plugin ", sorted[0])
                                        : absl::StrCat("node(s) didn't satisfy plugin(s) ",
                                                       GoList(sorted), " simultaneously")),
                 response->mutable_rejection());
      for (const std::string& name : restricting) response->add_rejected_by(name);
      for (const std::string& name : restricting) response->add_restricted_by(name);
      response->mutable_node_names();
      return;
    }
  }
  if (!restricted) return;
  for (const std::string& name : allowed) response->mutable_node_names()->add_names(name);
  for (const std::string& name : restricting) response->add_restricted_by(name);
}

void Evaluator::PreScore(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                         absl::Span<const Slot> nodes, v1beta1::PreScoreResponse* response) {
  response->Clear();
  const Profile& profile = *attempt.profile;
  attempt.skip_score.assign(profile.plugins().size(), 0);
  PluginTimes::Evaluation times(&profile.times(), v1beta1::EXTENSION_POINT_PRE_SCORE,
                                sdk::LogName(sdk::PodView(&pod)));
  for (uint32_t index : profile.at(v1beta1::EXTENSION_POINT_PRE_SCORE)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    const Verdict verdict = plugin.pre_score->PreScore(View(attempt, index, pod, now), nodes);
    times.Ended(index);
    if (verdict.skip()) {
      attempt.skip_score[index] = 1;
      response->add_skipped(plugin.name);
    } else if (!verdict.ok()) {
      FillErrorStatus(plugin.name,
                      absl::StrCat("running PreScore plugin ", sdk::Quote(plugin.name), ": ",
                                   ErrorText(verdict)),
                      response->mutable_error());
      return;
    }
  }
}

namespace {

void FillTerms(const sdk::Attempt& attempt, const sdk::ScorePlugin& plugin,
               absl::Span<const Slot> nodes, v1beta1::PluginScores* out) {
  const auto explained = plugin.Explain(attempt, nodes);
  if (explained.size() != nodes.size()) return;
  for (const std::vector<sdk::ScoreTerm>& node : explained) {
    v1beta1::ScoreTerms* terms = out->add_terms();
    for (const sdk::ScoreTerm& term : node) {
      v1beta1::ScoreTerm* sent = terms->add_terms();
      sent->set_name(TextForPeople(term.name));
      sent->set_value(term.value);
    }
  }
}

}  // namespace

bool Evaluator::RunScores(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                          absl::Span<const Slot> nodes, NodeVerdictCache* verdict_cache,
                          v1beta1::ScoreResponse* response) {
  const Profile& profile = *attempt.profile;
  const size_t n = nodes.size();
  scored_ = profile.at(v1beta1::EXTENSION_POINT_SCORE);
  std::erase_if(scored_, [&](uint32_t plugin) { return attempt.skip_score[plugin] != 0; });
  scores_.resize(scored_.size() * n);
  auto row = [&](size_t i) { return absl::Span<int64_t>(scores_.data() + i * n, n); };
  PluginTimes::Evaluation times(&profile.times(), v1beta1::EXTENSION_POINT_SCORE,
                                sdk::LogName(sdk::PodView(&pod)));
  auto fail = [&](const ProfilePlugin& plugin, absl::string_view stage, const Verdict& verdict) {
    FillErrorStatus(plugin.name,
                    absl::StrCat("running ", stage, " plugins: plugin ", sdk::Quote(plugin.name),
                                 " failed with: ", ErrorText(verdict)),
                    response->mutable_error());
    return false;
  };
  // All score before any normalises, so that a scoring failure is reported first.
  for (size_t i = 0; i < scored_.size(); ++i) {
    const ProfilePlugin& plugin = profile.plugins()[scored_[i]];
    Verdict verdict;
    if (verdict_cache != nullptr && plugin.node_local) {
      verdict = ScoreUnknown(attempt, scored_[i], pod, now, nodes, row(i), verdict_cache);
    } else {
      std::fill_n(row(i).begin(), n, 0);
      verdict = plugin.score->Score(View(attempt, scored_[i], pod, now), nodes, row(i));
    }
    times.Ended(scored_[i]);
    if (!verdict.ok()) return fail(plugin, "Score", verdict);
  }
  for (size_t i = 0; i < scored_.size(); ++i) {
    const ProfilePlugin& plugin = profile.plugins()[scored_[i]];
    const Verdict verdict =
        plugin.score->Normalize(View(attempt, scored_[i], pod, now), nodes, row(i));
    times.Ended(scored_[i]);
    if (!verdict.ok()) return fail(plugin, "Normalize on Score", verdict);
  }
  for (size_t i = 0; i < scored_.size(); ++i) {
    const absl::Span<const int64_t> scores = row(i);
    // One check for all; searches the first wrong one only if there is one.
    uint64_t outside = 0;  // in the highest bit
    for (const int64_t score : scores) {
      outside |= static_cast<uint64_t>(score) | static_cast<uint64_t>(sdk::kMaxScore - score);
    }
    if (outside >> 63 == 0) continue;
    const auto wrong = std::find_if(scores.begin(), scores.end(), [](int64_t score) {
      return score < 0 || score > sdk::kMaxScore;
    });
    const std::string& name = profile.plugins()[scored_[i]].name;
    FillErrorStatus(
        name,
        absl::StrCat("applying score defaultWeights on Score plugins: plugin ", sdk::Quote(name),
                     " returns an invalid score ", *wrong, ", it should in the range of [0, ",
                     sdk::kMaxScore, "] after normalizing"),
        response->mutable_error());
    return false;
  }
  return true;
}

void Evaluator::Score(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                      absl::Span<const Slot> nodes, bool explain,
                      v1beta1::ScoreResponse* response) {
  response->Clear();
  if (RunScores(attempt, pod, now, nodes, /*verdict_cache=*/nullptr, response))
    WriteScores(attempt, pod, now, nodes, explain, response);
}

void Evaluator::WriteScores(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                            absl::Span<const Slot> nodes, bool explain,
                            v1beta1::ScoreResponse* response) {
  const Profile& profile = *attempt.profile;
  const size_t n = nodes.size();
  for (size_t i = 0; i < scored_.size(); ++i) {
    const ProfilePlugin& plugin = profile.plugins()[scored_[i]];
    v1beta1::PluginScores* out = response->add_plugins();
    out->set_plugin(plugin.name);
    std::string& bytes = *out->mutable_scores();
    bytes.resize(n);
    const int64_t* const scores = scores_.data() + i * n;
    // Bytes may alias anything, which would prevent vectorisation.
    char* const __restrict packed = bytes.data();
    for (size_t k = 0; k < n; ++k) packed[k] = static_cast<char>(scores[k]);
    tie_keys_.resize(n);
    if (plugin.score->TieKeys(View(attempt, scored_[i], pod, now), nodes,
                              absl::Span<int64_t>(tie_keys_))) {
      out->mutable_tie_keys()->Add(tie_keys_.begin(), tie_keys_.end());
    }
    if (explain) FillTerms(View(attempt, scored_[i], pod, now), *plugin.score, nodes, out);
  }
}

size_t Evaluator::SelectNode(const AttemptRecord& attempt, size_t num_nodes) {
  const Profile& profile = *attempt.profile;
  totals_.assign(num_nodes, 0);
  int64_t* const __restrict totals = totals_.data();
  const auto& plugins = profile.at(v1beta1::EXTENSION_POINT_SCORE);
  for (size_t i = 0; i < scored_.size(); ++i) {
    const auto at = std::find(plugins.begin(), plugins.end(), scored_[i]) - plugins.begin();
    const int64_t weight = profile.score_weights()[static_cast<size_t>(at)];
    const int64_t* const scores = scores_.data() + i * num_nodes;
    if (weight == 1) {  // Sums are vectorised, 64-bit products are not.
      for (size_t k = 0; k < num_nodes; ++k) totals[k] += scores[k];
    } else {
      for (size_t k = 0; k < num_nodes; ++k) totals[k] += weight * scores[k];
    }
  }
  const int64_t best = *std::max_element(totals_.begin(), totals_.end());
  // As the shim's (select_node.h), so that batches get the same nodes as single pods: a heap of
  // candidates, of which the first best in preorder wins.
  std::vector<size_t> pending = {0};
  while (!pending.empty()) {
    const size_t i = pending.back();
    pending.pop_back();
    if (i >= num_nodes) continue;
    if (totals_[i] == best) return i;
    pending.push_back(2 * i + 2);
    pending.push_back(2 * i + 1);
  }
  return 0;
}

Evaluator::Choice Evaluator::Choose(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                                    absl::Span<const Slot> nodes, const SearchOptions& options,
                                    v1beta1::FilterResponse* filter) {
  Filter(attempt, pod, now, nodes, options, filter, &feasible_);
  Choice choice;
  choice.processed = filter->processed();
  if (filter->has_error()) {
    choice.error = absl::StrJoin(filter->error().reasons(), ", ");
    return choice;
  }
  ChooseAmongFeasible(attempt, pod, now, /*verdict_cache=*/nullptr, &choice);
  return choice;
}

void Evaluator::ChooseAmongFeasible(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                                    NodeVerdictCache* verdict_cache, Choice* choice) {
  choice->feasible = static_cast<uint32_t>(feasible_.size());
  if (feasible_.empty()) return;
  size_t index = 0;
  if (feasible_.size() > 1 && !attempt.profile->at(v1beta1::EXTENSION_POINT_SCORE).empty()) {
    PreScore(attempt, pod, now, feasible_, &pre_score_);
    score_.Clear();
    if (pre_score_.has_error() ||
        !RunScores(attempt, pod, now, feasible_, verdict_cache, &score_)) {
      const auto& error = pre_score_.has_error() ? pre_score_.error() : score_.error();
      choice->error = absl::StrJoin(error.reasons(), ", ");
      return;
    }
    index = SelectNode(attempt, feasible_.size());
    choice->scored = true;
  }
  choice->slot = feasible_[index];
}

std::unique_ptr<v1beta1::PlannedPlacement> Evaluator::Explain(AttemptRecord& attempt,
                                                              const PodRecord& pod,
                                                              absl::Time now) {
  auto scores = std::make_unique<v1beta1::PlannedPlacement>();
  scores->mutable_scored()->mutable_slots()->Add(feasible_.begin(), feasible_.end());
  WriteScores(attempt, pod, now, feasible_, /*explain=*/true, scores->mutable_score());
  return scores;
}

}  // namespace outboard::runtime
