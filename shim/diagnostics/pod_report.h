// One attempt at scheduling a pod, node by node, in readable form.
#ifndef OUTBOARD_SHIM_DIAGNOSTICS_POD_REPORT_H_
#define OUTBOARD_SHIM_DIAGNOSTICS_POD_REPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/score.pb.h"
#include "shim/framework/answer_check.h"
#include "shim/scheduler/cluster_actions.h"

namespace outboard::diagnostics {

// A node's rejection.
struct NodeVerdict {
  std::string code;    // "Unschedulable", "UnschedulableAndUnresolvable" or "Pending"
  std::string plugin;  // empty: excluded by PreFilter
  std::vector<std::string> reasons;
};

// A node's scores, weighted.
struct NodeScores {
  int64_t total = 0;
  std::map<std::string, int64_t> plugins;
  // Components of raw scores, for plugins that report them, in plugin order.
  std::map<std::string, std::vector<std::pair<std::string, double>>> terms;
};

// One attempt.
struct PodReport {
  std::string pod;     // namespace/name
  std::string result;  // "scheduled", "unschedulable" or "error"
  std::string node;
  std::string message;
  std::map<std::string, NodeVerdict> filter;  // rejected nodes only
  std::map<std::string, NodeScores> scores;   // scored nodes only
  // Preemption: the nominated node, and the pods evicted from it.
  std::string nominated_node;
  std::vector<std::string> victims;  // namespace/name
  // Simulation: object writes that plugins ordered before the bind, in order, as JSON: {"put" |
  // "patch" | "delete": {resource, namespace, name, status, body}}.
  std::vector<std::string> effects;
};

// The fields of a line of the simulator's output; integration/parity/oracle/README.md has their
// rules. `effects` only if not empty.
nlohmann::ordered_json ToJson(const PodReport& report);
// Compact. Names and messages are external input: invalid UTF-8 still gives valid JSON.
std::string Dump(const nlohmann::ordered_json& json);

std::string ResultName(scheduler::AttemptResult result);

// The algorithm's result, unprocessed; see framework::AlgorithmResult for the fields.
struct AlgorithmView {
  const std::vector<uint32_t>& examined_slots;
  const std::vector<uint32_t>& feasible_positions;
  const std::vector<int64_t>& totals;
  const std::string& absent_nodes_reason;
  const std::optional<uint32_t>& tried_slot;
  const v1beta1::PluginStatus& tried_status;
  const v1beta1::FilterResponse& filter;
  const v1beta1::ScoreResponse& score;
  const std::vector<framework::WeightedPlugin>& score_plugins;
  const std::vector<std::string>& skipped_score_plugins;
};

// Fills `filter` and `scores`. `all_slots` are the slots of all nodes.
void FillNodes(const AlgorithmView& view, const std::vector<uint32_t>& all_slots,
               const std::function<const std::string&(uint32_t slot)>& node_name,
               PodReport* report);

}  // namespace outboard::diagnostics

#endif  // OUTBOARD_SHIM_DIAGNOSTICS_POD_REPORT_H_
