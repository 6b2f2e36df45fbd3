#include "shim/hosts/shadow.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/short_names.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/rejections.h"
#include "shim/framework/select_node.h"

namespace outboard::hosts {
namespace {

using google::protobuf::util::MessageDifferencer;
using v1beta1::CycleEvaluation;
using v1beta1::FilterResponse;
using v1beta1::PluginStatus;

constexpr size_t kMaxExamples = 10;

template <typename Response>
const PluginStatus* ErrorOf(const Response& response) {
  return response.has_error() ? &response.error() : nullptr;
}

std::string Words(const PluginStatus* verdict, absl::string_view none) {
  if (verdict == nullptr) return std::string(none);
  return absl::StrCat(ShortName(verdict->code()), " by ", verdict->plugin(), " (",
                      absl::StrJoin(verdict->reasons(), ", "), ")");
}

// The verdict on each node, null if it is feasible.
std::vector<const PluginStatus*> Verdicts(const FilterResponse& filter) {
  std::vector<const PluginStatus*> verdicts(filter.processed(), nullptr);
  framework::RejectedNodes rejected;
  for (uint32_t i = 0; i < filter.processed(); ++i) {
    if ((filter.feasible()[i / 8] >> (i % 8) & 1) != 0) continue;
    verdicts[i] = &filter.reasons(static_cast<int>(*rejected.NextReason(filter, i)));
  }
  return verdicts;
}

class Comparison {
 public:
  Comparison(const ShadowCycle& served, const CycleEvaluation& shadow, ShadowReport* report)
      : served_(served), shadow_(shadow), report_(*report) {}

  absl::Status Run();

 private:
  void Example(const std::string& text) {
    if (report_.examples.size() < kMaxExamples)
      report_.examples.push_back(absl::StrCat("pod ", served_.pod, ", ", text));
  }
  // Of verdicts and failures; null: none, shown as `none`.
  bool AreSame(const PluginStatus* old, const PluginStatus* now);
  void Differ(const std::string& where, const PluginStatus* old, const PluginStatus* now,
              absl::string_view none);
  void CompareVerdict(const std::string& where, const PluginStatus* old, const PluginStatus* now) {
    if (!AreSame(old, now)) Differ(where, old, now, "success");
  }
  // False if the two leave different nodes.
  bool CompareRestrictions();
  absl::Status CompareFilter();
  absl::Status CompareScores();
  void ComparePlacement();
  // The node that the answers select; empty: none; nullopt: unknown.
  std::optional<std::string> Place() const;

  const ShadowCycle& served_;
  const CycleEvaluation& shadow_;
  ShadowReport& report_;
  std::map<std::pair<const PluginStatus*, const PluginStatus*>, bool> same_;
  // Of the shadow: the feasible nodes of its sample, and the score sums of `scored_`.
  std::vector<std::string> feasible_;
  std::vector<std::string> scored_;
  std::vector<int64_t> totals_;
};

bool Comparison::AreSame(const PluginStatus* old, const PluginStatus* now) {
  if (old == nullptr || now == nullptr) return old == now;
  // Thousands of nodes have few distinct verdicts.
  const auto [known, is_new] = same_.try_emplace({old, now}, false);
  if (is_new) known->second = MessageDifferencer::Equals(*old, *now);
  return known->second;
}

void Comparison::Differ(const std::string& where, const PluginStatus* old, const PluginStatus* now,
                        absl::string_view none) {
  ++report_.plugins[(now != nullptr ? now : old)->plugin()].verdicts;
  Example(absl::StrCat(where, ": ", Words(old, none), " → ", Words(now, none)));
}

bool Comparison::CompareRestrictions() {
  const v1beta1::PreFilterResponse& before = served_.answers.pre_filter();
  const v1beta1::PreFilterResponse& after = shadow_.pre_filter();
  if (before.has_node_names() == after.has_node_names() &&
      std::equal(before.node_names().names().begin(), before.node_names().names().end(),
                 after.node_names().names().begin(), after.node_names().names().end())) {
    return true;
  }
  std::set<std::string> plugins(before.restricted_by().begin(), before.restricted_by().end());
  plugins.insert(after.restricted_by().begin(), after.restricted_by().end());
  for (const std::string& plugin : plugins) ++report_.plugins[plugin].verdicts;
  Example("PreFilter selects other nodes");
  return false;
}

absl::Status Comparison::CompareFilter() {
  const FilterResponse& filter = shadow_.filter();
  std::vector<uint32_t> feasible;
  absl::Status checked =
      framework::CheckFilter(filter, served_.num_nodes, served_.num_to_find, &feasible);
  checked.Update(framework::CheckNames(filter, served_.own.filter_plugins));
  if (!checked.ok()) return checked;
  for (const uint32_t position : feasible) {
    if (feasible_.size() < served_.sample) feasible_.push_back(served_.NodeAt(position));
  }
  const std::vector<const PluginStatus*> before = Verdicts(served_.answers.filter());
  const std::vector<const PluginStatus*> after = Verdicts(filter);
  // An instance that finds more feasible nodes ends its search earlier.
  const uint32_t both = static_cast<uint32_t>(std::min(before.size(), after.size()));
  for (uint32_t i = 0; i < both; ++i) {
    if (!AreSame(before[i], after[i]))
      Differ(absl::StrCat("node ", served_.NodeAt(i)), before[i], after[i], "feasible");
  }
  CompareVerdict("Filter", ErrorOf(served_.answers.filter()), ErrorOf(filter));
  return absl::OkStatus();
}

absl::Status Comparison::CompareScores() {
  const v1beta1::ScoreResponse& score = shadow_.score();
  absl::Status checked = framework::CheckPreScore(shadow_.pre_score());
  if (!checked.ok()) return checked;
  CompareVerdict("PreScore", ErrorOf(served_.answers.pre_score()), ErrorOf(shadow_.pre_score()));
  if (shadow_.pre_score().has_error() || !served_.asks_score) return absl::OkStatus();
  scored_ = served_.is_fused ? feasible_ : served_.scored;
  checked = framework::CheckScores(score, static_cast<uint32_t>(scored_.size()),
                                   served_.own.score_plugins, &totals_);
  if (!checked.ok()) return checked;
  CompareVerdict("Score", ErrorOf(served_.answers.score()), ErrorOf(score));
  if (scored_ != served_.scored) return absl::OkStatus();
  std::map<std::string, const std::string*> before;
  for (const auto& scores : served_.answers.score().plugins())
    before[scores.plugin()] = &scores.scores();
  for (const auto& scores : score.plugins()) {
    const auto old = before.find(scores.plugin());
    if (old == before.end()) continue;
    const std::string& a = *old->second;
    const std::string& b = scores.scores();
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i] == b[i]) continue;
      ++report_.plugins[scores.plugin()].scores;
      Example(absl::StrCat("node ", scored_[i], ": ", scores.plugin(), " scores ",
                           static_cast<int>(a[i]), " → ", static_cast<int>(b[i])));
    }
  }
  return absl::OkStatus();
}

