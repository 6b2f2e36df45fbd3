// What hosts without a mirror are told with each call: nodes, encoded once for each time that they
// change.
#ifndef OUTBOARD_SHIM_CYCLE_INLINE_CONTENT_H_
#define OUTBOARD_SHIM_CYCLE_INLINE_CONTENT_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "proto/outboard/v1alpha1/filter.pb.h"
#include "proto/outboard/v1alpha1/inline_node.pb.h"
#include "proto/outboard/v1alpha1/plugin_host.pb.h"
#include "shim/cycle/cluster_state.h"

namespace outboard::cycle {

// Which parts of nodes a host is sent; see inline_node.proto.
struct InlineParts {
  bool labels = false;
  bool taints = false;
  bool allocatable = false;
  bool images = false;
  bool declared_features = false;
  bool requested = false;
  bool pods = false;
  absl::flat_hash_set<std::string> label_keys;  // where not all are sent
  ChangeEncoder::Fields annotations;
};
// What any of the host's plugins asks for. `annotations` are those that they declared. Pure.
InlineParts PartsOf(const v1alpha1::GetHostInfoResponse& info, ChangeEncoder::Fields annotations);

// Puts nodes and pods of a cluster into requests to one host.
//
// A node is encoded when it is first asked for after it changed, and its bytes are appended after
// that: at 5,000 nodes building messages of maps for each pod would cost more than the rest of the
// shim's work on it.
//
// Threading: thread-compatible. Lifetime: the cluster outlives it.
class InlineContent {
 public:
  InlineContent(const ClusterState* cluster, InlineParts parts)
      : cluster_(*cluster), parts_(std::move(parts)) {}

  // The pod as the host may see it.
  v1alpha1::Pod PodFor(const kube::PodObject& pod) const;
  // The node in the slot, serialised; empty if there is none. Good until the cluster changes.
  const std::string& NodeBytes(uint32_t slot);
  // Appends the nodes to the repeated (or sets the single) field `field` of `request`, which is of
  // type InlineNode. They go there as bytes, so `request` itself does not show them before it was
  // serialised and parsed. INTERNAL: there is no node in one of the slots.
  absl::Status AppendNodes(const google::protobuf::RepeatedField<uint32_t>& slots, int field,
                           google::protobuf::Message* request);
  // The same for Filter, where pods count for which a node is kept in mind.
  absl::Status AppendNodesFor(const kube::PodObject& pod, v1alpha1::FilterRequest* request);
  // The nodes of the request's hypotheses, as these have them.
  absl::Status AppendHypotheses(const kube::PodObject& pod, v1alpha1::FilterRequest* request);

 private:
  struct Encoded {
    uint64_t generation = 0;
    std::string bytes;
  };
  using Nominated = absl::flat_hash_map<uint32_t, std::vector<kube::PodPtr>>;

  void FillNode(const v1alpha1::Node& node, v1alpha1::Node* out) const;
  void FillPods(const std::vector<kube::PodPtr>& pods, v1alpha1::InlineNode* out) const;
  void FillNominated(const std::vector<kube::PodPtr>& pods, v1alpha1::InlineNode* out) const;
  // By slot, those that count when `pod` is judged.
  Nominated NominatedBeside(const kube::PodObject& pod) const;

  const ClusterState& cluster_;
  const InlineParts parts_;
  std::vector<Encoded> encoded_;  // by slot
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_INLINE_CONTENT_H_
