#include "shim/framework/pod_group.h"

#include "absl/strings/str_cat.h"

namespace outboard::framework {
namespace {

struct GroupField {
  const char* dialect;
  bool is_label;  // else an annotation
  const char* key;
};

// Jobs recreated under the same name differ by their controllers.
constexpr char kJob[] = "job-name";
constexpr GroupField kFields[] = {
    {"scheduler-plugins", true, "scheduling.x-k8s.io/pod-group"},
    {"volcano", false, "scheduling.k8s.io/group-name"},
    {"volcano", false, "scheduling.volcano.sh/group-name"},
    {"kai", false, "pod-group-name"},
    {"koordinator", false, "gang.scheduling.koordinator.sh/name"},
    {"scheduler-plugins", true, "pod-group.scheduling.sigs.k8s.io"},
    {"legacy", true, "pod-group.scheduling.sigs.k8s.io/name"},
    {kJob, true, "job-name"},
    {kJob, true, "batch.kubernetes.io/job-name"},
};

}  // namespace

std::string DeclaredGroup(const v1beta1::Pod& pod) {
  const std::string& ns = pod.namespace_();
  if (!pod.pod_group_name().empty())
    return absl::StrCat("kubernetes ", ns, "/", pod.pod_group_name());
  for (const GroupField& field : kFields) {
    const auto& values = field.is_label ? pod.labels() : pod.annotations();
    const auto it = values.find(field.key);
    if (it == values.end() || it->second.empty()) continue;
    return absl::StrCat(field.dialect, " ", ns, "/", it->second,
                        field.dialect == kJob ? absl::StrCat(" ", pod.controller().uid()) : "");
  }
  return "";
}

}  // namespace outboard::framework
