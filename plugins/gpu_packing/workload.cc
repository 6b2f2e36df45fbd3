#include "plugins/gpu_packing/workload.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::gpu_packing {
namespace {

constexpr int64_t kMaxMillis = int64_t{1} << 40;
constexpr double kWeightSteps = 200;
constexpr int64_t kMaxMib = int64_t{1} << 40;

int64_t IntIn(const sdk::ArgsObject& object, absl::string_view key, int64_t default_value,
              int64_t low, int64_t high) {
  const int64_t value = object.Int(key, default_value);
  if (value >= low && value <= high) return value;
  object.Problem(
      key, sdk::InvalidValue(value, absl::StrCat("not in valid range [", low, ", ", high, "]")));
  return default_value;
}

}  // namespace

bool Workload::Kind::operator<(const Kind& other) const {
  return std::tie(cpu_millis, gpus.gpus, gpus.milli, gpus.memory_mib, models) <
         std::tie(other.cpu_millis, other.gpus.gpus, other.gpus.milli, other.gpus.memory_mib,
                  other.models);
}

Workload Workload::Read(const sdk::ArgsObject& root) {
  Workload workload;
  workload.max_shapes_ =
      static_cast<size_t>(IntIn(root, "maxShapes", 64, 1, static_cast<int64_t>(kMaxShapes)));
  workload.coverage_ = static_cast<double>(IntIn(root, "coveragePercent", 95, 1, 100)) / 100;
  workload.model_label_ = root.String("modelLabel", "nvidia.com/gpu.product");
  for (const std::string& error : sdk::QualifiedNameErrors(workload.model_label_))
    root.Problem("modelLabel", sdk::InvalidValue(workload.model_label_, error));
  std::vector<Shape> shapes;
  double sum = 0;
  for (const sdk::ArgsObject& object : root.Objects("targetWorkload")) {
    Shape shape;
    shape.demand.cpu_millis = IntIn(object, "cpuMillis", 0, 0, kMaxMillis);
    shape.demand.memory_bytes = IntIn(object, "memoryMiB", 0, 0, kMaxMib) * 1024 * 1024;
    shape.demand.gpus = static_cast<int32_t>(IntIn(object, "gpus", 0, 0, kMaxGpus));
    shape.demand.milli = static_cast<int32_t>(IntIn(object, "gpuMilli", kWholeGpu, 1, kWholeGpu));
    for (const std::string& model : object.Strings("models"))
      shape.models.push_back(workload.ModelId(model));
    std::sort(shape.models.begin(), shape.models.end());
    shape.weight = object.Double("weight", 1);
    if (!(shape.weight > 0) || shape.weight > 1e9) {
      object.Problem("weight", absl::StrCat("Invalid value: ", shape.weight,
                                            ": must be above 0 and at most 1e9"));
      shape.weight = 1;
    }
    sum += shape.weight;
    shapes.push_back(std::move(shape));
  }
  if (shapes.size() > kMaxShapes) {
    root.Problem("targetWorkload", sdk::InvalidValue(static_cast<int64_t>(shapes.size()),
                                                     "must have at most 256 items"));
  }
  workload.learns_ = shapes.empty();
  for (Shape& shape : shapes) shape.weight /= sum;
  workload.SetShapes(std::move(shapes));
  return workload;
}

bool Workload::SetShapes(std::vector<Shape> shapes) {
  std::stable_sort(shapes.begin(), shapes.end(), [](const Shape& a, const Shape& b) {
    return std::tie(a.demand.milli, a.demand.gpus, a.demand.cpu_millis) <
           std::tie(b.demand.milli, b.demand.gpus, b.demand.cpu_millis);
  });
  if (shapes == shapes_) return false;
  shapes_ = std::move(shapes);
  highest_cpu_millis_ = highest_memory_bytes_ = 0;
  for (const Shape& shape : shapes_) {
    highest_cpu_millis_ = std::max(highest_cpu_millis_, shape.demand.cpu_millis);
    highest_memory_bytes_ = std::max(highest_memory_bytes_, shape.demand.memory_bytes);
  }
  return true;
}

