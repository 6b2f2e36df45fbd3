#include "cli/simulate/trace/equivalence_class.h"

#include "absl/strings/numbers.h"
#include "shim/cache/contract_content.h"

namespace outboard::simulate::trace {
namespace {

constexpr char kRunSeconds[] = "outboard/run-seconds";
constexpr char kRunSecondsField[] = "Pod.metadata.annotations['outboard/run-seconds']";

}  // namespace

EquivalenceClass EquivalenceClassOf(const kube::PodObject& object) {
  EquivalenceClass equivalence_class;
  if (object.pod.has_affinity() || !object.pod.topology_spread_constraints().empty() ||
      !object.pod.volumes().empty() || !object.pod.claims().empty()) {
    return equivalence_class;
  }
  v1beta1::Pod pod = object.pod;
  pod.clear_uid();
  pod.clear_name();
  pod.clear_creation_unix_seconds();
  // The labels that PodOf sets.
  for (const char* label : {"job-name", "batch.kubernetes.io/job-name"}) {
    const auto its = pod.labels().find(label);
    if (its != pod.labels().end() && its->second == pod.controller().name())
      pod.mutable_labels()->erase(its->first);
  }
  pod.clear_controller();
  equivalence_class.amount_field = kRunSecondsField;
  // A pod without the declaration is of another class.
  const auto declared = pod.mutable_annotations()->find(kRunSeconds);
  if (declared != pod.mutable_annotations()->end() &&
      absl::SimpleAtoi(declared->second, &equivalence_class.amount)) {
    declared->second.clear();
  }
  equivalence_class.kind = cache::CanonicalBytes(pod);
  return equivalence_class;
}

}  // namespace outboard::simulate::trace
