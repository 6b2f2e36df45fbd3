// What would change if another instance served: both answers to the same questions, compared.
#ifndef OUTBOARD_SHIM_HOSTS_SHADOW_H_
#define OUTBOARD_SHIM_HOSTS_SHADOW_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/outboard/v1alpha1/cycle.pb.h"
#include "shim/cycle/answer_check.h"
#include "shim/cycle/cycle_witness.h"

namespace outboard::hosts {

// One plugin's part in the differences.
struct PluginDifferences {
  int64_t verdicts = 0;  // nodes, or whole pods at PreFilter, that it judges otherwise
  int64_t scores = 0;    // nodes that it gives another score
};

struct ShadowReport {
  int64_t cycles = 0;
  int64_t placements = 0;  // pods that would have got another node, or none, or one
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
  explicit ShadowCycle(const cycle::AnsweredCycle& answered);

  uint64_t attempt_id = 0;
  std::string pod;
  std::vector<cycle::WeightedPlugin> score_plugins;
  v1alpha1::CycleResponse response;
  std::vector<std::string> node_names;  // of examined nodes; filled in by the caller
  uint32_t num_candidates = 0;
  uint32_t num_to_find = 0;
  absl::Time deadline;
};

// Adds what differs to the report. Errors: INTERNAL: the shadow's answer could not have been used.
// Pure.
absl::Status CompareCycle(const ShadowCycle& served, const v1alpha1::CycleResponse& shadow,
                          ShadowReport* report);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_SHADOW_H_
