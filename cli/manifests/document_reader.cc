#include "cli/manifests/document_reader.h"

#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "cli/manifests/field_suggestion.h"
#include "cli/manifests/manifest_defaults.h"
#include "cli/manifests/manifest_validation.h"
#include "shim/kube/wire/custom_resource_name.h"
#include "shim/kube/wire/object_filler.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::manifests {

namespace wire = kube::wire;
using kube::DocMember;
using kube::DocNode;
using kube::Fault;
using kube::FieldPath;
using kube::KindName;
using kube::ObjectFiller;
using kube::ObjectKind;
using kube::ToUtf8;

namespace {

bool IsCustom(absl::string_view group) {
  return absl::StrContains(group, ".") && !kube::IsOwnGroup(group);
}

std::string Alternatives(absl::string_view api_versions) {
  return absl::StrReplaceAll(api_versions, {{" ", " or "}});
}

// Whether the fault at `check` may only be a consequence of the one at `value`: of the same value,
// of a part of it, or of what contains it; also beside it in an item of a list, whose fields depend
// on each other.
bool IsConsequence(const std::string& check, const std::string& value,
                   const std::string& value_parent) {
  const auto contains = [](absl::string_view outer, absl::string_view inner) {
    return inner == outer || (absl::StartsWith(inner, outer) &&
                              (inner[outer.size()] == '.' || inner[outer.size()] == '['));
  };
  return contains(value, check) || contains(check, value) ||
         (absl::EndsWith(value_parent, "]") && contains(value_parent, check));
}

const DocNode* FindField(const DocNode& doc, absl::string_view message, absl::string_view field) {
  const DocNode* outer = doc.Find(message);
  return outer == nullptr ? nullptr : outer->Find(field);
}

std::string NamespacedName(const DocNode& doc) {
  const DocNode* metadata = doc.Find("metadata");
  if (metadata == nullptr) return "";
  const absl::string_view ns = metadata->FindString("namespace");
  return absl::StrCat(ns, ns.empty() ? "" : "/", metadata->FindString("name"));
}

}  // namespace

void DocumentReader::StartFile(size_t file, bool to_schedule) {
  file_ = file;
  to_schedule_ = to_schedule;
  skipped_.clear();
}

Position DocumentReader::NameOf(const DocNode& doc) const {
  const DocNode* name = FindField(doc, "metadata", "name");
  return At(name != nullptr ? *name : doc);
}

bool DocumentReader::CheckHead(const DocNode& doc, absl::string_view api_version,
                               absl::string_view kind) {
  bool explained = false;
  for (const DocMember& member : doc.members) {
    const bool head = member.name == "apiVersion" || member.name == "kind";
    if (head && member.value.kind != DocNode::Kind::kString) {
      Error(member.value,
            absl::StrCat(member.name, ": must be a string, not ", KindName(member.value)));
      explained = true;
    }
    if (head || (!api_version.empty() && !kind.empty())) continue;
    const std::string hint = DidYouMean(member.name, {"apiVersion", "kind"});
    if (hint.empty()) continue;
    problems_->Error({file_, member.line, member.column},
                     absl::StrCat(member.name, ": unknown field", hint));
    explained = true;
  }
  if (explained) return false;
  if (api_version.empty() && kind.empty()) {
    Error(doc, "must be a Kubernetes object: it has neither apiVersion nor kind");
  } else if (api_version.empty()) {
    const KnownKind* known = FindKind(kind);
    Error(doc, absl::StrCat("apiVersion: must not be empty",
                            known == nullptr ? ""
                                             : absl::StrCat("; ", kind, " is in ",
                                                            Alternatives(known->api_versions))));
  } else if (kind.empty()) {
    Error(doc, "kind: must not be empty");
  }
  return !api_version.empty() && !kind.empty();
}

