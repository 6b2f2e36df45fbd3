#include "shim/framework/selectors.h"

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"

namespace outboard::framework {
namespace {

using Requirement = v1beta1::SelectorRequirement;

// `value`: null if the key is absent.
bool Fulfils(const Requirement& requirement, const std::string* value) {
  const auto& values = requirement.values();
  const bool is_listed = value != nullptr && absl::c_linear_search(values, *value);
  switch (requirement.operator_()) {
    case Requirement::OPERATOR_IN:
      return is_listed;
    case Requirement::OPERATOR_NOT_IN:
      return !values.empty() && !is_listed;
    case Requirement::OPERATOR_EXISTS:
      return value != nullptr;
    case Requirement::OPERATOR_DOES_NOT_EXIST:
      return value == nullptr;
    case Requirement::OPERATOR_GT:
    case Requirement::OPERATOR_LT: {
      int64_t has = 0, limit = 0;
      if (value == nullptr || values.size() != 1 || !absl::SimpleAtoi(*value, &has) ||
          !absl::SimpleAtoi(values[0], &limit))
        return false;
      return requirement.operator_() == Requirement::OPERATOR_GT ? has > limit : has < limit;
    }
    default:
      return false;
  }
}

bool Fulfils(const Requirement& requirement, const LabelMap& labels) {
  const auto it = labels.find(requirement.key());
  return Fulfils(requirement, it == labels.end() ? nullptr : &it->second);
}

}  // namespace

bool Matches(const v1beta1::LabelSelector& selector, const LabelMap& labels) {
  const auto has = [&](const auto& wanted) {
    const auto it = labels.find(wanted.first);
    return it != labels.end() && it->second == wanted.second;
  };
  return absl::c_all_of(selector.match_labels(), has) &&
         absl::c_all_of(selector.match_expressions(), [&](const Requirement& requirement) {
           return Fulfils(requirement, labels);
         });
}

bool Matches(const v1beta1::NodeSelectorTerm& term, const v1beta1::Node& node) {
  if (term.match_expressions().empty() && term.match_fields().empty()) return false;
  return absl::c_all_of(
             term.match_expressions(),
             [&](const Requirement& requirement) { return Fulfils(requirement, node.labels()); }) &&
         absl::c_all_of(term.match_fields(), [&](const Requirement& requirement) {
           return requirement.key() == "metadata.name" && Fulfils(requirement, &node.name());
         });
}

bool Matches(const v1beta1::NodeSelector& selector, const v1beta1::Node& node) {
  return absl::c_any_of(selector.node_selector_terms(),
                        [&](const v1beta1::NodeSelectorTerm& term) { return Matches(term, node); });
}

}  // namespace outboard::framework
