#include "integration/bench/gpu_cluster.h"

#include <memory>

#include "absl/strings/str_cat.h"

namespace outboard::bench {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

struct Model {
  const char* instance_type;
  const char* product;
  const char* family;
  const char* generation;
  int gpus;
  int memory_gb;
  const char* topology;  // null: none
  const char* islands;   // the annotation; null: none
  int cpus;
  int memory_gib;
  const char* cost;
};
constexpr Model kModels[] = {
    {"p5.48xlarge", "NVIDIA-H100-80GB-HBM3", "hopper", "h100", 8, 80, "nvswitch", nullptr, 192,
     2048, "55.04"},
    {"p4de.24xlarge", "NVIDIA-A100-SXM4-80GB", "ampere", "a100", 8, 80, "nvswitch", "nvswitch 0-7",
     96, 1152, "27.44"},
    {"p3.16xlarge", "Tesla-V100-SXM2-16GB", "volta", "v100", 8, 16, "nvlink", "nvlink 0-3;4-7", 64,
     488, "24.48"},
    {"g4dn.12xlarge", "Tesla-T4", "turing", nullptr, 4, 16, "pcie", nullptr, 48, 192, "3.912"},
};

bool HasGpus(int index) { return index % 5 == 1 || index % 5 == 3; }
const Model& ModelOf(int index) { return kModels[index / 5 % 4]; }

std::string NodeName(int index) { return absl::StrCat("node-", index); }

std::shared_ptr<kube::PodObject> NewPod(const std::string& name, int cpu_millis, int memory_mib,
                                        int gpus) {
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_uid(absl::StrCat("uid-", name));
  pod->pod.set_namespace_("default");
  pod->pod.set_name(name);
  v1beta1::Container* container = pod->pod.add_containers();
  container->set_image("registry.example/team/app:1");
  v1beta1::ResourceList* requests = container->mutable_requests();
  requests->set_cpu_millis(cpu_millis);
  requests->set_memory_bytes(int64_t{memory_mib} << 20);
  if (gpus > 0) (*requests->mutable_scalar())["nvidia.com/gpu"] = gpus;
  pod->resource_version = "1";
  return pod;
}

}  // namespace

kube::NodePtr GpuClusterNode(int index) {
  auto node = std::make_shared<kube::NodeObject>();
  const std::string name = NodeName(index);
  node->node.set_uid(absl::StrCat("11111111-2222-3333-4444-", index));
  node->node.set_name(name);
  auto& labels = *node->node.mutable_labels();
  labels["kubernetes.io/hostname"] = name;
  labels["kubernetes.io/arch"] = "amd64";
  labels["kubernetes.io/os"] = "linux";
  labels["topology.kubernetes.io/region"] = absl::StrCat("region-", index % 2);
  labels["topology.kubernetes.io/zone"] = absl::StrCat("zone-", index % 6);
  labels["topology.kubernetes.io/rack"] = absl::StrCat("rack-", index % 6, "-", index % 96 / 6);
  if (index % 3 == 0) labels["karpenter.sh/capacity-type"] = "spot";
  if (index % 7 == 0) labels["data.outboard/imagenet"] = "true";
  v1beta1::ResourceList* allocatable = node->node.mutable_allocatable();
  allocatable->set_ephemeral_storage_bytes(100 * kGi);
  allocatable->set_pods(110);
  if (!HasGpus(index)) {
    labels["node.kubernetes.io/instance-type"] = "m6i.8xlarge";
    labels["node-cost-per-hour"] = absl::StrCat("1.", 50 + index % 13);
    allocatable->set_cpu_millis(32000);
    allocatable->set_memory_bytes(128 * kGi);
    return node;
  }
  const Model& model = ModelOf(index);
  labels["node.kubernetes.io/instance-type"] = model.instance_type;
  labels["node-cost-per-hour"] = model.cost;
  labels["nvidia.com/gpu.product"] = model.product;
  labels["nvidia.com/gpu.family"] = model.family;
  labels["nvidia.com/gpu.count"] = absl::StrCat(model.gpus);
  labels["nvidia.com/gpu.memory"] = absl::StrCat(model.memory_gb * 1024);
  labels["nvidia.com/gpu.numa"] = absl::StrCat(index % 2);
  labels["gpu-memory-gb"] = absl::StrCat(model.memory_gb);
  if (model.generation != nullptr) labels["gpu-generation"] = model.generation;
  if (model.topology != nullptr) {
    labels["nvidia.com/gpu-topology"] = model.topology;
    if (std::string(model.topology) != "pcie") labels["gpu-interconnect"] = "nvlink";
  }
  if (model.islands != nullptr)
    (*node->node.mutable_annotations())["accelerator.sched.io/gpu-islands"] = model.islands;
  allocatable->set_cpu_millis(model.cpus * 1000);
  allocatable->set_memory_bytes(model.memory_gib * kGi);
  (*allocatable->mutable_scalar())["nvidia.com/gpu"] = model.gpus;
  return node;
}

