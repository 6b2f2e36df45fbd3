#include "plugin_host/sdk/selectors.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {
namespace {

using Op = v1beta1::SelectorRequirement;
using Errors = std::vector<std::string>;

std::string Child(const std::string& path, absl::string_view name) {
  return path.empty() ? std::string(name) : absl::StrCat(path, ".", name);
}

std::string JsonList(const std::vector<std::string>& values) {
  if (values.empty()) return "null";
  return absl::StrCat(
      "[",
      absl::StrJoin(values, ",",
                    [](std::string* out, const std::string& value) { out->append(Quote(value)); }),
      "]");
}

absl::Status Aggregate(const Errors& errors) {
  Errors distinct;
  for (const std::string& error : errors) {
    if (std::find(distinct.begin(), distinct.end(), error) == distinct.end()) {
      distinct.push_back(error);
    }
  }
  if (distinct.empty()) return absl::OkStatus();
  if (distinct.size() == 1) return absl::InvalidArgumentError(distinct[0]);
  return absl::InvalidArgumentError(absl::StrCat("[", absl::StrJoin(distinct, ", "), "]"));
}

// Validates one requirement; appends Kubernetes' errors.
Requirement Check(const Op& proto, const std::string& path, Errors* errors) {
  Requirement result;
  result.key = proto.key();
  result.op = proto.operator_();
  result.values.assign(proto.values().begin(), proto.values().end());
  const std::string key_error = absl::StrJoin(QualifiedNameErrors(result.key), "; ");
  if (!key_error.empty()) {
    errors->push_back(absl::StrCat(Child(path, "key"), ": ", InvalidValue(result.key, key_error)));
  }
  const std::string values_path = Child(path, "values");
  auto invalid_values = [&](absl::string_view detail) {
    errors->push_back(
        absl::StrCat(values_path, ": Invalid value: ", JsonList(result.values), ": ", detail));
  };
  switch (result.op) {
    case Op::OPERATOR_IN:
    case Op::OPERATOR_NOT_IN:
      if (result.values.empty()) {
        invalid_values("for 'in', 'notin' operators, values set can't be empty");
      }
      break;
    case Op::OPERATOR_EXISTS:
    case Op::OPERATOR_DOES_NOT_EXIST:
      if (!result.values.empty()) {
        invalid_values("values set must be empty for exists and does not exist");
      }
      break;
    default:  // GT, LT; callers exclude others.
      if (result.values.size() != 1) {
        invalid_values("for 'Gt', 'Lt' operators, exactly one value is required");
      }
      for (size_t i = 0; i < result.values.size(); ++i) {
        std::optional<int64_t> number = ParseGoInt(result.values[i]);
        if (number) {
          result.number = *number;
        } else {
          errors->push_back(
              absl::StrCat(values_path, "[", i, "]: ",
                           InvalidValue(result.values[i],
                                        "for 'Gt', 'Lt' operators, the value must be an integer")));
        }
      }
  }
  for (size_t i = 0; i < result.values.size(); ++i) {
    const std::string error = absl::StrJoin(LabelValueErrors(result.values[i]), "; ");
    if (!error.empty()) {
      errors->push_back(absl::StrCat(values_path, "[", i, "][", result.key,
                                     "]: ", InvalidValue(result.values[i], error)));
    }
  }
  std::sort(result.values.begin(), result.values.end());
  return result;
}

bool KnownNodeOperator(Op::Operator op) { return op >= Op::OPERATOR_IN && op <= Op::OPERATOR_LT; }

std::string OperatorText(Op::Operator op) {
  return op == Op::OPERATOR_UNSPECIFIED ? "" : absl::StrCat(static_cast<int>(op));
}

template <typename Map>
std::optional<absl::string_view> Lookup(const Map& map, const std::string& key) {
  auto it = map.find(key);
  if (it == map.end()) return std::nullopt;
  return absl::string_view(it->second);
}

std::optional<absl::string_view> LabelOf(const NodeView& node, const std::string& key) {
  return node.Label(key);
}
std::optional<absl::string_view> LabelOf(const v1beta1::Node& node, const std::string& key) {
  return Lookup(node.labels(), key);
}

}  // namespace

