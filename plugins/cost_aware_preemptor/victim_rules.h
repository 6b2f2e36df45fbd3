// Which pods may be evicted for another pod, and what is lost by that.
#ifndef OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_VICTIM_RULES_H_
#define OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_VICTIM_RULES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/run_facts/run_facts.h"
#include "plugin_host/sdk/workload_type.h"
#include "plugins/cost_aware_preemptor/cheapest_set.h"

namespace outboard::cost_aware_preemptor {

// The plugin's arguments.
struct Rules {
  int64_t protected_priority = 1000;
  absl::Duration max_checkpoint_age = absl::Minutes(30);
  absl::Duration end_margin = absl::Hours(2);
  absl::Duration restart_time = absl::Minutes(5);
  bool respect_non_preemptible = true;
  double gpus_per_cpu = 0.01;
  bool inference_first = true;
  int64_t default_gang_size = 1;  // Of jobs whose pods declare none.
  sdk::JobGangRules jobs;
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
  kNonPreemptible,   // A pod of any type that says so.
  kImportant,        // Training of protected priority.
  kNoCheckpointing,  // Training that neither writes checkpoints nor starts again, as far as known.
  kNoCheckpoint,     // Training without a checkpoint, or without its time.
  kOldCheckpoint,    // The last checkpoint, else the last start, is too long ago.
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
// Pods that must not be preempted: 1. Members of gangs that would break: 3.`; empty without such
// pods.
std::string SparedText(const SparedCounts& counts, int64_t of_gangs, const Rules& rules);

// What is known of a pod, without malformed values.
struct PodFacts {
  sdk::WorkloadType type = sdk::WorkloadType::kOther;
  sdk::RunFacts run;
  int64_t milli_gpus = 0;  // GPUs in thousandths; at least 1.
  bool grouped = false;    // It belongs to a group.
};
// Reports malformed values to `malformed`.
PodFacts ReadFacts(const sdk::PodRecord& pod, const Rules& rules, const sdk::RunFactsReader& runs,
                   sdk::MalformedValues* malformed);

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
