// Which GPUs of a node a pod uses, if an annotation records it. The kubelet does not publish the
// devices that it picks; other schedulers and device plugins annotate pods with them.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_GPU_DEVICES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_GPU_DEVICES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/label_values.h"

namespace outboard::sdk {

// GPUs of one node: bit i is nvidia-smi's GPU i. At most 64 per machine.
using GpuSet = uint64_t;
inline constexpr int64_t kMaxGpuId = 63;

// Annotations of pods, in order of precedence.
inline constexpr char kGpuIdsAnnotation[] = "accelerator.sched.io/gpu-ids";  // `0,1` or `0-3,6`.
inline constexpr char kVolcanoGpuIdsAnnotation[] = "volcano.sh/gpu-index";   // `0,1`.
inline constexpr char kKoordinatorDevicesAnnotation[] =
    "scheduling.koordinator.sh/device-allocated";  // {"gpu": [{"minor": 0, …}]}

// `0`, `0-3`, `0,2,4-7`; none for anything else, including an empty text and ids above kMaxGpuId.
std::optional<GpuSet> ParseGpuIds(absl::string_view text);
// The shortest such text; empty for no GPUs.
std::string FormatGpuIds(GpuSet gpus);
// The GPUs in Koordinator's annotation; none if it is malformed or names none.
std::optional<GpuSet> ParseKoordinatorDevices(absl::string_view json);

// The GPUs in the pod's first well-formed annotation; logs a warning for malformed ones. None: no
// annotation. `demand`: number of GPUs that the pod requests; if above 0, an annotation with more
// is malformed. `malformed` may be null.
std::optional<GpuSet> GpusOfPod(const v1beta1::Pod& pod, int64_t demand,
                                MalformedValues* malformed);
// For PluginDescriptor::needed_fields.
std::vector<std::string> GpuIdFields();

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GPU_DEVICES_H_
