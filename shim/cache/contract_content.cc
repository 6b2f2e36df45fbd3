#include "shim/cache/contract_content.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <iterator>
#include <vector>

namespace outboard::cache {
namespace {

using Map = google::protobuf::Map<std::string, std::string>;

bool SameMap(const Map& a, const Map& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a) {
    const auto it = b.find(key);
    if (it == b.end() || it->second != value) return false;
  }
  return true;
}

using Keys = absl::flat_hash_set<std::string>;

void Strip(Map& annotations, const Keys& wanted) {
  for (auto it = annotations.begin(); it != annotations.end();) {
    it = wanted.contains(it->first) ? std::next(it) : annotations.erase(it);
  }
}

template <typename Object>
bool Same(const Object& a, const Object& b, const Keys& wanted) {
  if (SameMap(a.annotations(), b.annotations())) return SameMessage(a, b);
  Object x = a;
  Object y = b;
  Strip(*x.mutable_annotations(), wanted);
  Strip(*y.mutable_annotations(), wanted);
  return SameMessage(x, y);
}

// Equal in the fields that come only on request. A pod's status changes with each step of its life,
// so where no plugin declared them nothing is parsed.
template <typename Object>
bool SameOnRequest(const Object& a, const Object& b, const HostFields& wanted) {
  return !wanted.AnyOnRequest(a) || a.on_request == b.on_request ||
         SameMessage(DeclaredOnRequest(a, wanted), DeclaredOnRequest(b, wanted));
}

v1beta1::Pod WithoutStatus(v1beta1::Pod pod) {
  pod.clear_nominated_node_name();
  pod.clear_generation();
  pod.clear_container_statuses();
  pod.clear_resize_infeasible();
  pod.clear_start_unix_seconds();
  pod.clear_preempted_by_scheduler();
  pod.clear_pod_allocated_requests();
  pod.clear_pod_actual_requests();
  return pod;
}

}  // namespace

std::string CanonicalBytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  bytes.reserve(message.ByteSizeLong());
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  message.SerializeWithCachedSizes(&out);
  out.Trim();
  return bytes;
}

bool SameMessage(const google::protobuf::MessageLite& a, const google::protobuf::MessageLite& b) {
  return CanonicalBytes(a) == CanonicalBytes(b);
}

bool SameContent(const kube::PodObject& a, const kube::PodObject& b, const HostFields& wanted) {
  if (wanted.resource_version && b.pod.node_name().empty() &&
      a.resource_version != b.resource_version)
    return false;
  return Same(a.pod, b.pod, wanted.pod_annotations) && SameOnRequest(a, b, wanted);
}

bool SameContent(const kube::NodeObject& a, const kube::NodeObject& b, const HostFields& wanted) {
  return Same(a.node, b.node, wanted.node_annotations) && SameOnRequest(a, b, wanted);
}

bool SameButForNode(const kube::PodObject& a, const kube::PodObject& b, const HostFields& wanted) {
  v1beta1::Pod moved = b.pod;
  moved.set_node_name(a.pod.node_name());
  moved.set_nominated_node_name(a.pod.nominated_node_name());
  return Same(a.pod, moved, wanted.pod_annotations) && SameOnRequest(a, b, wanted);
}

bool SameSpec(const v1beta1::Pod& a, const v1beta1::Pod& b) {
  return SameMessage(WithoutStatus(a), WithoutStatus(b));
}

}  // namespace outboard::cache
