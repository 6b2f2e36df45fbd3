// What the checks of manifests share; for manifest_validation*.cc only.
//
// Threading: thread-compatible. Lifetime: for one object. Errors: the first Fault.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_MANIFEST_CHECKS_H_
#define OUTBOARD_SHIM_KUBE_WIRE_MANIFEST_CHECKS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/document.h"

namespace outboard::kube {

bool IsOneOf(absl::string_view text, std::initializer_list<absl::string_view> words);
bool IsHugePages(absl::string_view resource);

// Walks an object with the path of where it is.
class ManifestChecks {
 protected:
  using Result = std::optional<Fault>;
  using QuantityMap = google::protobuf::Map<std::string, wire::Quantity>;
  using StringMap = google::protobuf::Map<std::string, std::string>;
  using StringList = google::protobuf::RepeatedPtrField<std::string>;
  using NameCheck = std::string (*)(absl::string_view);

  Result Fail(absl::string_view message) const { return Fault{path_, std::string(message)}; }
  Result At(absl::string_view name, absl::string_view message) {
    FieldPath::Step step(&path_, name);
    return Fail(message);
  }
  Result Name(absl::string_view field, const std::string& value, NameCheck check) {
    const std::string wrong = check(value);
    return wrong.empty() ? std::nullopt : At(field, wrong);
  }
  Result Word(absl::string_view field, const std::string& value,
              std::initializer_list<absl::string_view> words);
  // Every item one of `words`.
  Result Words(absl::string_view field, const StringList& values,
               std::initializer_list<absl::string_view> words);
  Result Range(absl::string_view field, int64_t value, int64_t min, int64_t max);
  // Calls `check` for each item with the path at `field[i]`.
  template <typename List, typename Check>
  Result Each(absl::string_view field, const List& list, Check check) {
    FieldPath::Step step(&path_, field);
    for (int i = 0; i < list.size(); ++i) {
      FieldPath::Step index(&path_, i);
      if (Result fault = check(list[i])) return fault;
    }
    return std::nullopt;
  }
  template <typename Check>
  Result In(absl::string_view field, Check check) {
    FieldPath::Step step(&path_, field);
    return check();
  }

  Result Metadata(const wire::ObjectMeta& meta, NameCheck check_name);
  Result Labels(absl::string_view field, const StringMap& labels);
  Result Quantities(absl::string_view field, const QuantityMap& quantities, bool of_container);
  Result Selector(absl::string_view field, const wire::LabelSelector& selector);
  Result NodeTerm(const wire::NodeSelectorTerm& term);
  // Terms of which there must be one.
  Result NodeSelector(absl::string_view field, const wire::NodeSelector& selector);

  FieldPath path_;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_MANIFEST_CHECKS_H_
