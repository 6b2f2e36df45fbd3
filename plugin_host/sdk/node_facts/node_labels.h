// The labels and annotations of nodes that facts are read from, and where their names come from.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_NODE_LABELS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_NODE_LABELS_H_

namespace outboard::sdk::node_labels {

// Ours, for administrators and our probe.
inline constexpr char kMemoryGb[] = "gpu-memory-gb";               // A number.
inline constexpr char kInterconnect[] = "gpu-interconnect";        // As kTopology.
inline constexpr char kGeneration[] = "gpu-generation";            // A name in Generations.
inline constexpr char kTopology[] = "nvidia.com/gpu-topology";     // nvlink, nvswitch, pcie.
inline constexpr char kIslandPrefix[] = "nvidia.com/gpu-island.";  // And a name: a number of GPUs.
inline constexpr char kIslandsAnnotation[] = "accelerator.sched.io/gpu-islands";  // ParseIslands.
inline constexpr char kFabricId[] = "nvlink-fabric-id";
inline constexpr char kCostPerHour[] = "node-cost-per-hour";  // A number, in any currency.

// NVIDIA's GPU Feature Discovery: internal/lm/{resource,mig-strategy,fabric,nvml}.go of
// NVIDIA/k8s-device-plugin.
inline constexpr char kProduct[] = "nvidia.com/gpu.product";
inline constexpr char kMemoryMib[] = "nvidia.com/gpu.memory";  // MiB of one GPU or MIG device.
inline constexpr char kCount[] = "nvidia.com/gpu.count";  // Not of replicas; MIG devices if single.
inline constexpr char kFamily[] = "nvidia.com/gpu.family";
inline constexpr char kComputeMajor[] = "nvidia.com/gpu.compute.major";
inline constexpr char kComputeMinor[] = "nvidia.com/gpu.compute.minor";
inline constexpr char kReplicas[] = "nvidia.com/gpu.replicas";  // 0: sharing is disabled.
inline constexpr char kSharingStrategy[] =
    "nvidia.com/gpu.sharing-strategy";                             // none, time-slicing, mps.
inline constexpr char kMigStrategy[] = "nvidia.com/mig.strategy";  // none, single, mixed.
inline constexpr char kMigPrefix[] = "nvidia.com/mig-";     // PROFILE.count and others, if mixed.
inline constexpr char kClique[] = "nvidia.com/gpu.clique";  // CLUSTERUUID.CLIQUEID

// AMD: cmd/k8s-node-labeller/main.go of ROCm/k8s-device-plugin; the second name is older.
inline constexpr const char* kAmdProducts[] = {"amd.com/gpu.product-name",
                                               "beta.amd.com/gpu.product-name"};
inline constexpr const char* kAmdMemory[] = {"amd.com/gpu.vram", "beta.amd.com/gpu.vram"};  // 192G

// Intel: deployments/nfd/overlays/node-feature-rules of intel/intel-device-plugins-for-kubernetes.
inline constexpr char kIntelProduct[] = "gpu.intel.com/product";  // Max_1550
inline constexpr char kIntelFamily[] = "gpu.intel.com/family";    // Max_Series
inline constexpr char kIntelCount[] = "gpu.intel.com/device.count";

// GKE: cloud.google.com/kubernetes-engine/docs/how-to/{gpus,timesharing-gpus,gpus-multi}.
inline constexpr char kGkeAccelerator[] = "cloud.google.com/gke-accelerator";  // nvidia-h100-80gb
inline constexpr char kGkeCount[] = "cloud.google.com/gke-accelerator-count";
inline constexpr char kGkePartition[] = "cloud.google.com/gke-gpu-partition-size";  // 1g.5gb
inline constexpr char kGkeSharing[] =
    "cloud.google.com/gke-gpu-sharing-strategy";  // time-sharing, mps
inline constexpr char kGkeClients[] = "cloud.google.com/gke-max-shared-clients-per-gpu";

// Karpenter: pkg/apis/v1/labels.go of aws/karpenter-provider-aws, pkg/apis/v1beta1/labels.go of
// Azure/karpenter-provider-azure; EKS Auto Mode: docs.aws.amazon.com/eks, "Create a node pool".
inline constexpr const char* kCloudGpuNames[] = {"karpenter.k8s.aws/instance-gpu-name",
                                                 "eks.amazonaws.com/instance-gpu-name",
                                                 "karpenter.azure.com/sku-gpu-name"};
inline constexpr const char* kCloudGpuCounts[] = {"karpenter.k8s.aws/instance-gpu-count",
                                                  "eks.amazonaws.com/instance-gpu-count",
                                                  "karpenter.azure.com/sku-gpu-count"};
inline constexpr const char* kCloudGpuMemory[] = {"karpenter.k8s.aws/instance-gpu-memory",
                                                  "eks.amazonaws.com/instance-gpu-memory"};  // MiB
// Kubernetes: kubernetes.io/docs/reference/labels-annotations-taints.
inline constexpr char kInstanceType[] = "node.kubernetes.io/instance-type";
inline constexpr char kZone[] = "topology.kubernetes.io/zone";
inline constexpr char kRegion[] = "topology.kubernetes.io/region";

// Capacity. Karpenter: pkg/apis/v1/labels.go of kubernetes-sigs/karpenter; EKS, GKE, AKS and OKE:
// their documentation on spot and preemptible nodes.
inline constexpr char kKarpenterCapacity[] = "karpenter.sh/capacity-type";
inline constexpr char kEksCapacity[] = "eks.amazonaws.com/capacityType";
inline constexpr char kGkeSpot[] = "cloud.google.com/gke-spot";
inline constexpr char kGkePreemptible[] = "cloud.google.com/gke-preemptible";
inline constexpr char kGkeProvisioning[] = "cloud.google.com/gke-provisioning";
inline constexpr char kAksPriority[] = "kubernetes.azure.com/scalesetpriority";
inline constexpr char kOkePreemptible[] = "oci.oraclecloud.com/oke-is-preemptible";

// Health: docs.aws.amazon.com/sagemaker, "Resilience-related Kubernetes labels" of HyperPod.
inline constexpr char kHyperPodHealth[] = "sagemaker.amazonaws.com/node-health-status";
inline constexpr char kHyperPodGood[] = "Schedulable";
// Unschedulable, UnschedulablePendingReplacement, UnschedulablePendingReboot.
inline constexpr char kHyperPodBad[] = "Unschedulable";

}  // namespace outboard::sdk::node_labels

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_NODE_LABELS_H_
