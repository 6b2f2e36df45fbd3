#include "plugin_host/sdk/node_facts/describe.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/gpu_devices.h"

namespace outboard::sdk {
namespace {

constexpr char kGpuPublishers[] =
    "GPU Feature Discovery (NVIDIA's GPU operator), NVIDIA's DRA driver, GKE, Karpenter; or an "
    "instance type in nodeFacts";

std::string Text(const std::string& value) { return value; }
std::string Text(int64_t value) { return absl::StrCat(value); }
std::string Text(GpuTopology topology) { return TopologyName(topology); }
std::string Text(CapacityType type) { return CapacityTypeName(type); }
std::string Text(const GpuSharing& sharing) {
  return sharing.replicas > 1
             ? absl::StrCat(SharingName(sharing.kind), ", ", sharing.replicas, " replicas")
             : SharingName(sharing.kind);
}
std::string Text(const NetworkLevel& level) {
  return absl::StrCat(level.value, " (", level.label, ")");
}
std::string Text(const std::vector<NetworkLevel>& levels) {
  return absl::StrJoin(levels, " < ", [](std::string* out, const NetworkLevel& level) {
    absl::StrAppend(out, Text(level));
  });
}
std::string Text(const std::vector<GpuIsland>& islands) {
  if (islands.empty()) return "none";
  return absl::StrJoin(islands, ", ", [](std::string* out, const GpuIsland& island) {
    absl::StrAppend(out, GpusInWords(island.gpus));
    if (island.ids != 0) absl::StrAppend(out, " (", FormatGpuIds(island.ids), ")");
  });
}
std::string Text(const std::vector<GpuProblem>& problems) {
  if (problems.empty()) return "none";
  return absl::StrJoin(problems, "; ", [](std::string* out, const GpuProblem& problem) {
    absl::StrAppend(out, problem.what);
  });
}
std::string Text(double value) { return absl::StrCat(value); }
// With a unit.
Fact<std::string> InGb(const Fact<double>& fact) {
  if (!fact.known()) return {};
  return {absl::StrCat(*fact.value, " GB"), fact.source, fact.origin};
}

template <typename T>
FactLine Line(const char* name, const Fact<T>& fact, const char* publishers) {
  FactLine line;
  line.fact = name;
  if (fact.known()) {
    line.value = Text(*fact.value);
    line.origin = fact.origin;
  } else {
    line.publishers = publishers;
  }
  line.source = FactSourceName(fact.source);
  return line;
}

}  // namespace

std::string GpusInWords(int64_t gpus) { return absl::StrCat(gpus, gpus == 1 ? " GPU" : " GPUs"); }

std::vector<FactLine> DescribeFacts(const NodeFacts& facts) {
  return {
      Line("model", facts.model, kGpuPublishers),
      Line("memory of a GPU", InGb(facts.memory_gb), kGpuPublishers),
      Line("GPUs", facts.gpus, kGpuPublishers),
      Line("family", facts.family, "GPU Feature Discovery, NVIDIA's DRA driver"),
      Line("generation", facts.generation,
           "GPU Feature Discovery, NVIDIA's DRA driver; AMD's and Intel's are not compared"),
      Line("sharing", facts.sharing, "GPU Feature Discovery, GKE"),
      Line("NVLink in the node", facts.topology,
           "concluded from GPU Feature Discovery's product of known boards; "
           "outboard-node-probe, or the label nvidia.com/gpu-topology"),
      Line("NVLink islands", facts.islands,
           "as NVLink in the node; with nvlink or nvswitch all GPUs are one island"),
      Line("NVLink domain over nodes", facts.nvlink_domain,
           "GPU Feature Discovery on multi-node NVLink, topograph, CoreWeave"),
      Line("network", facts.network, "topograph, AWS, GKE, OKE, CoreWeave"),
      Line("capacity type", facts.capacity_type, "Karpenter, EKS, GKE, AKS, OKE"),
      Line(
          "price per hour", facts.price,
          "an administrator's label or price list; CostOptimized also reads OpenCost and Karpenter "
          "through Prometheus"),
      Line("GPU problems", facts.gpu_problems, "the kubelet; NVSentinel, EKS, AKS, HyperPod"),
  };
}

}  // namespace outboard::sdk
