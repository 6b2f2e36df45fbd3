#include "shim/simulate/trace/likeness.h"

#include "absl/strings/numbers.h"
#include "shim/cycle/contract_content.h"

namespace outboard::simulate::trace {
namespace {

constexpr char kRunSeconds[] = "outboard/run-seconds";
constexpr char kRunSecondsField[] = "Pod.metadata.annotations['outboard/run-seconds']";

}  // namespace

cycle::Likeness LikenessOf(const kube::PodObject& object) {
  cycle::Likeness likeness;
  if (object.pod.has_affinity() || !object.pod.topology_spread_constraints().empty() ||
      !object.pod.volumes().empty() || !object.pod.claims().empty()) {
    return likeness;
  }
  v1alpha1::Pod pod = object.pod;
  pod.clear_uid();
  pod.clear_name();
  pod.clear_creation_unix_seconds();
  // As PodOf names jobs.
  for (const char* label : {"job-name", "batch.kubernetes.io/job-name"}) {
    const auto its = pod.labels().find(label);
    if (its != pod.labels().end() && its->second == pod.controller().name())
      pod.mutable_labels()->erase(its->first);
  }
  pod.clear_controller();
  likeness.amount_field = kRunSecondsField;
  // Whoever declares nothing is of another kind.
  const auto declared = pod.mutable_annotations()->find(kRunSeconds);
  if (declared != pod.mutable_annotations()->end() &&
      absl::SimpleAtoi(declared->second, &likeness.amount)) {
    declared->second.clear();
  }
  likeness.kind = cycle::CanonicalBytes(pod);
  return likeness;
}

}  // namespace outboard::simulate::trace