std::optional<int64_t> ParseGoInt(absl::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool Requirement::Matches(std::optional<absl::string_view> value) const {
  auto listed = [&] {
    return std::binary_search(values.begin(), values.end(), *value,
                              [](absl::string_view a, absl::string_view b) { return a < b; });
  };
  switch (op) {
    case Op::OPERATOR_IN:
      return value && listed();
    case Op::OPERATOR_NOT_IN:
      return !value || !listed();
    case Op::OPERATOR_EXISTS:
      return value.has_value();
    case Op::OPERATOR_DOES_NOT_EXIST:
      return !value;
    case Op::OPERATOR_GT:
    case Op::OPERATOR_LT: {
      if (!value) return false;
      const std::optional<int64_t> have = ParseGoInt(*value);
      return have && (op == Op::OPERATOR_GT ? *have > number : *have < number);
    }
    default:
      return false;
  }
}

absl::StatusOr<CompiledLabelSelector> CompiledLabelSelector::Parse(
    const v1beta1::LabelSelector& selector) {
  CompiledLabelSelector result;
  result.nothing_ = false;
  std::vector<std::string> keys;
  for (const auto& [key, value] : selector.match_labels()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    Op requirement;
    requirement.set_key(key);
    requirement.set_operator_(Op::OPERATOR_IN);
    requirement.add_values(selector.match_labels().at(key));
    Errors errors;
    result.requirements_.push_back(Check(requirement, "", &errors));
    if (!errors.empty()) return Aggregate(errors);
  }
  for (const Op& expression : selector.match_expressions()) {
    if (expression.operator_() < Op::OPERATOR_IN ||
        expression.operator_() > Op::OPERATOR_DOES_NOT_EXIST) {
      const char* text = expression.operator_() == Op::OPERATOR_GT   ? "Gt"
                         : expression.operator_() == Op::OPERATOR_LT ? "Lt"
                                                                     : "";
      return absl::InvalidArgumentError(
          absl::StrCat(Quote(text), " is not a valid label selector operator"));
    }
    Errors errors;
    result.requirements_.push_back(Check(expression, "", &errors));
    if (!errors.empty()) return Aggregate(errors);
  }
  return result;
}

bool CompiledLabelSelector::Matches(const LabelMap& labels) const {
  if (nothing_) return false;
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& r) { return r.Matches(Lookup(labels, r.key)); });
}

bool CompiledLabelSelector::Matches(const std::map<std::string, std::string>& labels) const {
  if (nothing_) return false;
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& r) { return r.Matches(Lookup(labels, r.key)); });
}

CompiledNodeTerm CompiledNodeTerm::Parse(const v1beta1::NodeSelectorTerm& term,
                                         const std::string& path) {
  CompiledNodeTerm result;
  result.empty_ = term.match_expressions().empty() && term.match_fields().empty();
  Errors errors;
  for (int i = 0; i < term.match_expressions_size(); ++i) {
    const Op& expression = term.match_expressions(i);
    const std::string at = absl::StrCat(Child(path, "matchExpressions"), "[", i, "]");
    if (!KnownNodeOperator(expression.operator_())) {
      errors.push_back(
          absl::StrCat(at, ".operator: ",
                       NotSupported(OperatorText(expression.operator_()),
                                    {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})));
      continue;
    }
    result.labels_.push_back(Check(expression, at, &errors));
  }
  for (int i = 0; i < term.match_fields_size(); ++i) {
    const Op& expression = term.match_fields(i);
    const std::string at = absl::StrCat(Child(path, "matchFields"), "[", i, "]");
    if (expression.operator_() != Op::OPERATOR_IN &&
        expression.operator_() != Op::OPERATOR_NOT_IN) {
      static constexpr const char* kNames[] = {"",   "In", "NotIn", "Exists", "DoesNotExist",
                                               "Gt", "Lt"};
      const int op = expression.operator_();
      errors.push_back(absl::StrCat(
          at, ".operator: ", NotSupported(op >= 0 && op <= 6 ? kNames[op] : "", {"In", "NotIn"})));
      continue;
    }
    std::vector<std::string> values(expression.values().begin(), expression.values().end());
    if (values.size() != 1) {
      errors.push_back(absl::StrCat(at, ".values: Invalid value: ", JsonList(values),
                                    ": must have one element"));
      continue;
    }
    Requirement requirement;
    requirement.key = expression.key();
    requirement.op = expression.operator_();
    requirement.values = std::move(values);
    result.fields_.push_back(std::move(requirement));
  }
  result.error_ = Aggregate(errors);
  return result;
}

