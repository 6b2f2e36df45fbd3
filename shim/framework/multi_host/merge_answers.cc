#include "shim/framework/multi_host/merge_answers.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/framework/rejections.h"

namespace outboard::framework {
namespace {

using v1beta1::FilterResponse;
using v1beta1::PluginStatus;
using v1beta1::PreFilterResponse;
using v1beta1::PreScoreResponse;
using v1beta1::ScoreResponse;

size_t PositionOf(const std::vector<std::string>& profile, const std::string& plugin) {
  return static_cast<size_t>(std::find(profile.begin(), profile.end(), plugin) - profile.begin());
}

// --- PreFilter

// Where a host's round stopped: no plugin behind it in the profile would have run.
size_t EndOf(const std::vector<std::string>& profile, const PreFilterResponse& answer) {
  if (!answer.has_rejection() || answer.rejection().code() == v1beta1::CODE_UNSCHEDULABLE) {
    return profile.size();
  }
  if (answer.has_node_names() && !answer.restricted_by().empty()) {
    return PositionOf(profile, *answer.restricted_by().rbegin());
  }
  return PositionOf(profile, answer.rejection().plugin());
}

// The message for node sets without a common node, as filter.proto defines it.
void FillConflict(std::vector<std::string> plugins, PreFilterResponse* merged) {
  merged->Clear();
  for (const std::string& plugin : plugins) {
    merged->add_rejected_by(plugin);
    merged->add_restricted_by(plugin);
  }
  merged->mutable_node_names();
  std::sort(plugins.begin(), plugins.end());
  PluginStatus* rejection = merged->mutable_rejection();
  rejection->set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  rejection->add_reasons(absl::StrCat("node(s) didn't satisfy plugin(s) [",
                                      absl::StrJoin(plugins, " "), "] simultaneously"));
}

// The nodes that all hosts' node sets contain.
struct CommonNodes {
  bool restricted = false;
  std::set<std::string> names;
  std::vector<std::string> plugins;  // in the profile's order
  size_t end = 0;                    // position of the last of them

  void Intersect(const std::vector<std::string>& profile, const PreFilterResponse& answer) {
    const std::set<std::string> others(answer.node_names().names().begin(),
                                       answer.node_names().names().end());
    if (!restricted) {
      names = others;
    } else {
      std::erase_if(names, [&](const std::string& name) { return !others.contains(name); });
    }
    restricted = true;
    plugins.insert(plugins.end(), answer.restricted_by().begin(), answer.restricted_by().end());
    std::sort(plugins.begin(), plugins.end(), [&](const std::string& a, const std::string& b) {
      return PositionOf(profile, a) < PositionOf(profile, b);
    });
    end = PositionOf(profile, plugins.back());
  }
};

// --- Filter

// A host's answer, read from the first node of the list to the last.
class FilterReader {
 public:
  struct Verdict {
    const PluginStatus* status = nullptr;  // null: feasible
    bool is_error = false;
    bool only_without_nominated = false;
    uint32_t reason = 0;
  };

  explicit FilterReader(FilterResponse answer) : answer_(std::move(answer)) {}

  bool Covers(uint32_t i) const {
    return i - first_ < answer_.processed() + (answer_.has_error() ? 1 : 0);
  }
  // From node i on.
  void Replace(FilterResponse answer, uint32_t i) {
    answer_ = std::move(answer);
    first_ = i;
    rejected_ = RejectedNodes();
    marked_ = 0;
  }
  // Once for each node, in order.
  Verdict Next(uint32_t i) {
    const uint32_t at = i - first_;
    Verdict verdict;
    if (at < answer_.processed()) {
      if ((answer_.feasible()[at / 8] >> (at % 8)) & 1) return verdict;
      verdict.only_without_nominated = IsMarked();
      verdict.reason = *rejected_.NextReason(answer_, at);
      verdict.status = &answer_.reasons(static_cast<int>(verdict.reason));
    } else {
      verdict.only_without_nominated = IsMarked();
      verdict.is_error = true;
      verdict.status = &answer_.error();
    }
    return verdict;
  }

 private:
  bool IsMarked() {
    const auto& marks = answer_.only_without_nominated();
    if (marked_ == marks.size() || marks[marked_] != rejected_.taken()) return false;
    ++marked_;
    return true;
  }

