// What would change if another instance served: both answers to the same questions, compared.
#ifndef OUTBOARD_SHIM_HOSTS_SHADOW_H_
#define OUTBOARD_SHIM_HOSTS_SHADOW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/outboard/v1alpha1/cycle.pb.h"
#include "shim/cycle/host_panel.h"

namespace outboard::hosts {

// One plugin's part in the differences.
struct PluginDifferences {
  int64_t verdicts = 0;  // nodes, or whole pods at PreFilter, that it judges otherwise
  int64_t scores = 0;    // nodes that it gives another score
};

struct ShadowReport {
  int64_t cycles = 0;
  int64_t placements = 0;  // pods that would have got another node, or none, or one
  // Cycles in which that could be told: not where other hosts decide, too, nor where the host was
  // asked point by point and would have scored other nodes than the serving one.
  int64_t placements_told = 0;
  std::map<std::string, PluginDifferences> plugins;
  // The first few, for people: `pod ns/p, node n1: Feasible → Unschedulable by Fit: Insufficient
  // cpu`.
  std::vector<std::string> examples;

  bool differs() const { return placements > 0 || !plugins.empty(); }
  // `20 cycles, no difference`, or what differs, in a line.
  std::string Summary() const;
};

// A cycle as the serving instance answered it, kept until the other has answered too.
struct ShadowCycle {
  uint64_t attempt_id = 0;
  std::string pod;
  cycle::AlgorithmShare own;         // what the other is to answer for
  v1alpha1::CycleResponse response;  // of the serving one
  // In one message: it scored those nodes that it found feasible. Else those in `scored`.
  bool is_fused = false;
  // Whether the other is asked there, if it lets the pod come so far.
  bool asks_filter = true;
  bool asks_score = true;
  // Names of the nodes that were searched, as far as the serving one examined them, and of those
  // that it scored.
  std::vector<std::string> examined;
  std::vector<std::string> scored;
  std::string NodeAt(uint32_t position) const {
    return position < examined.size() ? examined[position] : absl::StrCat("#", position);
  }
  // What Filter's answer is checked against: the length of the list, and how many feasible nodes
  // end the search.
  uint32_t num_nodes = 0;
  uint32_t num_to_find = 0;
  // No other host takes part, so that the answers come to a place.
  bool decides = true;
  std::optional<std::string> placed;  // the node
  // Whether the list has all nodes that the pod may go to, and how many feasible ones are enough.
  bool is_whole = true;
  uint32_t sample = 0;
};

// Adds what differs to the report. `shadow` lacks what was not asked. Errors: INTERNAL: the
// shadow's answer could not have been used. Pure.
absl::Status CompareCycle(const ShadowCycle& served, const v1alpha1::CycleResponse& shadow,
                          ShadowReport* report);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_SHADOW_H_
