#include "cli/manifests/manifest_checks.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/kube/wire/name_rules.h"
#include "shim/kube/wire/quantity.h"

namespace outboard::manifests {

namespace wire = kube::wire;
using kube::CheckDnsLabel;
using kube::CheckLabelValue;
using kube::CheckQualifiedName;
using kube::Fault;
using kube::FieldPath;
using kube::QuantityMilliValue;

namespace {

constexpr int64_t kSaturated = std::numeric_limits<int64_t>::max();

bool IsWhole(const std::string& quantity) {
  const int64_t millis = QuantityMilliValue(quantity).value_or(0);
  return millis == kSaturated || millis % 1000 == 0;
}

}  // namespace

bool IsOneOf(absl::string_view text, std::initializer_list<absl::string_view> words) {
  for (absl::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

bool IsHugePages(absl::string_view resource) { return absl::StartsWith(resource, "hugepages-"); }

std::optional<Fault> ManifestChecks::Word(absl::string_view field, const std::string& value,
                                          std::initializer_list<absl::string_view> words) {
  if (IsOneOf(value, words)) return std::nullopt;
  return At(field, absl::StrCat("\"", value, "\" must be one of ", absl::StrJoin(words, ", ")));
}

std::optional<Fault> ManifestChecks::Words(absl::string_view field, const StringList& values,
                                           std::initializer_list<absl::string_view> words) {
  return Each(field, values, [&](const std::string& value) -> Result {
    if (IsOneOf(value, words)) return std::nullopt;
    return Fail(absl::StrCat("\"", value, "\" must be one of ", absl::StrJoin(words, ", ")));
  });
}

std::optional<Fault> ManifestChecks::Range(absl::string_view field, int64_t value, int64_t min,
                                           int64_t max) {
  if (value >= min && value <= max) return std::nullopt;
  return At(field, absl::StrCat(value, " must be between ", min, " and ", max));
}

std::optional<Fault> ManifestChecks::Metadata(const wire::ObjectMeta& meta, NameCheck check_name) {
  FieldPath::Step step(&path_, "metadata");
  if (meta.name().empty() && !meta.generatename().empty()) {
    return At("generateName", "not supported in files; set metadata.name");
  }
  if (Result fault = Name("name", meta.name(), check_name)) return fault;
  if (!meta.namespace_().empty()) {
    if (Result fault = Name("namespace", meta.namespace_(), CheckDnsLabel)) return fault;
  }
  if (Result fault = Labels("labels", meta.labels())) return fault;
  return In("annotations", [&]() -> Result {
    for (const auto& [key, value] : meta.annotations()) {
      if (Result fault = Name(key, absl::AsciiStrToLower(key), CheckQualifiedName)) return fault;
    }
    return std::nullopt;
  });
}

std::optional<Fault> ManifestChecks::Labels(absl::string_view field, const StringMap& labels) {
  FieldPath::Step step(&path_, field);
  for (const auto& [key, value] : labels) {
    if (Result fault = Name(key, key, CheckQualifiedName)) return fault;
    if (Result fault = Name(key, value, CheckLabelValue)) return fault;
  }
  return std::nullopt;
}

std::optional<Fault> ManifestChecks::Quantities(absl::string_view field,
                                                const QuantityMap& quantities, bool of_container) {
  FieldPath::Step step(&path_, field);
  for (const auto& [name, quantity] : quantities) {
    if (Result fault = Name(name, name, CheckQualifiedName)) return fault;
    const bool fractional = IsOneOf(name, {"cpu", "memory", "ephemeral-storage", "storage"});
    if (of_container && !IsOneOf(name, {"cpu", "memory", "ephemeral-storage"}) &&
        !IsHugePages(name) && !absl::StrContains(name, "/")) {
      return At(name,
                "must be cpu, memory, ephemeral-storage, hugepages-SIZE or a name with a domain, "
                "as in example.com/foo");
    }
    absl::StatusOr<int64_t> millis = QuantityMilliValue(quantity.string());
    if (!millis.ok()) return At(name, millis.status().message());
    if (*millis < 0)
      return At(name, absl::StrCat(quantity.string(), " must be greater than or equal to 0"));
    if (!fractional && !IsWhole(quantity.string()))
      return At(name, absl::StrCat(quantity.string(), " must be an integer"));
  }
  return std::nullopt;
}

std::optional<Fault> ManifestChecks::Selector(absl::string_view field,
                                              const wire::LabelSelector& selector) {
  FieldPath::Step step(&path_, field);
  if (Result fault = Labels("matchLabels", selector.matchlabels())) return fault;
  return Each("matchExpressions", selector.matchexpressions(),
              [&](const wire::LabelSelectorRequirement& requirement) -> Result {
                if (Result fault = Name("key", requirement.key(), CheckQualifiedName)) return fault;
                const std::string& op = requirement.operator_();
                if (Result fault = Word("operator", op, {"In", "NotIn", "Exists", "DoesNotExist"}))
                  return fault;
                const bool wants_values = IsOneOf(op, {"In", "NotIn"});
                if (wants_values != (requirement.values_size() > 0)) {
                  return At("values",
                            wants_values
                                ? "must be specified when `operator` is In or NotIn"
                                : "may not be specified when `operator` is Exists or DoesNotExist");
                }
                return Each("values", requirement.values(),
                            [&](const std::string& value) -> Result {
                              const std::string wrong = CheckLabelValue(value);
                              return wrong.empty() ? std::nullopt : Fail(wrong);
                            });
              });
}

std::optional<Fault> ManifestChecks::NodeTerm(const wire::NodeSelectorTerm& term) {
  using Requirement = wire::NodeSelectorRequirement;
  Result fault = Each(
      "matchExpressions", term.matchexpressions(), [&](const Requirement& requirement) -> Result {
        if (Result wrong = Name("key", requirement.key(), CheckQualifiedName)) return wrong;
        const std::string& op = requirement.operator_();
        if (Result wrong =
                Word("operator", op, {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}))
          return wrong;
        if (IsOneOf(op, {"In", "NotIn"}) && requirement.values().empty()) {
          return At("values", "must be specified when `operator` is In or NotIn");
        }
        if (IsOneOf(op, {"Exists", "DoesNotExist"}) && !requirement.values().empty()) {
          return At("values", "may not be specified when `operator` is Exists or DoesNotExist");
        }
        if (IsOneOf(op, {"Gt", "Lt"}) && requirement.values_size() != 1) {
          return At("values", "must be one value when `operator` is Gt or Lt");
        }
        return std::nullopt;
      });
  if (fault) return fault;
  return Each("matchFields", term.matchfields(), [&](const Requirement& requirement) -> Result {
    if (Result wrong = Word("key", requirement.key(), {"metadata.name"})) return wrong;
    if (Result wrong = Word("operator", requirement.operator_(), {"In", "NotIn"})) return wrong;
    if (requirement.values_size() != 1)
      return At("values", "must be one value in a field selector");
    return std::nullopt;
  });
}

std::optional<Fault> ManifestChecks::NodeSelector(absl::string_view field,
                                                  const wire::NodeSelector& selector) {
  FieldPath::Step step(&path_, field);
  if (selector.nodeselectorterms().empty())
    return At("nodeSelectorTerms", "must have at least one node selector term");
  return Each("nodeSelectorTerms", selector.nodeselectorterms(),
              [&](const wire::NodeSelectorTerm& term) { return NodeTerm(term); });
}

}  // namespace outboard::manifests
