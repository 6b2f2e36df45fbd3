#include "shim/simulate/trace/likeness.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "absl/strings/numbers.h"

namespace outboard::simulate::trace {

cycle::Likeness LikenessOf(const kube::PodObject& object) {
  cycle::Likeness likeness;
  if (object.pod.has_affinity() || !object.pod.topology_spread_constraints().empty() ||
      !object.pod.volumes().empty() || !object.pod.resource_claims().empty()) {
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
  // Whoever declares nothing is of another kind.
  const auto declared = pod.mutable_annotations()->find("outboard/run-seconds");
  if (declared != pod.mutable_annotations()->end() &&
      absl::SimpleAtoi(declared->second, &likeness.amount)) {
    declared->second.clear();
  }
  google::protobuf::io::StringOutputStream stream(&likeness.kind);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  pod.SerializeToCodedStream(&coded);
  return likeness;
}

}  // namespace outboard::simulate::trace
