#include "plugins/cost_aware_preemptor/victim_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/canonical_bytes.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/run_facts/run_labels.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::cost_aware_preemptor {
namespace {

namespace names = sdk::run_labels;
using sdk::WorkloadType;

// Far above real amounts, but small enough that sums over a node's pods do not overflow an int64_t.
constexpr int64_t kMaxGpus = 4096;
constexpr int64_t kMaxCpuMillis = int64_t{1} << 30;
constexpr int64_t kMaxSeconds = int64_t{10} * 365 * 24 * 3600;
constexpr absl::Duration kLongest = absl::Hours(10 * 365 * 24);
constexpr int64_t kMaxExactUnits = 24;
constexpr int64_t kMaxTrials = 100000;

// In Go's format: `1h30m0s`.
std::string GoDuration(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  std::string text;
  if (seconds >= 3600) absl::StrAppend(&text, seconds / 3600, "h");
  if (seconds >= 60) absl::StrAppend(&text, seconds / 60 % 60, "m");
  return absl::StrCat(text, seconds % 60, "s");
}

// Whole seconds from a time until now; 0 for future times.
int64_t SecondsSince(absl::Time then, absl::Time now) {
  return std::clamp<int64_t>(absl::ToInt64Seconds(now - then), 0, kMaxSeconds);
}

// Keeps training of which too much would be lost: since its last checkpoint, else its last start.
Spared CheckpointRule(const sdk::RunFacts& run, const Rules& rules, absl::Time now) {
  const sdk::RunFact<absl::Time> checkpoint = run.CheckpointAt(now);
  const auto is_old = [&](absl::Time since) { return now - since > rules.max_checkpoint_age; };
  if (run.checkpointing.known()) {
    if (!*run.checkpointing.value) return Spared::kNoCheckpointing;
    // Its first checkpoint is soon, and then less is lost.
    if (!checkpoint.known()) return Spared::kNoCheckpoint;
    return is_old(*checkpoint.value) ? Spared::kOldCheckpoint : Spared::kNot;
  }
  if (!run.restartable.known()) return Spared::kNoCheckpointing;
  const sdk::RunFact<absl::Time>& start = run.StartAt(now);
  const std::optional<absl::Time> since = std::max(checkpoint.value, start.value);
  if (!since) return Spared::kNoCheckpoint;
  return is_old(*since) ? Spared::kOldCheckpoint : Spared::kNot;
}

Spared WhySpared(const v1beta1::Pod& pod, const PodFacts& facts, const Rules& rules,
                 absl::Time now) {
  const sdk::RunFacts& run = facts.run;
  if (rules.respect_non_preemptible && !run.preemptible.value.value_or(true))
    return Spared::kNonPreemptible;
  if (facts.type != WorkloadType::kTraining) return Spared::kNot;
  if (pod.priority() >= rules.protected_priority) return Spared::kImportant;
  // A pod that says that it may be preempted accepts the loss.
  if (!run.preemptible.value.value_or(false)) {
    if (const Spared why = CheckpointRule(run, rules, now); why != Spared::kNot) return why;
  }
  // An end in the far past was a wrong estimate.
  const sdk::RunFact<absl::Time> end = run.End();
  if (end.known() && absl::AbsDuration(*end.value - now) <= rules.end_margin)
    return Spared::kNearEnd;
  return Spared::kNot;
}

absl::Duration ReadDuration(const sdk::ArgsObject& args, const char* key, absl::Duration value) {
  const absl::Duration read = args.Duration(key, value);
  if (read >= absl::ZeroDuration() && read <= kLongest) return read;
  args.Problem(key, absl::StrCat("Invalid value: ", absl::FormatDuration(read),
                                 ": not in valid range [0s, 87600h]"));
  return value;
}

int64_t ReadInt(const sdk::ArgsObject& args, const char* key, int64_t value, int64_t min,
                int64_t max) {
  const int64_t read = args.Int(key, value);
  if (read >= min && read <= max) return read;
  args.Problem(key,
               sdk::InvalidValue(read, absl::StrCat("not in valid range [", min, ", ", max, "]")));
  return value;
}

}  // namespace

