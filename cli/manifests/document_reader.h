// Reads one document of a manifest, an object or a list of objects, to drafts.
#ifndef OUTBOARD_CLI_MANIFESTS_DOCUMENT_READER_H_
#define OUTBOARD_CLI_MANIFESTS_DOCUMENT_READER_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/manifests/drafts.h"
#include "cli/manifests/kinds.h"
#include "cli/manifests/problems.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/object_kinds.h"

namespace outboard::manifests {

// Threading: thread-compatible.
// Lifetime: `problems` must outlive it.
// Errors: all go to `problems`; an object with an error is left out of the drafts.
class DocumentReader {
 public:
  // Objects of Kubernetes that are not read: how many of a kind.
  using SkippedKinds = std::map<std::string, int>;

  // `strict`: unknown fields are errors.
  DocumentReader(Problems* problems, bool strict) : problems_(problems), strict_(strict) {}

  // `to_schedule`: the file's pods are to be scheduled; others describe the cluster.
  void StartFile(size_t file, bool to_schedule);
  void Read(const kube::DocNode& doc) { Read(doc, "", ""); }

  Drafts& drafts() { return drafts_; }
  // Of the file.
  const SkippedKinds& skipped() const { return skipped_; }
  // An object of this kind had an error.
  bool HasFaulty(const std::string& kind) const { return faulty_.contains(kind); }

 private:
  // `list_kind`: the kind of the items of a typed list, else "".
  void Read(const kube::DocNode& doc, absl::string_view list_api_version,
            absl::string_view list_kind);
  bool CheckHead(const kube::DocNode& doc, absl::string_view api_version, absl::string_view kind);
  // Null after an error, or if the kind belongs to a custom resource.
  const KnownKind* Identify(const kube::DocNode& doc, absl::string_view api_version,
                            absl::string_view kind, bool* custom);
  void ReadList(const kube::DocNode& doc, absl::string_view api_version, absl::string_view kind);
  void ReadKnown(const kube::DocNode& doc, absl::string_view api_version, const KnownKind& kind);
  void ReadPod(const kube::DocNode& doc);
  void ReadNode(const kube::DocNode& doc);
  void ReadObject(const kube::DocNode& doc, const kube::ObjectKind& kind);
  void ReadOther(const kube::DocNode& doc, absl::string_view api_version, absl::string_view kind);
  void NotePods(const kube::DocNode& doc, const KnownKind& kind);

  // Fills, defaults and validates. False after an error.
  template <typename Message>
  bool ReadDraft(const kube::DocNode& doc, absl::string_view kind,
                 std::vector<Draft<Message>>* drafts);
  std::vector<kube::Fault> FillFields(const kube::DocNode& doc, google::protobuf::Message* out);
  // Reports faults of an object: those of its values, and those of `checks` that are not a
  // consequence. Returns whether there is none.
  bool Report(const kube::DocNode& doc, absl::string_view kind,
              const std::vector<kube::Fault>& values, const std::vector<kube::Fault>& checks);

  Position At(const kube::DocNode& node) const { return {file_, node.line, node.column}; }
  Position NameOf(const kube::DocNode& doc) const;
  void Error(const kube::DocNode& node, absl::string_view what) {
    problems_->Error(At(node), what);
  }

  Problems* const problems_;
  const bool strict_;
  size_t file_ = 0;
  bool to_schedule_ = false;
  Drafts drafts_;
  SkippedKinds skipped_;
  std::set<std::string, std::less<>> faulty_;
};

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_DOCUMENT_READER_H_
