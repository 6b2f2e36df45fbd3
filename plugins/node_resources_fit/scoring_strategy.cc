#include "plugins/node_resources_fit/scoring_strategy.h"

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::node_resources_fit {
namespace {

// In the arguments, scores of a shape are 0..10.
constexpr int64_t kMaxShapeScore = 10;

void ReadShape(const sdk::ArgsObject& ratio, std::vector<std::pair<int64_t, int64_t>>* shape) {
  const std::vector<sdk::ArgsObject> points = ratio.Objects("shape");
  if (points.empty()) {
    ratio.Problem("shape", sdk::RequiredValue("at least one point must be specified"));
    return;
  }
  std::vector<std::pair<int64_t, int64_t>> read;
  for (const sdk::ArgsObject& point : points) {
    read.emplace_back(point.Int("utilization", 0), point.Int("score", 0));
  }
  for (size_t i = 1; i < read.size(); ++i) {
    if (read[i - 1].first >= read[i].first) {
      points[i].Problem(
          "utilization",
          sdk::InvalidValue(read[i].first, "values must be sorted in increasing order"));
      break;
    }
  }
  for (size_t i = 0; i < read.size(); ++i) {
    const auto [utilization, score] = read[i];
    if (utilization < 0 || utilization > 100) {
      points[i].Problem("utilization",
                        sdk::InvalidValue(utilization, "not in valid range [0, 100]"));
    }
    if (score < 0 || score > kMaxShapeScore) {
      points[i].Problem("score", sdk::InvalidValue(score, "not in valid range [0, 10]"));
    }
    shape->emplace_back(utilization, score * (sdk::kMaxScore / kMaxShapeScore));
  }
}

}  // namespace

ScoringStrategy ScoringStrategy::Read(const sdk::ArgsObject& args) {
  ScoringStrategy result;
  if (!args.Has("scoringStrategy")) {
    result.resources_ = {{"cpu", 1}, {"memory", 1}};
    return result;
  }
  const sdk::ArgsObject strategy = args.Object("scoringStrategy");
  const std::string type = strategy.String("type", "");
  if (type == "LeastAllocated") {
    result.type_ = Type::kLeastAllocated;
  } else if (type == "MostAllocated") {
    result.type_ = Type::kMostAllocated;
  } else if (type == "RequestedToCapacityRatio") {
    result.type_ = Type::kRequestedToCapacityRatio;
  } else {
    strategy.Problem("type", sdk::NotSupported(type, {"LeastAllocated", "MostAllocated",
                                                      "RequestedToCapacityRatio"}));
  }
  for (const sdk::ArgsObject& resource : strategy.Objects("resources")) {
    ResourceWeight entry{resource.String("name", ""), resource.Int("weight", 0)};
    if (entry.weight == 0) entry.weight = 1;
    if (entry.weight < 0 || entry.weight > 100) {
      resource.Problem(
          "weight", sdk::InvalidValue(entry.weight, absl::StrCat("resource weight of ", entry.name,
                                                                 " not in valid range (0, 100]")));
    }
    result.resources_.push_back(std::move(entry));
  }
  if (result.resources_.empty()) result.resources_ = {{"cpu", 1}, {"memory", 1}};
  const bool has_ratio = strategy.Has("requestedToCapacityRatio");
  if (result.type_ == Type::kRequestedToCapacityRatio) {
    if (!has_ratio) {
      strategy.Problem(
          "requestedToCapacityRatio",
          sdk::RequiredValue("must be specified when type is RequestedToCapacityRatio"));
    } else {
      ReadShape(strategy.Object("requestedToCapacityRatio"), &result.shape_);
    }
  } else if (has_ratio) {
    strategy.Problem("requestedToCapacityRatio",
                     sdk::Forbidden("must be nil when type is not RequestedToCapacityRatio"));
  }
  return result;
}

int64_t ScoringStrategy::OnShape(int64_t utilization) const {
  for (size_t i = 0; i < shape_.size(); ++i) {
    if (utilization > shape_[i].first) continue;
    if (i == 0) return shape_[0].second;
    const auto [from, low] = shape_[i - 1];
    const auto [to, high] = shape_[i];
    return low + (high - low) * (utilization - from) / (to - from);
  }
  return shape_.back().second;
}

}  // namespace outboard::node_resources_fit
