#include "cli/manifests/field_suggestion.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "cli/manifests/kinds.h"
#include "shim/kube/wire/object_filler.h"

namespace outboard::manifests {

using google::protobuf::Descriptor;
using kube::FieldNames;
using kube::FieldPath;
using kube::MessageField;
using kube::MessageFields;

namespace {

// A name deeper than this is not a matter of wrong indentation.
constexpr int kDeepest = 3;

// The type of the message at this path below `type`, or null.
const Descriptor* TypeAt(const Descriptor* type, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::vector<MessageField> fields = MessageFields(type);
    const auto found =
        absl::c_find_if(fields, [&](const MessageField& field) { return field.name == name; });
    if (found == fields.end()) return nullptr;
    type = found->type;
  }
  return type;
}

// The path of the field of this name that is nearest below `type`; "" if there is none, or more
// than one at the same depth.
std::string FindBelow(const Descriptor* type, const std::string& name) {
  std::vector<std::pair<std::string, const Descriptor*>> level = {{"", type}};
  for (int depth = 0; depth < kDeepest; ++depth) {
    std::vector<std::string> found;
    std::vector<std::pair<std::string, const Descriptor*>> next;
    for (const auto& [path, message] : level) {
      if (absl::c_linear_search(FieldNames(message), name))
        found.push_back(absl::StrCat(path, name));
      for (const MessageField& field : MessageFields(message))
        next.emplace_back(absl::StrCat(path, field.name, field.is_list ? "[]." : "."), field.type);
    }
    if (!found.empty()) return found.size() == 1 ? found[0] : "";
    level = std::move(next);
  }
  return "";
}

}  // namespace

std::string SuggestField(const Descriptor* root, const FieldPath& path) {
  const std::vector<std::string> names = path.Names();
  const std::string& name = names.back();
  FieldPath above = path.Parent();
  const Descriptor* type = TypeAt(root, above.Names());
  if (type == nullptr) return "";
  std::string similar = DidYouMean(name, FieldNames(type));
  if (!similar.empty()) return similar;
  // Wrong indentation: the field belongs to this message's own parts, or to one around it.
  while (true) {
    const std::string found = FindBelow(type, name);
    const std::string around = above.ToString();
    if (!found.empty())
      return absl::StrCat("; did you mean ", around, around.empty() ? "" : ".", found, "?");
    const Descriptor* here = type;
    while (type == here &&
           !above.ToString().empty()) {  // Steps into lists have no type of their own.
      above = above.Parent();
      type = TypeAt(root, above.Names());
    }
    if (type == here) return "";
  }
}

}  // namespace outboard::manifests