const KnownKind* DocumentReader::Identify(const DocNode& doc, absl::string_view api_version,
                                          absl::string_view kind, bool* custom) {
  const DocNode* version_node = doc.Find("apiVersion");
  const DocNode* kind_node = doc.Find("kind");
  const absl::string_view group = GroupOf(api_version);
  if (const absl::string_view why = NotAManifest(kind); !why.empty()) {
    Error(kind_node == nullptr ? doc : *kind_node, absl::StrCat("kind: ", kind, " ", why));
    return nullptr;
  }
  const KnownKind* known = FindKind(kind);
  if (known != nullptr && known->Serves(api_version)) return known;
  if (known != nullptr) {
    // What is not read needs no exact version.
    if (known->use == KnownKind::kSkipped && known->HasGroup(group)) return known;
    const std::string meant = DidYouMean(group, {std::string(GroupOf(known->api_versions))});
    if (!IsCustom(group) || (!meant.empty() && !absl::EndsWith(group, ".x-k8s.io"))) {
      Error(version_node == nullptr ? doc : *version_node,
            absl::StrCat("apiVersion: ", api_version, " has no kind ", kind, "; use ",
                         Alternatives(known->api_versions)));
      return nullptr;
    }
  }
  *custom = IsCustom(group);
  if (!*custom) {
    Error(
        kind_node == nullptr ? doc : *kind_node,
        absl::StrCat("kind: ", api_version, " has no kind ", kind, DidYouMean(kind, KindNames())));
  }
  return nullptr;
}

void DocumentReader::Read(const DocNode& doc, absl::string_view list_api_version,
                          absl::string_view list_kind) {
  if (doc.kind != DocNode::Kind::kMap)
    return Error(doc, absl::StrCat("must be a Kubernetes object, not ", KindName(doc)));
  absl::string_view api_version = doc.FindString("apiVersion");
  absl::string_view kind = doc.FindString("kind");
  if (api_version.empty()) api_version = list_api_version;
  if (kind.empty()) kind = list_kind;
  if (!CheckHead(doc, api_version, kind)) return;
  absl::string_view item_kind = kind;
  if (absl::ConsumeSuffix(&item_kind, "List") &&
      (doc.Find("items") != nullptr || item_kind.empty() || FindKind(item_kind) != nullptr)) {
    return ReadList(doc, api_version, item_kind);
  }
  bool custom = false;
  const KnownKind* known = Identify(doc, api_version, kind, &custom);
  if (known != nullptr) return ReadKnown(doc, api_version, *known);
  if (custom) ReadOther(doc, api_version, kind);
}

void DocumentReader::ReadList(const DocNode& doc, absl::string_view api_version,
                              absl::string_view kind) {
  const DocNode* items = doc.Find("items");
  if (items == nullptr) return Error(doc, "items: must be specified in a list");
  if (items->is_null()) return;
  if (items->kind != DocNode::Kind::kList)
    return Error(*items, absl::StrCat("items: must be a list, not ", KindName(*items)));
  for (const DocNode& item : items->items) {
    if (kind.empty()) {
      Read(item, "", "");
    } else {
      Read(item, api_version, kind);
    }
  }
}

void DocumentReader::ReadKnown(const DocNode& doc, absl::string_view api_version,
                               const KnownKind& kind) {
  const absl::string_view group = GroupOf(api_version);
  switch (kind.use) {
    case KnownKind::kRead:
      if (kind.kind == "Pod") return ReadPod(doc);
      if (kind.kind == "Node") return ReadNode(doc);
      if (kind.kind == "Namespace") {
        ReadDraft(doc, kind.kind, &drafts_.namespaces);
        return;
      }
      if (kind.kind == "PriorityClass") {
        ReadDraft(doc, kind.kind, &drafts_.priority_classes);
        return;
      }
      ReadObject(doc, *kube::FindObjectKind(group, kind.kind));
      // Plugins that allocate devices read the whole object.
      if (kind.kind == "DeviceClass") ReadOther(doc, api_version, kind.kind);
      return;
    case KnownKind::kForPlugins:
      return ReadOther(doc, api_version, kind.kind);
    case KnownKind::kReadWorkload:
      NotePods(doc, kind);
      return ReadObject(doc, *kube::FindObjectKind(group, kind.kind));
    case KnownKind::kWorkload:
      NotePods(doc, kind);
      if (!to_schedule_) ++skipped_[std::string(kind.kind)];
      return;
    case KnownKind::kSkipped:
      ++skipped_[std::string(kind.kind)];
      return;
  }
}

void DocumentReader::NotePods(const DocNode& doc, const KnownKind& kind) {
  if (!to_schedule_) return;
  problems_->Warn(NameOf(doc), absl::StrCat(kind.kind, " ", NamespacedName(doc),
                                            ": no pods are created from it; give Pods"));
}

