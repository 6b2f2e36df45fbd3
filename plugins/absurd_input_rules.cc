#include "plugins/absurd_input_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "plugin_host/sdk/workload_type.h"

namespace outboard::absurd {
namespace {

bool Matches(const std::string& text, const char* expression) {
  static auto& made =
      *new std::map<std::string, std::regex>();  // Compiling takes longer than matching.
  const auto known = made.find(expression);
  return std::regex_match(
      text, known != made.end() ? known->second
                                : made.emplace(expression, std::regex(expression)).first->second);
}

// A decimal number without a sign, at most `max`.
Grammar Amount(double max, double above = -1) {
  static const std::regex& decimal = *new std::regex(R"([0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)");
  return {[max, above](const std::string& text, const Context&) {
            if (!std::regex_match(text, decimal)) return false;
            const double value = std::strtod(text.c_str(), nullptr);
            return std::isfinite(value) && value <= max && value > above;
          },
          {"0.5", "1", "0.25", "7e-1"},
          {"1e309", "1e16", "2,5", "8GB", "80Gi"}};
}

// Digits, from `min` to `max`.
bool IsCount(const std::string& text, int64_t min, int64_t max) {
  static const std::regex& digits = *new std::regex("[0-9]+");
  if (!std::regex_match(text, digits)) return false;
  const long double value = std::strtold(text.c_str(), nullptr);
  return value >= static_cast<long double>(min) && value <= static_cast<long double>(max);
}
Grammar Count(int64_t max, int64_t min = 0) {
  return {[min, max](const std::string& text, const Context&) { return IsCount(text, min, max); },
          {"1", "2", "4", "08"},
          {"2.0", "1e2", "99999999999", "2;"}};
}

Grammar OneOf(std::vector<std::string> words) {
  std::vector<std::string> good = words;
  good.push_back(absl::AsciiStrToUpper(words[0]));
  return {[words](const std::string& text, const Context&) {
            for (const std::string& word : words) {
              if (absl::AsciiStrToLower(text) == absl::AsciiStrToLower(word)) return true;
            }
            return false;
          },
          good,
          {words[0] + " ", words[0] + ",", "x" + words[0], "nv", "yes"}};
}
Grammar Bool() { return OneOf({"true", "false"}); }

Grammar Time() {
  return {[](const std::string& text, const Context&) {
            return Matches(text, R"((19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T)"
                                 R"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?)"
                                 R"((Z|[+-](0[0-9]|1[0-4]):[0-5][0-9]))");
          },
          {"2026-01-05T18:00:00Z", "2026-01-05T18:00:00+01:00", "1999-12-01T00:00:00.25Z"},
          {"2026-01-05", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-05T18:00:00",
           "2026-01-05T25:00:00Z", "99999-01-01T00:00:00Z", " 2026-01-05T18:00:00Z",
           "2026-01-05T18:00:00Z ", "tomorrow", "infinite-future", "1767636000"}};
}

// `0,2,4-7`; the set in `ids`.
bool IsGpuIds(const std::string& text, std::set<int>* ids) {
  static const std::regex& list =
      *new std::regex("[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*");
  if (!std::regex_match(text, list)) return false;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const std::vector<std::string> ends = absl::StrSplit(part, '-');
    const int first = std::atoi(ends.front().c_str()), last = std::atoi(ends.back().c_str());
    if (first > last || last > 63) return false;
    for (int id = first; id <= last; ++id) ids->insert(id);
  }
  return true;
}
Grammar GpuIds() {
  return {[](const std::string& text, const Context& context) {
            std::set<int> ids;
            return IsGpuIds(text, &ids) &&
                   (context.gpus <= 0 || static_cast<int64_t>(ids.size()) <= context.gpus);
          },
          {"0", "0,1", "1-2", "3"},
          {"0-", "-0-3", "3-0", "0-99999999", "64", "0;1", "0, 1", "a"}};
}
Grammar KoordinatorDevices() {
  const std::vector<std::string> one = {R"({"gpu": [{"minor": 0}]})",
                                        R"({"gpu": [{"minor": 3, "resources": {}}], "rdma": 1})"};
  const std::string two = R"({"gpu": [{"minor": 0}, {"minor": 1}]})";
  std::vector<std::string> good = one;
  good.push_back(two);
  return {
      [one, two](const std::string& text, const Context& context) {
        if (text == two) return context.gpus <= 0 || context.gpus >= 2;
        return text == one[0] || text == one[1];
      },
      good,
      {"{}", "[]", R"({"gpu": []})", R"({"gpu": [{"minor": -1}]})", R"({"gpu": [{"minor": 64}]})",
       R"({"gpu": [{"minor": 1e3}]})", R"({"gpu": [{"minor": "0"}]})", R"({"gpu": {"minor": 0}})",
       R"({"gpu": [{"minor": 18446744073709551615}]})", "{\"gpu\": [",
       std::string(3000, '[') + std::string(3000, ']')}};
}
Grammar Islands() {
  return {[](const std::string& text, const Context&) {
            const std::pair<std::string, std::string> parts =
                absl::StrSplit(text, absl::MaxSplits(' ', 1));
            const std::string topology = absl::AsciiStrToLower(parts.first);
            if (topology != "nvlink" && topology != "nvswitch" && topology != "pcie") return false;
            std::set<int> seen;
            for (const std::string& island :
                 std::vector<std::string>(absl::StrSplit(parts.second, ';'))) {
              std::set<int> ids;
              if (!IsGpuIds(island, &ids)) return false;
              for (const int id : ids) {
                if (!seen.insert(id).second) return false;
              }
            }
            return true;
          },
          {"nvlink 0-3;4-7", "pcie 0;1", "NVSwitch 0-7"},
          {"nvlink", "nvlink ", "nvlink  0-3", "nvlink 0-3;3", "nvlink 0-3;", "sli 0-1",
           "0-3 nvlink", "nvlink 0-99"}};
}

// Pods with their GPU ids, separated by `;`: up to 32 KiB, no pod twice.
Grammar PodGpus() {
  return {[](const std::string& text, const Context&) {
            if (text.empty()) return true;
            if (text.size() > 32768) return false;
            std::set<std::string> seen;
            for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ';'))) {
              const std::pair<std::string, std::string> sides =
                  absl::StrSplit(part, absl::MaxSplits('=', 1));
              std::set<int> ids;
              const size_t slash = sides.first.find('/');
              if (slash == std::string::npos || slash == 0 || slash + 1 == sides.first.size())
                return false;
              if (!IsGpuIds(sides.second, &ids)) return false;
              if (!seen.insert(sides.first).second) return false;
            }
            return true;
          },
          {"", "default/p0=0", "default/p0=0-3;default/p1=4,5"},
          {"default/p0", "default/p0=", "p0=0", "default/p0=0;default/p0=1", "default/p0=64",
           "default/p0=0;", "/=0"}};
}

