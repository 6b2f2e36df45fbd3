// The group that a pod names, in all supported dialects.
#ifndef OUTBOARD_PROTO_WORKLOADS_POD_GROUP_NAME_H_
#define OUTBOARD_PROTO_WORKLOADS_POD_GROUP_NAME_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::workloads {

inline constexpr char kPodGroupLabel[] = "scheduling.x-k8s.io/pod-group";
inline constexpr const char* kVolcanoGroupAnnotations[] = {"scheduling.k8s.io/group-name",
                                                           "scheduling.volcano.sh/group-name"};
inline constexpr char kKaiGroupAnnotation[] = "pod-group-name";
inline constexpr char kKoordinatorGroupAnnotation[] = "gang.scheduling.koordinator.sh/name";
// scheduler-plugins before scheduling.x-k8s.io: the label names an object, or a group without one.
inline constexpr char kLegacyPodGroupLabel[] = "pod-group.scheduling.sigs.k8s.io";
inline constexpr char kLegacyNameLabel[] = "pod-group.scheduling.sigs.k8s.io/name";
// Older and newer Job controllers; they set both to the same name.
inline constexpr const char* kJobNameLabels[] = {"job-name", "batch.kubernetes.io/job-name"};
// The number of pods to place together, of a group by kJobNameLabels.
inline constexpr const char* kJobSizeAnnotations[] = {"outboard/min-replicas", "min-replicas"};

// In order of precedence: the first that a pod uses decides.
enum class GroupSource {
  kSchedulingGroup,  // spec.schedulingGroup.podGroupName
  kPodGroupLabel,
  kVolcano,
  kKai,
  kKoordinator,
  kLegacyPodGroup,
  kLegacyName,
  kJobName,
};

// Lifetime: as the pod's; `key` is static.
struct PodGroupName {
  GroupSource source;
  absl::string_view name;  // never empty
  const char* key = "";    // of the label or annotation; empty for kSchedulingGroup
};

// None: the pod names no group. With kJobName the pod may belong to a Job whose pods are placed
// individually.
std::optional<PodGroupName> PodGroupNameOf(const v1beta1::Pod& pod);

}  // namespace outboard::workloads

#endif  // OUTBOARD_PROTO_WORKLOADS_POD_GROUP_NAME_H_