Rules Rules::Read(const sdk::ArgsObject& root) {
  Rules rules;
  rules.protected_priority =
      ReadInt(root, "protectedTrainingPriority", rules.protected_priority,
              std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  rules.max_checkpoint_age = ReadDuration(root, "maxCheckpointAge", rules.max_checkpoint_age);
  rules.end_margin = ReadDuration(root, "estimatedEndMargin", rules.end_margin);
  rules.restart_time = ReadDuration(root, "restartTime", rules.restart_time);
  rules.respect_non_preemptible = root.Bool("respectNonPreemptible", rules.respect_non_preemptible);
  const double gpus_per_cpu = root.Double("gpusPerCPU", rules.gpus_per_cpu);
  if (gpus_per_cpu >= 0 && gpus_per_cpu <= 1) {
    rules.gpus_per_cpu = gpus_per_cpu;
  } else {
    root.Problem("gpusPerCPU",
                 absl::StrCat("Invalid value: ", gpus_per_cpu, ": not in valid range [0, 1]"));
  }
  rules.inference_first = root.Bool("inferenceFirst", rules.inference_first);
  rules.default_gang_size =
      ReadInt(root, "defaultMinReplicas", rules.default_gang_size, 1, sdk::kMaxGroupMembers);
  rules.jobs = sdk::ReadJobGangRules(root);
  rules.search.exact_units = static_cast<size_t>(ReadInt(
      root, "exactCandidates", static_cast<int64_t>(rules.search.exact_units), 0, kMaxExactUnits));
  rules.search.max_trials =
      ReadInt(root, "maxTrialsPerNode", rules.search.max_trials, 1, kMaxTrials);
  rules.types = sdk::WorkloadTypes::Read(root);
  rules.gpus = sdk::GpuResources::Read(root);
  return rules;
}

std::string Rules::Schema() {
  return absl::StrCat(R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "protectedTrainingPriority": {"type": "integer", "minimum": -2147483648, "maximum": 2147483647, "default": 1000,
      "description": "Training pods of this priority or a higher one are never evicted."},
    "maxCheckpointAge": {"type": "string", "default": "30m",
      "description": "Training pods whose last checkpoint is older are not evicted; at most 87600h."},
    "estimatedEndMargin": {"type": "string", "default": "2h",
      "description": "Training pods are not evicted this long before and after their estimated end; at most 87600h."},
    "restartTime": {"type": "string", "default": "5m",
      "description": "The time that a restarted pod needs to get back to its last state; at most 87600h."},
    "respectNonPreemptible": {"type": "boolean", "default": true,
      "description": "Never evict pods that say that they must not be preempted, in KAI's or Volcano's words too."},
    "gpusPerCPU": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.01,
      "description": "How many GPUs one CPU counts as, for pods without GPUs."},
    "inferenceFirst": {"type": "boolean", "default": true,
      "description": "Evict other pods only where evicting inference pods is not enough."},
    "defaultMinReplicas": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 1,
      "description": "Size of jobs whose pods declare none, as in AtomicReplicaCoordinator; 1: not a gang."},
    "exactCandidates": {"type": "integer", "minimum": 0, "maximum": 24, "default": 16,
      "description": "Search the exact optimum on nodes with at most this many candidates."},
    "maxTrialsPerNode": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 512,
      "description": "After this many dry runs of a node, take the best set so far."},
    )json",
                      sdk::WorkloadTypesSchema(), ",\n    ", sdk::kGpuResourceNamesSchema,
                      ",\n    ", sdk::kJobGangsSchema, "}}");
}

