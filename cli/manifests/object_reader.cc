#include "cli/manifests/object_reader.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/manifests/manifest_defaults.h"
#include "cli/manifests/manifest_validation.h"
#include "cli/manifests/yaml_document.h"
#include "shim/kube/wire/custom_resource_name.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/from_wire.h"
#include "shim/kube/wire/object_filler.h"
#include "shim/kube/wire/object_kinds.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::manifests {

namespace wire = kube::wire;
using kube::ClusterObjectPtr;
using kube::DocNode;
using kube::Fault;
using kube::FieldPath;
using kube::FindObjectKind;
using kube::IsOwnGroup;
using kube::KindName;
using kube::NamespaceFromWire;
using kube::NamespacePtr;
using kube::NodeFromWire;
using kube::NodePtr;
using kube::ObjectFiller;
using kube::ObjectKind;
using kube::ParseJson;
using kube::PodFromWire;
using kube::PodObject;
using kube::PodPtr;
using kube::ToJson;
using kube::ToUtf8;

namespace {

absl::string_view GroupOf(absl::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == absl::string_view::npos ? absl::string_view() : api_version.substr(0, slash);
}

bool IsCustom(absl::string_view group) {
  return absl::StrContains(group, ".") && !IsOwnGroup(group);
}

class ManifestReader {
 public:
  explicit ManifestReader(absl::string_view file_name) : file_name_(file_name) {}

  // `list_kind`: the kind of the items of a typed list, else "".
  absl::Status Read(const DocNode& doc, absl::string_view list_api_version,
                    absl::string_view list_kind);
  Manifests Take() { return std::move(out_); }

 private:
  std::string Place(const DocNode& node) const {
    return absl::StrCat(file_name_, ":", node.line, ":", node.column, ": ");
  }
  absl::Status Refuse(const DocNode& node, absl::string_view message) const {
    return absl::InvalidArgumentError(absl::StrCat(Place(node), ToUtf8(message)));
  }
  absl::Status Refuse(const DocNode& doc, const Fault& fault) const {
    return Refuse(fault.path.Resolve(doc), fault.ToString());
  }

  absl::Status ReadList(const DocNode& doc, absl::string_view api_version, absl::string_view kind);
  absl::Status ReadPod(const DocNode& doc);
  absl::Status ReadNode(const DocNode& doc);
  absl::Status ReadNamespace(const DocNode& doc);
  absl::Status ReadObject(const DocNode& doc, const ObjectKind& kind);
  absl::Status ReadOther(const DocNode& doc, absl::string_view api_version, absl::string_view kind,
                         bool custom);
  // Reads the fields.
  absl::Status FillFields(const DocNode& doc, google::protobuf::Message* out);
  // Fills, defaults and validates.
  template <typename Message>
  absl::Status Fill(const DocNode& doc, Message* out);

