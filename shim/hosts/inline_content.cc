#include "shim/hosts/inline_content.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "shim/cache/node_guard.h"
#include "shim/hosts/needed_fields.h"
#include "shim/hosts/resource_list.h"

namespace outboard::hosts {
namespace {

using v1beta1::FilterRequest;
using v1beta1::InlineNode;

template <typename Map>
void CopyOnly(const Map& from, const absl::flat_hash_set<std::string>& keys, Map* to) {
  for (const std::string& key : keys) {
    if (const auto it = from.find(key); it != from.end()) (*to)[key] = it->second;
  }
}

// Parts of a node.
constexpr FieldForm<InlineParts> kNodeForms[] = {
    {"Node.metadata.labels", [](absl::string_view, InlineParts* parts) { parts->labels = true; }},
    {"Node.metadata.labels['KEY']",
     [](absl::string_view key, InlineParts* parts) { parts->label_keys.insert(std::string(key)); }},
    {"Node.spec.taints", [](absl::string_view, InlineParts* parts) { parts->taints = true; }},
    {"Node.status.allocatable",
     [](absl::string_view, InlineParts* parts) { parts->allocatable = true; }},
    {"Node.status.allocatable['NAME']",
     [](absl::string_view name, InlineParts* parts) {
       parts->allocatable_resources.insert(std::string(name));
     }},
    {"Node.status.images", [](absl::string_view, InlineParts* parts) { parts->images = true; }},
    {"Node.status.declaredFeatures",
     [](absl::string_view, InlineParts* parts) { parts->declared_features = true; }},
    {"Node.requested", [](absl::string_view, InlineParts* parts) { parts->requested = true; }},
    {"Node.requested['NAME']",
     [](absl::string_view name, InlineParts* parts) {
       parts->requested_resources.insert(std::string(name));
     }},
    {"Node.pods", [](absl::string_view, InlineParts* parts) { parts->pods = true; }},
    {"Node.metadata.uid", [](absl::string_view, InlineParts* parts) { parts->uids = true; }},
    {"Node.metadata.creationTimestamp",
     [](absl::string_view, InlineParts* parts) { parts->creation_times = true; }},
};

// A repeated message is its bytes with a length, and so is an unknown field: an encoded node can be
// sent without parsing it.
void AppendBytes(const std::string& bytes, int field, google::protobuf::Message* request) {
  request->GetReflection()->MutableUnknownFields(request)->AddLengthDelimited(field, bytes);
}

}  // namespace

InlineParts PartsOf(const v1beta1::GetHostInfoResponse& info, cache::ChangeEncoder::Fields fields) {
  InlineParts parts;
  parts.fields = std::move(fields);
  parts.columns = absl::c_linear_search(info.capabilities(), v1beta1::CAPABILITY_NODE_COLUMNS);
  for (const v1beta1::PluginInfo& plugin : info.plugins()) {
    bool any = false;
    for (const auto* paths : {&plugin.needed_fields(), &plugin.optional_fields()}) {
      for (const std::string& path : *paths) any |= AddField<InlineParts>(kNodeForms, path, &parts);
    }
    if (!any) parts.labels = parts.taints = parts.allocatable = parts.requested = true;
  }
  return parts;
}

std::vector<std::string> InlineFieldForms() {
  std::vector<std::string> forms;
  for (const FieldForm<InlineParts>& form : kNodeForms) forms.emplace_back(form.form);
  return forms;
}

v1beta1::Pod InlineContent::PodFor(const kube::PodObject& pod) const {
  v1beta1::Pod sent;
  cache::CopyPod(pod, parts_.fields, &sent);
  return sent;
}

void InlineContent::FillNode(const kube::NodeObject& object, v1beta1::Node* out) const {
  const v1beta1::Node& node = object.node;
  *out = cache::DeclaredOnRequest(object, parts_.fields);
  out->set_uid(node.uid());
  out->set_name(node.name());
  out->set_unschedulable(node.unschedulable());
  out->set_creation_unix_seconds(node.creation_unix_seconds());
  CopyOnly(node.annotations(), parts_.fields.node_annotations, out->mutable_annotations());
  if (parts_.labels) {
    *out->mutable_labels() = node.labels();
  } else {
    CopyOnly(node.labels(), parts_.label_keys, out->mutable_labels());
  }
  if (parts_.taints) *out->mutable_taints() = node.taints();
  if (parts_.allocatable || !parts_.allocatable_resources.empty()) {
    *out->mutable_allocatable() = node.allocatable();
    if (!parts_.allocatable)
      KeepOnlyResources(parts_.allocatable_resources, out->mutable_allocatable());
  }
  if (parts_.images) *out->mutable_images() = node.images();
  if (parts_.declared_features) *out->mutable_declared_features() = node.declared_features();
}

void InlineContent::FillPods(const std::vector<kube::PodPtr>& pods, InlineNode* out) const {
  if (parts_.pods) {
    for (const kube::PodPtr& pod : pods) *out->add_pods() = PodFor(*pod);
  }
}

void InlineContent::RestrictRequested(v1beta1::ResourceList* requested) const {
  if (!parts_.requested) KeepOnlyResources(parts_.requested_resources, requested);
}

void InlineContent::FillNominated(const std::vector<kube::PodPtr>& pods, InlineNode* out) const {
  if (parts_.pods) {
    for (const kube::PodPtr& pod : pods) *out->add_nominated_pods() = PodFor(*pod);
  }
  if (!parts_.any_requested()) return;
  FillRequested(pods, out->mutable_nominated_requested());
  RestrictRequested(out->mutable_nominated_requested());
}

const std::string& InlineContent::NodeBytes(uint32_t slot) {
  static const std::string kNone;
  const uint64_t generation = cluster_.NodeGeneration(slot);
  if (generation == 0) return kNone;
  if (encoded_.size() <= slot) encoded_.resize(slot + 1);
  Encoded& encoded = encoded_[slot];
  if (encoded.generation == generation) return encoded.bytes;
  encoded.generation = generation;
  const kube::NodeObject& node = *cluster_.NodeAt(slot);
  InlineNode message;
  FillNode(node, message.mutable_node());
  if (parts_.any_requested()) {
    cluster_.UsageOf(node.node.name())->FillList(message.mutable_requested());
    RestrictRequested(message.mutable_requested());
  }
  if (parts_.pods) {
    cluster_.ForEachPodOn(slot,
                          [&](const kube::PodPtr& pod) { *message.add_pods() = PodFor(*pod); });
  }
  encoded.bytes = message.SerializeAsString();
  return encoded.bytes;
}

absl::Status InlineContent::AppendNodes(const google::protobuf::RepeatedField<uint32_t>& slots,
                                        int field, google::protobuf::Message* request) {
  for (const uint32_t slot : slots) {
    const std::string& bytes = NodeBytes(slot);
    if (bytes.empty()) return NoNodeIn(slot);
    AppendBytes(bytes, field, request);
  }
  return absl::OkStatus();
}

NominatedPods InlineContent::NominatedFor(const kube::PodObject& pod) const {
  if (!parts_.any_requested() && !parts_.pods) return {};
  return cluster_.NominatedBeside(pod);
}

absl::Status InlineContent::AppendNodesFor(const kube::PodObject& pod, FilterRequest* request) {
  const NominatedPods nominated = NominatedFor(pod);
  for (const uint32_t slot : request->search().nodes().slots()) {
    const std::string& bytes = NodeBytes(slot);
    if (bytes.empty()) return NoNodeIn(slot);
    const auto beside = nominated.find(slot);
    if (beside == nominated.end()) {
      AppendBytes(bytes, FilterRequest::kInlineNodesFieldNumber, request);
      continue;
    }
    // The concatenation of serialised messages is the merged message.
    InlineNode more;
    FillNominated(beside->second, &more);
    AppendBytes(bytes + more.SerializeAsString(), FilterRequest::kInlineNodesFieldNumber, request);
  }
  return absl::OkStatus();
}

absl::Status InlineContent::AppendHypotheses(const kube::PodObject& pod, FilterRequest* request) {
  const NominatedPods nominated = NominatedFor(pod);
  const auto append = [&](uint32_t slot, const std::vector<kube::PodPtr>& pods) {
    InlineNode message;
    FillNode(*cluster_.NodeAt(slot), message.mutable_node());
    FillPods(pods, &message);
    if (parts_.any_requested()) {
      FillRequested(pods, message.mutable_requested());
      RestrictRequested(message.mutable_requested());
    }
    if (const auto beside = nominated.find(slot); beside != nominated.end())
      FillNominated(beside->second, &message);
    AppendBytes(message.SerializeAsString(), FilterRequest::kInlineNodesFieldNumber, request);
  };
  return ForEachSimulated(cluster_, request->simulation(), append);
}

}  // namespace outboard::hosts