// Names separated by commas, optional blanks around them: up to 32, no duplicates, not empty.
bool AreNames(const std::string& text, std::vector<std::string>* names) {
  std::set<std::string> seen;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    names->emplace_back(absl::StripAsciiWhitespace(part));
    if (names->back().empty() || !seen.insert(names->back()).second) return false;
  }
  return names->size() <= 32;
}
Grammar Names(std::vector<std::string> good) {
  return {[](const std::string& text, const Context&) {
            std::vector<std::string> names;
            return AreNames(text, &names);
          },
          std::move(good),
          {",", "a,", ",a", "a,a", "a,,b", "   ",
           "0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w"}};
}
// `a=b,c=d` without duplicate keys; `is_value` checks the part after the sign.
Grammar Pairs(std::function<bool(const std::string&, const std::string&)> is_pair,
              std::vector<std::string> good) {
  return {[is_pair](const std::string& text, const Context&) {
            std::vector<std::string> names;
            std::set<std::string> keys;
            if (!AreNames(text, &names)) return false;
            for (const std::string& name : names) {
              const size_t sign = name.find('=');
              if (sign == 0 || sign == std::string::npos) return false;
              const std::string key = name.substr(0, sign);
              if (!keys.insert(key).second || !is_pair(key, name.substr(sign + 1))) return false;
            }
            return true;
          },
          std::move(good),
          {"cost", "=1", "cost=1,cost=2", "cost=1;gpu=2", "cost=1,", "cost==1", "cost=-1",
           "cost=1001", "cost=NaN", "speed=1", "COST=1", "cost=1.", "cost=.5", "cost=0x10"}};
}
Grammar Weights() {
  return Pairs(
      [](const std::string& key, const std::string& value) {
        return (key == "cost" || key == "distance" || key == "gpu" || key == "cpu") &&
               Amount(1000).can_be_read(value, {});
      },
      {"cost=3,gpu=0", "cpu=2", "cost=0,distance=0,gpu=0,cpu=0", "cost=1e2"});
}
Grammar Labels() {
  Grammar labels = Pairs([](const std::string&, const std::string&) { return true; },
                         {"app=db", "app=db,tier=", "app = db"});
  labels.absurd = {"app", "=db", "app=db,app=web", "app=db,"};
  return labels;
}

