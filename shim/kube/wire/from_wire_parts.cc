#include "shim/kube/wire/from_wire_parts.h"

#include "absl/strings/str_cat.h"
#include "shim/kube/wire/quantity.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::kube {
namespace {

namespace api = ::outboard::v1beta1;

// Contains the whole manifest again; no plugin may request it.
constexpr absl::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

absl::Status InField(absl::string_view path, absl::string_view key, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(path, ".", key, ": ", status.message()));
}

api::SelectorRequirement::Operator ConvertOperator(const std::string& text, bool of_nodes) {
  using Requirement = api::SelectorRequirement;
  if (text == "In") return Requirement::OPERATOR_IN;
  if (text == "NotIn") return Requirement::OPERATOR_NOT_IN;
  if (text == "Exists") return Requirement::OPERATOR_EXISTS;
  if (text == "DoesNotExist") return Requirement::OPERATOR_DOES_NOT_EXIST;
  if (of_nodes && text == "Gt") return Requirement::OPERATOR_GT;
  if (of_nodes && text == "Lt") return Requirement::OPERATOR_LT;
  return UnknownEnum<Requirement::Operator>();
}

template <typename WireRequirements>
void ConvertRequirements(const WireRequirements& from, bool of_nodes,
                         google::protobuf::RepeatedPtrField<api::SelectorRequirement>* to) {
  for (const auto& requirement : from) {
    api::SelectorRequirement* out = to->Add();
    CopyText(requirement.key(), out->mutable_key());
    out->set_operator_(ConvertOperator(requirement.operator_(), of_nodes));
    CopyTexts(requirement.values(), out->mutable_values());
  }
}

}  // namespace

void CopyText(const std::string& from, std::string* to) {
  if (Utf8Prefix(from) == from.size()) {
    *to = from;
  } else {
    *to = ToUtf8(from);
  }
}

void CopyTexts(const StringList& from, StringList* to) {
  to->Reserve(from.size());
  for (const std::string& text : from) CopyText(text, to->Add());
}

void CopyTexts(const StringMap& from, StringMap* to) {
  for (const auto& [key, value] : from) {
    CopyText(value, Utf8Prefix(key) == key.size() ? &(*to)[key] : &(*to)[ToUtf8(key)]);
  }
}

void CopyAnnotations(const StringMap& from, StringMap* to) {
  for (const auto& [key, value] : from) {
    if (key == kLastApplied) continue;
    CopyText(value, Utf8Prefix(key) == key.size() ? &(*to)[key] : &(*to)[ToUtf8(key)]);
  }
}

absl::Status ConvertResources(absl::string_view path, const QuantityMap& from,
                              api::ResourceList* to) {
  for (const auto& [name, quantity] : from) {
    const bool is_cpu = name == "cpu";
    absl::StatusOr<int64_t> amount =
        is_cpu ? QuantityMilliValue(quantity.string()) : QuantityValue(quantity.string());
    if (!amount.ok()) return InField(path, name, amount.status());
    if (is_cpu) {
      to->set_cpu_millis(*amount);
    } else if (name == "memory") {
      to->set_memory_bytes(*amount);
    } else if (name == "ephemeral-storage") {
      to->set_ephemeral_storage_bytes(*amount);
    } else if (name == "pods") {
      to->set_pods(*amount);
    } else {
      (*to->mutable_scalar())[ToUtf8(name)] = *amount;
    }
  }
  return absl::OkStatus();
}

void ConvertLabelSelector(const wire::LabelSelector& from, api::LabelSelector* to) {
  CopyTexts(from.matchlabels(), to->mutable_match_labels());
  ConvertRequirements(from.matchexpressions(), false, to->mutable_match_expressions());
}

void ConvertNodeTerm(const wire::NodeSelectorTerm& from, api::NodeSelectorTerm* to) {
  ConvertRequirements(from.matchexpressions(), true, to->mutable_match_expressions());
  ConvertRequirements(from.matchfields(), true, to->mutable_match_fields());
}

void ConvertNodeSelector(const wire::NodeSelector& from, api::NodeSelector* to) {
  for (const auto& term : from.nodeselectorterms())
    ConvertNodeTerm(term, to->add_node_selector_terms());
}

api::TaintEffect ConvertEffect(const std::string& text) {
  if (text == "NoSchedule") return api::TAINT_EFFECT_NO_SCHEDULE;
  if (text == "PreferNoSchedule") return api::TAINT_EFFECT_PREFER_NO_SCHEDULE;
  if (text == "NoExecute") return api::TAINT_EFFECT_NO_EXECUTE;
  return text.empty() ? api::TAINT_EFFECT_UNSPECIFIED : UnknownEnum<api::TaintEffect>();
}

api::ConditionStatus ConvertConditionStatus(const std::string& text) {
  if (text == "True") return api::CONDITION_STATUS_TRUE;
  if (text == "False") return api::CONDITION_STATUS_FALSE;
  return text == "Unknown" || text.empty() ? api::CONDITION_STATUS_UNKNOWN
                                           : UnknownEnum<api::ConditionStatus>();
}

absl::Status CheckIdentity(const wire::ObjectMeta& meta) {
  if (meta.name().empty()) return absl::InvalidArgumentError("metadata.name: must not be empty");
  if (meta.uid().empty()) return absl::InvalidArgumentError("metadata.uid: must not be empty");
  for (const std::string* text :
       {&meta.name(), &meta.namespace_(), &meta.uid(), &meta.resourceversion()}) {
    if (Utf8Prefix(*text) != text->size()) return absl::InvalidArgumentError("metadata: not UTF-8");
  }
  return absl::OkStatus();
}

absl::Status Named(absl::string_view kind, const wire::ObjectMeta& meta,
                   const absl::Status& status) {
  return absl::InvalidArgumentError(
      ToUtf8(absl::StrCat(kind, " ", meta.namespace_(), meta.namespace_().empty() ? "" : "/",
                          meta.name(), ": ", status.message())));
}

absl::StatusOr<std::shared_ptr<ClusterObject>> NewClusterObject(absl::string_view kind,
                                                                const wire::ObjectMeta& meta) {
  if (absl::Status status = CheckIdentity(meta); !status.ok()) return Named(kind, meta, status);
  auto object = std::make_shared<ClusterObject>();
  object->object_uid = meta.uid();
  object->resource_version = meta.resourceversion();
  return object;
}

}  // namespace outboard::kube