template <typename Node>
bool CompiledNodeTerm::MatchesNode(const Node& node) const {
  if (empty_ || !error_.ok()) return false;
  for (const Requirement& requirement : labels_) {
    if (!requirement.Matches(LabelOf(node, requirement.key))) return false;
  }
  for (const Requirement& requirement : fields_) {
    // Kubernetes compares an unknown field as if it were empty.
    const absl::string_view have =
        requirement.key == "metadata.name" ? absl::string_view(node.name()) : absl::string_view();
    if ((have == requirement.values[0]) != (requirement.op == Op::OPERATOR_IN)) return false;
  }
  return true;
}

bool CompiledNodeTerm::Matches(const NodeView& node) const { return MatchesNode(node); }
bool CompiledNodeTerm::Matches(const v1beta1::Node& node) const { return MatchesNode(node); }

CompiledNodeSelector::CompiledNodeSelector(const v1beta1::NodeSelector& selector) {
  for (int i = 0; i < selector.node_selector_terms_size(); ++i) {
    CompiledNodeTerm term = CompiledNodeTerm::Parse(selector.node_selector_terms(i),
                                                    absl::StrCat("nodeSelectorTerms[", i, "]"));
    if (!term.empty()) terms_.push_back(std::move(term));
  }
}

template <typename Node>
absl::StatusOr<bool> CompiledNodeSelector::MatchesNode(const Node& node) const {
  bool failed = false;
  for (const CompiledNodeTerm& term : terms_) {
    if (!term.error().ok()) {
      failed = true;
    } else if (term.Matches(node)) {
      return true;
    }
  }
  if (failed) return error();
  return false;
}

absl::StatusOr<bool> CompiledNodeSelector::Matches(const NodeView& node) const {
  return MatchesNode(node);
}
absl::StatusOr<bool> CompiledNodeSelector::Matches(const v1beta1::Node& node) const {
  return MatchesNode(node);
}

absl::Status CompiledNodeSelector::error() const {
  Errors errors;
  for (const CompiledNodeTerm& term : terms_) {
    if (!term.error().ok()) errors.emplace_back(term.error().message());
  }
  return Aggregate(errors);
}

RequiredNodeAffinity::RequiredNodeAffinity(const v1beta1::Pod& pod)
    : labels_(pod.node_selector().begin(), pod.node_selector().end()) {
  const v1beta1::NodeAffinity& affinity = pod.affinity().node_affinity();
  if (affinity.has_required_during_scheduling_ignored_during_execution()) {
    has_selector_ = true;
    selector_ =
        CompiledNodeSelector(affinity.required_during_scheduling_ignored_during_execution());
  }
}

template <typename Node>
absl::StatusOr<bool> RequiredNodeAffinity::MatchesNode(const Node& node) const {
  for (const auto& [key, value] : labels_) {
    if (LabelOf(node, key) != value) return false;
  }
  if (!has_selector_) return true;
  return selector_.Matches(node);
}

absl::StatusOr<bool> RequiredNodeAffinity::Matches(const NodeView& node) const {
  return MatchesNode(node);
}
absl::StatusOr<bool> RequiredNodeAffinity::Matches(const v1beta1::Node& node) const {
  return MatchesNode(node);
}

absl::StatusOr<PreferredNodeTerms> PreferredNodeTerms::Parse(
    const google::protobuf::RepeatedPtrField<v1beta1::PreferredSchedulingTerm>& terms,
    const std::string& path) {
  PreferredNodeTerms result;
  Errors errors;
  for (int i = 0; i < terms.size(); ++i) {
    if (terms[i].weight() == 0) continue;
    CompiledNodeTerm term =
        CompiledNodeTerm::Parse(terms[i].preference(), absl::StrCat(path, "[", i, "]"));
    if (term.empty()) continue;
    if (!term.error().ok()) {
      errors.emplace_back(term.error().message());
    } else {
      result.terms_.emplace_back(std::move(term), terms[i].weight());
    }
  }
  if (!errors.empty()) return Aggregate(errors);
  return result;
}

int64_t PreferredNodeTerms::Score(const NodeView& node) const {
  int64_t score = 0;
  for (const auto& [term, weight] : terms_) {
    if (term.Matches(node)) score += weight;
  }
  return score;
}

}  // namespace outboard::sdk
