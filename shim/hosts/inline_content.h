// What hosts without a cluster cache receive with each call: nodes, encoded once per change.
#ifndef OUTBOARD_SHIM_HOSTS_INLINE_CONTENT_H_
#define OUTBOARD_SHIM_HOSTS_INLINE_CONTENT_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/inline_node.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "shim/cache/cluster_state.h"
#include "shim/hosts/pods_of_call.h"

namespace outboard::hosts {

// Which parts of nodes a host receives; see inline_node.proto.
struct InlineParts {
  bool labels = false;
  bool taints = false;
  bool allocatable = false;
  bool images = false;
  bool declared_features = false;
  bool requested = false;
  bool pods = false;
  absl::flat_hash_set<std::string> label_keys;  // if not all are sent
  // Resources by Kubernetes' name, if not all are sent.
  absl::flat_hash_set<std::string> allocatable_resources;
  absl::flat_hash_set<std::string> requested_resources;
  bool columns = false;                 // nodes come in columns; see node_columns.proto
  bool uids = false;                    // in columns; inline nodes always have them
  bool creation_times = false;          // in columns; inline nodes always have them
  cache::ChangeEncoder::Fields fields;  // as hosts with a cache receive them

  bool any_requested() const { return requested || !requested_resources.empty(); }
};
// The parts that any of the host's plugins requests. `fields`: those that the plugins declared.
// Pure.
InlineParts PartsOf(const v1beta1::GetHostInfoResponse& info, cache::ChangeEncoder::Fields fields);

// The forms of needed fields that PartsOf knows.
std::vector<std::string> InlineFieldForms();

// Puts nodes and pods of a cluster into requests to one host.
//
// A node is encoded on first use after it changed; later requests append its bytes. At 5,000 nodes,
// building messages of maps for each pod would cost more than the rest of the shim's work on it.
//
// Threading: thread-compatible.
// Lifetime: the cluster outlives it.
class InlineContent {
 public:
  InlineContent(const cache::ClusterState* cluster, InlineParts parts)
      : cluster_(*cluster), parts_(std::move(parts)) {}

  // The pod, restricted to what the host may see.
  v1beta1::Pod PodFor(const kube::PodObject& pod) const;
  // The serialised node in the slot; empty for a free slot. Valid until the cluster changes.
  const std::string& NodeBytes(uint32_t slot);
  // Appends the nodes to the repeated (or sets the single) field `field`, of type InlineNode, of
  // `request`. They are appended as bytes, so `request` itself shows them only after it was
  // serialised and parsed. INTERNAL: a slot is free.
  absl::Status AppendNodes(const google::protobuf::RepeatedField<uint32_t>& slots, int field,
                           google::protobuf::Message* request);
  // The same for Filter, with the pods nominated to each node.
  absl::Status AppendNodesFor(const kube::PodObject& pod, v1beta1::FilterRequest* request);
  // The nodes of the request's hypotheses, changed as the hypotheses say.
  absl::Status AppendHypotheses(const kube::PodObject& pod, v1beta1::FilterRequest* request);

 private:
  struct Encoded {
    uint64_t generation = 0;
    std::string bytes;
  };

  void FillNode(const kube::NodeObject& object, v1beta1::Node* out) const;
  void FillPods(const std::vector<kube::PodPtr>& pods, v1beta1::InlineNode* out) const;
  void FillNominated(const std::vector<kube::PodPtr>& pods, v1beta1::InlineNode* out) const;
  // Leaves the resources that the host receives.
  void RestrictRequested(v1beta1::ResourceList* requested) const;
  // Empty if the host receives nothing about pods.
  NominatedPods NominatedFor(const kube::PodObject& pod) const;

  const cache::ClusterState& cluster_;
  const InlineParts parts_;
  std::vector<Encoded> encoded_;  // by slot
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_INLINE_CONTENT_H_
