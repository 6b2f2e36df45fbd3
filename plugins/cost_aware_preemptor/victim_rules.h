// Which pods may be evicted for another pod, and what is lost by that.
#ifndef OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_VICTIM_RULES_H_
#define OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_VICTIM_RULES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/workload_type.h"
#include "plugins/cost_aware_preemptor/cheapest_set.h"

namespace outboard::cost_aware_preemptor {

// Annotations of pods. Times are RFC 3339.
inline constexpr char kCheckpointing[] = "outboard/checkpointing";  // true or false
inline constexpr char kLastCheckpoint[] = "outboard/last-checkpoint-time";
inline constexpr char kVolcanoLastCheckpoint[] = "volcano.sh/last-checkpoint-time";
inline constexpr char kStart[] = "outboard/start-time";
inline constexpr char kEstimatedEnd[] = "outboard/estimated-end";
inline constexpr char kRestartSeconds[] = "outboard/restart-seconds";
// All of these annotations.
std::vector<std::string> Annotations();

// The plugin's arguments.
struct Rules {
  int64_t protected_priority = 1000;
  absl::Duration max_checkpoint_age = absl::Minutes(30);
  absl::Duration end_margin = absl::Hours(2);
  absl::Duration restart_time = absl::Minutes(5);
  double gpus_per_cpu = 0.01;
  bool inference_first = true;
  int64_t default_gang_size = 1;  // Of jobs whose pods declare none.
  SearchLimits search;
  sdk::WorkloadTypes types;
  sdk::GpuResources gpus;

  // Reports problems to the reader.
  static Rules Read(const sdk::ArgsObject& root);
  static std::string Schema();
};

// Why a pod of lower priority is kept: the first rule that applies.
enum class Spared {
  kNot,
  kImportant,        // Training of protected priority.
  kNoCheckpointing,  // Training that does not declare that it writes checkpoints.
  kNoCheckpoint,     // Training without a checkpoint, or without its time.
  kOldCheckpoint,
  kNearEnd,
};
inline constexpr size_t kNumSpared = static_cast<size_t>(Spared::kNearEnd) + 1;

// Returns true if the pod may be evicted after its next checkpoint.
inline bool WantsCheckpoint(Spared spared) {
  return spared == Spared::kNoCheckpoint || spared == Spared::kOldCheckpoint;
}

// The number of pods per reason; indexed by Spared.
using SparedCounts = std::array<int64_t, kNumSpared>;
// ` Training pods that are spared: 2 of priority >= 1000, 1 whose checkpoint is older than 30m0s.
// Members of gangs that would break: 3.`; empty without such pods.
std::string SparedText(const SparedCounts& counts, int64_t of_gangs, const Rules& rules);

// What a pod's annotations and spec declare, without malformed values.
struct PodFacts {
  sdk::WorkloadType type = sdk::WorkloadType::kOther;
  bool checkpointing = false;
  std::optional<absl::Time> checkpoint, volcano_checkpoint, start, estimated_end;
  std::optional<int64_t> restart_seconds;
  int64_t milli_gpus = 0;  // GPUs in thousandths; at least 1.
  bool grouped = false;    // It belongs to a group.

  std::optional<absl::Time> LatestCheckpoint() const {
    return std::max(checkpoint, volcano_checkpoint);
  }
};
// Reports malformed values to `malformed`.
PodFacts ReadFacts(const sdk::PodRecord& pod, const Rules& rules, sdk::MalformedValues* malformed);

// The cost of a pod's eviction, in milli-GPU-seconds.
struct Loss {
  int64_t work = 0;     // Done again, or lost for good.
  int64_t restart = 0;  // Until the pod is back at its last state.
};

struct Assessment {
  Spared spared = Spared::kNot;
  Loss loss;
};
// For a pod whose priority is below the preemptor's.
Assessment Assess(const sdk::PodRecord& pod, const PodFacts& facts, const Rules& rules,
                  absl::Time now);

// Pods with an equal result are interchangeable for every filter plugin, except a plugin that reads
// names. Pure.
std::string WhatFiltersSee(const v1beta1::Pod& pod);

}  // namespace outboard::cost_aware_preemptor

#endif  // OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_VICTIM_RULES_H_