Grammar Parallelism(bool several) {
  return {[several](const std::string& text, const Context&) {
            const std::string lower = absl::AsciiStrToLower(text);
            if (lower == "none" || lower == "ddp" || lower == "tensor-parallel") return true;
            return several && Matches(lower, "(ddp|tensor-parallel)(,(ddp|tensor-parallel))*");
          },
          {"ddp", "tensor-parallel", "none", "DDP"},
          {"ddp ", "none,none,", "tp", "dd p", ","}};
}
Grammar Model() {
  return {[](const std::string& text, const Context&) {
            return !Matches(absl::AsciiStrToLower(text), "(nvidia-)?");
          },
          {"NVIDIA-A100-SXM4-80GB", "a100-sxm4-80gb", "Tesla-V100-PCIE-16GB",
           "NVIDIA-A100-SXM4-80GB-SHARED"},
          {"nvidia-", "NVIDIA-"}};
}
// A node's: the text must not be empty without the vendor and the suffix for slices.
Grammar Product() {
  Grammar product = Model();
  product.can_be_read = [](const std::string& text, const Context&) {
    return !Matches(absl::AsciiStrToLower(text), R"((nvidia-)?(-shared)?(-mig-[\s\S]*)?)");
  };
  product.absurd = {"nvidia-", "-SHARED", "-mig-1g.5gb", "nvidia--shared"};
  return product;
}
Grammar Level() {
  const std::set<std::string> levels = {"node", "topology.kubernetes.io/rack",
                                        "topology.kubernetes.io/zone",
                                        "topology.kubernetes.io/region"};
  return {[levels](const std::string& text, const Context&) { return levels.contains(text); },
          {levels.begin(), levels.end()},
          {"Node", "zone", "node ", "topology.kubernetes.io/"}};
}
Grammar HamiDevices() {
  return {[](const std::string& text, const Context&) {
            return Matches(text, R"((GPU-[a-z0-9]+,NVIDIA,[0-9]+,[0-9]+:)+;)");
          },
          {"GPU-0fc3,NVIDIA,3000,30:;", "GPU-a,NVIDIA,1,1:GPU-b,NVIDIA,1,1:;"},
          {";", ":;", ",NVIDIA,3000,30:;", "GPU-0fc3:;", "GPU-0fc3,NVIDIA:;"}};
}
// As OneOf, but case-sensitive.
Grammar Exactly(std::vector<std::string> words) {
  return {[words](const std::string& text, const Context&) {
            return std::find(words.begin(), words.end(), text) != words.end();
          },
          words,
          {absl::AsciiStrToUpper(words[0]), words[0] + " ", "x" + words[0], "yes"}};
}
// `true`, `false` or the name of an object.
Grammar StaticIpPool() {
  return {[](const std::string& text, const Context&) {
            const std::string lower = absl::AsciiStrToLower(text);
            return lower == "true" || lower == "false" ||
                   (text.size() <= 253 && Matches(text, "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"));
          },
          {"true", "False", "databases", "rack-1.eu"},
          {"-databases", "databases-", "Databases", "a/b", "a_b", "true "}};
}
// No value is malformed here: an unknown word just does not match.
Grammar AnyText(std::vector<std::string> good) {
  return {[](const std::string&, const Context&) { return true; }, std::move(good), {}};
}

