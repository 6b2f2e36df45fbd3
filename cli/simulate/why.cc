#include "cli/simulate/why.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace outboard::simulate {
namespace {

// Longer lists say how many more there are.
constexpr size_t kVictimsShown = 3;
// Plugins that are named as those that decided between two nodes.
constexpr size_t kPluginsNamed = 2;

// --- Texts that differ only in numbers

// Stands for a number in a template; no text contains it.
constexpr char kNumber = '\x01';

// The length of the number at `at`, with the decimals; 0: none. A number stands alone, at most with
// a unit: `4`, `8GB`, not `node-7` or `10.0.0.1`.
size_t NumberAt(absl::string_view text, size_t at) {
  if (at > 0 && text[at - 1] != ' ' && text[at - 1] != '(') return 0;
  size_t end = at;
  while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  if (end == at) return 0;
  if (end + 1 < text.size() && text[end] == '.' && absl::ascii_isdigit(text[end + 1])) {
    for (++end; end < text.size() && absl::ascii_isdigit(text[end]);) ++end;
  }
  size_t after = end;
  while (after < text.size() && absl::ascii_isalpha(text[after])) ++after;
  const bool ends = after == text.size() || absl::StrContains(" ,.;:)%", text[after]);
  const bool is_dotted =
      after + 1 < text.size() && text[after] == '.' && !absl::ascii_isspace(text[after + 1]);
  return ends && !is_dotted && after - end <= 3 ? end - at : 0;
}

struct Template {
  std::string text;
  std::vector<std::string> numbers;
};

Template TemplateOf(const std::string& text) {
  Template result;
  for (size_t i = 0; i < text.size();) {
    const size_t length = NumberAt(text, i);
    if (length == 0) {
      result.text.push_back(text[i++]);
      continue;
    }
    result.text.push_back(kNumber);
    result.numbers.push_back(text.substr(i, length));
    i += length;
  }
  return result;
}

double ValueOf(const std::string& number) {
  double value = 0;
  return absl::SimpleAtod(number, &value) ? value : 0;
}

std::string TextOf(const std::string& text, const std::vector<std::string>& least,
                   const std::vector<std::string>& most) {
  std::string result;
  size_t next = 0;
  for (const char c : text) {
    if (c != kNumber) {
      result.push_back(c);
      continue;
    }
    result += least[next];
    if (most[next] != least[next]) absl::StrAppend(&result, " to ", most[next]);
    ++next;
  }
  return result;
}

// --- Nodes

// A reason behind a number of nodes: kube-scheduler's `node(s) had …` begins in the middle.
std::string AfterCount(const std::string& reason) {
  return std::string(absl::StripPrefix(reason, "node(s) "));
}

std::string CountedReasons(const CountedTexts& reasons) {
  std::vector<std::string> parts;
  for (const auto& [count, reason] : JoinLikeTexts(reasons))
    parts.push_back(absl::StrCat(count, " ", AfterCount(reason)));
  return absl::StrJoin(parts, ", ");
}

CountedTexts Counted(const std::map<std::string, uint32_t>& reasons) {
  CountedTexts counted;
  for (const auto& [reason, count] : reasons) counted.emplace_back(count, reason);
  return counted;
}

// How many nodes rejected the pod for each reason.
CountedTexts RejectionsOf(const AttemptReport& report) {
  std::map<std::string, uint32_t> reasons;
  for (const auto& [node, verdict] : report.filter) {
    for (const std::string& reason : verdict.reasons) ++reasons[reason];
  }
  return Counted(reasons);
}

// A message of PreFilter may end with what the nodes said: `…; 1 x, 2 y`.
struct PreFilterParts {
  std::string head;
  CountedTexts nodes;
};

PreFilterParts PartsOf(const std::string& message) {
  const size_t at = message.rfind("; ");
  if (at == std::string::npos) return {message, {}};
  PreFilterParts parts = {message.substr(0, at), ParseCountedTexts(message.substr(at + 2))};
  if (parts.nodes.empty()) parts.head = message;
  return parts;
}

// --- With a node

// Why the node had more points than the next one.
std::string Against(const diagnostics::NodeScores& best, const diagnostics::NodeScores& next) {
  std::vector<std::pair<int64_t, std::string>> advantages;
  for (const auto& [plugin, score] : best.plugins) {
    const auto other = next.plugins.find(plugin);
    const int64_t theirs = other == next.plugins.end() ? 0 : other->second;
    if (score > theirs)
      advantages.emplace_back(score - theirs,
                              absl::StrCat(plugin, " ", score, " against ", theirs));
  }
  std::stable_sort(advantages.begin(), advantages.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  // Those that make up most of the difference; others may have preferred the next node.
  std::vector<std::string> decided;
  int64_t covered = 0;
  for (const auto& [advantage, text] : advantages) {
    if (decided.size() == kPluginsNamed || 4 * covered >= 3 * (best.total - next.total)) break;
    decided.push_back(text);
    covered += advantage;
  }
  return absl::StrJoin(decided, ", ");
}

std::string WhyScored(const AttemptReport& report, const diagnostics::NodeScores& best) {
  const std::string* next = nullptr;
  size_t equal = 0;
  for (const auto& [node, scores] : report.scores) {
    if (node == report.node) continue;
    if (scores.total == best.total) ++equal;
    if (next == nullptr || scores.total > report.scores.at(*next).total) next = &node;
  }
  if (next == nullptr) return absl::StrCat(best.total);
  if (equal > 1) return absl::StrCat(best.total, ", tied with ", equal, " other nodes");
  if (equal == 1) return absl::StrCat(best.total, ", tied with ", *next);
  const diagnostics::NodeScores& other = report.scores.at(*next);
  return absl::StrCat(best.total, ", next ", *next, " ", other.total, ": ", Against(best, other));
}

std::string WhyHere(const AttemptReport& report) {
  const auto scores = report.scores.find(report.node);
  const std::string scored = scores == report.scores.end() ? "" : WhyScored(report, scores->second);
  if (report.group_pods > 0) {
    return absl::StrCat("placed with its group of ", report.group_pods, " in one pass",
                        scored.empty() ? "" : absl::StrCat("; ", scored));
  }
  if (!scored.empty()) return scored;
  if (report.was_nominated) return "the node that was nominated for it";
  if (report.nodes == 1) return "the only node";
  // Without score plugins the search ends at the first node.
  if (report.filter.size() + 1 < report.nodes) return "the first node that fits";
  return absl::StrCat("only this node fits; of the others: ", CountedReasons(RejectionsOf(report)));
}

// --- Without a node

bool IsAboutVictims(const std::string& reason) {
  return reason == "Preemption is not helpful for scheduling" ||
         reason == "No preemption victims found for incoming pod";
}

// Why preemption does not help, if that is more than a matter of course.
std::string WhyNoPreemption(const AttemptReport& report) {
  const std::string begin = "preemption: ";
  const size_t at = report.post_filter_message.find(begin);
  if (at == std::string::npos) return "";
  const std::string text(
      absl::StripSuffix(report.post_filter_message.substr(at + begin.size()), "."));
  const std::string before_list = " nodes are available: ";
  const size_t list = text.find(before_list);
  if (list == std::string::npos) {
    if (text == "not eligible due to preemptionPolicy=Never")
      return "; may not preempt: preemptionPolicy Never";
    return absl::StrCat("; preemption: ", text);
  }
  const CountedTexts reasons = ParseCountedTexts(text.substr(list + before_list.size()));
  const bool is_usual =
      !reasons.empty() && std::all_of(reasons.begin(), reasons.end(), [](const auto& reason) {
        return IsAboutVictims(reason.second);
      });
  if (!is_usual) return absl::StrCat("; preemption: ", text);
  const bool lacks_victims = std::any_of(reasons.begin(), reasons.end(), [](const auto& reason) {
    return absl::StartsWith(reason.second, "No ");
  });
  return lacks_victims ? "; no pods that it could preempt" : "";
}

std::string Victims(const AttemptReport& report) {
  std::vector<std::string> names = report.victims;
  const size_t more = names.size() > kVictimsShown + 1 ? names.size() - kVictimsShown : 0;
  if (more > 0) names.resize(kVictimsShown);
  return absl::StrCat(absl::StrJoin(names, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

// The reason in the message of a pod that lost its node again.
std::string ReasonOfLoss(const AttemptReport& report) {
  absl::string_view text = report.message;
  if (absl::ConsumePrefix(&text, "0/1 nodes are available: 1 ")) absl::ConsumeSuffix(&text, ".");
  return std::string(text);
}

std::string WhyNoNode(const AttemptReport& report) {
  if (!report.reasons.empty())
    return absl::StrCat("no node of ", report.nodes, ": ", CountedReasons(Counted(report.reasons)));
  if (report.pre_filter_message.empty()) return report.message;
  const PreFilterParts parts = PartsOf(report.pre_filter_message);
  return parts.nodes.empty() ? parts.head
                             : absl::StrCat(parts.head, "; ", CountedReasons(parts.nodes));
}

}  // namespace

CountedTexts JoinLikeTexts(const CountedTexts& texts) {
  struct Joined {
    size_t count = 0;
    std::vector<std::string> least;
    std::vector<std::string> most;
  };
  std::map<std::string, Joined> by_template;
  for (const auto& [count, text] : texts) {
    const Template form = TemplateOf(text);
    const auto [found, is_new] = by_template.try_emplace(form.text);
    Joined& joined = found->second;
    joined.count += count;
    if (is_new) joined.least = joined.most = form.numbers;
    for (size_t i = 0; i < form.numbers.size(); ++i) {
      if (ValueOf(form.numbers[i]) < ValueOf(joined.least[i])) joined.least[i] = form.numbers[i];
      if (ValueOf(form.numbers[i]) > ValueOf(joined.most[i])) joined.most[i] = form.numbers[i];
    }
  }
  CountedTexts result;
  for (const auto& [form, joined] : by_template)
    result.emplace_back(joined.count, TextOf(form, joined.least, joined.most));
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return result;
}

CountedTexts ParseCountedTexts(const std::string& text) {
  CountedTexts texts;
  size_t begin = 0;
  while (begin < text.size()) {
    // The next one begins after `, NUMBER `.
    size_t end = begin;
    size_t next = std::string::npos;
    while ((end = text.find(", ", end)) != std::string::npos) {
      size_t digits = end + 2;
      while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
      if (digits > end + 2 && digits < text.size() && text[digits] == ' ') {
        next = end + 2;
        break;
      }
      end += 2;
    }
    const std::string part = text.substr(begin, end == std::string::npos ? end : end - begin);
    const size_t space = part.find(' ');
    size_t count = 0;
    if (space == std::string::npos || !absl::SimpleAtoi(part.substr(0, space), &count)) return {};
    texts.emplace_back(count, part.substr(space + 1));
    if (next == std::string::npos) break;
    begin = next;
  }
  return texts;
}

namespace {

// Why the pod has no node, without numbers of nodes.
std::vector<std::string> ReasonsOf(const AttemptReport& report) {
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : report.reasons) reasons.push_back(reason);
  if (!reasons.empty()) return reasons;
  if (!report.pre_filter_message.empty()) return {PartsOf(report.pre_filter_message).head};
  return {report.lost_node.empty() ? report.message : ReasonOfLoss(report)};
}

}  // namespace

CountedTexts PodsByReason(const std::vector<const AttemptReport*>& pods) {
  CountedTexts reasons;
  for (const AttemptReport* pod : pods) {
    std::set<std::string> seen;
    // Reasons that differ only in numbers count once for the pod.
    for (const std::string& reason : ReasonsOf(*pod))
      reasons.emplace_back(seen.insert(TemplateOf(reason).text).second ? 1 : 0, reason);
  }
  return JoinLikeTexts(reasons);
}

std::string Why(const AttemptReport& report) {
  if (report.result == kScheduled) return WhyHere(report);
  if (report.result == kPreempting && !report.leader.empty())
    return absl::StrCat("its group preempts, see ", report.leader, "; ", WhyNoNode(report));
  if (report.result == kPreempting)
    return absl::StrCat("preempts ", Victims(report), "; ", WhyNoNode(report));
  if (!report.lost_node.empty())
    return absl::StrCat("had ", report.lost_node, ", then: ", ReasonOfLoss(report));
  if (report.result == kUnschedulable)
    return absl::StrCat(WhyNoNode(report), WhyNoPreemption(report));
  return report.message;
}

}  // namespace outboard::simulate
