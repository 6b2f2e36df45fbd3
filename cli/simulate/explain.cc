#include "cli/simulate/explain.h"

#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/config/yaml_reader.h"

namespace outboard::simulate {

absl::StatusOr<std::string> FindPod(const SimulationInput& scene, const std::string& word) {
  std::vector<std::string> all;
  for (const kube::PodPtr& pod : scene.pending) all.push_back(pod->key());
  for (const SkippedPod& skipped : scene.skipped) all.push_back(skipped.pod->key());
  if (absl::c_linear_search(all, word)) return word;
  std::vector<std::string> found;
  for (const std::string& key : all) {
    if (absl::EndsWith(key, absl::StrCat("/", word))) found.push_back(key);
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--explain ", word, ": several pods have this name: ", absl::StrJoin(found, ", ")));
  }
  const bool has_namespace = absl::StrContains(word, "/");
  std::string near = config::Nearest(word, all);
  if (near.empty() && !has_namespace) {
    std::vector<std::string> names;
    for (const std::string& key : all) names.push_back(key.substr(key.find('/') + 1));
    near = config::Nearest(word, names);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--explain ", word, ": no pod to schedule has this name",
                   near.empty() ? "" : absl::StrCat("; did you mean ", near, "?")));
}

std::string ExplainJson(const std::string& pod, const std::vector<AttemptReport>& reports) {
  nlohmann::ordered_json all;
  all["pod"] = pod;
  all["attempts"] = nlohmann::ordered_json::array();
  for (auto report = reports.rbegin(); report != reports.rend(); ++report) {
    if (report->pod != pod) continue;
    nlohmann::ordered_json attempt = ToJson(*report);
    attempt["profile"] = report->scheduler;
    if (report->nodes > 0) {
      attempt["nodes"] = report->nodes;
      attempt["evaluatedNodes"] = report->evaluated_nodes;
      attempt["feasibleNodes"] = report->feasible_nodes;
      attempt["weights"] = report->weights;
    }
    all["attempts"].push_back(std::move(attempt));
  }
  return diagnostics::Dump(all) + "\n";
}

}  // namespace outboard::simulate