  FilterResponse answer_;
  uint32_t first_ = 0;  // the node that the answer begins with
  RejectedNodes rejected_;
  int marked_ = 0;
};

template <typename Response>
const PluginStatus* FirstError(const std::vector<std::string>& profile,
                               const std::vector<Response>& answers) {
  const PluginStatus* first = nullptr;
  size_t position = 0;
  for (const Response& answer : answers) {
    if (!answer.has_error()) continue;
    const size_t other = PositionOf(profile, answer.error().plugin());
    if (first != nullptr && position <= other) continue;
    first = &answer.error();
    position = other;
  }
  return first;
}

}  // namespace

PreFilterResponse MergePreFilter(const std::vector<std::string>& profile,
                                 std::vector<PreFilterResponse> answers) {
  // The host at which the round ends.
  size_t end = profile.size();
  const PreFilterResponse* ending = nullptr;
  for (const PreFilterResponse& answer : answers) {
    const size_t position = EndOf(profile, answer);
    if (position >= end) continue;
    end = position;
    ending = &answer;
  }
  std::vector<const PreFilterResponse*> restricting;
  for (const PreFilterResponse& answer : answers) {
    if (answer.has_node_names() && EndOf(profile, answer) == profile.size()) {
      restricting.push_back(&answer);
    }
  }
  const auto last_of = [&](const PreFilterResponse* answer) {
    return PositionOf(profile, *answer->restricted_by().rbegin());
  };
  std::sort(restricting.begin(), restricting.end(),
            [&](const auto* a, const auto* b) { return last_of(a) < last_of(b); });
  CommonNodes common;
  PreFilterResponse merged;
  for (const PreFilterResponse* answer : restricting) {
    common.Intersect(profile, *answer);
    if (!common.names.empty() || common.end >= end) continue;
    FillConflict(common.plugins, &merged);
    return merged;
  }
  if (ending != nullptr) {
    merged = *ending;
    if (merged.rejection().code() == v1beta1::CODE_ERROR) return merged;
    if (merged.has_node_names()) {
      // One host's own sets have no common node; the other hosts' sets are in the message too.
      common.Intersect(profile, merged);
      std::erase_if(common.plugins,
                    [&](const std::string& plugin) { return PositionOf(profile, plugin) > end; });
      if (common.plugins.size() > 1) FillConflict(common.plugins, &merged);
    }
  } else if (common.restricted) {
    for (const std::string& name : common.names) merged.mutable_node_names()->add_names(name);
    for (const std::string& plugin : common.plugins) merged.add_restricted_by(plugin);
  }
  // Rejections that end nothing: the last is returned, and all their plugins' events may help.
  size_t last = 0;
  for (const PreFilterResponse& answer : answers) {
    if (&answer == ending || !answer.has_rejection()) continue;
    for (const std::string& plugin : answer.rejected_by()) {
      if (PositionOf(profile, plugin) < end) merged.add_rejected_by(plugin);
    }
    const size_t position = PositionOf(profile, answer.rejection().plugin());
    if (ending != nullptr || position >= end) continue;
    if (merged.has_rejection() && position < last) continue;
    *merged.mutable_rejection() = answer.rejection();
    last = position;
  }
  return merged;
}

absl::StatusOr<FilterResponse> MergeFilter(const std::vector<std::string>& profile,
                                           std::vector<FilterResponse> answers, uint32_t num_nodes,
                                           uint32_t num_to_find, MoreVerdicts more) {
  std::vector<FilterReader> readers(std::make_move_iterator(answers.begin()),
                                    std::make_move_iterator(answers.end()));
  FilterResponse merged;
  std::string bits((num_nodes + 7) / 8, '\0');
  std::vector<std::vector<int>> reasons(readers.size());  // by host and its number: ours, or -1
  uint32_t found = 0;
  uint32_t i = 0;
  for (; i < num_nodes; ++i) {
    FilterReader::Verdict verdict;
    size_t from = 0;
    std::tuple<bool, size_t> rank;
    for (size_t host = 0; host < readers.size(); ++host) {
      if (!readers[host].Covers(i)) {
        absl::StatusOr<FilterResponse> rest = more(host, i);
        if (!rest.ok()) return rest.status();
        readers[host].Replace(*std::move(rest), i);
        reasons[host].clear();
      }
      const FilterReader::Verdict other = readers[host].Next(i);
      if (other.status == nullptr) continue;
      const std::tuple<bool, size_t> other_rank(other.only_without_nominated,
                                                PositionOf(profile, other.status->plugin()));
      if (verdict.status != nullptr && rank <= other_rank) continue;
      verdict = other;
      from = host;
      rank = other_rank;
    }
    if (verdict.status == nullptr) {
      if (found == num_to_find) break;
      ++found;
      bits[i / 8] |= static_cast<char>(1 << (i % 8));
      continue;
    }
    if (verdict.only_without_nominated)
      merged.add_only_without_nominated(static_cast<uint32_t>(merged.rejected_size()));
    if (verdict.is_error) {
      *merged.mutable_error() = *verdict.status;
      break;
    }
    std::vector<int>& numbers = reasons[from];
    if (numbers.size() <= verdict.reason) numbers.resize(verdict.reason + 1, -1);
    if (numbers[verdict.reason] < 0) {
      numbers[verdict.reason] = merged.reasons_size();
      *merged.add_reasons() = *verdict.status;
    }
    merged.add_rejected(static_cast<uint32_t>(numbers[verdict.reason]));
  }
  merged.set_processed(i);
  bits.resize((i + 7) / 8);
  merged.set_feasible(std::move(bits));
  return merged;
}

PreScoreResponse MergePreScore(const std::vector<std::string>& profile,
                               const std::vector<PreScoreResponse>& answers) {
  PreScoreResponse merged;
  if (const PluginStatus* error = FirstError(profile, answers)) {
    *merged.mutable_error() = *error;
    return merged;
  }
  for (const PreScoreResponse& answer : answers) merged.MergeFrom(answer);
  return merged;
}

ScoreResponse MergeScore(const std::vector<WeightedPlugin>& profile,
                         std::vector<ScoreResponse> answers) {
  std::vector<std::string> names;
  for (const WeightedPlugin& plugin : profile) names.push_back(plugin.name);
  ScoreResponse merged;
  if (const PluginStatus* error = FirstError(names, answers)) {
    *merged.mutable_error() = *error;
    return merged;
  }
  for (const std::string& name : names) {
    for (ScoreResponse& answer : answers) {
      for (v1beta1::PluginScores& scores : *answer.mutable_plugins()) {
        if (scores.plugin() == name) *merged.add_plugins() = std::move(scores);
      }
    }
  }
  return merged;
}

}  // namespace outboard::framework
