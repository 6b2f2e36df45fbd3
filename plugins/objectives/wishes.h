// Objectives and bounds from a pod's annotations and labels.
#ifndef OUTBOARD_PLUGINS_OBJECTIVES_WISHES_H_
#define OUTBOARD_PLUGINS_OBJECTIVES_WISHES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/label_values.h"

namespace outboard::objectives {

inline constexpr char kWeightsAnnotation[] = "outboard/objectives";
inline constexpr char kNearPodsAnnotation[] = "outboard/near-pods";
inline constexpr char kDataAnnotation[] = "outboard/data";
inline constexpr char kDataWithinAnnotation[] = "outboard/data-within";
inline constexpr char kLatestStartAnnotation[] = "outboard/sla-latest-start";
inline constexpr char kHighestCostAnnotation[] = "outboard/sla-highest-cost";
inline constexpr char kRegionsAnnotation[] = "outboard/allowed-regions";
// Prefix of the licence name; a label, so that selectors can find the pods that hold it.
inline constexpr char kLicencePrefix[] = "licence.outboard/";
inline constexpr double kMaxWeight = 1000;

struct Weights {
  double cost = 1, distance = 1, gpu = 1, cpu = 1;
  std::vector<std::pair<std::string, double>> metrics = {};  // In the order of the arguments.
  double* Find(absl::string_view name);                      // Null for an unknown name.
  bool any() const;
};

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Licences = std::vector<std::pair<std::string, int64_t>>;

// `a=b,c=d`; `a,b`. Returns nullopt for an empty text, an empty or repeated name, or more than 32.
std::optional<Pairs> ParsePairs(absl::string_view text);
std::optional<std::vector<std::string>> ParseNames(absl::string_view text);

// What a pod prefers.
struct Preferences {
  Weights weights;
  Pairs near_pods;                // Labels of pods of its namespace.
  std::vector<std::string> data;  // Data to be near to.
};

// What a pod requires.
struct Bounds {
  std::optional<absl::Time> latest_start;
  std::optional<double> highest_cost;
  std::vector<std::string> regions;   // Empty: any.
  std::vector<std::string> data;      // Empty unless data_within.
  std::optional<size_t> data_within;  // See Places: 0 the node itself, then the levels.
  Licences licences;
  bool any() const {
    return latest_start || highest_cost || !regions.empty() || data_within || !licences.empty();
  }
};

// Read one pod. An invalid value counts as absent, and is reported unless `malformed` is null.
Preferences ReadPreferences(const v1beta1::Pod& pod, const Weights& defaults,
                            sdk::MalformedValues* malformed);
Bounds ReadBounds(const v1beta1::Pod& pod, const std::vector<std::string>& levels,
                  sdk::MalformedValues* malformed);
// Sorted by name; amounts are above 0.
Licences ReadLicences(const v1beta1::Pod& pod, sdk::MalformedValues* malformed);

}  // namespace outboard::objectives

#endif  // OUTBOARD_PLUGINS_OBJECTIVES_WISHES_H_
