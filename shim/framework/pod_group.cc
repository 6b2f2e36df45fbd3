#include "shim/framework/pod_group.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/workloads/pod_group_name.h"

namespace outboard::framework {
namespace {

using workloads::GroupSource;

const char* DialectOf(GroupSource source) {
  switch (source) {
    case GroupSource::kSchedulingGroup:
      return "kubernetes";
    case GroupSource::kPodGroupLabel:
    case GroupSource::kLegacyPodGroup:
      return "scheduler-plugins";
    case GroupSource::kVolcano:
      return "volcano";
    case GroupSource::kKai:
      return "kai";
    case GroupSource::kKoordinator:
      return "koordinator";
    case GroupSource::kLegacyName:
      return "legacy";
    case GroupSource::kJobName:
      return "job-name";
  }
  return "";
}

}  // namespace

std::string DeclaredGroup(const v1beta1::Pod& pod) {
  const std::optional<workloads::PodGroupName> group = workloads::PodGroupNameOf(pod);
  if (!group) return "";
  std::string declared =
      absl::StrCat(DialectOf(group->source), " ", pod.namespace_(), "/", group->name);
  // Jobs recreated under the same name differ by their controllers.
  if (group->source == GroupSource::kJobName)
    absl::StrAppend(&declared, " ", pod.controller().uid());
  return declared;
}

}  // namespace outboard::framework
