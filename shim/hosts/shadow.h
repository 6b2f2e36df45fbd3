// What would change if another instance served: compares both answers to the same questions.
#ifndef OUTBOARD_SHIM_HOSTS_SHADOW_H_
#define OUTBOARD_SHIM_HOSTS_SHADOW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "shim/framework/multi_host/extension_point_runner.h"

namespace outboard::hosts {

// One plugin's differences.
struct PluginDifferences {
  int64_t verdicts = 0;  // nodes, or whole pods at PreFilter, with another verdict
  int64_t scores = 0;    // nodes with another score
};

struct ShadowReport {
  int64_t cycles = 0;
  int64_t placements = 0;  // pods with another node, or for which only one instance found a node
  // Cycles in which placements could be compared. They cannot be compared if other hosts decide
  // too, or if the host was called point by point and would have scored other nodes.
  int64_t compared_placements = 0;
  std::map<std::string, PluginDifferences> plugins;
  // The first few, for display: `pod ns/p, node n1: feasible → UNSCHEDULABLE by Fit (Insufficient
  // cpu)`.
  std::vector<std::string> examples;

  bool differs() const { return placements > 0 || !plugins.empty(); }
  // `20 cycles, no difference`, or the differences, in one line.
  std::string Summary() const;
};

// A cycle as the serving instance answered it, kept until the other instance has answered.
struct ShadowCycle {
  uint64_t attempt_id = 0;
  std::string pod;
  framework::HostProfile own;        // the points of the other instance
  v1beta1::CycleEvaluation answers;  // of the serving one; PreFilter may have rejected
  // In one message: it scored the nodes that it found feasible. Else those in `scored`.
  bool is_fused = false;
  // Whether the other instance is called there, if it does not reject the pod before.
  bool asks_filter = true;
  bool asks_score = true;
  // Names of the searched nodes that the serving one examined, and of those that it scored.
  std::vector<std::string> examined;
  std::vector<std::string> scored;
  std::string NodeAt(uint32_t position) const {
    return position < examined.size() ? examined[position] : absl::StrCat("#", position);
  }
  // To check Filter's answer: the length of the list, and how many feasible nodes end the search.
  uint32_t num_nodes = 0;
  uint32_t num_to_find = 0;
  // Only this host takes part, so the answers determine the placement.
  bool decides = true;
  std::optional<std::string> placed;  // the node
  // Whether the list has all nodes that the pod may use, and how many feasible ones are enough.
  bool is_whole = true;
  uint32_t sample = 0;
};

// Adds the differences to the report. `shadow` lacks the points that were not called. With
// `is_fused` the caller has checked PreFilter's answer (framework::CheckPreFilterOf). Pure.
// Errors: INTERNAL: the shadow's answer was not usable.
absl::Status CompareCycle(const ShadowCycle& served, const v1beta1::CycleEvaluation& shadow,
                          ShadowReport* report);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_SHADOW_H_
