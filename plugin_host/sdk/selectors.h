// Label and node selectors with Kubernetes' semantics.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_SELECTORS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_SELECTORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/map.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

using LabelMap = google::protobuf::Map<std::string, std::string>;

// One validated requirement.
struct Requirement {
  std::string key;
  v1beta1::SelectorRequirement::Operator op = v1beta1::SelectorRequirement::OPERATOR_IN;
  std::vector<std::string> values;  // Sorted.
  int64_t number = 0;               // Operand of GT and LT.

  // True if a label with this value (nullopt: absent) meets the requirement.
  bool Matches(std::optional<absl::string_view> value) const;
};

// A label selector over pods' or namespaces' labels.
//
// Threading: immutable.
// Lifetime: a value.
// Errors: Parse returns Kubernetes' message.
class CompiledLabelSelector {
 public:
  // Matches nothing: an absent selector.
  CompiledLabelSelector() = default;
  // An empty selector matches everything.
  static absl::StatusOr<CompiledLabelSelector> Parse(const v1beta1::LabelSelector& selector);

  bool Matches(const LabelMap& labels) const;
  bool Matches(const std::map<std::string, std::string>& labels) const;
  bool matches_everything() const { return !nothing_ && requirements_.empty(); }
  const std::vector<Requirement>& requirements() const { return requirements_; }
  // Adds `key in (value)`, as matchLabelKeys does.
  void AddRequirement(Requirement requirement) { requirements_.push_back(std::move(requirement)); }

 private:
  bool nothing_ = true;
  std::vector<Requirement> requirements_;
};

// A term of a node selector, or its parse error.
//
// Threading: immutable.
// Lifetime: a value; independent of the cache.
// Errors: kept, as in Kubernetes.
class CompiledNodeTerm {
 public:
  // `path` names the term in errors, e.g. `nodeSelectorTerms[0]`.
  static CompiledNodeTerm Parse(const v1beta1::NodeSelectorTerm& term, const std::string& path);
  // False if the term has an error.
  bool Matches(const NodeView& node) const;
  // A node before or after an event.
  bool Matches(const v1beta1::Node& node) const;
  bool empty() const { return empty_; }  // Matches no node.
  const absl::Status& error() const { return error_; }

 private:
  template <typename Node>
  bool MatchesNode(const Node& node) const;

  bool empty_ = true;
  absl::Status error_;
  std::vector<Requirement> labels_;
  std::vector<Requirement> fields_;
};

// Terms; one must match. Ignores empty terms.
class CompiledNodeSelector {
 public:
  CompiledNodeSelector() = default;
  explicit CompiledNodeSelector(const v1beta1::NodeSelector& selector);
  // Kubernetes reports errors of terms only if no term matches.
  absl::StatusOr<bool> Matches(const NodeView& node) const;
  absl::StatusOr<bool> Matches(const v1beta1::Node& node) const;
  const std::vector<CompiledNodeTerm>& terms() const { return terms_; }
  // All errors of all terms, joined; OK if none.
  absl::Status error() const;

 private:
  template <typename Node>
  absl::StatusOr<bool> MatchesNode(const Node& node) const;

  std::vector<CompiledNodeTerm> terms_;
};

// spec.nodeSelector and the required node affinity of a pod together.
class RequiredNodeAffinity {
 public:
  RequiredNodeAffinity() = default;
  explicit RequiredNodeAffinity(const v1beta1::Pod& pod);
  bool empty() const { return labels_.empty() && !has_selector_; }
  absl::StatusOr<bool> Matches(const NodeView& node) const;
  absl::StatusOr<bool> Matches(const v1beta1::Node& node) const;

 private:
  template <typename Node>
  absl::StatusOr<bool> MatchesNode(const Node& node) const;

  std::vector<std::pair<std::string, std::string>> labels_;
  bool has_selector_ = false;
  CompiledNodeSelector selector_;
};

// The preferred terms of a node affinity, without empty terms and terms of weight 0.
class PreferredNodeTerms {
 public:
  PreferredNodeTerms() = default;
  // An error if a counted term is malformed.
  static absl::StatusOr<PreferredNodeTerms> Parse(
      const google::protobuf::RepeatedPtrField<v1beta1::PreferredSchedulingTerm>& terms,
      const std::string& path = "");
  bool empty() const { return terms_.empty(); }
  int64_t Score(const NodeView& node) const;

 private:
  std::vector<std::pair<CompiledNodeTerm, int32_t>> terms_;
};

// Kubernetes' integer syntax (Go's strconv.ParseInt, base 10).
std::optional<int64_t> ParseGoInt(absl::string_view text);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_SELECTORS_H_
