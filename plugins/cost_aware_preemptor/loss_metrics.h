// Metrics of victims: how many, what they lose, and what was unknown of them.
#ifndef OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_LOSS_METRICS_H_
#define OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_LOSS_METRICS_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "plugin_host/sdk/metrics.h"
#include "plugins/cost_aware_preemptor/victim_rules.h"

namespace outboard::cost_aware_preemptor {

// Threading: thread-compatible.
// Lifetime:  as the plugin.
// Errors:    none.
class LossMetrics {
 public:
  // For the plugin's descriptor.
  static std::vector<sdk::MetricSpec> Specs();

  explicit LossMetrics(sdk::Metrics* metrics);
  // The pod is a victim of the best candidate.
  void Count(const PodFacts& victim, const Loss& loss, absl::Time now) const;

 private:
  static constexpr size_t kTypes = 3, kFacts = 3;
  std::array<std::shared_ptr<sdk::Counter>, kTypes> victims_, work_lost_;  // By WorkloadType.
  std::array<std::shared_ptr<sdk::Counter>, kFacts> unknown_;
};

}  // namespace outboard::cost_aware_preemptor

#endif  // OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_LOSS_METRICS_H_
