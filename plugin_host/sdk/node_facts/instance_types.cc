#include "plugin_host/sdk/node_facts/instance_types.h"

#include "plugin_host/sdk/node_facts/fact_readers.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {
namespace {

constexpr char kV100x16[] = "Tesla-V100-SXM2-16GB", kV100x32[] = "Tesla-V100-SXM2-32GB";
constexpr char kA100x40[] = "NVIDIA-A100-SXM4-40GB", kA100x80[] = "NVIDIA-A100-SXM4-80GB";
constexpr char kA100Pcie[] = "NVIDIA-A100-80GB-PCIe", kH100Nvl[] = "NVIDIA-H100-NVL";
constexpr char kH100[] = "NVIDIA-H100-80GB-HBM3", kH200[] = "NVIDIA-H200";
constexpr char kB200[] = "NVIDIA-B200", kGb200[] = "NVIDIA-GB200";
constexpr char kT4[] = "Tesla-T4", kA10[] = "NVIDIA-A10", kA10g[] = "NVIDIA-A10G";
constexpr char kL4[] = "NVIDIA-L4", kL40s[] = "NVIDIA-L40S";

InstanceTypes MakeDefaults() {
  return {
      // AWS: docs.aws.amazon.com/ec2/latest/instancetypes/ac.html (accelerated computing).
      {"p3.2xlarge", {kV100x16, 16, 1}},
      {"p3.8xlarge", {kV100x16, 16, 4}},
      {"p3.16xlarge", {kV100x16, 16, 8}},
      {"p3dn.24xlarge", {kV100x32, 32, 8}},
      {"p4d.24xlarge", {kA100x40, 40, 8}},
      {"p4de.24xlarge", {kA100x80, 80, 8}},
      {"p5.4xlarge", {kH100, 80, 1}},
      {"p5.48xlarge", {kH100, 80, 8}},
      {"p5e.48xlarge", {kH200, 141, 8}},
      {"p5en.48xlarge", {kH200, 141, 8}},
      {"p6-b200.48xlarge", {kB200, 179, 8}},
      {"p6e-gb200.36xlarge", {kGb200, 185, 4}},
      {"g4dn.xlarge", {kT4, 16, 1}},
      {"g4dn.2xlarge", {kT4, 16, 1}},
      {"g4dn.4xlarge", {kT4, 16, 1}},
      {"g4dn.8xlarge", {kT4, 16, 1}},
      {"g4dn.16xlarge", {kT4, 16, 1}},
      {"g4dn.12xlarge", {kT4, 16, 4}},
      {"g4dn.metal", {kT4, 16, 8}},
      {"g5.xlarge", {kA10g, 24, 1}},
      {"g5.2xlarge", {kA10g, 24, 1}},
      {"g5.4xlarge", {kA10g, 24, 1}},
      {"g5.8xlarge", {kA10g, 24, 1}},
      {"g5.16xlarge", {kA10g, 24, 1}},
      {"g5.12xlarge", {kA10g, 24, 4}},
      {"g5.24xlarge", {kA10g, 24, 4}},
      {"g5.48xlarge", {kA10g, 24, 8}},
      {"g6.xlarge", {kL4, 24, 1}},
      {"g6.2xlarge", {kL4, 24, 1}},
      {"g6.4xlarge", {kL4, 24, 1}},
      {"g6.8xlarge", {kL4, 24, 1}},
      {"g6.16xlarge", {kL4, 24, 1}},
      {"g6.12xlarge", {kL4, 24, 4}},
      {"g6.24xlarge", {kL4, 24, 4}},
      {"g6.48xlarge", {kL4, 24, 8}},
      {"g6e.xlarge", {kL40s, 48, 1}},
      {"g6e.2xlarge", {kL40s, 48, 1}},
      {"g6e.4xlarge", {kL40s, 48, 1}},
      {"g6e.8xlarge", {kL40s, 48, 1}},
      {"g6e.16xlarge", {kL40s, 48, 1}},
      {"g6e.12xlarge", {kL40s, 48, 4}},
      {"g6e.24xlarge", {kL40s, 48, 4}},
      {"g6e.48xlarge", {kL40s, 48, 8}},
      // Google Cloud: cloud.google.com/compute/docs/gpus. G2 machines have PCIe cards.
      {"a2-highgpu-1g", {kA100x40, 40, 1}},
      {"a2-highgpu-2g", {kA100x40, 40, 2}},
      {"a2-highgpu-4g", {kA100x40, 40, 4}},
      {"a2-highgpu-8g", {kA100x40, 40, 8}},
      {"a2-megagpu-16g", {kA100x40, 40, 16}},
      {"a2-ultragpu-1g", {kA100x80, 80, 1}},
      {"a2-ultragpu-2g", {kA100x80, 80, 2}},
      {"a2-ultragpu-4g", {kA100x80, 80, 4}},
      {"a2-ultragpu-8g", {kA100x80, 80, 8}},
      {"a3-highgpu-1g", {kH100, 80, 1}},
      {"a3-highgpu-2g", {kH100, 80, 2}},
      {"a3-highgpu-4g", {kH100, 80, 4}},
      {"a3-highgpu-8g", {kH100, 80, 8}},
      {"a3-megagpu-8g", {kH100, 80, 8}},
      {"a3-edgegpu-8g", {kH100, 80, 8}},
      {"a3-ultragpu-8g", {kH200, 141, 8}},
      {"a4-highgpu-8g", {kB200, 179, 8}},
      {"a4x-highgpu-4g", {kGb200, 185, 4}},
      {"g2-standard-4", {kL4, 24, 1}},
      {"g2-standard-8", {kL4, 24, 1}},
      {"g2-standard-12", {kL4, 24, 1}},
      {"g2-standard-16", {kL4, 24, 1}},
      {"g2-standard-24", {kL4, 24, 2}},
      {"g2-standard-32", {kL4, 24, 1}},
      {"g2-standard-48", {kL4, 24, 4}},
      {"g2-standard-96", {kL4, 24, 8}},
      // Azure: learn.microsoft.com/azure/virtual-machines/sizes/overview (GPU accelerated).
      {"Standard_ND96asr_v4", {kA100x40, 40, 8}},
      {"Standard_ND96amsr_A100_v4", {kA100x80, 80, 8}},
      {"Standard_ND96isr_H100_v5", {kH100, 80, 8}},
      {"Standard_ND96isr_H200_v5", {kH200, 141, 8}},
      {"Standard_ND128isr_NDR_GB200_v6", {kGb200, 185, 4}},
      {"Standard_NC24ads_A100_v4", {kA100Pcie, 80, 1}},
      {"Standard_NC48ads_A100_v4", {kA100Pcie, 80, 2}},
      {"Standard_NC96ads_A100_v4", {kA100Pcie, 80, 4}},
      {"Standard_NC40ads_H100_v5", {kH100Nvl, 94, 1}},
      {"Standard_NC80adis_H100_v5", {kH100Nvl, 94, 2}},
      {"Standard_NC4as_T4_v3", {kT4, 16, 1}},
      {"Standard_NC8as_T4_v3", {kT4, 16, 1}},
      {"Standard_NC16as_T4_v3", {kT4, 16, 1}},
      {"Standard_NC64as_T4_v3", {kT4, 16, 4}},
      // Oracle Cloud: docs.oracle.com/iaas/Content/Compute/References/computeshapes.htm.
      {"BM.GPU4.8", {kA100x40, 40, 8}},
      {"BM.GPU.A100-v2.8", {kA100x80, 80, 8}},
      {"BM.GPU.H100.8", {kH100, 80, 8}},
      {"BM.GPU.H200.8", {kH200, 141, 8}},
      {"BM.GPU.B200.8", {kB200, 179, 8}},
      {"BM.GPU.GB200.4", {kGb200, 185, 4}},
      {"BM.GPU.L40S.4", {kL40s, 48, 4}},
      {"BM.GPU.A10.4", {kA10, 24, 4}},
      {"VM.GPU.A10.1", {kA10, 24, 1}},
      {"VM.GPU.A10.2", {kA10, 24, 2}},
      {"BM.GPU.MI300X.8", {"AMD_Instinct_MI300X_OAM", 192, 8}},
  };
}

}  // namespace

const InstanceTypes& DefaultInstanceTypes() {
  static const auto& types = *new InstanceTypes(MakeDefaults());
  return types;
}

InstanceTypes ReadInstanceTypes(const ArgsObject& args) {
  InstanceTypes types = DefaultInstanceTypes();
  for (const std::string& name : args.Keys()) {
    const ArgsObject fields = args.Object(name);
    InstanceType type;
    type.model = fields.String("model", "");
    type.memory_gb = fields.Double("memoryGB", 0);
    if (type.memory_gb < 0 || type.memory_gb > kMaxMemoryGb)
      fields.Problem("memoryGB", "Invalid value: must be between 0 and 1000000");
    type.gpus = fields.Int("gpus", 0);
    if (type.gpus < 0 || type.gpus > kMaxGpus)
      fields.Problem("gpus", InvalidValue(type.gpus, "not in valid range [0, 4096]"));
    if (fields.Has("topology")) {
      const std::string topology = fields.String("topology", "");
      type.topology = ParseTopology(topology);
      if (type.topology == GpuTopology::kUnknown)
        fields.Problem("topology", NotSupported(topology, {"nvlink", "nvswitch", "pcie"}));
    }
    types[name] = std::move(type);
  }
  return types;
}

}  // namespace outboard::sdk
