// The text of the Prometheus query, and the reader of its samples.
#ifndef OUTBOARD_PLUGINS_GPU_LOAD_LOAD_QUERY_H_
#define OUTBOARD_PLUGINS_GPU_LOAD_LOAD_QUERY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "plugin_host/sdk/prometheus/matchers.h"
#include "plugin_host/sdk/prometheus/node_names.h"
#include "plugin_host/sdk/prometheus/samples.h"

namespace outboard::gpu_load {

struct QueryOptions {
  // Labels that may name the node of a sample; the first that matches counts.
  std::vector<std::string> node_labels = prometheus::DefaultNodeLabels();
  prometheus::Matchers matchers;
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

// Reads the samples of an answer to this query. Pure.
Reading ReadSamples(const std::vector<prometheus::Sample>& samples, const QueryOptions& options);

}  // namespace outboard::gpu_load

#endif  // OUTBOARD_PLUGINS_GPU_LOAD_LOAD_QUERY_H_
