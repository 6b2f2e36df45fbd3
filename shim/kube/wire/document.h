// A parsed YAML or JSON document, and places in it.
//
// YAML and JSON differ only up to here: ParseJson and ParseYaml (yaml_document.h) make the same
// tree, with the place of every value in the text, and whoever reads objects reads this tree. Plain
// YAML scalars have been resolved as kubectl does (YAML 1.1).
//
// JSON is read with nlohmann's SAX parser: Debian's maintained, header-only JSON library, fuzzed
// upstream, with exact positions and no exceptions when used this way.
//
// Threading: values; thread-compatible. Errors: InvalidArgument, "NAME:LINE:COLUMN: what".
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
  // The string itself, or "true", "false", or the number as JSON writes it.
  std::string text;
  std::vector<DocNode> items;
  // In the document's order; keys are unique.
  std::vector<DocMember> members;
  // From 1; 0 where there is no text behind it.
  int line = 0;
  int column = 0;

  bool is_null() const { return kind == Kind::kNull; }
  // The member with this name, or null.
  const DocNode* Find(absl::string_view name) const;
  // The string at this member, or "".
  absl::string_view FindString(absl::string_view name) const;
};

struct DocMember {
  std::string name;
  DocNode value;
};

// "a string", "a number", …
absl::string_view KindName(const DocNode& node);

// A path from an object to a value in it: spec.containers[0].resources.requests.cpu.
class FieldPath {
 public:
  // Goes one step down for as long as it lives.
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
  // The value that this path leads to from `root`, or the last one on the way that exists.
  const DocNode& Resolve(const DocNode& root) const;

 private:
  struct Element {
    std::string name;
    int index;
  };
  std::vector<Element> steps_;
};

// What is wrong with a value. Nothing wrong is std::nullopt.
struct Fault {
  FieldPath path;
  std::string message;

  // "path: message"
  std::string ToString() const;
};

// One document and nothing after it. `name` stands in messages.
absl::StatusOr<DocNode> ParseJson(absl::string_view name, absl::string_view text);

// The tree as compact JSON.
std::string ToJson(const DocNode& node);
// The same of a Kubernetes object, which is a map, without metadata.managedFields.
std::string ObjectJson(const DocNode& object);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_DOCUMENT_H_
