// Sets of labels as their publishers write them, and what is known because of them.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugin_host/sdk/node_facts/node_facts.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk::publishers_test {
namespace {

using Labels = std::map<std::string, std::string>;
using Islands = std::vector<GpuIsland>;
using Kind = GpuSharing::Kind;

NodeFacts Read(const Labels& labels, const testing::Quantities& allocatable = {}) {
  testing::NodeBuilder node("n");
  node.Allocatable(allocatable);
  for (const auto& [key, value] : labels) node.Label(key, value);
  std::vector<MalformedLabel> malformed;
  NodeFacts facts = NodeFactsReader().Of(node, &malformed);
  EXPECT_TRUE(malformed.empty()) << malformed[0].key << "=" << malformed[0].value;
  return facts;
}

// What GPU Feature Discovery writes without sharing and MIG.
Labels Discovered(const std::string& product, const std::string& mib, const std::string& count,
                  const std::string& family, const std::string& major, const std::string& minor) {
  return {{"nvidia.com/gpu.present", "true"},
          {"nvidia.com/gpu.product", product},
          {"nvidia.com/gpu.memory", mib},
          {"nvidia.com/gpu.count", count},
          {"nvidia.com/gpu.family", family},
          {"nvidia.com/gpu.compute.major", major},
          {"nvidia.com/gpu.compute.minor", minor},
          {"nvidia.com/gpu.machine", "NVIDIA-DGX"},
          {"nvidia.com/gpu.mode", "compute"},
          {"nvidia.com/gpu.replicas", "1"},
          {"nvidia.com/gpu.sharing-strategy", "none"},
          {"nvidia.com/mig.capable", "true"},
          {"nvidia.com/mig.strategy", "single"},
          {"nvidia.com/mps.capable", "false"}};
}

struct Expected {
  Labels labels;
  double memory_gb;
  int64_t gpus;
  std::string family;
  int64_t generation;
  GpuTopology topology;
  Islands islands;
};

TEST(PublishersTest, GpuFeatureDiscoveryOnWholeGpus) {
  const std::vector<Expected> machines = {
      {Discovered("NVIDIA-A100-SXM4-40GB", "40960", "8", "ampere", "8", "0"),
       40,
       8,
       "ampere",
       8,
       GpuTopology::kNvswitch,
       {{8, 0}}},
      {Discovered("NVIDIA-A100-SXM4-80GB", "81920", "4", "ampere", "8", "0"),
       80,
       4,
       "ampere",
       8,
       GpuTopology::kNvlink,
       {{4, 0}}},
      {Discovered("NVIDIA-H100-80GB-HBM3", "81559", "8", "hopper", "9", "0"),
       80,
       8,
       "hopper",
       9,
       GpuTopology::kNvswitch,
       {{8, 0}}},
      {Discovered("NVIDIA-H200", "143771", "8", "hopper", "9", "0"),
       140,
       8,
       "hopper",
       9,
       GpuTopology::kNvswitch,
       {{8, 0}}},
      {Discovered("NVIDIA-B200", "183359", "8", "blackwell", "10", "0"),
       179,
       8,
       "blackwell",
       10,
       GpuTopology::kNvswitch,
       {{8, 0}}},
      {Discovered("NVIDIA-GB200", "189471", "4", "blackwell", "10", "0"),
       185,
       4,
       "blackwell",
       10,
       GpuTopology::kNvswitch,
       {{4, 0}}},
      {Discovered("NVIDIA-L40S", "46068", "4", "ada-lovelace", "8", "9"),
       45,
       4,
       "ada-lovelace",
       8,
       GpuTopology::kPcie,
       {}},
      {Discovered("NVIDIA-A100-80GB-PCIe", "81920", "4", "ampere", "8", "0"),
       80,
       4,
       "ampere",
       8,
       GpuTopology::kPcie,
       {}},
      {Discovered("NVIDIA-H100-PCIe", "81559", "4", "hopper", "9", "0"),
       80,
       4,
       "hopper",
       9,
       GpuTopology::kPcie,
       {}},
      {Discovered("NVIDIA-H100-NVL", "95830", "8", "hopper", "9", "0"),
       94,
       8,
       "hopper",
       9,
       GpuTopology::kPcie,
       {}},
      {Discovered("NVIDIA-H200-NVL", "143771", "8", "hopper", "9", "0"),
       140,
       8,
       "hopper",
       9,
       GpuTopology::kPcie,
       {}},
      {Discovered("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "97887", "8", "blackwell", "12",
                  "0"),
       96,
       8,
       "blackwell",
       10,
       GpuTopology::kPcie,
       {}},
      {Discovered("Tesla-V100-SXM2-32GB", "32768", "8", "volta", "7", "0"),
       32,
       8,
       "volta",
       7,
       GpuTopology::kNvlink,
       {{4, 0}, {4, 0}}},
      {Discovered("Tesla-V100-SXM3-32GB", "32768", "16", "volta", "7", "0"),
       32,
       16,
       "volta",
       7,
       GpuTopology::kNvswitch,
       {{16, 0}}},
      {Discovered("Tesla-V100-PCIE-16GB", "16384", "4", "volta", "7", "0"),
       16,
       4,
       "volta",
       7,
       GpuTopology::kPcie,
       {}},
      {Discovered("Tesla-T4", "15360", "4", "turing", "7", "5"),
       15,
       4,
       "turing",
       7,
       GpuTopology::kPcie,
       {}}};
  for (const Expected& machine : machines) {
    const std::string& product = machine.labels.at("nvidia.com/gpu.product");
    const NodeFacts facts = Read(machine.labels);
    EXPECT_EQ(facts.model.value, product);
    EXPECT_EQ(facts.model.source, FactSource::kFeatureDiscovery);
    EXPECT_EQ(facts.model.origin, "label nvidia.com/gpu.product");
    EXPECT_EQ(facts.memory_gb.value, machine.memory_gb) << product;
    EXPECT_EQ(facts.gpus.value, machine.gpus) << product;
    EXPECT_EQ(facts.family.value, machine.family) << product;
    EXPECT_EQ(facts.generation.value, machine.generation) << product;
    EXPECT_EQ(facts.sharing.value, GpuSharing()) << product;
    EXPECT_EQ(facts.topology.value, machine.topology) << product;
    EXPECT_EQ(facts.topology.source, FactSource::kConclusion) << product;
    EXPECT_EQ(facts.islands.value, machine.islands) << product;
  }
}

// The label of old releases says `undefined` for Blackwell, and `ampere` for Ada.
TEST(PublishersTest, TheCapabilityTellsMoreThanOldFamilyLabels) {
  Labels b200 = Discovered("NVIDIA-B200", "183359", "8", "undefined", "10", "0");
  EXPECT_EQ(Read(b200).family.value, "blackwell");
  b200.erase("nvidia.com/gpu.compute.major");
  EXPECT_EQ(Read(b200).family.value, "blackwell") << "from the name";
  EXPECT_EQ(Read(Discovered("NVIDIA-L40S", "46068", "4", "ampere", "8", "9")).family.value,
            "ada-lovelace");
  EXPECT_EQ(Read(Discovered("NVIDIA-VR200", "300000", "4", "rubin", "13", "0")).generation.value,
            11);
}

TEST(PublishersTest, GpuFeatureDiscoveryWithSharing) {
  Labels labels = Discovered("NVIDIA-A100-SXM4-40GB-SHARED", "40960", "8", "ampere", "8", "0");
  labels["nvidia.com/gpu.replicas"] = "4";
  labels["nvidia.com/gpu.sharing-strategy"] = "time-slicing";
  NodeFacts facts = Read(labels, {{"nvidia.com/gpu", "32"}});
  EXPECT_EQ(facts.sharing.value, (GpuSharing{Kind::kTimeSlicing, 4}));
  EXPECT_EQ(facts.gpus.value, 8);
  EXPECT_EQ(facts.islands.value, (Islands{{8, 0}}));
  labels["nvidia.com/gpu.sharing-strategy"] = "mps";
  EXPECT_EQ(Read(labels).sharing.value, (GpuSharing{Kind::kMps, 4}));
  // Sharing is disabled.
  labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB";
  labels["nvidia.com/gpu.replicas"] = "0";
  EXPECT_EQ(Read(labels).sharing.value, GpuSharing());
}

TEST(PublishersTest, GpuFeatureDiscoveryWithMig) {
  Labels single = Discovered("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "4864", "56", "ampere", "8", "0");
  single["nvidia.com/gpu.slices.gi"] = "1";
  NodeFacts facts = Read(single, {{"nvidia.com/gpu", "56"}});
  EXPECT_EQ(facts.sharing.value, (GpuSharing{Kind::kMigSingle, 1}));
  EXPECT_EQ(facts.memory_gb.value, 5);
  EXPECT_FALSE(facts.gpus.known()) << "the label counts MIG devices";
  EXPECT_EQ(facts.topology.value, GpuTopology::kPcie) << "MIG devices have no NVLink";

  Labels mixed = Discovered("NVIDIA-A100-SXM4-40GB", "40960", "8", "ampere", "8", "0");
  mixed["nvidia.com/mig.strategy"] = "mixed";
  mixed["nvidia.com/mig-3g.20gb.count"] = "4";
  mixed["nvidia.com/mig-3g.20gb.memory"] = "19968";
  mixed["nvidia.com/mig-3g.20gb.product"] = "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb";
  facts = Read(mixed);
  EXPECT_EQ(facts.sharing.value->kind, Kind::kMigMixed);
  EXPECT_EQ(facts.memory_gb.value, 40);
  EXPECT_EQ(facts.gpus.value, 8);

  Labels invalid = Discovered("NVIDIA-A100-SXM4-40GB-MIG-INVALID", "0", "0", "ampere", "8", "0");
  facts = Read(invalid);
  EXPECT_FALSE(facts.memory_gb.known());
  EXPECT_FALSE(facts.gpus.known());
}

TEST(PublishersTest, Gke) {
  // A3 High. GKE has no GPU Feature Discovery.
  const NodeFacts a3 = Read({{"cloud.google.com/gke-accelerator", "nvidia-h100-80gb"},
                             {"cloud.google.com/gke-accelerator-count", "8"},
                             {"cloud.google.com/gke-gpu-driver-version", "latest"},
                             {"cloud.google.com/gke-spot", "true"},
                             {"cloud.google.com/gke-provisioning", "spot"},
                             {"cloud.google.com/gce-topology-block", "b1"},
                             {"cloud.google.com/gce-topology-subblock", "s1"},
                             {"cloud.google.com/gce-topology-host", "h1"},
                             {"node.kubernetes.io/instance-type", "a3-highgpu-8g"}});
  EXPECT_EQ(a3.model.value, "nvidia-h100-80gb");
  EXPECT_EQ(a3.model.source, FactSource::kCloudLabels);
  EXPECT_EQ(a3.memory_gb.value, 80);
  EXPECT_EQ(a3.gpus.value, 8);
  EXPECT_EQ(a3.family.value, "hopper");
  EXPECT_EQ(a3.generation.value, 9);
  EXPECT_EQ(a3.topology.value, GpuTopology::kNvswitch);
  EXPECT_EQ(a3.topology.origin, "instance type a3-highgpu-8g");
  EXPECT_EQ(a3.islands.value, (Islands{{8, 0}}));
  EXPECT_EQ(a3.capacity_type.value, CapacityType::kSpot);
  ASSERT_TRUE(a3.network.known());
  EXPECT_EQ(a3.network.value->front(), (NetworkLevel{"cloud.google.com/gce-topology-host", "h1"}));
  EXPECT_EQ(a3.network.value->size(), 3u);
  // A machine of one's own, of a type that is not in the table.
  const NodeFacts unknown = Read({{"cloud.google.com/gke-accelerator", "nvidia-h100-80gb"},
                                  {"node.kubernetes.io/instance-type", "z9-custom"}});
  EXPECT_FALSE(unknown.topology.known()) << "the short name does not tell SXM from PCIe";
  const NodeFacts shared = Read({{"cloud.google.com/gke-accelerator", "nvidia-l4"},
                                 {"cloud.google.com/gke-gpu-sharing-strategy", "time-sharing"},
                                 {"cloud.google.com/gke-max-shared-clients-per-gpu", "4"}});
  EXPECT_EQ(shared.sharing.value, (GpuSharing{Kind::kTimeSlicing, 4}));
  const NodeFacts mig = Read({{"cloud.google.com/gke-accelerator", "nvidia-tesla-a100"},
                              {"cloud.google.com/gke-gpu-partition-size", "1g.5gb"},
                              {"node.kubernetes.io/instance-type", "a2-highgpu-8g"}});
  EXPECT_EQ(mig.topology.value, GpuTopology::kPcie);
}

TEST(PublishersTest, KarpenterOnAws) {
  const NodeFacts p5 = Read({{"karpenter.k8s.aws/instance-gpu-name", "h100"},
                             {"karpenter.k8s.aws/instance-gpu-manufacturer", "nvidia"},
                             {"karpenter.k8s.aws/instance-gpu-count", "8"},
                             {"karpenter.k8s.aws/instance-gpu-memory", "81920"},
                             {"karpenter.sh/capacity-type", "reserved"},
                             {"topology.k8s.aws/network-node-layer-1", "nn-top"},
                             {"topology.k8s.aws/network-node-layer-2", "nn-middle"},
                             {"topology.k8s.aws/network-node-layer-3", "nn-bottom"},
                             {"node.kubernetes.io/instance-type", "p5.48xlarge"}});
  EXPECT_EQ(p5.model.value, "h100");
  EXPECT_EQ(p5.memory_gb.value, 80);
  EXPECT_EQ(p5.memory_gb.origin, "label karpenter.k8s.aws/instance-gpu-memory");
  EXPECT_EQ(p5.gpus.value, 8);
  EXPECT_EQ(p5.generation.value, 9);
  EXPECT_EQ(p5.topology.value, GpuTopology::kNvswitch);
  EXPECT_EQ(p5.capacity_type.value, CapacityType::kReserved);
  ASSERT_TRUE(p5.network.known());
  EXPECT_EQ(p5.network.value->front().value, "nn-bottom") << "layer 3 is the nearest";
  // EKS with a plain AMI: only the type.
  const NodeFacts plain = Read({{"node.kubernetes.io/instance-type", "p4d.24xlarge"},
                                {"eks.amazonaws.com/capacityType", "ON_DEMAND"}});
  EXPECT_EQ(plain.model.value, "NVIDIA-A100-SXM4-40GB");
  EXPECT_EQ(plain.model.source, FactSource::kInstanceType);
  EXPECT_EQ(plain.islands.value, (Islands{{8, 0}}));
  EXPECT_EQ(plain.capacity_type.value, CapacityType::kOnDemand);
}

TEST(PublishersTest, Aks) {
  const NodeFacts nc = Read({{"kubernetes.azure.com/accelerator", "nvidia"},
                             {"kubernetes.azure.com/scalesetpriority", "spot"},
                             {"karpenter.azure.com/sku-gpu-name", "A100"},
                             {"karpenter.azure.com/sku-gpu-manufacturer", "nvidia"},
                             {"karpenter.azure.com/sku-gpu-count", "4"},
                             {"node.kubernetes.io/instance-type", "Standard_NC96ads_A100_v4"}});
  EXPECT_EQ(nc.model.value, "A100");
  EXPECT_EQ(nc.memory_gb.value, 80);
  EXPECT_EQ(nc.gpus.value, 4);
  EXPECT_EQ(nc.topology.value, GpuTopology::kPcie);
  EXPECT_EQ(nc.capacity_type.value, CapacityType::kSpot);
  EXPECT_EQ(Read({{"node.kubernetes.io/instance-type", "Standard_ND96isr_H100_v5"}}).topology.value,
            GpuTopology::kNvswitch);
}

TEST(PublishersTest, Oci) {
  const NodeFacts facts = Read({{"oci.oraclecloud.com/rdma.hpc_island_id", "md2gqsaja"},
                                {"oci.oraclecloud.com/rdma.network_block_id", "sn4ibrza"},
                                {"oci.oraclecloud.com/rdma.local_block_id", "xvl2gga"},
                                {"oci.oraclecloud.com/rdma.host_id", "clnbliq"},
                                {"oci.oraclecloud.com/oke-is-preemptible", "true"},
                                {"node.kubernetes.io/instance-type", "BM.GPU.H100.8"}});
  ASSERT_TRUE(facts.network.known());
  EXPECT_EQ(facts.network.value->front().value, "xvl2gga");
  EXPECT_EQ(facts.network.value->back().value, "md2gqsaja");
  EXPECT_EQ(facts.capacity_type.value, CapacityType::kSpot);
  EXPECT_EQ(facts.gpus.value, 8);
}

TEST(PublishersTest, CoreWeave) {
  Labels labels = Discovered("NVIDIA-GB200", "189471", "4", "blackwell", "10", "0");
  labels["node.coreweave.cloud/rack"] = "12";
  labels["ds.coreweave.com/nvlink.domain"] = "RNO2-012-US-EAST";
  labels["backend.coreweave.cloud/fabric"] = "ib0";
  labels["backend.coreweave.cloud/superpod"] = "1";
  labels["backend.coreweave.cloud/leafgroup"] = "3";
  NodeFacts facts = Read(labels);
  ASSERT_TRUE(facts.network.known());
  EXPECT_EQ(facts.network.value->size(), 4u);
  EXPECT_EQ(facts.network.value->front().label, "node.coreweave.cloud/rack");
  EXPECT_EQ(facts.nvlink_domain.value->label, "ds.coreweave.com/nvlink.domain");
  labels["nvidia.com/gpu.clique"] = "7b2f2c36-0d5e-4f0c-8a33-3c1f9a3f0f11.32766";
  EXPECT_EQ(Read(labels).nvlink_domain.value->label, "nvidia.com/gpu.clique");
  const NodeFacts older = Read({{"node.coreweave.cloud/rack", "12"},
                                {"ib.coreweave.cloud/leafgroup", "3"},
                                {"ib.coreweave.cloud/fabric", "ib0"}});
  ASSERT_TRUE(older.network.known());
  EXPECT_EQ(older.network.value->at(1).label, "ib.coreweave.cloud/leafgroup");
}

TEST(PublishersTest, TopographsThreeGenerations) {
  const std::vector<std::pair<Labels, std::string>> generations = {
      {{{"network.topology.nvidia.com/accelerator", "nvl1"},
        {"network.topology.nvidia.com/block", "s1"},
        {"network.topology.nvidia.com/spine", "s2"},
        {"network.topology.nvidia.com/datacenter", "s3"}},
       "network.topology.nvidia.com/accelerator"},
      {{{"network.topology.nvidia.com/accelerator", "nvl1"},
        {"network.topology.nvidia.com/leaf", "s1"},
        {"network.topology.nvidia.com/spine", "s2"},
        {"network.topology.nvidia.com/core", "s3"}},
       "network.topology.nvidia.com/accelerator"},
      {{{"accelerator.topograph.run/domain", "nvl1"},
        {"fabric.topograph.run/tier-0", "s1"},
        {"fabric.topograph.run/tier-1", "s2"},
        {"fabric.topograph.run/tier-2", "s3"}},
       "accelerator.topograph.run/domain"}};
  for (const auto& [labels, domain] : generations) {
    const NodeFacts facts = Read(labels);
    ASSERT_TRUE(facts.network.known()) << domain;
    std::vector<std::string> values;
    for (const NetworkLevel& level : *facts.network.value) values.push_back(level.value);
    EXPECT_EQ(values, (std::vector<std::string>{"s1", "s2", "s3"}));
    EXPECT_EQ(facts.nvlink_domain.value, (NetworkLevel{domain, "nvl1"}));
    EXPECT_EQ(facts.network.source, FactSource::kVendorLabels);
  }
}

TEST(PublishersTest, AmdAndIntel) {
  const NodeFacts amd = Read({{"amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM"},
                              {"amd.com/gpu.vram", "192G"},
                              {"amd.com/gpu.cu-count", "304"},
                              {"amd.com/gpu.device-id", "74a1"},
                              {"amd.com/gpu.family", "AI"}},
                             {{"amd.com/gpu", "8"}});
  EXPECT_EQ(amd.model.value, "AMD_Instinct_MI300X_OAM");
  EXPECT_EQ(amd.memory_gb.value, 192);
  EXPECT_EQ(amd.gpus.value, 8);
  EXPECT_EQ(amd.gpus.origin, "resource amd.com/gpu");
  EXPECT_FALSE(amd.generation.known()) << "not comparable with NVIDIA's";
  EXPECT_FALSE(amd.topology.known());
  EXPECT_EQ(Read({{"beta.amd.com/gpu.product-name", "AMD_Instinct_MI210"},
                  {"beta.amd.com/gpu.vram", "64G"}})
                .memory_gb.value,
            64);
  const NodeFacts intel = Read({{"gpu.intel.com/device.count", "4"},
                                {"gpu.intel.com/family", "Max_Series"},
                                {"gpu.intel.com/product", "Max_1550"}});
  EXPECT_EQ(intel.model.value, "Max_1550");
  EXPECT_EQ(intel.gpus.value, 4);
  EXPECT_EQ(intel.family.value, "Max_Series");
  EXPECT_FALSE(intel.generation.known());
}

}  // namespace
}  // namespace outboard::sdk::publishers_test
