// YAML text to documents, as kubectl reads it: several documents in a file, anchors, merge keys
// (<<), and YAML 1.1's plain scalars (yes is a boolean, 010 is eight). Only y and n stay strings:
// most programs that write YAML do not quote them.
//
// Threading: pure function.
// Errors: a document with an error ends there, and the next one is read. Also an error if aliases
// make the result much larger than its text.
#ifndef OUTBOARD_CLI_MANIFESTS_YAML_DOCUMENT_H_
#define OUTBOARD_CLI_MANIFESTS_YAML_DOCUMENT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "shim/kube/wire/document.h"

namespace outboard::manifests {

struct YamlError {
  int line = 1;
  int column = 1;
  std::string what;
};

struct YamlDocuments {
  std::vector<kube::DocNode> documents;  // without empty ones
  std::vector<YamlError> errors;
};

YamlDocuments ParseYaml(const std::string& text);

// Says what a person can mend, instead of the parser's words, where a line of the text shows it.
// `error` is the parser's, with the position in `text`.
YamlError ExplainYamlError(absl::string_view text, YamlError error);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_YAML_DOCUMENT_H_