std::vector<Rule> MakeRules() {
  using enum Where;
  constexpr Complains kAlways = Complains::kAlways;
  constexpr double kMuch = 1e15;
  const Grammar types = AnyText({"training", "inference", "CPU-intensive", "gpu-intensive"});
  std::vector<Rule> rules = {
      {"GPUAware", kNodeLabel, "gpu-generation", OneOf({"v100", "a100", "h100"}), kAlways},
      {"GPUAware", kNodeLabel, "sagemaker.amazonaws.com/node-health-status",
       AnyText({"Schedulable", "Unschedulable"})},

      {"GPUModelMatch", kNodeLabel, "nvidia.com/gpu.numa", Count(1023), kAlways},
      {"GPUModelMatch", kPodLabel, "accelerator.sched.io/gpu-model", Model()},
      {"GPUModelMatch", kPodAnnotation, "accelerator.sched.io/gpu-numa", Count(1023)},

      {"TopologyAwareGPUGate", kNodeAnnotation, "accelerator.sched.io/pod-gpus", PodGpus(),
       kAlways},
      {"TopologyAwareGPUGate", kPodLabel, "accelerator.sched.io/parallelism", Parallelism(true)},
      {"TopologyAwareGPUGate", kPodAnnotation, "accelerator.sched.io/parallelism",
       Parallelism(true)},
      {"TopologyAwareGPUGate", kPodLabel, "tensor-parallel-size", Count(1 << 20)},
      {"TopologyAwareGPUGate", kPodAnnotation, "tensor-parallel-size", Count(1 << 20)},

      {"WorkloadStrategyScorer", kNodeAnnotation, "accelerator.sched.io/pod-gpus", PodGpus(),
       kAlways},
      {"WorkloadStrategyScorer", kPodLabel, "workload-type", types},
      {"WorkloadStrategyScorer", kPodAnnotation, "accelerator.sched.io/gpu-memory-gb", Amount(1e9)},
      {"WorkloadStrategyScorer", kPodAnnotation, "gpu-memory", Amount(1024e9)},
      {"WorkloadStrategyScorer", kPodAnnotation, "gpu-fraction-num-devices", Count(4096)},
      {"WorkloadStrategyScorer", kPodAnnotation, "hami.io/vgpu-devices-allocated", HamiDevices()},

      {"WorkloadTypeFilter", kPodLabel, "workload-type", types},

      {"CostOptimized", kNodeLabel, "node-cost-per-hour", Amount(kMuch), kAlways},
      {"CostOptimized", kNodeLabel, "cloud.google.com/gke-spot", Bool(), kAlways},
      {"CostOptimized", kNodeLabel, "node.kubernetes.io/instance-type",
       AnyText({"m5.large", "Spot-8"})},
      {"CostOptimized", kNodeLabel, "karpenter.sh/capacity-type", AnyText({"spot", "on-demand"})},
      {"CostOptimized", kNodeLabel, "eks.amazonaws.com/capacityType", AnyText({"SPOT"})},
      {"CostOptimized", kNodeLabel, "kubernetes.azure.com/scalesetpriority", AnyText({"spot"})},
      {"CostOptimized", kPodAnnotation, "outboard/run-after-cheap-hours", Bool(), kAlways},
      {"CostOptimized", kPodAnnotation, "outboard/latest-start", Time()},
      {"CostOptimized", kPodAnnotation, "outboard/spot", OneOf({"welcome", "averse", "neutral"})},
      {"CostOptimized", kPodLabel, "outboard/spot", OneOf({"averse", "welcome", "neutral"})},
      {"CostOptimized", kPodAnnotation, "outboard/checkpointing", Bool()},
      {"CostOptimized", kPodLabel, "workload-type", types},

      {"CostAwarePreemptor", kPodLabel, "workload-type", types},
      {"CostAwarePreemptor", kPodAnnotation, "outboard/checkpointing", Bool()},
      {"CostAwarePreemptor", kPodAnnotation, "outboard/last-checkpoint-time", Time()},
      {"CostAwarePreemptor", kPodAnnotation, "volcano.sh/last-checkpoint-time", Time()},
      {"CostAwarePreemptor", kPodAnnotation, "outboard/start-time", Time()},
      {"CostAwarePreemptor", kPodAnnotation, "outboard/estimated-end", Time()},
      {"CostAwarePreemptor", kPodAnnotation, "outboard/run-seconds", Count(315360000)},
      {"CostAwarePreemptor", kPodAnnotation, "outboard/restart-seconds", Count(315360000)},
      {"CostAwarePreemptor", kPodAnnotation, "outboard/preemptible", Bool()},
      {"CostAwarePreemptor", kPodAnnotation, "volcano.sh/preemptable", Bool()},
      {"CostAwarePreemptor", kPodLabel, "volcano.sh/preemptable", Bool()},
      {"CostAwarePreemptor", kPodLabel, "kai.scheduler/preemptibility",
       OneOf({"preemptible", "non-preemptible", "semi-preemptible"})},
      {"CostAwarePreemptor", kPodLabel, "kueue.x-k8s.io/max-exec-time-seconds",
       Count(315360000, 1)},
      {"CostAwarePreemptor", kPodAnnotation, "slurmjob.slinky.slurm.net/timelimit",
       Count(5256000, 1)},
      {"CostAwarePreemptor", kPodAnnotation, "sagemaker.amazonaws.com/enable-job-auto-resume",
       Bool()},

      {"Backfill", kPodAnnotation, "outboard/checkpointing", Bool()},
      {"Backfill", kPodAnnotation, "outboard/last-checkpoint-time", Time()},
      {"Backfill", kPodAnnotation, "volcano.sh/last-checkpoint-time", Time()},
      {"Backfill", kPodAnnotation, "outboard/start-time", Time()},
      {"Backfill", kPodAnnotation, "outboard/estimated-end", Time()},
      {"Backfill", kPodAnnotation, "outboard/run-seconds", Count(315360000)},
      {"Backfill", kPodAnnotation, "outboard/restart-seconds", Count(315360000)},
      {"Backfill", kPodAnnotation, "outboard/preemptible", Bool()},
      {"Backfill", kPodAnnotation, "volcano.sh/preemptable", Bool()},
      {"Backfill", kPodLabel, "volcano.sh/preemptable", Bool()},
      {"Backfill", kPodLabel, "kai.scheduler/preemptibility",
       OneOf({"preemptible", "non-preemptible", "semi-preemptible"})},
      {"Backfill", kPodLabel, "kueue.x-k8s.io/max-exec-time-seconds", Count(315360000, 1)},
      {"Backfill", kPodAnnotation, "slurmjob.slinky.slurm.net/timelimit", Count(5256000, 1)},
      {"Backfill", kPodAnnotation, "sagemaker.amazonaws.com/enable-job-auto-resume", Bool()},

      {"Objectives", kNodeLabel, "node-cost-per-hour", Amount(kMuch), kAlways},
      {"Objectives", kNodeLabel, "topology.kubernetes.io/rack", AnyText({"r1", "r2"})},
      {"Objectives", kNodeLabel, "topology.kubernetes.io/zone", AnyText({"a", "b"})},
      {"Objectives", kNodeLabel, "topology.kubernetes.io/region", AnyText({"eu-1", "us-1"})},
      {"Objectives", kNodeLabel, "data.outboard/c4", Bool(), kAlways},
      {"Objectives", kNodeLabel, "data.outboard/maps", Bool(), kAlways},
      {"Objectives", kPodAnnotation, "outboard/objectives", Weights(), kAlways},
      {"Objectives", kPodAnnotation, "outboard/near-pods", Labels(), kAlways},
      {"Objectives", kPodAnnotation, "outboard/data", Names({"c4", "maps", "c4, maps"}), kAlways},
      {"Objectives", kPodAnnotation, "outboard/data-within", Level(), kAlways},
      {"Objectives", kPodAnnotation, "outboard/sla-latest-start", Time(), kAlways},
      {"LatestStartSort", kPodAnnotation, "outboard/sla-latest-start", Time()},
      {"LatestStartSort", kPodAnnotation, "outboard/latest-start", Time()},
      {"Objectives", kPodAnnotation, "outboard/sla-highest-cost", Amount(kMuch), kAlways},
      {"Objectives", kPodAnnotation, "outboard/allowed-regions", Names({"eu-1", "eu-1,us-1"}),
       kAlways},
      {"Objectives", kPodLabel, "licence.outboard/solver", Count(1000000000), kAlways},

      {"GPUPacking", kNodeLabel, "nvidia.com/gpu.count", Count(int64_t{1} << 40)},
      {"GPUPacking", kNodeLabel, "nvidia.com/gpu.memory", Count(int64_t{1} << 40)},
      {"GPUPacking", kNodeLabel, "nvidia.com/gpu.replicas", Count(int64_t{1} << 40)},
      {"GPUPacking", kNodeLabel, "nvidia.com/gpu.product", AnyText({"A100", "Tesla-T4"})},
      {"GPUPacking", kPodAnnotation, "gpu-fraction", Amount(1, 0)},
      {"GPUPacking", kPodAnnotation, "gpu-memory", Count(int64_t{1} << 30, 1)},
      {"GPUPacking", kPodAnnotation, "gpu-fraction-num-devices", Count(128, 1)},
      {"GPUPacking", kPodAnnotation, "hami.io/vgpu-devices-allocated", HamiDevices()},
      {"GPUPacking", kPodLabel, "runai-gpu-group", AnyText({"g1", "g2"})},

      {"TrainingJobPlacement", kPodLabel, "training-job-id", AnyText({"llama", "Llama_1"})},
      {"TrainingJobPlacement", kNodeLabel, "nvlink-fabric-id", AnyText({"f1", "f2"})},
      {"TrainingJobPlacement", kNodeLabel, "nvidia.com/gpu.clique", AnyText({"c.1"})},

      {"StaticIP", kPodLabel, "outboard/static-ip", StaticIpPool()},
      {"StaticIP", kPodAnnotation, "outboard/static-ip", StaticIpPool()},
      {"StaticIP", kPodAnnotation, "outboard/static-ip-release",
       Exactly({"Never", "OnScaleDown", "OnDelete"})},
      {"StaticIP", kPodAnnotation, "k8s.v1.cni.galaxy.io/release-policy",
       Exactly({"immutable", "never", ""})},
      {"StaticIP", kPodAnnotation, "networking.alibaba.com/ip-retain", Bool()},
      {"StaticIP", kPodAnnotation, "networking.alibaba.com/specified-network", AnyText({"n1"})},
      {"StaticIP", kPodAnnotation, "ipam.antrea.io/ippools", AnyText({"p1"})},
      {"StaticIP", kPodAnnotation, "ipam.spidernet.io/ippool", AnyText({R"({"ipv4": ["p1"]})"})},
      {"StaticIP", kPodAnnotation, "ipam.spidernet.io/ippools", AnyText({R"([{"ipv4": ["p1"]}])"})},
      {"StaticIP", kPodAnnotation, "ovn.kubernetes.io/ip_pool", AnyText({"10.9.0.1"})},
      {"StaticIP", kPodAnnotation, "ovn.kubernetes.io/logical_switch", AnyText({"s1"})},
  };
  // The plugins that ask the SDK's node_facts.
  for (const char* plugin :
       {"GPUAware", "GPUModelMatch", "TopologyAwareGPUGate", "WorkloadStrategyScorer"}) {
    const Grammar topology = OneOf({"nvlink", "nvswitch", "pcie"});
    rules.push_back({plugin, kNodeLabel, "gpu-memory-gb", Amount(1e6), kAlways});
    rules.push_back({plugin, kNodeLabel, "node-cost-per-hour", Amount(kMuch), kAlways});
    rules.push_back({plugin, kNodeLabel, "gpu-interconnect", topology, kAlways});
    rules.push_back({plugin, kNodeLabel, "nvidia.com/gpu-topology", topology, kAlways});
    for (const char* island : {"nvidia.com/gpu-island.a", "nvidia.com/gpu-island.b"})
      rules.push_back({plugin, kNodeLabel, island, Count(4096), kAlways});
    rules.push_back(
        {plugin, kNodeAnnotation, "accelerator.sched.io/gpu-islands", Islands(), kAlways});
    rules.push_back({plugin, kNodeLabel, "nvidia.com/gpu.product", Product(), kAlways});
    rules.push_back({plugin, kNodeLabel, "nvidia.com/gpu.memory", Amount(1024e6)});
    rules.push_back({plugin, kNodeLabel, "nvidia.com/gpu.count", Count(4096), kAlways});
    rules.push_back({plugin, kNodeLabel, "nvidia.com/gpu.replicas", Count(4096), kAlways});
    rules.push_back({plugin, kNodeLabel, "nvidia.com/gpu.family", AnyText({"ampere", "Hopper"})});
    rules.push_back({plugin, kNodeLabel, "nvidia.com/gpu.compute.major", Count(1000), kAlways});
    rules.push_back({plugin, kNodeLabel, "cloud.google.com/gke-spot", Bool(), kAlways});
  }
  for (const char* plugin : {"TopologyAwareGPUGate", "WorkloadStrategyScorer"}) {
    rules.push_back({plugin, kPodAnnotation, "accelerator.sched.io/gpu-ids", GpuIds()});
    rules.push_back({plugin, kPodAnnotation, "volcano.sh/gpu-index", GpuIds()});
    rules.push_back({plugin, kPodAnnotation, "scheduling.koordinator.sh/device-allocated",
                     KoordinatorDevices()});
  }
  for (const char* plugin : {"WorkloadStrategyScorer", "CostAwarePreemptor"}) {
    for (const std::string& label : sdk::WorkloadTypeLabels()) {
      if (label != sdk::kWorkloadTypeLabel)
        rules.push_back({plugin, kPodLabel, label, AnyText({"a", "llminferenceservice"})});
    }
  }
  return rules;
}

}  // namespace

