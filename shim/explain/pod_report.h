// One attempt at placing a pod, node by node, for people.
#ifndef OUTBOARD_SHIM_EXPLAIN_POD_REPORT_H_
#define OUTBOARD_SHIM_EXPLAIN_POD_REPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proto/outboard/v1alpha1/filter.pb.h"
#include "proto/outboard/v1alpha1/score.pb.h"
#include "shim/cycle/answer_check.h"
#include "shim/cycle/effects.h"

namespace outboard::explain {

// A node's rejection.
struct NodeVerdict {
  std::string code;    // "Unschedulable", "UnschedulableAndUnresolvable" or "Pending"
  std::string plugin;  // empty: left out by PreFilter
  std::vector<std::string> reasons;
};

// A node's scores, weighted.
struct NodeScores {
  int64_t total = 0;
  std::map<std::string, int64_t> plugins;
  // What raw scores are made of, for plugins that say so, in their order.
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
  // Preemption: the node that is kept in mind for the pod, and who left it.
  std::string nominated_node;
  std::vector<std::string> victims;  // namespace/name
  // Simulation: writes of objects that plugins wanted before the bind, in their order, as JSON:
  // {"put" | "patch" | "delete": {resource, namespace, name, status, body}}.
  std::vector<std::string> effects;
};

// Exactly the fields that DESIGN names for a line of the simulator; effects only if there are any.
nlohmann::ordered_json ToJson(const PodReport& report);
// Compact. Names and messages come from outside; whatever they hold, the text stays valid JSON.
std::string Dump(const nlohmann::ordered_json& json);

std::string ResultName(cycle::AttemptResult result);

// What the algorithm saw, as it was answered; see cycle::AlgorithmResult for the fields.
struct AlgorithmView {
  const std::vector<uint32_t>& examined_slots;
  const std::vector<uint32_t>& feasible_positions;
  const std::vector<int64_t>& totals;
  const std::string& absent_nodes_reason;
  const std::optional<uint32_t>& tried_slot;
  const v1alpha1::PluginStatus& tried_status;
  const v1alpha1::FilterResponse& filter;
  const v1alpha1::ScoreResponse& score;
  const std::vector<cycle::WeightedPlugin>& score_plugins;
  const std::vector<std::string>& spared_score_plugins;
};

// Fills `filter` and `scores`. `all_slots` are the slots of all nodes.
void FillNodes(const AlgorithmView& view, const std::vector<uint32_t>& all_slots,
               const std::function<const std::string&(uint32_t slot)>& node_name,
               PodReport* report);

}  // namespace outboard::explain

#endif  // OUTBOARD_SHIM_EXPLAIN_POD_REPORT_H_
