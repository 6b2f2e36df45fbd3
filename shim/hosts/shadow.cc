#include "shim/hosts/shadow.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/cycle/select_host.h"

namespace outboard::hosts {
namespace {

using google::protobuf::util::MessageDifferencer;
using v1alpha1::CycleResponse;
using v1alpha1::FilterResponse;
using v1alpha1::PluginStatus;

constexpr size_t kMaxExamples = 10;

std::string Words(const PluginStatus* verdict) {
  if (verdict == nullptr) return "feasible";
  return absl::StrCat(v1alpha1::Code_Name(verdict->code()), " by ", verdict->plugin(), " (",
                      absl::StrJoin(verdict->reasons(), ", "), ")");
}

// What is said of each node, null where it is feasible.
std::vector<const PluginStatus*> Verdicts(const FilterResponse& filter) {
  std::vector<const PluginStatus*> verdicts(filter.processed(), nullptr);
  int rejected = 0;
  for (uint32_t i = 0; i < filter.processed(); ++i) {
    if ((filter.feasible()[i / 8] >> (i % 8) & 1) != 0) continue;
    verdicts[i] = &filter.reasons(static_cast<int>(filter.rejected(rejected++)));
  }
  return verdicts;
}

class Comparison {
 public:
  Comparison(const ShadowCycle& served, const CycleResponse& shadow, ShadowReport* report)
      : served_(served), shadow_(shadow), report_(*report) {}

  absl::Status Run();

 private:
  void Example(const std::string& text) {
    if (report_.examples.size() < kMaxExamples)
      report_.examples.push_back(absl::StrCat("pod ", served_.pod, ", ", text));
  }
  std::string NodeName(uint32_t position) const {
    return position < served_.node_names.size() ? served_.node_names[position]
                                                : absl::StrCat("#", position);
  }
  // True if there is nothing more to compare.
  bool PreFilterEndsIt();
  void CompareFilter();
  void CompareScores(const std::vector<uint32_t>& feasible);
  // The position of the node that the answer comes to; none: no node.
  absl::StatusOr<std::optional<uint32_t>> Placement(const CycleResponse& response,
                                                    std::vector<uint32_t>* feasible) const;

  const ShadowCycle& served_;
  const CycleResponse& shadow_;
  ShadowReport& report_;
};

bool Comparison::PreFilterEndsIt() {
  const v1alpha1::PreFilterResponse& before = served_.response.pre_filter();
  const v1alpha1::PreFilterResponse& after = shadow_.pre_filter();
  const PluginStatus* const old = before.has_rejection() ? &before.rejection() : nullptr;
  const PluginStatus* const now = after.has_rejection() ? &after.rejection() : nullptr;
  const bool same = (old == nullptr) == (now == nullptr) &&
                    (old == nullptr || MessageDifferencer::Equals(*old, *now));
  if (!same) {
    ++report_.plugins[(now != nullptr ? now : old)->plugin()].verdicts;
    ++report_.placements;
    Example(absl::StrCat("PreFilter: ", Words(old), " → ", Words(now)));
    return true;
  }
  if (old != nullptr) return true;
  if (before.has_node_names() != after.has_node_names() ||
      !std::equal(before.node_names().names().begin(), before.node_names().names().end(),
                  after.node_names().names().begin(), after.node_names().names().end())) {
    std::vector<std::string> plugins(before.restricted_by().begin(), before.restricted_by().end());
    plugins.insert(plugins.end(), after.restricted_by().begin(), after.restricted_by().end());
    for (const std::string& plugin : plugins) ++report_.plugins[plugin].verdicts;
    Example("PreFilter leaves other nodes");
    return true;
  }
  return false;
}

void Comparison::CompareFilter() {
  const std::vector<const PluginStatus*> before = Verdicts(served_.response.filter());
  const std::vector<const PluginStatus*> after = Verdicts(shadow_.filter());
  // One that finds more feasible nodes ends its search earlier.
  const uint32_t both = static_cast<uint32_t>(std::min(before.size(), after.size()));
  for (uint32_t i = 0; i < both; ++i) {
    const PluginStatus* const old = before[i];
    const PluginStatus* const now = after[i];
    if (old == nullptr && now == nullptr) continue;
    if (old != nullptr && now != nullptr && MessageDifferencer::Equals(*old, *now)) continue;
    ++report_.plugins[(now != nullptr ? now : old)->plugin()].verdicts;
    Example(absl::StrCat("node ", NodeName(i), ": ", Words(old), " → ", Words(now)));
  }
}

void Comparison::CompareScores(const std::vector<uint32_t>& feasible) {
  std::map<std::string, const std::string*> before;
  for (const auto& scores : served_.response.score().plugins())
    before[scores.plugin()] = &scores.scores();
  for (const auto& scores : shadow_.score().plugins()) {
    const auto old = before.find(scores.plugin());
    if (old == before.end()) continue;
    const std::string& a = *old->second;
    const std::string& b = scores.scores();
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i] == b[i]) continue;
      ++report_.plugins[scores.plugin()].scores;
      Example(absl::StrCat("node ", NodeName(feasible[i]), ": ", scores.plugin(), " scores ",
                           static_cast<int>(a[i]), " → ", static_cast<int>(b[i])));
    }
  }
}

