#include "cli/inspect/explain_table.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::inspect {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kScoresShown = 10;

absl::StatusOr<Json> ParseAttempts(const std::string& text, const std::string& node) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json["attempts"].is_array())
    return absl::InternalError("this version does not understand the shim's answer");
  if (node.empty()) return json;
  bool known = false;
  for (Json& attempt : json["attempts"]) {
    for (const char* part : {"filter", "scores"}) {
      Json only = Json::object();
      if (attempt[part].contains(node)) {
        only[node] = attempt[part][node];
        known = true;
      }
      attempt[part] = std::move(only);
    }
    known = known || attempt["node"] == node;
  }
  if (!known) {
    return absl::NotFoundError(
        absl::StrCat("no attempt on record examined node \"", node,
                     "\": it does not exist, or the attempts found enough nodes before this one"));
  }
  return json;
}

// ` (3 x 100)`: a weighted score, if the weight is known and not 1.
std::string Factors(const Json& attempt, const std::string& plugin, int64_t score) {
  if (!attempt.contains("weights")) return "";
  const int64_t weight = attempt["weights"].value(plugin, int64_t{1});
  return weight <= 1 || score == 0 ? "" : absl::StrCat(" (", weight, " x ", score / weight, ")");
}

std::string Scores(const Json& attempt, const Json& scores) {
  std::vector<std::string> parts;
  for (const auto& [plugin, score] : scores["plugins"].items()) {
    const int64_t value = score.get<int64_t>();
    parts.push_back(absl::StrCat(plugin, " ", value, Factors(attempt, plugin, value)));
  }
  return absl::StrJoin(parts, ", ");
}

// When a running shim made the attempt; of a simulation, which attempt it was.
std::string TimeOf(const Json& attempt) {
  if (!attempt.contains("attempt")) return attempt.value("time", "");
  return absl::StrCat("attempt ", attempt.value("attempt", int64_t{0}), " at ",
                      attempt.value("time", 0.0), " s");
}

void AppendRejections(const Json& filter, size_t names_shown, std::string* out) {
  // Groups of nodes with the same reasons, the largest group first.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::string>> groups;
  for (const auto& [node, verdict] : filter.items()) {
    const std::vector<std::string> reasons = verdict["reasons"];
    groups[{verdict["code"], verdict["plugin"], absl::StrJoin(reasons, ", ")}].push_back(node);
  }
  std::vector<const decltype(groups)::value_type*> sorted;
  for (const auto& group : groups) sorted.push_back(&group);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->second.size() > b->second.size();
  });
  for (const auto* group : sorted) {
    const auto& [code, plugin, reason] = group->first;
    std::vector<std::string> names = group->second;
    const size_t count = names.size();
    if (count > names_shown) {
      names.resize(names_shown);
      names.push_back("…");
    }
    absl::StrAppend(out, "  rejected  ", count, count == 1 ? " node   " : " nodes  ",
                    plugin.empty() ? "PreFilter" : plugin, ": ", reason, " [", code, "]  (",
                    absl::StrJoin(names, ", "), ")\n");
  }
}

void AppendScores(const Json& attempt, const std::string& chosen, std::string* out) {
  const Json& scores = attempt["scores"];
  std::vector<std::pair<std::string, const Json*>> sorted;
  for (const auto& [node, value] : scores.items()) sorted.emplace_back(node, &value);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return (*a.second)["total"].template get<int64_t>() >
           (*b.second)["total"].template get<int64_t>();
  });
  size_t shown = 0;
  for (const auto& [node, value] : sorted) {
    // The chosen node is always shown, also behind others with the same score.
    if (shown >= kScoresShown && node != chosen) continue;
    ++shown;
    absl::StrAppend(out, node == chosen ? "  chosen    " : "  scored    ", node, "  ",
                    (*value)["total"].get<int64_t>(), " = ", Scores(attempt, *value), "\n");
  }
  if (shown < sorted.size())
    absl::StrAppend(out, "  …and ", sorted.size() - shown, " more nodes; -o json shows all\n");
}

}  // namespace

absl::StatusOr<std::string> OnlyNode(const std::string& json, const std::string& node) {
  if (node.empty()) return json;
  absl::StatusOr<Json> parsed = ParseAttempts(json, node);
  if (!parsed.ok()) return parsed.status();
  return parsed->dump() + "\n";
}

absl::StatusOr<std::string> ExplainTable(const std::string& json, const std::string& node,
                                         size_t names_shown) {
  absl::StatusOr<Json> parsed = ParseAttempts(json, node);
  if (!parsed.ok()) return parsed.status();
  std::string out;
  for (const Json& attempt : (*parsed)["attempts"]) {
    const std::string chosen = attempt.value("node", "");
    absl::StrAppend(&out, attempt.value("pod", ""), "  ", TimeOf(attempt), "  ",
                    attempt.value("profile", ""), "  ", attempt.value("result", ""),
                    chosen.empty() ? "" : absl::StrCat(" on ", chosen), "\n");
    if (attempt.contains("evaluatedNodes")) {
      absl::StrAppend(&out, "  ", attempt.value("nodes", int64_t{0}), " nodes, ",
                      attempt.value("evaluatedNodes", int64_t{0}), " evaluated, ",
                      attempt.value("feasibleNodes", int64_t{0}), " feasible");
      if (attempt.contains("snapshotVersion")) {
        absl::StrAppend(&out, "; snapshot ", attempt.value("snapshotVersion", int64_t{0}), ", ",
                        attempt.value("algorithmMicros", int64_t{0}), " µs");
      }
      out.push_back('\n');
    }
    if (const std::string why = attempt.value("why", "");
        !why.empty() && why != attempt.value("message", ""))
      absl::StrAppend(&out, "  ", why, "\n");
    if (attempt.contains("placedTogether"))
      absl::StrAppend(&out, "  placed together with other pods: no details of single nodes\n");
    if (const std::string message = attempt.value("message", ""); !message.empty())
      absl::StrAppend(&out, "  ", message, "\n");
    if (const std::string nominated = attempt.value("nominatedNode", ""); !nominated.empty()) {
      const std::vector<std::string> victims = attempt["victims"];
      absl::StrAppend(&out, "  nominated ", nominated, ", preempting ",
                      absl::StrJoin(victims, ", "), "\n");
    }
    AppendRejections(attempt["filter"], names_shown, &out);
    AppendScores(attempt, chosen, &out);
  }
  return out;
}

}  // namespace outboard::inspect
