// What is known of a node's GPUs, network and price, and who published it.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_FACTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin_host/sdk/gpu_devices.h"
#include "plugin_host/sdk/node_facts/gpu_islands.h"

namespace outboard::sdk {

// Who says it, the most trusted first. A fact comes from the first source that has it.
enum class FactSource {
  kNone,              // Unknown.
  kAdministrator,     // Our own labels, annotations and arguments.
  kResourceSlice,     // The DRA driver's devices.
  kFeatureDiscovery,  // NVIDIA's GPU Feature Discovery.
  kVendorLabels,      // AMD's node labeller, Intel's rules for Node Feature Discovery, topograph.
  kCloudLabels,       // A cloud's labels, Karpenter's.
  kMetrics,           // OpenCost's and Karpenter's prices, through Prometheus.
  kInstanceType,      // The table of instance types.
  kConclusion,        // From other facts, such as the product's name.
  kCluster,           // The node's status: resources, conditions.
};
// `administrator`, `resource slice`, …; `unknown` for kNone.
const char* FactSourceName(FactSource source);

// A fact, or that it is unknown, which is a value too. `Source` is an enum with kNone: of nodes
// here, of pods in run_facts/.
template <typename T, typename Source = FactSource>
struct Fact {
  std::optional<T> value;
  Source source = Source::kNone;
  // `label nvidia.com/gpu.product`, `instance type p5.48xlarge`; empty if unknown.
  std::string origin;

  bool known() const { return value.has_value(); }
  friend bool operator==(const Fact&, const Fact&) = default;
};

// How pods share a GPU. With kMigSingle the GPU resource counts MIG devices; with kMigMixed each
// profile has a resource of its own.
struct GpuSharing {
  enum class Kind { kNone, kTimeSlicing, kMps, kMigSingle, kMigMixed };
  Kind kind = Kind::kNone;
  int64_t replicas = 1;  // Of each GPU or MIG device.
  friend bool operator==(const GpuSharing&, const GpuSharing&) = default;
};
const char* SharingName(GpuSharing::Kind kind);

// GPUs of which every pair has NVLink.
struct GpuIsland {
  int64_t gpus = 0;
  GpuSet ids = 0;  // 0: unknown.
  friend bool operator==(const GpuIsland&, const GpuIsland&) = default;
};

// A node's place at one level of the network: nodes with the same label and value are together.
// Values of different labels must not be compared.
struct NetworkLevel {
  std::string label;
  std::string value;
  friend bool operator==(const NetworkLevel&, const NetworkLevel&) = default;
};

enum class CapacityType { kOnDemand, kSpot, kReserved };
const char* CapacityTypeName(CapacityType type);

// Something that is wrong with a node's GPUs.
struct GpuProblem {
  enum class Certainty {
    kCounted,    // The node offers fewer GPUs because of it; those that are left work.
    kSuspected,  // New pods on the node may suffer.
    kCertain,    // Its publisher says that no new pod should use the node's GPUs.
  };
  std::string what;  // `condition GpuMemWatch=True (NVSentinel)`
  Certainty certainty = Certainty::kCounted;
  friend bool operator==(const GpuProblem&, const GpuProblem&) = default;
};

struct NodeFacts {
  // The product as published, such as `NVIDIA-H100-80GB-HBM3`, `nvidia-l4` (GKE), `h100`
  // (Karpenter). With several models on the node: unknown.
  Fact<std::string> model;
  // Of one GPU, or of one MIG device where the GPU resource counts these. Rounded to whole GB
  // where a driver reports it.
  Fact<double> memory_gb;
  // Physical ones, however they are shared.
  Fact<int64_t> gpus;
  // As GPU Feature Discovery names it: volta, ampere, ada-lovelace, hopper, blackwell, rubin.
  Fact<std::string> family;
  // A number to compare generations; see Generations.
  Fact<int64_t> generation;
  Fact<GpuSharing> sharing;
  Fact<GpuTopology> topology;  // Never kUnknown as a value.
  // The largest first. Known and empty: no pair of GPUs has NVLink as far as known. Unknown with
  // topology kNvlink or kNvswitch: all GPUs are one island.
  Fact<std::vector<GpuIsland>> islands;
  // Nodes with the same label and value share NVLink.
  Fact<NetworkLevel> nvlink_domain;
  // The nearest first, never empty as a value. All labels are of one publisher.
  Fact<std::vector<NetworkLevel>> network;
  Fact<CapacityType> capacity_type;
  // An hour of the node, in the currency of the source.
  Fact<double> price;
  // What is wrong with its GPUs; known and empty: nothing, according to its status.
  Fact<std::vector<GpuProblem>> gpu_problems;
  // GPUs in ResourceSlices that no new pod may use, because of a device taint. They may still be
  // in the node's allocatable resources, which another component writes.
  Fact<int64_t> tainted_gpus;

  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// A malformed label, which counts as absent.
struct MalformedLabel {
  std::string key;
  std::string value;
  std::string wanted;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_FACTS_H_
