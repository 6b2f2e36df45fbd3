// YAML text to documents, as kubectl reads it: several documents in a file, anchors, merge keys
// (<<), and YAML 1.1's plain scalars (yes is a boolean, 010 is eight). Only y and n stay strings:
// most programs that write YAML do not quote them.
//
// Threading: pure function.
// Errors: InvalidArgument, "NAME:LINE:COLUMN: what"; also if aliases make the result much larger
// than its text.
#ifndef OUTBOARD_CLI_MANIFESTS_YAML_DOCUMENT_H_
#define OUTBOARD_CLI_MANIFESTS_YAML_DOCUMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shim/kube/wire/document.h"

namespace outboard::manifests {

// Skips empty documents.
absl::StatusOr<std::vector<kube::DocNode>> ParseYaml(absl::string_view name,
                                                     const std::string& text);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_YAML_DOCUMENT_H_
