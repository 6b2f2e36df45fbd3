// A parsed YAML or JSON document with positions.
//
// ParseJson and ParseYaml (cli/manifests/yaml_document.h) produce the same tree, with the position
// of every value in the text, so readers of objects do not depend on the format. Plain YAML scalars
// are resolved as in kubectl (YAML 1.1).
//
// JSON is parsed with nlohmann's SAX parser: Debian's maintained, header-only library, fuzzed
// upstream, with exact positions and, used this way, without exceptions.
//
// Threading: values; thread-compatible.
// Errors: InvalidArgument, "NAME:LINE:COLUMN: what".
#ifndef OUTBOARD_SHIM_KUBE_WIRE_DOCUMENT_H_
#define OUTBOARD_SHIM_KUBE_WIRE_DOCUMENT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outboard::kube {

// Kubernetes' types nest about 15 levels deep; custom resources somewhat deeper.
inline constexpr int kMaxDocumentDepth = 200;

struct DocMember;

struct DocNode {
  enum class Kind { kNull, kBool, kNumber, kString, kList, kMap };

  Kind kind = Kind::kNull;
  // The string itself, "true" or "false", or the number in JSON notation.
  std::string text;
  std::vector<DocNode> items;
  // In document order; keys are unique.
  std::vector<DocMember> members;
  // Starts at 1; 0 if the node was not read from text.
  int line = 0;
  int column = 0;

  bool is_null() const { return kind == Kind::kNull; }
  // The member of this name, or null.
  const DocNode* Find(absl::string_view name) const;
  // The string of this member, or "".
  absl::string_view FindString(absl::string_view name) const;
};

struct DocMember {
  std::string name;
  DocNode value;
  // Of the name. Starts at 1; 0 if it was not read from text.
  int line = 0;
  int column = 0;
};

// "a string", "a number", …
absl::string_view KindName(const DocNode& node);

// A path from an object to a value inside it: spec.containers[0].resources.requests.cpu.
class FieldPath {
 public:
  // Extends the path by one step during its lifetime.
  class Step {
   public:
    Step(FieldPath* path, absl::string_view name) : path_(path) {
      path->steps_.push_back({std::string(name), -1});
    }
    Step(FieldPath* path, int index) : path_(path) { path->steps_.push_back({"", index}); }
    ~Step() { path_->steps_.pop_back(); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    FieldPath* path_;
  };

  std::string ToString() const;
  // The value at this path below `root`, or the last existing one on the way.
  const DocNode& Resolve(const DocNode& root) const;
  // The path without its last step; a path needs one.
  FieldPath Parent() const;
  // Names of fields, without indexes of lists.
  std::vector<std::string> Names() const;

 private:
  struct Element {
    std::string name;
    int index;
  };
  std::vector<Element> steps_;
};

// An invalid value. std::nullopt stands for a valid one.
struct Fault {
  FieldPath path;
  std::string message;

  // "path: message"
  std::string ToString() const;
};

// Parses exactly one document. `name` appears in messages.
absl::StatusOr<DocNode> ParseJson(absl::string_view name, absl::string_view text);

// The tree as compact JSON.
std::string ToJson(const DocNode& node);
// The same for a Kubernetes object, which must be a map, without metadata.managedFields.
std::string ObjectJson(const DocNode& object);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_DOCUMENT_H_