std::vector<kube::PodPtr> RunningOn(int index) {
  std::vector<kube::PodPtr> pods;
  const auto add = [&](const std::shared_ptr<kube::PodObject>& pod) {
    pod->pod.set_node_name(NodeName(index));
    pods.push_back(pod);
  };
  for (int i = 0; i < 1 + index % 4; ++i) {
    auto pod = NewPod(absl::StrCat("service-", index, "-", i), 500 * (1 + index % 3), 1024, 0);
    (*pod->pod.mutable_labels())["app"] = absl::StrCat("service-", index % 50);
    add(pod);
  }
  if (!HasGpus(index)) return pods;
  if (index % 3 == 0) {
    auto pod = NewPod(absl::StrCat("trains-", index), 4000, 16384, 2);
    (*pod->pod.mutable_labels())["workload-type"] = "training";
    (*pod->pod.mutable_annotations())["accelerator.sched.io/gpu-ids"] = "0,1";
    add(pod);
  } else if (index % 3 == 1) {
    auto pod = NewPod(absl::StrCat("serves-", index), 2000, 8192, 1);
    (*pod->pod.mutable_labels())["workload-type"] = "inference";
    add(pod);
  }
  return pods;
}

const std::vector<PodKind>& PodKinds() {
  static const auto* const kinds = new std::vector<PodKind>{
      {"plain: CPU and memory", false},
      {"training, DDP on 4 A100", true},
      {"inference, 1 GPU, weighed objectives", true},
      {"tensor-parallel on 2 H100, near its data", true},
      {"batch, 1 GPU, GPU-intensive, highest cost", true},
  };
  return *kinds;
}

kube::PodPtr ArrivingPod(size_t kind, int index, const std::string& scheduler) {
  const std::string name = absl::StrCat("arrives-", kind, "-", index);
  std::shared_ptr<kube::PodObject> pod;
  const auto label = [&](const char* key, const char* value) {
    (*pod->pod.mutable_labels())[key] = value;
  };
  const auto annotate = [&](const char* key, const char* value) {
    (*pod->pod.mutable_annotations())[key] = value;
  };
  switch (kind) {
    case 0:
      pod = NewPod(name, 100, 500, 0);
      break;
    case 1:
      pod = NewPod(name, 8000, 32768, 4);
      label("workload-type", "training");
      label("accelerator.sched.io/parallelism", "ddp");
      label("accelerator.sched.io/gpu-model", "NVIDIA-A100-SXM4-80GB");
      break;
    case 2:
      pod = NewPod(name, 2000, 8192, 1);
      label("workload-type", "inference");
      annotate("accelerator.sched.io/gpu-memory-gb", "12");
      annotate("outboard/objectives", "cost=3,gpu=2");
      break;
    case 3:
      pod = NewPod(name, 4000, 16384, 2);
      label("tensor-parallel-size", "2");
      label("accelerator.sched.io/gpu-model", "NVIDIA-H100-80GB-HBM3");
      annotate("accelerator.sched.io/gpu-numa", "1");
      annotate("outboard/data", "imagenet");
      annotate("outboard/data-within", "topology.kubernetes.io/region");
      break;
    default:
      pod = NewPod(name, 1000, 4096, 1);
      label("workload-type", "GPU-intensive");
      annotate("outboard/sla-highest-cost", "30");
      annotate("outboard/allowed-regions", "region-0,region-1");
      break;
  }
  pod->pod.set_scheduler_name(scheduler);
  return pod;
}

}  // namespace outboard::bench