std::vector<Fault> DocumentReader::FillFields(const DocNode& doc, google::protobuf::Message* out) {
  std::vector<Fault> faults;
  ObjectFiller filler(
      [&](const FieldPath& path, const DocMember& member) {
        const Position at = {file_, member.line, member.column};
        const std::string hint = SuggestField(out->GetDescriptor(), path);
        if (strict_) {
          problems_->Error(at, absl::StrCat(path.ToString(), ": unknown field", hint));
        } else {
          problems_->Warn(at, absl::StrCat(path.ToString(), ": unknown field, ignored", hint));
        }
      },
      [&](Fault fault) { faults.push_back(std::move(fault)); });
  filler.Fill(doc, out);
  return faults;
}

bool DocumentReader::Report(const DocNode& doc, absl::string_view kind,
                            const std::vector<Fault>& values, const std::vector<Fault>& checks) {
  const auto report = [&](const Fault& fault) {
    Error(fault.path.Resolve(doc), fault.ToString());
    faulty_.emplace(kind);
  };
  for (const Fault& fault : values) report(fault);
  std::set<std::string> seen;
  for (const Fault& fault : checks) {
    const std::string path = fault.path.ToString();
    bool follows = !seen.insert(path).second;
    for (const Fault& value : values) {
      const std::string value_path = value.path.ToString();
      follows = follows || value_path.empty() ||
                IsConsequence(path, value_path, value.path.Parent().ToString());
    }
    if (!follows) report(fault);
  }
  return values.empty() && checks.empty();
}

template <typename Message>
bool DocumentReader::ReadDraft(const DocNode& doc, absl::string_view kind,
                               std::vector<Draft<Message>>* drafts) {
  Draft<Message> draft;
  const std::vector<Fault> values = FillFields(doc, &draft.message);
  ApplyDefaults(&draft.message);
  if (!Report(doc, kind, values, Validate(draft.message))) return false;
  draft.at = NameOf(doc);
  draft.to_schedule = to_schedule_;
  drafts->push_back(std::move(draft));
  return true;
}

void DocumentReader::ReadPod(const DocNode& doc) {
  if (!ReadDraft(doc, "Pod", &drafts_.pods)) return;
  for (const char* field : {"priorityClassName", "priority", "preemptionPolicy"}) {
    if (const DocNode* node = FindField(doc, "spec", field))
      drafts_.pods.back().fields[absl::StrCat("spec.", field)] = At(*node);
  }
}

void DocumentReader::ReadNode(const DocNode& doc) {
  if (!ReadDraft(doc, "Node", &drafts_.nodes)) return;
  if (drafts_.nodes.back().message.status().allocatable().contains("pods")) return;
  const DocNode* allocatable = FindField(doc, "status", "allocatable");
  if (allocatable == nullptr) allocatable = FindField(doc, "status", "capacity");
  problems_->Warn(
      allocatable == nullptr ? NameOf(doc) : At(*allocatable),
      "status.allocatable.pods: not set, so no pod fits on the node; a kubelet sets it, "
      "by default to 110");
}

void DocumentReader::ReadObject(const DocNode& doc, const ObjectKind& kind) {
  ObjectDraft draft;
  draft.kind = &kind;
  draft.message.reset(kind.prototype().New());
  const std::vector<Fault> values = FillFields(doc, draft.message.get());
  ApplyObjectDefaults(kind, draft.message.get());
  if (!Report(doc, kind.kind, values, ValidateObject(*draft.message))) return;
  draft.at = NameOf(doc);
  draft.has_status = doc.Find("status") != nullptr;
  drafts_.objects.push_back(std::move(draft));
}

void DocumentReader::ReadOther(const DocNode& doc, absl::string_view api_version,
                               absl::string_view kind) {
  OtherObject other;
  other.api_version = ToUtf8(api_version);
  other.kind = ToUtf8(kind);
  const DocNode* metadata = doc.Find("metadata");
  for (const char* field : {"name", "namespace"}) {
    const DocNode* node = FindField(doc, "metadata", field);
    if (node == nullptr || node->is_null() || node->kind == DocNode::Kind::kString) continue;
    return Error(*node,
                 absl::StrCat("metadata.", field, ": must be a string, not ", KindName(*node)));
  }
  if (metadata != nullptr) {
    other.name = ToUtf8(metadata->FindString("name"));
    other.ns = ToUtf8(metadata->FindString("namespace"));
  }
  if (other.name.empty())
    return Error(metadata != nullptr ? *metadata : doc, "metadata.name: must not be empty");
  other.json = ToJson(doc);
  other.at = NameOf(doc);
  drafts_.others.push_back(std::move(other));
}

}  // namespace outboard::manifests
