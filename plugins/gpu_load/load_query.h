// The text of the Prometheus query, and the parser of its answer.
#ifndef OUTBOARD_PLUGINS_GPU_LOAD_LOAD_QUERY_H_
#define OUTBOARD_PLUGINS_GPU_LOAD_LOAD_QUERY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace outboard::gpu_load {

struct QueryOptions {
  // Labels that may name the node of a sample; the first that matches counts.
  std::vector<std::string> node_labels = {
      "Hostname", "node", "kubernetes_node", "nodename", "exported_node", "hostname", "instance"};
  std::map<std::string, std::string> matchers;  // Labels and values that all samples must have.
  absl::Duration max_sample_age = absl::Minutes(2);

  friend bool operator==(const QueryOptions&, const QueryOptions&) = default;
};

// Returns one PromQL expression for everything, so that one answer is consistent: a row per host
// and kind of figure, and a row per GPU that shows an XID. Prometheus computes the hosts' means,
// which keeps the answer small (a GPU's series has a dozen labels). The query drops samples that
// are too old by their own timestamps, because an instant query returns samples of up to five
// minutes ago as current.
std::string QueryText(const QueryOptions& options);

// The load of one host's GPUs.
struct HostLoad {
  std::vector<std::string> names;  // Values of node_labels, in order.
  double use = 0;                  // 0..1: mean over its GPUs.
  std::optional<double> memory;    // 0..1: used part of all its GPUs' memory.
  absl::Duration age;              // Of its oldest sample, when Prometheus answered.

  friend bool operator==(const HostLoad&, const HostLoad&) = default;
};

// The last XID of a GPU.
struct GpuXid {
  std::vector<std::string> names;
  std::string gpu;  // Its number; empty: unknown.
  int64_t code = 0;

  friend bool operator==(const GpuXid&, const GpuXid&) = default;
};

struct Reading {
  std::vector<HostLoad> hosts;
  std::vector<GpuXid> xids;
  size_t ignored = 0;  // Rows with invalid figures: not a number, negative, above the maximum.
};

// Reads an answer of /api/v1/query. Pure.
//
// Errors:
// - INVALID_ARGUMENT: not a valid answer, or more than kMaxRows rows.
// - ABORTED, with Prometheus' message: the query failed.
inline constexpr size_t kMaxRows = 500000;
absl::StatusOr<Reading> ParseAnswer(absl::string_view json, const QueryOptions& options);

}  // namespace outboard::gpu_load

#endif  // OUTBOARD_PLUGINS_GPU_LOAD_LOAD_QUERY_H_
