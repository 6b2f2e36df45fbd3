// Where a node is in the network, and the terms on which a cloud lends it.
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "plugin_host/sdk/node_facts/fact_readers.h"
#include "plugin_host/sdk/node_facts/node_labels.h"

namespace outboard::sdk {
namespace {

namespace names = node_labels;

struct DomainLabel {
  const char* key;
  FactSource source;
};
// The NVLink fabric over several nodes.
constexpr DomainLabel kNvlinkDomains[] = {
    {names::kFabricId, FactSource::kAdministrator},
    {names::kClique, FactSource::kFeatureDiscovery},
    // NVIDIA/topograph: docs/reference/node-labels-and-annotations.md of 1.0 and of 0.5. It leaves
    // its label away where GPU Feature Discovery has one.
    {"accelerator.topograph.run/domain", FactSource::kVendorLabels},
    {"network.topology.nvidia.com/accelerator", FactSource::kVendorLabels},
    // docs.coreweave.com, "Node labels".
    {"ds.coreweave.com/nvlink.domain", FactSource::kCloudLabels},
};

// A publisher's labels, the nearest to the node first.
struct Publisher {
  FactSource source;
  std::vector<const char*> keys;
};
const std::vector<Publisher>& Publishers() {
  static const auto& publishers = *new std::vector<Publisher>{
      // topograph 1.0 and later; the depth varies.
      {FactSource::kVendorLabels,
       {"fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1", "fabric.topograph.run/tier-2",
        "fabric.topograph.run/tier-3", "fabric.topograph.run/tier-4", "fabric.topograph.run/tier-5",
        "fabric.topograph.run/tier-6", "fabric.topograph.run/tier-7"}},
      // topograph 0.3 to 0.5; before that `block` and `datacenter`: docs/engines/k8s.md.
      {FactSource::kVendorLabels,
       {"network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block",
        "network.topology.nvidia.com/spine", "network.topology.nvidia.com/core",
        "network.topology.nvidia.com/datacenter"}},
      // docs.aws.amazon.com/eks/latest/userguide/ml-workload-topology.html: layer 1 is the top.
      {FactSource::kCloudLabels,
       {"topology.k8s.aws/network-node-layer-4", "topology.k8s.aws/network-node-layer-3",
        "topology.k8s.aws/network-node-layer-2", "topology.k8s.aws/network-node-layer-1"}},
      // cloud.google.com/kubernetes-engine, "Schedule workloads with topology-aware scheduling".
      {FactSource::kCloudLabels,
       {"cloud.google.com/gce-topology-host", "cloud.google.com/gce-topology-subblock",
        "cloud.google.com/gce-topology-block"}},
      // oracle-quickstart/oci-hpc-oke:
      // docs/using-rdma-network-locality-when-running-workloads-on-oke.md.
      {FactSource::kCloudLabels,
       {"oci.oraclecloud.com/rdma.local_block_id", "oci.oraclecloud.com/rdma.network_block_id",
        "oci.oraclecloud.com/rdma.hpc_island_id"}},
      // docs.coreweave.com, "InfiniBand and RoCE labels"; `ib.` is older.
      {FactSource::kCloudLabels,
       {"node.coreweave.cloud/rack", "backend.coreweave.cloud/leafgroup",
        "backend.coreweave.cloud/superpod", "backend.coreweave.cloud/fabric"}},
      {FactSource::kCloudLabels,
       {"node.coreweave.cloud/rack", "ib.coreweave.cloud/leafgroup", "ib.coreweave.cloud/superpod",
        "ib.coreweave.cloud/fabric"}}};
  return publishers;
}

template <typename Keys>
std::vector<NetworkLevel> LevelsOf(const LabelReader& labels, const Keys& keys) {
  std::vector<NetworkLevel> levels;
  for (const auto& key : keys) {
    if (const std::string* value = labels.Text(key)) levels.push_back({key, *value});
  }
  return levels;
}
Fact<std::vector<NetworkLevel>> LevelsFact(std::vector<NetworkLevel> levels, FactSource source) {
  std::string origin = absl::StrCat("label ", levels.front().label);
  if (levels.size() > 1) absl::StrAppend(&origin, " and others");
  return MakeFact(std::move(levels), source, std::move(origin));
}

bool Says(const LabelReader& labels, const char* key, absl::string_view value) {
  const std::string* text = labels.Text(key);
  return text != nullptr && absl::EqualsIgnoreCase(*text, value);
}

// A label whose value names the type. Any that says spot wins.
struct CapacityLabel {
  const char* key;
  const char* value;
  CapacityType type;
};
constexpr CapacityLabel kCapacityLabels[] = {
    {names::kKarpenterCapacity, "spot", CapacityType::kSpot},
    {names::kEksCapacity, "SPOT", CapacityType::kSpot},
    {names::kGkeProvisioning, "spot", CapacityType::kSpot},
    {names::kGkeProvisioning, "preemptible", CapacityType::kSpot},
    {names::kAksPriority, "spot", CapacityType::kSpot},
    {names::kKarpenterCapacity, "reserved", CapacityType::kReserved},
    {names::kEksCapacity, "CAPACITY_BLOCK", CapacityType::kReserved},
    {names::kGkeProvisioning, "reservation", CapacityType::kReserved},
    {names::kKarpenterCapacity, "on-demand", CapacityType::kOnDemand},
    {names::kEksCapacity, "ON_DEMAND", CapacityType::kOnDemand},
    {names::kGkeProvisioning, "standard", CapacityType::kOnDemand},
    {names::kAksPriority, "regular", CapacityType::kOnDemand},
};

}  // namespace

Fact<NetworkLevel> ReadNvlinkDomain(const LabelReader& labels,
                                    const std::vector<std::string>& first) {
  for (const std::string& key : first) {
    if (const std::string* value = labels.Text(key))
      return FromLabel(NetworkLevel{key, *value}, FactSource::kAdministrator, key);
  }
  for (const DomainLabel& label : kNvlinkDomains) {
    if (const std::string* value = labels.Text(label.key))
      return FromLabel(NetworkLevel{label.key, *value}, label.source, label.key);
  }
  return {};
}

Fact<std::vector<NetworkLevel>> ReadNetwork(const LabelReader& labels,
                                            const std::vector<std::string>& first) {
  if (std::vector<NetworkLevel> levels = LevelsOf(labels, first); !levels.empty())
    return LevelsFact(std::move(levels), FactSource::kAdministrator);
  for (const Publisher& publisher : Publishers()) {
    std::vector<NetworkLevel> levels = LevelsOf(labels, publisher.keys);
    // A rack alone is not a network; the next publisher has the older names.
    if (levels.empty() || (levels.size() == 1 && levels[0].label == "node.coreweave.cloud/rack"))
      continue;
    return LevelsFact(std::move(levels), publisher.source);
  }
  return {};
}

Fact<CapacityType> ReadCapacityType(const StringMap& all, std::vector<MalformedLabel>* malformed) {
  LabelReader labels(all, malformed);
  for (const char* key : {names::kGkeSpot, names::kGkePreemptible, names::kOkePreemptible}) {
    if (labels.Bool(key).value_or(false))
      return FromLabel(CapacityType::kSpot, FactSource::kCloudLabels, key);
  }
  for (const CapacityLabel& label : kCapacityLabels) {
    if (Says(labels, label.key, label.value))
      return FromLabel(label.type, FactSource::kCloudLabels, label.key);
  }
  return {};
}

}  // namespace outboard::sdk