std::optional<std::string> Comparison::Place() const {
  const std::string none;
  if (shadow_.pre_filter().has_rejection() || shadow_.filter().has_error()) return none;
  // If the list ends before the search would have, the remaining nodes are unknown.
  if (!served_.is_whole && feasible_.size() < served_.sample) return std::nullopt;
  if (feasible_.empty()) return none;
  if (feasible_.size() == 1 || served_.own.score_plugins.empty()) return feasible_.front();
  if (shadow_.pre_score().has_error() || shadow_.score().has_error()) return none;
  if (scored_ != feasible_ || totals_.size() != feasible_.size()) return std::nullopt;
  return feasible_[framework::SelectNode(totals_)];
}

void Comparison::ComparePlacement() {
  if (!served_.decides) return;
  const std::string before = served_.placed.value_or("");
  std::string after;
  if (const std::optional<std::string> place = Place()) {
    after = *place;
  } else if (std::find(served_.examined.begin(), served_.examined.end(), before) !=
                 served_.examined.end() &&
             std::find(feasible_.begin(), feasible_.end(), before) == feasible_.end()) {
    after = "another node";
  } else {
    return;
  }
  ++report_.compared_placements;
  if (before == after) return;
  ++report_.placements;
  const auto words = [](const std::string& node) { return node.empty() ? "no node" : node; };
  Example(absl::StrCat("placement: ", words(before), " → ", words(after)));
}

absl::Status Comparison::Run() {
  const v1beta1::PreFilterResponse& before = served_.answers.pre_filter();
  const v1beta1::PreFilterResponse& after = shadow_.pre_filter();
  absl::Status checked;
  if (!served_.is_fused) {  // Otherwise its message was checked as a whole.
    checked = framework::CheckPreFilter(after);
    checked.Update(framework::CheckNames(after, served_.own.pre_filter_plugins));
    if (!checked.ok()) return checked;
  }
  ++report_.cycles;
  CompareVerdict("PreFilter", before.has_rejection() ? &before.rejection() : nullptr,
                 after.has_rejection() ? &after.rejection() : nullptr);
  if (after.has_rejection()) {
    ComparePlacement();
    return absl::OkStatus();
  }
  // The nodes of its further questions are unknown.
  if (before.has_rejection()) return absl::OkStatus();
  const bool same_nodes = CompareRestrictions();
  if (!same_nodes && served_.is_fused) return absl::OkStatus();
  if (served_.asks_filter) {
    if (checked = CompareFilter(); !checked.ok()) return checked;
  } else {
    feasible_ = served_.scored;
  }
  const bool scores = served_.is_fused ? feasible_.size() > 1 && !served_.own.score_plugins.empty()
                                       : !served_.scored.empty();
  if (scores && !shadow_.filter().has_error()) {
    if (checked = CompareScores(); !checked.ok()) return checked;
  }
  if (same_nodes) ComparePlacement();
  return absl::OkStatus();
}

}  // namespace

std::string ShadowReport::Summary() const {
  std::string text = absl::StrCat(cycles, cycles == 1 ? " cycle" : " cycles");
  if (compared_placements < cycles)
    absl::StrAppend(&text, ", in ", compared_placements, " of which placements could be compared");
  if (!differs()) return absl::StrCat(text, ", no difference");
  if (compared_placements > 0)
    absl::StrAppend(&text, ", ", placements, " pods would get another node");
  for (const auto& [plugin, differences] : plugins) {
    absl::StrAppend(&text, "; ", plugin, ": ", differences.verdicts, " verdicts, ",
                    differences.scores, " scores");
  }
  if (!examples.empty()) absl::StrAppend(&text, "; for example ", examples.front());
  return text;
}

absl::Status CompareCycle(const ShadowCycle& served, const CycleEvaluation& shadow,
                          ShadowReport* report) {
  return Comparison(served, shadow, report).Run();
}

}  // namespace outboard::hosts
