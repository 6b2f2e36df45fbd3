// Parses Prometheus' answers to instant queries.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_SAMPLES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_SAMPLES_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outboard::prometheus {

// An element of an instant vector.
struct Sample {
  std::map<std::string, std::string> labels;
  double time = 0;    // When Prometheus evaluated the query, in seconds since 1970, by its clock.
  std::string value;  // As Prometheus wrote it; may be NaN or infinite.

  // Empty without the label.
  const std::string& Label(absl::string_view name) const;
  // Non-empty values of these labels, in this order.
  std::vector<std::string> Values(const std::vector<std::string>& names) const;
  // nullopt: not a finite number.
  std::optional<double> Number() const;
};

// More samples are refused.
inline constexpr size_t kMaxSamples = 500000;

// Reads an answer of /api/v1/query, which may be any bytes. Pure.
//
// Errors:
// - INVALID_ARGUMENT: not a valid answer with a vector, or one above a limit: samples, labels of a
//   sample, length of a text, depth.
// - ABORTED, with Prometheus' message: the query failed.
absl::StatusOr<std::vector<Sample>> ParseSamples(absl::string_view json);

// A string literal of PromQL.
std::string Quoted(absl::string_view text);

}  // namespace outboard::prometheus

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_SAMPLES_H_
