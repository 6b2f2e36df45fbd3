// Reads manifests: Kubernetes objects as users and kubectl write them, in YAML (several documents,
// lists) or JSON.
//
// The results are the objects that a cluster has soon after their creation: with the API server's
// defaults, priorities from their classes, a uid, and the status that controllers give to volumes,
// claims and budgets. Rejects what the API server rejects. Unknown fields are ignored with a
// warning. Objects keep the order of the files.
#ifndef OUTBOARD_CLI_MANIFESTS_OBJECT_READER_H_
#define OUTBOARD_CLI_MANIFESTS_OBJECT_READER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/manifests/document_reader.h"
#include "cli/manifests/drafts.h"
#include "cli/manifests/priorities.h"
#include "cli/manifests/problems.h"
#include "shim/kube/objects.h"

namespace outboard::manifests {

struct Manifests {
  std::vector<kube::PodPtr> pods;
  // From files that were read with `to_schedule`.
  std::vector<kube::PodPtr> pods_to_schedule;
  std::vector<kube::NodePtr> nodes;
  std::vector<kube::NamespacePtr> namespaces;
  // Of the kinds of object_kinds.h.
  std::vector<kube::ClusterObjectPtr> objects;
  std::vector<OtherObject> others;
  PriorityClasses priority_classes;
  // "FILE:LINE:COLUMN: path: …". With errors, the rest is incomplete.
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
};

// Several files that belong together: names are unique, and objects refer to each other whatever
// their order.
//
// Threading: thread-compatible.
class ManifestReader {
 public:
  // `strict`: unknown fields are errors. `priority_classes` exist besides those of the files.
  explicit ManifestReader(bool strict, PriorityClasses priority_classes = PriorityClasses())
      : priority_classes_(std::move(priority_classes)), documents_(&problems_, strict) {}
  ManifestReader(const ManifestReader&) = delete;
  ManifestReader& operator=(const ManifestReader&) = delete;

  // `file_name` appears only in messages. Returns the number of documents, also of faulty ones.
  size_t Read(absl::string_view file_name, absl::string_view text, bool to_schedule);
  // Ends the reading.
  Manifests Finish();

 private:
  struct SkippedFile {
    size_t file;
    DocumentReader::SkippedKinds kinds;
  };
  void WarnOfSkipped();
  void CheckNames();
  void ResolvePriorities();
  template <typename Wire, typename Pointer, typename Convert>
  void ConvertAll(const std::vector<Draft<Wire>>& drafts, Convert convert,
                  std::vector<Pointer>* out);

  Problems problems_;
  PriorityClasses priority_classes_;
  DocumentReader documents_;
  std::vector<SkippedFile> skipped_;
  bool unreadable_ = false;  // A document was not YAML or JSON.
};

// One file that is complete, apart from `priority_classes`.
Manifests ReadManifests(absl::string_view file_name, absl::string_view text,
                        const PriorityClasses& priority_classes = PriorityClasses());

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_OBJECT_READER_H_
