// How NodeResourcesFit computes a score from resource amounts.
#ifndef OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_SCORING_STRATEGY_H_
#define OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_SCORING_STRATEGY_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/plugin.h"

namespace outboard::node_resources_fit {

struct ResourceWeight {
  std::string name;
  int64_t weight = 1;
};

// The `scoringStrategy` of the arguments.
//
// Threading: immutable after Read.
// Lifetime:  a value.
// Errors:    reported to the reader of the arguments.
class ScoringStrategy {
 public:
  enum class Type { kLeastAllocated, kMostAllocated, kRequestedToCapacityRatio };

  // Applies Kubernetes' defaults and checks.
  static ScoringStrategy Read(const sdk::ArgsObject& args);

  Type type() const { return type_; }
  const std::vector<ResourceWeight>& resources() const { return resources_; }

  // The score of one resource, 0..100.
  int64_t ScoreResource(int64_t requested, int64_t allocatable) const {
    switch (type_) {
      case Type::kLeastAllocated:
        if (allocatable == 0 || requested > allocatable) return 0;
        return Divide((allocatable - requested) * sdk::kMaxScore, allocatable);
      case Type::kMostAllocated:
        if (allocatable == 0) return 0;
        return Divide(std::min(requested, allocatable) * sdk::kMaxScore, allocatable);
      case Type::kRequestedToCapacityRatio:
        return OnShape(allocatable == 0 || requested > allocatable
                           ? 100
                           : Divide(requested * 100, allocatable));
    }
    return 0;
  }
  // Whether a resource with this score counts. RequestedToCapacityRatio ignores scores of 0.
  bool Counts(int64_t resource_score) const {
    return type_ != Type::kRequestedToCapacityRatio || resource_score > 0;
  }
  // The node's score from Σ score·weight and Σ weight.
  int64_t Combine(int64_t weighted_sum, int64_t weights) const {
    if (weights == 0) return 0;
    if (type_ != Type::kRequestedToCapacityRatio) return Divide(weighted_sum, weights);
    return static_cast<int64_t>(
        std::round(static_cast<double>(weighted_sum) / static_cast<double>(weights)));
  }

 private:
  // a / b. Most amounts fit in 32 bits, where a division takes a third of the time.
  static int64_t Divide(int64_t a, int64_t b) {
    if (((static_cast<uint64_t>(a) | static_cast<uint64_t>(b)) >> 32) == 0) {
      return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
    }
    return a / b;
  }
  int64_t OnShape(int64_t utilization) const;

  Type type_ = Type::kLeastAllocated;
  std::vector<ResourceWeight> resources_;
  std::vector<std::pair<int64_t, int64_t>> shape_;  // (utilization, score of 100)
};

}  // namespace outboard::node_resources_fit

#endif  // OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_SCORING_STRATEGY_H_
