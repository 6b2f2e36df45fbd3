// Helpers of the validation; for manifest_validation*.cc only.
//
// Threading: thread-compatible.
// Lifetime: for one object.
// Errors: the first Fault.
#ifndef OUTBOARD_CLI_MANIFESTS_MANIFEST_CHECKS_H_
#define OUTBOARD_CLI_MANIFESTS_MANIFEST_CHECKS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/document.h"

namespace outboard::manifests {

bool IsOneOf(absl::string_view text, std::initializer_list<absl::string_view> words);
bool IsHugePages(absl::string_view resource);

// Visits an object and tracks the path of the current field.
class ManifestChecks {
 protected:
  using Result = std::optional<kube::Fault>;
  using QuantityMap = google::protobuf::Map<std::string, kube::wire::Quantity>;
  using StringMap = google::protobuf::Map<std::string, std::string>;
  using StringList = google::protobuf::RepeatedPtrField<std::string>;
  using NameCheck = std::string (*)(absl::string_view);

  Result Fail(absl::string_view message) const { return kube::Fault{path_, std::string(message)}; }
  Result At(absl::string_view name, absl::string_view message) {
    kube::FieldPath::Step step(&path_, name);
    return Fail(message);
  }
  Result Name(absl::string_view field, const std::string& value, NameCheck check) {
    const std::string wrong = check(value);
    return wrong.empty() ? std::nullopt : At(field, wrong);
  }
  Result Word(absl::string_view field, const std::string& value,
              std::initializer_list<absl::string_view> words);
  // Every item must be one of `words`.
  Result Words(absl::string_view field, const StringList& values,
               std::initializer_list<absl::string_view> words);
  Result Range(absl::string_view field, int64_t value, int64_t min, int64_t max);
  // Calls `check` for each item with the path at `field[i]`.
  template <typename List, typename Check>
  Result Each(absl::string_view field, const List& list, Check check) {
    kube::FieldPath::Step step(&path_, field);
    for (int i = 0; i < list.size(); ++i) {
      kube::FieldPath::Step index(&path_, i);
      if (Result fault = check(list[i])) return fault;
    }
    return std::nullopt;
  }
  template <typename Check>
  Result In(absl::string_view field, Check check) {
    kube::FieldPath::Step step(&path_, field);
    return check();
  }

  Result Metadata(const kube::wire::ObjectMeta& meta, NameCheck check_name);
  Result Labels(absl::string_view field, const StringMap& labels);
  Result Quantities(absl::string_view field, const QuantityMap& quantities, bool of_container);
  Result Selector(absl::string_view field, const kube::wire::LabelSelector& selector);
  Result NodeTerm(const kube::wire::NodeSelectorTerm& term);
  // There must be at least one term.
  Result NodeSelector(absl::string_view field, const kube::wire::NodeSelector& selector);

  kube::FieldPath path_;
};

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_MANIFEST_CHECKS_H_