const std::vector<Requested>& RequestedPlugins() {
  static const auto& plugins = *new std::vector<Requested>{
      {"GPUAware",
       {R"(insufficient GPU: need [0-9]+, available [0-9]+)",
        R"(insufficient GPU memory: need [0-9.e+-]+GB, available [0-9.e+-]+GB)",
        R"(GPUs are ill: label sagemaker\.amazonaws\.com/node-health-status=Unschedulable \(HyperPod\))"}},
      {"GPUModelMatch",
       {"Node does not have a GPU model label", "GPU model mismatch",
        "cannot align (pod|container|init container|sidecar container)"}},
      {"TopologyAwareGPUGate",
       {"Node lacks [0-9]+ GPUs in unified NVLink island",
        "Tensor parallelism demands NVLink/NVSwitch fabric"}},
      {"WorkloadStrategyScorer", {}},
      {"WorkloadTypeFilter", {"Node lacks CPU resources", "Node lacks GPU resources"}},
      {"CostOptimized",
       {R"(waiting for cheap hours, (which begin at|at the latest until) [0-9-]+T[0-9:]+Z)"}},
      {"CostAwarePreemptor",
       {R"(preemption: 0/[0-9]+ nodes are available: [^:]*\.( Training pods that are spared: .*\.)?( Pods that must not be preempted: [0-9]+\.)?( Members of gangs that would break: [0-9]+\.)?)",
        R"(preemption: gang "[\s\S]*" (has no number of members|would not be complete: [0-9]+ of [0-9]+ members run)\.)"}},
      {"Objectives",
       {R"(latest start [0-9-]+T[0-9:]+Z is past)",
        R"(node costs [0-9.e+-]+, highest cost [0-9.e+-]+)", "cost of the node is unknown",
        R"(node is in (no region|region [\s\S]*), allowed: [\s\S]*)",
        R"(node is not in the [a-z./]+ of data [\s\S]+)", R"(node does not hold data [\s\S]+)",
        R"(no node holds data [\s\S]+)",
        R"(insufficient licences of [a-z]+: need [0-9]+, available [0-9]+)"}},
      {"GPUPacking",
       {R"(insufficient GPU: need [0-9]+, available [0-9]+)",
        R"(insufficient shared GPU: need [0-9]+ with [0-9]+m, available [0-9]+, most on one [0-9]+m)",
        R"(insufficient GPU memory: need [0-9]+MiB, available [0-9]+MiB)",
        "node does not share GPUs by gpu-fraction or gpu-memory"}},
      {"AtomicReplicaCoordinator",
       {R"(gang "[\s\S]*": [\s\S]* is not a number of replicas between 1 and 100000)",
        R"(gang "[\s\S]*": [0-9]\S* of \S+ .*)"}},
      {"Coscheduling", {}},
      {"Backfill",
       {R"(node is reserved for [\s\S]+( from [0-9: -]+ on)? \(.* declared(, [0-9hms]+ left)?\))"}},
      {"GPULoad", {R"(GPU error: XID [0-9]+ on GPU [0-9]+(, .*)?)"}},
      {"MetricScore", {R"(metric [A-Za-z0-9_-]+ is [0-9.e+-]+, at (most|least) [0-9.e+-]+)"}},
      {"LatestStartSort", {}},
      {"TrainingJobPlacement", {}},
      {"StaticIP",
       {"no free static IP in a pool that node can serve",
        R"(reserved IP [0-9a-f.:]+(: StaticIPPool "[\s\S]*" does not exist| cannot be served here))",
        R"(reserved IP [0-9a-f.:]+ is still used by pod [a-z0-9/-]+)", "no StaticIPPool exists",
        R"(StaticIPPool "[\s\S]*" (does not exist|is invalid: [\s\S]*))"}},
  };
  return plugins;
}

