#include "cli/manifests/object_reader.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/manifests/controllers.h"
#include "cli/manifests/manifest_defaults.h"
#include "cli/manifests/yaml_document.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/from_wire.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::manifests {

namespace wire = kube::wire;
using kube::DocNode;
using kube::Fault;
using kube::PodObject;
using kube::PodPtr;

namespace {

// Which byte is not text, or nullopt.
std::optional<size_t> FindBinary(absl::string_view text) {
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' && c != '\r';
  });
  const size_t at = std::min(static_cast<size_t>(control - text.begin()), kube::Utf8Prefix(text));
  return at == text.size() ? std::nullopt : std::optional(at);
}

Position PlaceOf(size_t file, absl::string_view text, size_t at) {
  const absl::string_view before = text.substr(0, at);
  const size_t line_start =
      before.rfind('\n') == absl::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {file, static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(at - line_start) + 1};
}

// Says why `text` is not text in UTF-8. Returns whether it is.
bool CheckText(size_t file, absl::string_view text, Problems* problems) {
  if (absl::StartsWith(text, "<")) {
    problems->Error({file, 1, 1}, "is HTML or XML, not YAML or JSON");
    return false;
  }
  if (absl::StartsWith(text, "\xff\xfe") || absl::StartsWith(text, "\xfe\xff")) {
    problems->Error({file, 1, 1}, "is UTF-16; save it as UTF-8");
    return false;
  }
  const std::optional<size_t> binary = FindBinary(text);
  if (!binary) return true;
  const auto byte = static_cast<unsigned char>(text[*binary]);
  problems->Error(PlaceOf(file, text, *binary),
                  byte < ' ' ? absl::StrFormat("byte 0x%02x: is binary, not YAML or JSON", byte)
                             : absl::StrFormat("byte 0x%02x is not UTF-8", byte));
  return false;
}

// JSON is also YAML, but YAML parsers are slow on it and fail on surrogate pairs. Text that only
// begins like JSON is YAML.
YamlDocuments ParseEither(const std::string& text) {
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(text);
  if (!absl::StartsWith(start, "{") || absl::StartsWith(start, "{{")) return ParseYaml(text);
  absl::StatusOr<DocNode> json = kube::ParseJson("", text);
  if (!json.ok()) {
    YamlDocuments yaml = ParseYaml(text);
    if (yaml.errors.empty()) return yaml;
  }
  YamlDocuments documents;
  if (json.ok()) {
    documents.documents.push_back(*std::move(json));
    return documents;
  }
  YamlError error;
  // ":LINE:COLUMN: what"
  const std::string message(json.status().message());
  int end = 0;
  if (sscanf(message.c_str(), ":%d:%d: %n", &error.line, &error.column, &end) == 2)
    error.what = message.substr(static_cast<size_t>(end));
  documents.errors.push_back(std::move(error));
  return documents;
}

std::string KeyOf(absl::string_view kind, const wire::ObjectMeta& meta) {
  return absl::StrCat(kind, " ", meta.namespace_(), meta.namespace_().empty() ? "" : "/",
                      meta.name());
}

const wire::ObjectMeta& MetaOf(const google::protobuf::Message& message) {
  const auto* field = message.GetDescriptor()->FindFieldByName("metadata");
  return static_cast<const wire::ObjectMeta&>(message.GetReflection()->GetMessage(message, field));
}

absl::StatusOr<PodPtr> ConvertPod(const wire::Pod& message) {
  absl::StatusOr<PodPtr> pod = kube::PodFromWire(message);
  if (!pod.ok() || !((*pod)->pod.has_pod_limits() || (*pod)->pod.has_pod_requests())) return pod;
  auto changed = std::make_shared<PodObject>(**pod);
  ApplyPodLevelDefaults(&changed->pod);
  return changed;
}

}  // namespace

size_t ManifestReader::Read(absl::string_view file_name, absl::string_view text, bool to_schedule) {
  const size_t file = problems_.AddFile(file_name);
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  if (!CheckText(file, text, &problems_)) {
    unreadable_ = true;
    return 1;
  }
  const YamlDocuments parsed = ParseEither(std::string(text));
  for (const YamlError& error : parsed.errors)
    problems_.Error({file, error.line, error.column}, error.what);
  unreadable_ = unreadable_ || !parsed.errors.empty();
  documents_.StartFile(file, to_schedule);
  for (const DocNode& doc : parsed.documents) documents_.Read(doc);
  if (!documents_.skipped().empty()) skipped_.push_back({file, documents_.skipped()});
  return parsed.documents.size() + parsed.errors.size();
}

