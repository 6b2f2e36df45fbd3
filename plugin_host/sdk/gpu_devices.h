// Which GPUs of a node a pod uses, if an annotation records it. The kubelet picks devices and does
// not publish them: other schedulers and device plugins annotate pods with them,
// outboard-node-probe annotates nodes.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_GPU_DEVICES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_GPU_DEVICES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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

// Annotation of placed pods: the GPUs, or parts of GPUs, that HAMi's scheduler gave them.
inline constexpr char kHamiDevicesAnnotation[] = "hami.io/vgpu-devices-allocated";
struct HamiDevice {
  std::string uuid;
  std::optional<int64_t> mib;  // Of its memory; nullopt: not a number.
};
// `GPU-0fc3,NVIDIA,3000,30:;`: containers end in `;`, their devices in `:`; a device is its UUID,
// its type, MiB of memory and percent of its cores. nullopt for another form and for no devices.
std::optional<std::vector<HamiDevice>> ParseHamiDevices(absl::string_view text);

// The GPUs of the pods of one node, by `NAMESPACE/NAME`.
using PodGpus = std::map<std::string, GpuSet, std::less<>>;
// Annotation of nodes: the GPUs that the kubelet assigned to the node's pods. Pods that it does not
// name may use GPUs, too.
inline constexpr char kPodGpusAnnotation[] = "accelerator.sched.io/pod-gpus";
inline constexpr size_t kMaxPodGpusText = size_t{32} << 10;  // bytes

// Parses the annotation's value: `NAMESPACE/NAME=IDS` of each pod, separated by `;`. Empty: no
// pods. nullopt for any other text, a pod named twice, and texts above kMaxPodGpusText.
std::optional<PodGpus> ParsePodGpus(absl::string_view text);
// Such a text, at most kMaxPodGpusText long. What does not fit is left out, the last names first;
// `left_out`, which may be null, is set to the number of these pods.
std::string FormatPodGpus(const PodGpus& pods, size_t* left_out = nullptr);
// That annotation of a node; logs a warning and returns no pods if it is malformed.
PodGpus PodGpusOfNode(const v1beta1::Node& node, MalformedValues* malformed);
// The pod's GPUs by its node's annotation; none if it is not named there, or with more GPUs than
// `demand` (as in GpusOfPod). An annotation of the pod itself precedes: it may exist as soon as the
// pod is placed, the node's up to a period of the probe later.
std::optional<GpuSet> FindGpusOfPod(const PodGpus& of_node, const v1beta1::Pod& pod,
                                    int64_t demand);

// For PluginDescriptor::needed_fields: the annotations of pods, and of nodes.
std::vector<std::string> GpuIdFields();

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GPU_DEVICES_H_