const std::vector<Rule>& Rules() {
  static const auto& rules = *new std::vector<Rule>(MakeRules());
  return rules;
}

const std::vector<std::string>& AbsurdValues() {
  static const auto& values = *new std::vector<std::string>{"",
                                                            " ",
                                                            "-1",
                                                            "-0",
                                                            "+5",
                                                            "1.",
                                                            ".5",
                                                            "5 ",
                                                            " 5",
                                                            "\t5",
                                                            "5\n",
                                                            "1e309",
                                                            "NaN",
                                                            "nan",
                                                            "inf",
                                                            "infinity",
                                                            "0x10",
                                                            "0b1",
                                                            "1_000",
                                                            "1,5",
                                                            "९",
                                                            "٣",
                                                            "０",
                                                            "½",
                                                            "🚀",
                                                            "שלום",
                                                            "مرحبا",
                                                            "\u202e5",
                                                            "\u200b5",
                                                            "--",
                                                            "null",
                                                            "None",
                                                            "99999999999999999999",
                                                            "9223372036854775808",
                                                            "9223372036854775807",
                                                            "1e",
                                                            "1e+",
                                                            "e5",
                                                            "1e5e5",
                                                            "1.2.3",
                                                            "12abc",
                                                            "abc12",
                                                            "{}",
                                                            "[]",
                                                            "\"5\"",
                                                            std::string("5\0", 2),
                                                            std::string(63, 'x'),
                                                            std::string(63, '9'),
                                                            "%n%s",
                                                            "../../etc"};
  return values;
}

}  // namespace outboard::absurd
