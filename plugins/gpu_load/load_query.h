// What Prometheus is asked, and what its answer says: both as texts.
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
  // Labels that may name the node of a sample, the first that does counts.
  std::vector<std::string> node_labels = {
      "Hostname", "node", "kubernetes_node", "nodename", "exported_node", "hostname", "instance"};
  std::map<std::string, std::string> matchers;  // Label and value that all samples must have.
  absl::Duration max_sample_age = absl::Minutes(2);

  friend bool operator==(const QueryOptions&, const QueryOptions&) = default;
};

// One PromQL expression for everything, so that one answer has it as of one moment: a row for each
// host and kind of figure, and one for each GPU that shows an XID. Hosts' means are made by
// Prometheus, which keeps the answer small (a GPU's series has a dozen labels). Samples that are
// too old are left out there, one by one, by their own timestamps: an instant query returns what is
// up to five minutes old as if it were of now.
std::string QueryText(const QueryOptions& options);

// What is known of the GPUs of one host.
struct HostLoad {
  std::vector<std::string> names;  // Values of node_labels, in their order.
  double use = 0;                  // 0..1: mean over its GPUs.
  std::optional<double> memory;    // 0..1: used, of all its GPUs' memory.
  absl::Duration age;              // Of its oldest sample, when Prometheus answered.

  friend bool operator==(const HostLoad&, const HostLoad&) = default;
};

// The last XID that a GPU had.
struct GpuXid {
  std::vector<std::string> names;
  std::string gpu;  // Its number; empty: unknown.
  int64_t code = 0;

  friend bool operator==(const GpuXid&, const GpuXid&) = default;
};

struct Reading {
  std::vector<HostLoad> hosts;
  std::vector<GpuXid> xids;
  size_t ignored = 0;  // Rows with figures that cannot be: not numbers, negative, more than all.
};

// Reads an answer of /api/v1/query. Pure.
//
// Errors: INVALID_ARGUMENT for what is no such answer, in part or as a whole, or has more than
//         kMaxRows rows; ABORTED with Prometheus' words if it says that it failed.
inline constexpr size_t kMaxRows = 500000;
absl::StatusOr<Reading> ParseAnswer(absl::string_view json, const QueryOptions& options);

}  // namespace outboard::gpu_load

#endif  // OUTBOARD_PLUGINS_GPU_LOAD_LOAD_QUERY_H_
