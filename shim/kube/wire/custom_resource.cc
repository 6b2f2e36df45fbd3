#include "shim/kube/wire/custom_resource.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shim/kube/wire/document.h"

namespace outboard::kube {
namespace {

// The member `name` of a map; created if absent.
DocNode& Member(absl::string_view name, DocNode* map) {
  for (DocMember& member : map->members) {
    if (member.name == name) return member.value;
  }
  map->members.push_back({std::string(name), DocNode()});
  return map->members.back().value;
}

void Remove(absl::string_view name, DocNode* map) {
  map->members.erase(std::remove_if(map->members.begin(), map->members.end(),
                                    [&](const DocMember& member) { return member.name == name; }),
                     map->members.end());
}

// Sets a string member, or removes it if `text` is empty.
void SetText(absl::string_view name, const std::string& text, DocNode* map) {
  if (text.empty()) return Remove(name, map);
  DocNode& member = Member(name, map);
  member = DocNode();
  member.kind = DocNode::Kind::kString;
  member.text = text;
}

}  // namespace

absl::StatusOr<std::string> BodyOf(const v1beta1::PutObject& put) {
  const auto refuse = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(put.resource(), " ", put.name(), ": ", what));
  };
  absl::StatusOr<CustomResourceName> resource = ParseCustomResourceName(put.resource());
  if (!resource.ok()) return resource.status();
  absl::StatusOr<DocNode> document = ParseJson(put.name(), put.json());
  if (!document.ok()) return document.status();
  if (document->kind != DocNode::Kind::kMap) return refuse("the JSON is not an object");
  if (document->FindString("apiVersion") != resource->api_version())
    return refuse(absl::StrCat("apiVersion is not ", resource->api_version()));
  if (document->FindString("kind").empty()) return refuse("kind is missing");
  DocNode& metadata = Member("metadata", &*document);
  if (metadata.kind == DocNode::Kind::kNull) metadata.kind = DocNode::Kind::kMap;
  if (metadata.kind != DocNode::Kind::kMap) return refuse("metadata is not an object");
  SetText("name", put.name(), &metadata);
  SetText("namespace", put.namespace_(), &metadata);
  SetText("uid", put.uid(), &metadata);
  SetText("resourceVersion", put.resource_version(), &metadata);
  Remove("generateName", &metadata);
  return ToJson(*document);
}

absl::StatusOr<std::string> BodyOf(const v1beta1::PatchObject& patch) {
  const auto refuse = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(patch.resource(), " ", patch.name(), ": ", what));
  };
  absl::StatusOr<DocNode> document = ParseJson(patch.name(), patch.json());
  if (!document.ok()) return document.status();
  if (document->kind != DocNode::Kind::kMap) return refuse("the patch is not an object");
  DocNode& metadata = Member("metadata", &*document);
  if (metadata.kind == DocNode::Kind::kNull) metadata.kind = DocNode::Kind::kMap;
  if (metadata.kind != DocNode::Kind::kMap) return refuse("metadata is not an object");
  for (const absl::string_view name : {"name", "namespace", "generateName"})
    Remove(name, &metadata);
  SetText("uid", patch.uid(), &metadata);
  SetText("resourceVersion", patch.resource_version(), &metadata);
  return ToJson(*document);
}

}  // namespace outboard::kube
