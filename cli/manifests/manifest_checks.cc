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
using kube::FieldPath;
using kube::QuantityMilliValue;

namespace {

constexpr int64_t kSaturated = std::numeric_limits<int64_t>::max();

bool IsWhole(const std::string& quantity) {
  const int64_t millis = QuantityMilliValue(quantity).value_or(0);
  return millis == kSaturated || millis % 1000 == 0;
}

std::string NotOneOf(const std::string& value, std::initializer_list<absl::string_view> words) {
  return absl::StrCat("\"", value, "\" must be one of ", absl::StrJoin(words, ", "));
}

}  // namespace

bool IsOneOf(absl::string_view text, std::initializer_list<absl::string_view> words) {
  for (absl::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

bool IsHugePages(absl::string_view resource) { return absl::StartsWith(resource, "hugepages-"); }

void ManifestChecks::Word(absl::string_view field, const std::string& value,
                          std::initializer_list<absl::string_view> words) {
  if (!IsOneOf(value, words)) At(field, NotOneOf(value, words));
}

void ManifestChecks::Words(absl::string_view field, const StringList& values,
                           std::initializer_list<absl::string_view> words) {
  Each(field, values, [&](const std::string& value) {
    if (!IsOneOf(value, words)) Fail(NotOneOf(value, words));
  });
}

void ManifestChecks::Range(absl::string_view field, int64_t value, int64_t min, int64_t max) {
  if (value < min || value > max)
    At(field, absl::StrCat(value, " must be between ", min, " and ", max));
}

void ManifestChecks::Metadata(const wire::ObjectMeta& meta, NameCheck check_name) {
  FieldPath::Step step(&path_, "metadata");
  if (meta.name().empty() && !meta.generatename().empty()) {
    At("generateName", "not supported in files; set metadata.name");
  } else {
    Name("name", meta.name(), check_name);
  }
  if (!meta.namespace_().empty()) Name("namespace", meta.namespace_(), CheckDnsLabel);
  Labels("labels", meta.labels());
  FieldPath::Step annotations(&path_, "annotations");
  for (const auto& [key, value] : meta.annotations())
    Name(key, absl::AsciiStrToLower(key), CheckQualifiedName);
}

void ManifestChecks::Labels(absl::string_view field, const StringMap& labels) {
  FieldPath::Step step(&path_, field);
  for (const auto& [key, value] : labels) {
    Name(key, key, CheckQualifiedName);
    Name(key, value, CheckLabelValue);
  }
}

void ManifestChecks::Quantities(absl::string_view field, const QuantityMap& quantities,
                                bool of_container) {
  FieldPath::Step step(&path_, field);
  for (const auto& [name, quantity] : quantities) {
    const std::string& text = quantity.string();
    if (const std::string wrong = CheckQualifiedName(name); !wrong.empty()) {
      At(name, wrong);
      continue;
    }
    const bool fractional = IsOneOf(name, {"cpu", "memory", "ephemeral-storage", "storage"});
    if (of_container && !IsOneOf(name, {"cpu", "memory", "ephemeral-storage"}) &&
        !IsHugePages(name) && !absl::StrContains(name, "/")) {
      At(name,
         "must be cpu, memory, ephemeral-storage, hugepages-SIZE or a name with a domain, as in "
         "example.com/foo");
      continue;
    }
    const absl::StatusOr<int64_t> millis = QuantityMilliValue(text);
    if (!millis.ok()) {
      At(name, millis.status().message());
    } else if (*millis < 0) {
      At(name, absl::StrCat(text, " must be greater than or equal to 0"));
    } else if (!fractional && !IsWhole(text)) {
      At(name, absl::StrCat(text, " must be an integer"));
    }
  }
}

void ManifestChecks::Selector(absl::string_view field, const wire::LabelSelector& selector) {
  FieldPath::Step step(&path_, field);
  Labels("matchLabels", selector.matchlabels());
  Each("matchExpressions", selector.matchexpressions(),
       [&](const wire::LabelSelectorRequirement& requirement) {
         Name("key", requirement.key(), CheckQualifiedName);
         const std::string& op = requirement.operator_();
         Word("operator", op, {"In", "NotIn", "Exists", "DoesNotExist"});
         const bool has_values = requirement.values_size() > 0;
         if (IsOneOf(op, {"In", "NotIn"}) && !has_values)
           At("values", "must be specified when `operator` is In or NotIn");
         if (IsOneOf(op, {"Exists", "DoesNotExist"}) && has_values)
           At("values", "may not be specified when `operator` is Exists or DoesNotExist");
         Each("values", requirement.values(), [&](const std::string& value) {
           if (const std::string wrong = CheckLabelValue(value); !wrong.empty()) Fail(wrong);
         });
       });
}

void ManifestChecks::NodeTerm(const wire::NodeSelectorTerm& term) {
  using Requirement = wire::NodeSelectorRequirement;
  Each("matchExpressions", term.matchexpressions(), [&](const Requirement& requirement) {
    Name("key", requirement.key(), CheckQualifiedName);
    const std::string& op = requirement.operator_();
    Word("operator", op, {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"});
    if (IsOneOf(op, {"In", "NotIn"}) && requirement.values().empty())
      At("values", "must be specified when `operator` is In or NotIn");
    if (IsOneOf(op, {"Exists", "DoesNotExist"}) && !requirement.values().empty())
      At("values", "may not be specified when `operator` is Exists or DoesNotExist");
    if (IsOneOf(op, {"Gt", "Lt"}) && requirement.values_size() != 1)
      At("values", "must be one value when `operator` is Gt or Lt");
  });
  Each("matchFields", term.matchfields(), [&](const Requirement& requirement) {
    Word("key", requirement.key(), {"metadata.name"});
    Word("operator", requirement.operator_(), {"In", "NotIn"});
    if (requirement.values_size() != 1) At("values", "must be one value in a field selector");
  });
}

void ManifestChecks::NodeSelector(absl::string_view field, const wire::NodeSelector& selector) {
  FieldPath::Step step(&path_, field);
  if (selector.nodeselectorterms().empty())
    At("nodeSelectorTerms", "must have at least one node selector term");
  Each("nodeSelectorTerms", selector.nodeselectorterms(),
       [&](const wire::NodeSelectorTerm& term) { NodeTerm(term); });
}

}  // namespace outboard::manifests