std::string SparedText(const SparedCounts& counts, int64_t of_gangs, const Rules& rules) {
  const std::array<std::string, kNumSpared> classes = {
      "",
      "",
      absl::StrCat("of priority >= ", rules.protected_priority),
      "without checkpointing",
      "without a checkpoint",
      absl::StrCat("whose checkpoint is older than ", GoDuration(rules.max_checkpoint_age)),
      absl::StrCat("within ", GoDuration(rules.end_margin), " of the estimated end")};
  std::vector<std::string> parts;
  for (size_t i = 0; i < kNumSpared; ++i) {
    if (counts[i] > 0 && !classes[i].empty())
      parts.push_back(absl::StrCat(counts[i], " ", classes[i]));
  }
  std::string text;
  if (!parts.empty())
    text = absl::StrCat(" Training pods that are spared: ", absl::StrJoin(parts, ", "), ".");
  const int64_t kept = counts[static_cast<size_t>(Spared::kNonPreemptible)];
  if (kept > 0) absl::StrAppend(&text, " Pods that must not be preempted: ", kept, ".");
  if (of_gangs > 0) absl::StrAppend(&text, " Members of gangs that would break: ", of_gangs, ".");
  return text;
}

PodFacts ReadFacts(const sdk::PodRecord& record, const Rules& rules,
                   const sdk::RunFactsReader& runs, sdk::MalformedValues* malformed) {
  const v1beta1::Pod& pod = record.pod;
  PodFacts facts;
  facts.grouped = sdk::GroupOf(pod).has_value();
  facts.type = rules.types.TypeOf(pod);
  int64_t gpus = 0;
  for (const std::string& name : rules.gpus.names())
    gpus += std::clamp<int64_t>(record.usage.requests.Get(name), 0, kMaxGpus);
  gpus += rules.gpus.claims().DemandOf(pod);
  facts.milli_gpus = std::min(gpus, kMaxGpus) * 1000;
  if (gpus == 0) {
    const int64_t millis = std::clamp<int64_t>(record.usage.nonzero_cpu_millis, 0, kMaxCpuMillis);
    facts.milli_gpus = std::llround(static_cast<double>(millis) * rules.gpus_per_cpu);
  }
  // Every eviction costs something.
  facts.milli_gpus = std::clamp<int64_t>(facts.milli_gpus, 1, kMaxGpus * 1000);
  std::vector<sdk::MalformedLabel> unreadable;
  facts.run = runs.Of(pod, &unreadable);
  for (const sdk::MalformedLabel& one : unreadable)
    malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()), one.key, one.value,
                    one.wanted);
  return facts;
}

Assessment Assess(const sdk::PodRecord& record, const PodFacts& facts, const Rules& rules,
                  absl::Time now) {
  const v1beta1::Pod& pod = record.pod;
  Assessment assessment;
  assessment.spared = WhySpared(pod, facts, rules, now);
  // It is being deleted already, so nothing more is lost.
  if (pod.deletion_unix_seconds() != 0) return assessment;
  const absl::Duration restart = facts.run.restart_time.value.value_or(rules.restart_time);
  assessment.loss.restart = absl::ToInt64Seconds(restart) * facts.milli_gpus;
  // Answered inference requests are not lost.
  if (facts.type == WorkloadType::kInference) return assessment;
  // Before its start, a checkpoint is the state that the pod started from.
  const std::optional<absl::Time> since =
      std::max(facts.run.CheckpointAt(now).value, facts.run.StartAt(now).value);
  if (since) assessment.loss.work = SecondsSince(*since, now) * facts.milli_gpus;
  return assessment;
}

std::string WhatFiltersSee(const v1beta1::Pod& pod) {
  v1beta1::Pod seen = pod;
  seen.clear_uid();
  seen.clear_name();
  seen.clear_creation_unix_seconds();
  seen.clear_start_unix_seconds();
  seen.clear_generation();
  for (const char* key :
       {names::kCheckpointing, names::kLastCheckpoint, names::kVolcanoLastCheckpoint, names::kStart,
        names::kEstimatedEnd, names::kRestartSeconds})
    seen.mutable_annotations()->erase(key);
  return sdk::CanonicalBytes(seen);
}

}  // namespace outboard::cost_aware_preemptor