uint32_t Workload::ModelId(absl::string_view name) {
  if (name.empty()) return 0;
  return model_ids_.emplace(std::string(name), static_cast<uint32_t>(model_ids_.size() + 1))
      .first->second;
}

std::vector<std::string> Workload::ModelsOf(const v1beta1::Pod& pod) const {
  std::vector<std::string> models;
  if (const std::string* model = sdk::FindValue(pod.node_selector(), model_label_)) return {*model};
  const auto& terms = pod.affinity()
                          .node_affinity()
                          .required_during_scheduling_ignored_during_execution()
                          .node_selector_terms();
  // Terms are alternatives: a term without models allows any model.
  for (const v1beta1::NodeSelectorTerm& term : terms) {
    bool names_models = false;
    for (const v1beta1::SelectorRequirement& requirement : term.match_expressions()) {
      if (requirement.key() != model_label_ ||
          requirement.operator_() != v1beta1::SelectorRequirement::OPERATOR_IN) {
        continue;
      }
      names_models = true;
      models.insert(models.end(), requirement.values().begin(), requirement.values().end());
    }
    if (!names_models) return {};
  }
  std::sort(models.begin(), models.end());
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

bool Workload::Knows(const sdk::PodRecord& pod) const {
  const auto known = by_pod_.find(&pod);
  return known != by_pod_.end() && known->second.first == pod.generation;
}

void Workload::Count(const sdk::PodRecord& pod, const PodGpus& gpus) {
  if (Knows(pod)) return;
  Forget(pod);
  if (gpus.holds_only) return;
  Kind kind;
  kind.cpu_millis = pod.usage.requests.cpu_millis;
  kind.gpus = gpus;
  if (gpus.gpus > 0) kind.models = ModelsOf(pod.pod);
  const auto it = kinds_.emplace(std::move(kind), 0).first;
  ++it->second;
  ++counted_;
  by_pod_[&pod] = {pod.generation, it};
  stale_ = true;
}

void Workload::Forget(const sdk::PodRecord& pod) {
  const auto known = by_pod_.find(&pod);
  if (known == by_pod_.end()) return;
  const auto kind = known->second.second;
  by_pod_.erase(known);
  --counted_;
  if (--kind->second == 0) kinds_.erase(kind);
  stale_ = true;
}

void Workload::Clear() {
  by_pod_.clear();
  kinds_.clear();
  counted_ = 0;
  stale_ = learns_;
}

bool Workload::Learn(int64_t gpu_memory_mib) {
  stale_ = false;
  std::vector<Kinds::const_iterator> by_count;
  by_count.reserve(kinds_.size());
  for (auto it = kinds_.cbegin(); it != kinds_.cend(); ++it) by_count.push_back(it);
  std::stable_sort(by_count.begin(), by_count.end(),
                   [](const auto& a, const auto& b) { return a->second > b->second; });
  std::vector<Shape> shapes;
  double covered = 0;
  double sum = 0;
  for (const auto& it : by_count) {
    if (shapes.size() == max_shapes_ || covered >= coverage_ * static_cast<double>(counted_)) break;
    Shape shape;
    shape.demand.cpu_millis = it->first.cpu_millis;
    shape.demand.gpus = it->first.gpus.gpus;
    shape.demand.milli = std::min(kWholeGpu, it->first.gpus.MilliOn(gpu_memory_mib));
    for (const std::string& model : it->first.models) shape.models.push_back(ModelId(model));
    std::sort(shape.models.begin(), shape.models.end());
    covered += static_cast<double>(it->second);
    // Rounded to half percents: otherwise every pod that comes or goes would invalidate all cached
    // results. A learnt kind never rounds to zero.
    shape.weight = std::max(1.0, std::round(kWeightSteps * static_cast<double>(it->second) /
                                            static_cast<double>(counted_)));
    sum += shape.weight;
    shapes.push_back(std::move(shape));
  }
  for (Shape& shape : shapes) shape.weight /= sum;
  return SetShapes(std::move(shapes));
}

}  // namespace outboard::gpu_packing