absl::StatusOr<std::optional<uint32_t>> Comparison::Placement(
    const CycleResponse& response, std::vector<uint32_t>* feasible) const {
  if (absl::Status checked = cycle::CheckFilter(response.filter(), served_.num_candidates,
                                                served_.num_to_find, feasible);
      !checked.ok()) {
    return checked;
  }
  if (response.filter().has_error() || feasible->empty()) return std::nullopt;
  if (feasible->size() == 1 || served_.score_plugins.empty()) return feasible->front();
  if (response.pre_score().has_error() || response.score().has_error()) return std::nullopt;
  std::vector<int64_t> totals;
  if (absl::Status checked =
          cycle::CheckScores(response.score(), static_cast<uint32_t>(feasible->size()),
                             served_.score_plugins, &totals);
      !checked.ok()) {
    return checked;
  }
  return (*feasible)[cycle::SelectHost(totals)];
}

absl::Status Comparison::Run() {
  if (absl::Status checked = cycle::CheckPreFilter(shadow_.pre_filter()); !checked.ok())
    return checked;
  ++report_.cycles;
  if (PreFilterEndsIt()) return absl::OkStatus();
  std::vector<uint32_t> before;
  std::vector<uint32_t> after;
  auto old = Placement(served_.response, &before);
  if (!old.ok()) return absl::OkStatus();  // The serving one's faults are seen elsewhere.
  auto now = Placement(shadow_, &after);
  if (!now.ok()) return now.status();
  CompareFilter();
  if (before == after) CompareScores(after);
  if (*old != *now) {
    ++report_.placements;
    const auto words = [this](const std::optional<uint32_t>& position) {
      return position.has_value() ? NodeName(*position) : std::string("no node");
    };
    Example(absl::StrCat("placement: ", words(*old), " → ", words(*now)));
  }
  return absl::OkStatus();
}

}  // namespace

ShadowCycle::ShadowCycle(const cycle::AnsweredCycle& answered)
    : attempt_id(answered.request.header().attempt_id()),
      pod(answered.pod.key()),
      score_plugins(answered.score_plugins),
      response(answered.response),
      num_candidates(answered.num_candidates),
      num_to_find(answered.num_to_find) {}

std::string ShadowReport::Summary() const {
  std::string text = absl::StrCat(cycles, cycles == 1 ? " cycle" : " cycles");
  if (!differs()) return absl::StrCat(text, ", no difference");
  absl::StrAppend(&text, ", ", placements, " pods would go elsewhere");
  for (const auto& [plugin, differences] : plugins) {
    absl::StrAppend(&text, "; ", plugin, ": ", differences.verdicts, " verdicts, ",
                    differences.scores, " scores");
  }
  if (!examples.empty()) absl::StrAppend(&text, "; for example ", examples.front());
  return text;
}

absl::Status CompareCycle(const ShadowCycle& served, const CycleResponse& shadow,
                          ShadowReport* report) {
  return Comparison(served, shadow, report).Run();
}

}  // namespace outboard::hosts
