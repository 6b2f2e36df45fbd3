#include "plugins/objectives/wishes.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace outboard::objectives {
namespace {

constexpr size_t kMaxNames = 32;
constexpr int64_t kMaxLicencesOfPod = 1000000000;
constexpr char kThisNode[] = "node";

// Reports invalid values of a pod; silent without `malformed`.
class Complaints {
 public:
  Complaints(const v1beta1::Pod& pod, sdk::MalformedValues* malformed)
      : pod_(pod), malformed_(malformed) {}
  void Add(absl::string_view key, absl::string_view value, absl::string_view wanted) const {
    if (malformed_ == nullptr) return;
    malformed_->Warn(absl::StrCat("pod ", pod_.namespace_(), "/", pod_.name()), key, value, wanted);
  }
  // The parsed annotation; nullopt if it is absent or invalid.
  template <typename Parse>
  auto Read(const char* key, absl::string_view wanted, Parse&& parse) const
      -> decltype(parse(absl::string_view())) {
    const std::string* text = sdk::FindValue(pod_.annotations(), key);
    if (text == nullptr) return std::nullopt;
    auto parsed = parse(absl::string_view(*text));
    if (!parsed) Add(key, *text, wanted);
    return parsed;
  }

 private:
  const v1beta1::Pod& pod_;
  sdk::MalformedValues* const malformed_;
};

std::optional<Weights> ParseWeights(absl::string_view text, Weights weights) {
  const std::optional<Pairs> pairs = ParsePairs(text);
  if (!pairs) return std::nullopt;
  for (const auto& [name, value] : *pairs) {
    double* weight = weights.Find(name);
    const std::optional<double> amount = sdk::ParseAmount(value, kMaxWeight);
    if (weight == nullptr || !amount) return std::nullopt;
    *weight = *amount;
  }
  return weights;
}

std::optional<std::vector<std::string>> ReadData(const Complaints& complaints) {
  return complaints.Read(kDataAnnotation, "names of data, separated by commas", ParseNames);
}

}  // namespace

double* Weights::Find(absl::string_view name) {
  if (name == "cost") return &cost;
  if (name == "distance") return &distance;
  if (name == "gpu") return &gpu;
  if (name == "cpu") return &cpu;
  for (auto& [metric, weight] : metrics) {
    if (metric == name) return &weight;
  }
  return nullptr;
}

bool Weights::any() const {
  return cost > 0 || distance > 0 || gpu > 0 || cpu > 0 ||
         std::any_of(metrics.begin(), metrics.end(),
                     [](const auto& metric) { return metric.second > 0; });
}

std::optional<Pairs> ParsePairs(absl::string_view text) {
  const std::optional<std::vector<std::string>> parts = ParseNames(text);
  if (!parts) return std::nullopt;
  Pairs pairs;
  for (const std::string& part : *parts) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const bool is_known = std::any_of(pairs.begin(), pairs.end(),
                                      [&](const auto& other) { return other.first == pair.first; });
    if (pair.first.empty() || part.find('=') == std::string::npos || is_known) return std::nullopt;
    pairs.push_back(pair);
  }
  return pairs;
}

std::optional<std::vector<std::string>> ParseNames(absl::string_view text) {
  std::vector<std::string> names;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty() || names.size() == kMaxNames) return std::nullopt;
    if (std::find(names.begin(), names.end(), part) != names.end()) return std::nullopt;
    names.emplace_back(part);
  }
  return names;
}

Preferences ReadPreferences(const v1beta1::Pod& pod, const Weights& defaults,
                            sdk::MalformedValues* malformed) {
  const Complaints complaints(pod, malformed);
  Preferences preferences;
  preferences.weights =
      complaints
          .Read(kWeightsAnnotation, "weights such as cost=2,distance=0.5",
                [&](absl::string_view text) { return ParseWeights(text, defaults); })
          .value_or(defaults);
  preferences.near_pods =
      complaints.Read(kNearPodsAnnotation, "labels such as app=db", ParsePairs).value_or(Pairs());
  preferences.data = ReadData(complaints).value_or(std::vector<std::string>());
  return preferences;
}

Bounds ReadBounds(const v1beta1::Pod& pod, const std::vector<std::string>& levels,
                  sdk::MalformedValues* malformed) {
  const Complaints complaints(pod, malformed);
  Bounds bounds;
  bounds.latest_start = complaints.Read(kLatestStartAnnotation,
                                        "a time such as 2026-01-31T22:00:00Z", sdk::ParseTimestamp);
  bounds.highest_cost =
      complaints.Read(kHighestCostAnnotation, "a decimal number",
                      [](absl::string_view text) { return sdk::ParseAmount(text); });
  bounds.regions = complaints.Read(kRegionsAnnotation, "names separated by commas", ParseNames)
                       .value_or(std::vector<std::string>());
  const std::optional<size_t> within =
      complaints.Read(kDataWithinAnnotation, "node or a level of args",
                      [&](absl::string_view text) -> std::optional<size_t> {
                        if (text == kThisNode) return 0;
                        const auto level = std::find(levels.begin(), levels.end(), text);
                        if (level == levels.end()) return std::nullopt;
                        return static_cast<size_t>(level - levels.begin()) + 1;
                      });
  if (within) {
    bounds.data = ReadData(complaints).value_or(std::vector<std::string>());
    if (!bounds.data.empty()) bounds.data_within = within;
  }
  bounds.licences = ReadLicences(pod, malformed);
  return bounds;
}

Licences ReadLicences(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) {
  Licences licences;
  for (const auto& [key, value] : pod.labels()) {
    absl::string_view name = key;
    if (!absl::ConsumePrefix(&name, kLicencePrefix)) continue;
    const std::optional<int64_t> count = sdk::ParseCount(value, kMaxLicencesOfPod);
    if (!count) Complaints(pod, malformed).Add(key, value, "a number of licences");
    if (count.value_or(0) > 0) licences.emplace_back(name, *count);
  }
  std::sort(licences.begin(), licences.end());
  return licences;
}

}  // namespace outboard::objectives