  const std::string file_name_;
  Manifests out_;
};

absl::Status ManifestReader::Read(const DocNode& doc, absl::string_view list_api_version,
                                  absl::string_view list_kind) {
  if (doc.kind != DocNode::Kind::kMap) {
    return Refuse(doc, absl::StrCat("must be a Kubernetes object, not ", KindName(doc)));
  }
  absl::string_view api_version = doc.FindString("apiVersion");
  absl::string_view kind = doc.FindString("kind");
  if (api_version.empty()) api_version = list_api_version;
  if (kind.empty()) kind = list_kind;
  if (api_version.empty()) return Refuse(doc, "apiVersion: must not be empty");
  if (kind.empty()) return Refuse(doc, "kind: must not be empty");
  const absl::string_view group = GroupOf(api_version);
  if (absl::EndsWith(kind, "List") && doc.Find("items") != nullptr)
    return ReadList(doc, api_version, kind);
  if (group.empty() && kind == "Pod") return ReadPod(doc);
  if (group.empty() && kind == "Node") return ReadNode(doc);
  if (group.empty() && kind == "Namespace") return ReadNamespace(doc);
  if (const ObjectKind* known = FindObjectKind(group, kind)) {
    absl::Status status = ReadObject(doc, *known);
    // Plugins that allocate devices read the whole object.
    if (status.ok() && kind == "DeviceClass") return ReadOther(doc, api_version, kind, true);
    return status;
  }
  const bool priority_class = group == "scheduling.k8s.io" && kind == "PriorityClass";
  // A Kubernetes kind behind a feature gate; handled like custom resources.
  const bool pod_group = group == "scheduling.k8s.io" && kind == "PodGroup";
  const bool device =
      group == "resource.k8s.io" && (kind == "ResourceClaim" || kind == "ResourceSlice");
  if (priority_class || pod_group || device || IsCustom(group))
    return ReadOther(doc, api_version, kind, !priority_class);
  return Refuse(doc, absl::StrCat("objects of kind ", ToUtf8(kind), " (", ToUtf8(api_version),
                                  ") are not supported"));
}

absl::Status ManifestReader::ReadList(const DocNode& doc, absl::string_view api_version,
                                      absl::string_view kind) {
  const DocNode& items = *doc.Find("items");
  if (items.is_null()) return absl::OkStatus();
  if (items.kind != DocNode::Kind::kList) {
    return Refuse(items, absl::StrCat("items: must be a list, not ", KindName(items)));
  }
  absl::ConsumeSuffix(&kind, "List");
  for (const DocNode& item : items.items) {
    absl::Status status = kind.empty() ? Read(item, "", "") : Read(item, api_version, kind);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ManifestReader::FillFields(const DocNode& doc, google::protobuf::Message* out) {
  ObjectFiller filler([this](const FieldPath& path, const DocNode& node) {
    out_.warnings.push_back(absl::StrCat(Place(node), path.ToString(), ": unknown field, ignored"));
  });
  if (std::optional<Fault> fault = filler.Fill(doc, out)) return Refuse(doc, *fault);
  return absl::OkStatus();
}

template <typename Message>
absl::Status ManifestReader::Fill(const DocNode& doc, Message* out) {
  if (absl::Status status = FillFields(doc, out); !status.ok()) return status;
  ApplyDefaults(out);
  if (std::optional<Fault> fault = Validate(*out)) return Refuse(doc, *fault);
  return absl::OkStatus();
}

absl::Status ManifestReader::ReadPod(const DocNode& doc) {
  wire::Pod message;
  if (absl::Status status = Fill(doc, &message); !status.ok()) return status;
  absl::StatusOr<PodPtr> pod = PodFromWire(message);
  if (!pod.ok()) return Refuse(doc, pod.status().message());
  if ((*pod)->pod.has_pod_limits() || (*pod)->pod.has_pod_requests()) {
    auto changed = std::make_shared<PodObject>(**pod);
    ApplyPodLevelDefaults(&changed->pod);
    *pod = std::move(changed);
  }
  out_.pods.push_back(*std::move(pod));
  return absl::OkStatus();
}

absl::Status ManifestReader::ReadNode(const DocNode& doc) {
  wire::Node message;
  if (absl::Status status = Fill(doc, &message); !status.ok()) return status;
  absl::StatusOr<NodePtr> node = NodeFromWire(message);
  if (!node.ok()) return Refuse(doc, node.status().message());
  out_.nodes.push_back(*std::move(node));
  return absl::OkStatus();
}

absl::Status ManifestReader::ReadNamespace(const DocNode& doc) {
  wire::Namespace message;
  if (absl::Status status = Fill(doc, &message); !status.ok()) return status;
  absl::StatusOr<NamespacePtr> ns = NamespaceFromWire(message);
  if (!ns.ok()) return Refuse(doc, ns.status().message());
  out_.namespaces.push_back(*std::move(ns));
  return absl::OkStatus();
}

absl::Status ManifestReader::ReadObject(const DocNode& doc, const ObjectKind& kind) {
  std::unique_ptr<google::protobuf::Message> message(kind.prototype().New());
  if (absl::Status status = FillFields(doc, message.get()); !status.ok()) return status;
  ApplyObjectDefaults(kind, message.get());
  if (std::optional<Fault> fault = ValidateObject(kind, *message)) return Refuse(doc, *fault);
  absl::StatusOr<ClusterObjectPtr> object = kind.from_wire(*message);
  if (!object.ok()) return Refuse(doc, object.status().message());
  out_.objects.push_back(*std::move(object));
  return absl::OkStatus();
}

absl::Status ManifestReader::ReadOther(const DocNode& doc, absl::string_view api_version,
                                       absl::string_view kind, bool custom) {
  OtherObject other;
  other.api_version = ToUtf8(api_version);
  other.kind = ToUtf8(kind);
  other.custom = custom;
  const DocNode* metadata = doc.Find("metadata");
  if (metadata != nullptr) {
    other.name = ToUtf8(metadata->FindString("name"));
    other.ns = ToUtf8(metadata->FindString("namespace"));
  }
  if (other.name.empty())
    return Refuse(metadata != nullptr ? *metadata : doc, "metadata.name: must not be empty");
  other.json = ToJson(doc);
  out_.others.push_back(std::move(other));
  return absl::OkStatus();
}

// JSON is also YAML, but YAML parsers are slow on it and fail on surrogate pairs. Text that only
// begins like JSON is YAML.
absl::StatusOr<std::vector<DocNode>> ParseEither(absl::string_view file_name,
                                                 const std::string& text) {
  if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{"))
    return ParseYaml(file_name, text);
  absl::StatusOr<DocNode> json = ParseJson(file_name, text);
  if (json.ok()) {
    std::vector<DocNode> documents;
    documents.push_back(*std::move(json));
    return documents;
  }
  absl::StatusOr<std::vector<DocNode>> yaml = ParseYaml(file_name, text);
  if (yaml.ok()) return yaml;
  return json.status();
}

}  // namespace

absl::StatusOr<Manifests> ReadManifests(absl::string_view file_name, const std::string& text) {
  absl::StatusOr<std::vector<DocNode>> documents = ParseEither(file_name, text);
  if (!documents.ok()) return documents.status();
  ManifestReader reader(file_name);
  for (const DocNode& doc : *documents) {
    if (absl::Status status = reader.Read(doc, "", ""); !status.ok()) return status;
  }
  return reader.Take();
}

}  // namespace outboard::manifests
