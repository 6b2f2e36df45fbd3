#include "proto/workloads/pod_group_name.h"

#include <string>

#include "google/protobuf/map.h"

namespace outboard::workloads {
namespace {

using Texts = google::protobuf::Map<std::string, std::string>;

// Empty if the key is absent.
absl::string_view ValueOf(const Texts& texts, const char* key) {
  const auto found = texts.find(key);
  return found == texts.end() ? absl::string_view() : absl::string_view(found->second);
}

std::optional<PodGroupName> Named(GroupSource source, const Texts& texts, const char* key) {
  const absl::string_view name = ValueOf(texts, key);
  if (name.empty()) return std::nullopt;
  return PodGroupName{source, name, key};
}

std::optional<PodGroupName> ByAnnotation(const Texts& annotations) {
  for (const char* key : kVolcanoGroupAnnotations) {
    if (auto group = Named(GroupSource::kVolcano, annotations, key)) return group;
  }
  if (auto group = Named(GroupSource::kKai, annotations, kKaiGroupAnnotation)) return group;
  return Named(GroupSource::kKoordinator, annotations, kKoordinatorGroupAnnotation);
}

}  // namespace

std::optional<PodGroupName> PodGroupNameOf(const v1beta1::Pod& pod) {
  if (!pod.pod_group_name().empty())
    return PodGroupName{GroupSource::kSchedulingGroup, pod.pod_group_name()};
  const Texts& labels = pod.labels();
  if (!labels.empty()) {
    if (auto group = Named(GroupSource::kPodGroupLabel, labels, kPodGroupLabel)) return group;
  }
  if (!pod.annotations().empty()) {
    if (auto group = ByAnnotation(pod.annotations())) return group;
  }
  if (labels.empty()) return std::nullopt;
  if (auto group = Named(GroupSource::kLegacyPodGroup, labels, kLegacyPodGroupLabel)) return group;
  if (auto group = Named(GroupSource::kLegacyName, labels, kLegacyNameLabel)) return group;
  for (const char* key : kJobNameLabels) {
    // The first that is there decides, also if it is empty.
    if (labels.contains(key)) return Named(GroupSource::kJobName, labels, key);
  }
  return std::nullopt;
}

}  // namespace outboard::workloads
