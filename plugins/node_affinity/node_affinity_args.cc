#include "plugins/node_affinity/node_affinity_args.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "plugin_host/sdk/selectors.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::node_affinity {
namespace {

using v1beta1::NodeSelectorTerm;
using v1beta1::SelectorRequirement;

const std::vector<std::pair<std::string, SelectorRequirement::Operator>>& Operators() {
  static const auto& operators =
      *new std::vector<std::pair<std::string, SelectorRequirement::Operator>>{
          {"In", SelectorRequirement::OPERATOR_IN},
          {"NotIn", SelectorRequirement::OPERATOR_NOT_IN},
          {"Exists", SelectorRequirement::OPERATOR_EXISTS},
          {"DoesNotExist", SelectorRequirement::OPERATOR_DOES_NOT_EXIST},
          {"Gt", SelectorRequirement::OPERATOR_GT},
          {"Lt", SelectorRequirement::OPERATOR_LT}};
  return operators;
}

// Returns false and reports the problem if a requirement is invalid.
bool ReadRequirements(const std::vector<sdk::ArgsObject>& objects,
                      google::protobuf::RepeatedPtrField<SelectorRequirement>* out) {
  bool ok = true;
  for (const sdk::ArgsObject& object : objects) {
    SelectorRequirement& requirement = *out->Add();
    requirement.set_key(object.String("key", ""));
    for (std::string& value : object.Strings("values")) requirement.add_values(std::move(value));
    const std::string text = object.String("operator", "");
    std::vector<std::string> supported;
    for (const auto& [name, op] : Operators()) {
      if (name == text) requirement.set_operator_(op);
      supported.push_back(name);
    }
    if (requirement.operator_() == SelectorRequirement::OPERATOR_UNSPECIFIED) {
      object.Problem("operator", sdk::NotSupported(text, supported));
      ok = false;
    }
  }
  return ok;
}

NodeSelectorTerm ReadTerm(const sdk::ArgsObject& object) {
  NodeSelectorTerm term;
  const bool labels_ok =
      ReadRequirements(object.Objects("matchExpressions"), term.mutable_match_expressions());
  const bool fields_ok =
      ReadRequirements(object.Objects("matchFields"), term.mutable_match_fields());
  if (!labels_ok || !fields_ok) return term;
  const absl::Status error = sdk::CompiledNodeTerm::Parse(term, "").error();
  if (error.ok()) return term;
  // One error begins with its path within the term; several errors form a list.
  const std::string text(error.message());
  const size_t colon = text.find(": ");
  if (text.front() == '[' || colon == std::string::npos) {
    object.Problem("matchExpressions", text);
  } else {
    object.Problem(text.substr(0, colon), text.substr(colon + 2));
  }
  return term;
}

}  // namespace

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {"addedAffinity": {
    "type": "object", "additionalProperties": false,
    "description": "Node affinity added to that of every pod of the profile.",
    "properties": {
      "requiredDuringSchedulingIgnoredDuringExecution": {
        "type": "object", "additionalProperties": false,
        "properties": {"nodeSelectorTerms": {"type": "array", "items": {"$ref": "#/$defs/term"}}}},
      "preferredDuringSchedulingIgnoredDuringExecution": {
        "type": "array",
        "items": {"type": "object", "additionalProperties": false, "properties": {
          "weight": {"type": "integer"}, "preference": {"$ref": "#/$defs/term"}}}}}}},
  "$defs": {
    "term": {"type": "object", "additionalProperties": false, "properties": {
      "matchExpressions": {"type": "array", "items": {"$ref": "#/$defs/requirement"}},
      "matchFields": {"type": "array", "items": {"$ref": "#/$defs/requirement"}}}},
    "requirement": {"type": "object", "additionalProperties": false,
      "required": ["key", "operator"],
      "properties": {"key": {"type": "string"},
        "operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]},
        "values": {"type": "array", "items": {"type": "string"}}}}}})json";

v1beta1::NodeAffinity ReadAddedAffinity(const sdk::ArgsObject& args) {
  v1beta1::NodeAffinity result;
  if (!args.Has("addedAffinity")) return result;
  const sdk::ArgsObject added = args.Object("addedAffinity");
  const std::string kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  if (added.Has(kRequired)) {
    auto* required = result.mutable_required_during_scheduling_ignored_during_execution();
    for (const sdk::ArgsObject& term : added.Object(kRequired).Objects("nodeSelectorTerms")) {
      *required->add_node_selector_terms() = ReadTerm(term);
    }
  }
  for (const sdk::ArgsObject& object :
       added.Objects("preferredDuringSchedulingIgnoredDuringExecution")) {
    auto* term = result.add_preferred_during_scheduling_ignored_during_execution();
    const int64_t weight = object.Int("weight", 0);
    if (weight < std::numeric_limits<int32_t>::min() ||
        weight > std::numeric_limits<int32_t>::max()) {
      object.Problem("weight", sdk::InvalidValue(weight, "must fit in 32 bits"));
    } else {
      term->set_weight(static_cast<int32_t>(weight));
    }
    *term->mutable_preference() = ReadTerm(object.Object("preference"));
  }
  return result;
}

}  // namespace outboard::node_affinity
