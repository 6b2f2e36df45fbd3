#include "shim/cache/snapshot.h"

#include <utility>

namespace outboard::cache {
namespace {

using v1beta1::SyncRequest;

// Session, version and phase.
constexpr size_t kOverhead = 128;

// Whether `index` is in this list of a row of lists; if not, makes it relative to the next list.
bool IsIn(size_t size, size_t* index) {
  if (*index < size) return true;
  *index -= size;
  return false;
}

}  // namespace

void FillNode(const kube::NodeObject& node, uint32_t slot, const HostFields& fields,
              v1beta1::NodeUpsert* out) {
  out->set_slot(slot);
  CopyNode(node, fields, out->mutable_node());
}

void FillPod(const kube::PodObject& pod, const HostFields& fields, v1beta1::PodUpsert* out) {
  CopyPod(pod, fields, out->mutable_pod());
}

Snapshot::Snapshot(int64_t version, Content content, HostFields fields,
                   std::vector<uint64_t> ended_attempts)
    : version_(version),
      content_(std::move(content)),
      fields_(std::move(fields)),
      ended_attempts_(std::move(ended_attempts)) {}

bool Snapshot::AddNext(SyncRequest* request) {
  size_t index = sent_;
  if (IsIn(content_.nodes.size(), &index)) {
    const Node& node = content_.nodes[index];
    FillNode(*node.object, node.slot, fields_, request->add_changes()->mutable_node_upsert());
  } else if (IsIn(content_.namespaces.size(), &index)) {
    *request->add_changes()->mutable_namespace_upsert()->mutable_namespace_() =
        content_.namespaces[index]->ns;
  } else if (IsIn(content_.objects.size(), &index)) {
    const v1beta1::ClusterObject& object = content_.objects[index]->object;
    if (fields_.Wants(object)) *request->add_changes()->mutable_object_upsert() = object;
  } else if (IsIn(content_.pods.size(), &index)) {
    const Pod& pod = content_.pods[index];
    FillPod(*pod.object, fields_, request->add_changes()->mutable_pod_upsert());
    if (pod.placement != nullptr) *request->add_changes()->mutable_pod_placement() = *pod.placement;
  } else {
    return false;
  }
  ++sent_;
  return true;
}

std::optional<SyncRequest> Snapshot::Next(size_t bytes) {
  if (ended_) return std::nullopt;
  SyncRequest request;
  request.set_version(version_);
  request.set_phase(begun_ ? SyncRequest::PHASE_SNAPSHOT_MORE : SyncRequest::PHASE_SNAPSHOT_BEGIN);
  size_t size = kOverhead;
  // At least one object, however little room is left.
  while (size < bytes || request.changes_size() == 0) {
    const int before = request.changes_size();
    if (!AddNext(&request)) break;
    for (int i = before; i < request.changes_size(); ++i) {
      size += request.changes(i).ByteSizeLong() + 8;  // tag and length
    }
    if (size <= bytes || before == 0) continue;
    while (request.changes_size() > before) request.mutable_changes()->RemoveLast();
    --sent_;
    break;
  }
  if (request.changes_size() > 0 || !begun_) {
    begun_ = true;
    return request;
  }
  ended_ = true;
  request.set_phase(SyncRequest::PHASE_SNAPSHOT_END);
  *request.mutable_node_order() = content_.node_order;
  request.mutable_ended_attempts()->Add(ended_attempts_.begin(), ended_attempts_.end());
  return request;
}

}  // namespace outboard::cache