void ManifestReader::WarnOfSkipped() {
  const auto& pods = documents_.drafts().pods;
  const bool has_cluster_pods =
      std::any_of(pods.begin(), pods.end(), [](const auto& draft) { return !draft.to_schedule; });
  for (const auto& [file, kinds] : skipped_) {
    bool workload = false;
    for (const auto& [kind, count] : kinds)
      workload = workload || FindKind(kind)->use == KnownKind::kWorkload;
    problems_.Warn(
        {file, 0, 0},
        absl::StrCat(
            "skipped, because scheduling does not read these kinds: ",
            absl::StrJoin(kinds, ", ",
                          [](std::string* out, const auto& kind) {
                            absl::StrAppend(out, kind.first, " (", kind.second, ")");
                          }),
            workload && !has_cluster_pods ? "; no pods are created from them, give Pods" : ""));
  }
}

void ManifestReader::CheckNames() {
  std::map<std::string, Position> seen;
  const auto add = [&](const std::string& key, const Position& at) {
    const auto [first, is_new] = seen.emplace(key, at);
    if (is_new || first->second.line == 0) return;
    problems_.Error(at, absl::StrCat("metadata.name: ", key, " is already defined at ",
                                     problems_.Place(first->second)));
  };
  const Drafts& drafts = documents_.drafts();
  for (const auto& pod : drafts.pods) add(KeyOf("Pod", pod.message.metadata()), pod.at);
  for (const auto& node : drafts.nodes) add(KeyOf("Node", node.message.metadata()), node.at);
  for (const auto& ns : drafts.namespaces) add(KeyOf("Namespace", ns.message.metadata()), ns.at);
  for (const auto& one : drafts.priority_classes)
    add(KeyOf("PriorityClass", one.message.metadata()), one.at);
  for (const ObjectDraft& object : drafts.objects)
    add(KeyOf(object.kind->kind, MetaOf(*object.message)), object.at);
  for (const OtherObject& other : drafts.others) {
    if (other.kind == "DeviceClass") continue;  // Also among the objects.
    add(absl::StrCat(other.kind, " ", other.ns, other.ns.empty() ? "" : "/", other.name, " (",
                     other.api_version, ")"),
        other.at);
  }
}

void ManifestReader::ResolvePriorities() {
  Drafts& drafts = documents_.drafts();
  for (const auto& draft : drafts.priority_classes) {
    if (const std::optional<Fault> fault = priority_classes_.Add(draft.message))
      problems_.Error(draft.at, fault->ToString());
  }
  // A class that could not be read is not missing.
  if (unreadable_ || documents_.HasFaulty("PriorityClass")) return;
  for (auto& draft : drafts.pods) {
    const std::optional<Fault> fault = priority_classes_.Resolve(&draft.message);
    if (!fault) continue;
    const auto at = draft.fields.find(fault->path.ToString());
    problems_.Error(at == draft.fields.end() ? draft.at : at->second, fault->ToString());
  }
}

template <typename Wire, typename Pointer, typename Convert>
void ManifestReader::ConvertAll(const std::vector<Draft<Wire>>& drafts, Convert convert,
                                std::vector<Pointer>* out) {
  for (const Draft<Wire>& draft : drafts) {
    absl::StatusOr<Pointer> object = convert(draft.message);
    if (object.ok()) {
      out->push_back(*std::move(object));
    } else {
      problems_.Error(draft.at, object.status().message());
    }
  }
}

Manifests ManifestReader::Finish() {
  Drafts& drafts = documents_.drafts();
  WarnOfSkipped();
  CheckNames();
  ResolvePriorities();
  CompleteBudgets(&drafts);
  CompleteClaims(&drafts);
  Manifests manifests;
  std::vector<Draft<wire::Pod>> to_schedule;
  const auto first_to_schedule =
      std::stable_partition(drafts.pods.begin(), drafts.pods.end(),
                            [](const Draft<wire::Pod>& draft) { return !draft.to_schedule; });
  std::move(first_to_schedule, drafts.pods.end(), std::back_inserter(to_schedule));
  drafts.pods.erase(first_to_schedule, drafts.pods.end());
  ConvertAll(drafts.pods, ConvertPod, &manifests.pods);
  ConvertAll(to_schedule, ConvertPod, &manifests.pods_to_schedule);
  ConvertAll(drafts.nodes, kube::NodeFromWire, &manifests.nodes);
  ConvertAll(drafts.namespaces, kube::NamespaceFromWire, &manifests.namespaces);
  for (const ObjectDraft& draft : drafts.objects) {
    absl::StatusOr<kube::ClusterObjectPtr> object = draft.kind->from_wire(*draft.message);
    if (object.ok()) {
      manifests.objects.push_back(*std::move(object));
    } else {
      problems_.Error(draft.at, object.status().message());
    }
  }
  manifests.others = std::move(drafts.others);
  for (OtherObject& other : manifests.others) other.place = problems_.Place(other.at);
  manifests.priority_classes = std::move(priority_classes_);
  manifests.errors = problems_.Errors();
  manifests.warnings = problems_.Warnings();
  return manifests;
}

Manifests ReadManifests(absl::string_view file_name, absl::string_view text,
                        const PriorityClasses& priority_classes) {
  ManifestReader reader(/*strict=*/false, priority_classes);
  reader.Read(file_name, text, /*to_schedule=*/false);
  return reader.Finish();
}

}  // namespace outboard::manifests
