#include "cli/manifests/custom_object.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace outboard::manifests {

using kube::CustomResourceName;

bool IsOf(const CustomResourceName& resource, const OtherObject& object) {
  if (object.api_version != resource.api_version()) return false;
  const std::string kind = absl::AsciiStrToLower(object.kind);
  absl::string_view stem = kind;
  const char last = kind.empty() ? ' ' : kind.back();
  if (last == 's') return resource.resource == kind + "es" || resource.resource == kind;
  if (last == 'y') return resource.resource == absl::StrCat(stem.substr(0, stem.size() - 1), "ies");
  return resource.resource == kind + "s";
}

}  // namespace outboard::manifests
