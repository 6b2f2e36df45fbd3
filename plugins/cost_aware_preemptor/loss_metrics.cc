#include "plugins/cost_aware_preemptor/loss_metrics.h"

namespace outboard::cost_aware_preemptor {
namespace {

constexpr char kVictims[] = "outboard_cost_aware_preemptor_victims_total";
constexpr char kWorkLost[] = "outboard_cost_aware_preemptor_work_lost_gpu_seconds_total";
constexpr char kUnknown[] = "outboard_cost_aware_preemptor_unknown_facts_total";
// By WorkloadType.
constexpr std::array<const char*, 3> kTypeNames = {"other", "training", "inference"};
// What decides about a victim, and may be unknown.
constexpr std::array<const char*, 3> kFactNames = {"start", "checkpoint", "end"};

}  // namespace

std::vector<sdk::MetricSpec> LossMetrics::Specs() {
  return {{kVictims,
           sdk::MetricType::kCounter,
           {"workload_type"},
           "Pods chosen as preemption victims, by type of work: training, inference, other."},
          {kWorkLost,
           sdk::MetricType::kCounter,
           {"workload_type"},
           "GPU-seconds of work that these pods had done since their last checkpoint or start."},
          {kUnknown,
           sdk::MetricType::kCounter,
           {"fact"},
           "Facts that were unknown of these pods, without inference: start, checkpoint, end."}};
}

LossMetrics::LossMetrics(sdk::Metrics* metrics) {
  for (size_t type = 0; type < kTypes; ++type) {
    victims_[type] = metrics->NewCounter(kVictims, {kTypeNames[type]});
    work_lost_[type] = metrics->NewCounter(kWorkLost, {kTypeNames[type]});
  }
  for (size_t fact = 0; fact < kFacts; ++fact)
    unknown_[fact] = metrics->NewCounter(kUnknown, {kFactNames[fact]});
}

void LossMetrics::Count(const PodFacts& victim, const Loss& loss, absl::Time now) const {
  const size_t type = static_cast<size_t>(victim.type);
  victims_[type]->Add(1);
  work_lost_[type]->Add(static_cast<double>(loss.work) / 1000);
  // Inference loses no work, whatever is known of it.
  if (victim.type == sdk::WorkloadType::kInference) return;
  const std::array<bool, kFacts> known = {victim.run.StartAt(now).known(),
                                          victim.run.CheckpointAt(now).known(),
                                          victim.run.End().known()};
  for (size_t fact = 0; fact < kFacts; ++fact) {
    if (!known[fact]) unknown_[fact]->Add(1);
  }
}

}  // namespace outboard::cost_aware_preemptor
