// Helpers of the validation; for manifest_validation*.cc only.
//
// Threading: thread-compatible.
// Lifetime: for one object.
#ifndef OUTBOARD_CLI_MANIFESTS_MANIFEST_CHECKS_H_
#define OUTBOARD_CLI_MANIFESTS_MANIFEST_CHECKS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/document.h"

namespace outboard::manifests {

bool IsOneOf(absl::string_view text, std::initializer_list<absl::string_view> words);
bool IsHugePages(absl::string_view resource);

// Visits an object, tracks the path of the current field, and collects faults.
class ManifestChecks {
 protected:
  using QuantityMap = google::protobuf::Map<std::string, kube::wire::Quantity>;
  using StringMap = google::protobuf::Map<std::string, std::string>;
  using StringList = google::protobuf::RepeatedPtrField<std::string>;
  using NameCheck = std::string (*)(absl::string_view);

  std::vector<kube::Fault> TakeFaults() { return std::move(faults_); }

  void Fail(absl::string_view message) {
    faults_.push_back(kube::Fault{path_, std::string(message)});
  }
  void At(absl::string_view name, absl::string_view message) {
    kube::FieldPath::Step step(&path_, name);
    Fail(message);
  }
  void Name(absl::string_view field, const std::string& value, NameCheck check) {
    if (const std::string wrong = check(value); !wrong.empty()) At(field, wrong);
  }
  void Word(absl::string_view field, const std::string& value,
            std::initializer_list<absl::string_view> words);
  // Every item must be one of `words`.
  void Words(absl::string_view field, const StringList& values,
             std::initializer_list<absl::string_view> words);
  void Range(absl::string_view field, int64_t value, int64_t min, int64_t max);
  // Calls `check` for each item with the path at `field[i]`.
  template <typename List, typename Check>
  void Each(absl::string_view field, const List& list, Check check) {
    kube::FieldPath::Step step(&path_, field);
    for (int i = 0; i < list.size(); ++i) {
      kube::FieldPath::Step index(&path_, i);
      check(list[i]);
    }
  }

  void Metadata(const kube::wire::ObjectMeta& meta, NameCheck check_name);
  void Labels(absl::string_view field, const StringMap& labels);
  void Quantities(absl::string_view field, const QuantityMap& quantities, bool of_container);
  void Selector(absl::string_view field, const kube::wire::LabelSelector& selector);
  void NodeTerm(const kube::wire::NodeSelectorTerm& term);
  // There must be at least one term.
  void NodeSelector(absl::string_view field, const kube::wire::NodeSelector& selector);

  kube::FieldPath path_;

 private:
  std::vector<kube::Fault> faults_;
};

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_MANIFEST_CHECKS_H_
