#include "shim/bind/api_requests.h"

#include <map>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "shim/cut_text.h"
#include "shim/kube/wire/custom_resource.h"
#include "shim/kube/wire/custom_resource_name.h"
#include "shim/kube/wire/name_rules.h"

namespace outboard::bind {
namespace {

constexpr char kHex[] = "0123456789abcdef";
constexpr size_t kMaxNote = 1024;
constexpr size_t kMaxName = 253;

// Length of the UTF-8 sequence at `text[at]`, or 0 if invalid (RFC 3629).
size_t SequenceLength(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(at + i < text.size() ? text[at + i] : 0);
  };
  const auto tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned char b0 = byte(0);
  if (b0 < 0x80) return 1;
  if (b0 < 0xC2) return 0;
  if (b0 < 0xE0) return tail(1) ? 2 : 0;
  if (b0 < 0xF0) {
    if (!tail(1) || !tail(2)) return 0;
    if (b0 == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
    if (b0 == 0xED && byte(1) > 0x9F) return 0;  // surrogate
    return 3;
  }
  if (b0 > 0xF4 || !tail(1) || !tail(2) || !tail(3)) return 0;
  if (b0 == 0xF0 && byte(1) < 0x90) return 0;
  if (b0 == 0xF4 && byte(1) > 0x8F) return 0;
  return 4;
}

// Appends ,"key":"value".
void AppendField(absl::string_view key, absl::string_view value, std::string* out) {
  absl::StrAppend(out, ",\"", key, "\":");
  AppendJsonString(value, out);
}

// Appends ,"name":{…} with the members of `set`, and null for each key of `remove`; nothing if both
// are empty. In the order of the keys, so that equal maps have equal texts.
template <typename Map>
void AppendMap(absl::string_view name, const Map& set,
               const google::protobuf::RepeatedPtrField<std::string>& remove, std::string* out) {
  if (set.empty() && remove.empty()) return;
  std::map<absl::string_view, const std::string*> members;  // null: remove
  for (const auto& [key, value] : set) members[key] = &value;
  for (const std::string& key : remove) members.emplace(key, nullptr);
  absl::StrAppend(out, ",\"", name, "\":");
  char before = '{';
  for (const auto& [key, value] : members) {
    out->push_back(before);
    before = ',';
    AppendJsonString(key, out);
    out->push_back(':');
    if (value == nullptr) {
      *out += "null";
    } else {
      AppendJsonString(*value, out);
    }
  }
  out->push_back('}');
}

// Kubernetes names need no escaping; this prevents an invalid name from forming another path.
void AppendSegment(absl::string_view text, std::string* out) {
  for (char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_' ||
        c == '~') {
      out->push_back(c);
    } else {
      out->push_back('%');
      out->push_back(absl::ascii_toupper(kHex[static_cast<unsigned char>(c) >> 4]));
      out->push_back(absl::ascii_toupper(kHex[static_cast<unsigned char>(c) & 15]));
    }
  }
}

std::string SecondsText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}
std::string MicrosText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

// The condition in the patch; empty if it stays unchanged. Fields are in alphabetical order, like
// kube-scheduler's.
std::string ConditionPatch(const PodFacts& pod, const StatusChange& change, absl::Time now) {
  const kube::PodScheduledCondition& old = pod.scheduled;
  const bool had = !old.status.empty();
  const bool status_changes = old.status != "False";
  // A change of only the generation does not justify a write.
  if (had && !status_changes && old.reason == change.reason && old.message == change.message)
    return "";
  std::string fields;
  if (!had) fields += ",\"lastProbeTime\":null";
  if (status_changes) AppendField("lastTransitionTime", SecondsText(now), &fields);
  if (!had || old.message != change.message) {
    if (change.message.empty()) {
      if (had) fields += ",\"message\":null";
    } else {
      AppendField("message", change.message, &fields);
    }
  }
  if (pod.generation != old.observed_generation) {
    if (pod.generation == 0) {
      fields += ",\"observedGeneration\":null";
    } else {
      absl::StrAppend(&fields, ",\"observedGeneration\":", pod.generation);
    }
  }
  if (!had || old.reason != change.reason) AppendField("reason", change.reason, &fields);
  if (status_changes) fields += ",\"status\":\"False\"";
  fields += ",\"type\":\"PodScheduled\"";
  std::string out = had ? "\"$setElementOrder/conditions\":[{\"type\":\"PodScheduled\"}]," : "";
  absl::StrAppend(&out, "\"conditions\":[{", absl::string_view(fields).substr(1), "}]");
  return out;
}

// The start of a patch of the pod's status. The UID is a precondition: a pod that was recreated
// with the same name must not get the condition of its predecessor. (kube-scheduler sends none.)
std::string StatusPatchStart(absl::string_view pod_uid) {
  std::string out = "{\"metadata\":{\"uid\":";
  AppendJsonString(pod_uid, &out);
  out += "},\"status\":{";
  return out;
}

}  // namespace

PodFacts FactsOf(const kube::PodObject& pod) {
  return PodFacts{
      pod.pod.namespace_(),          pod.pod.name(), pod.pod.uid(), pod.pod.generation(),
      pod.pod.nominated_node_name(), pod.scheduled};
}

void AppendJsonString(absl::string_view text, std::string* out) {
  out->push_back('"');
  size_t run = 0;  // start of the bytes copied unchanged
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\') {
      ++at;
      continue;
    }
    const size_t length = SequenceLength(text, at);
    if (length > 1) {
      at += length;
      continue;
    }
    out->append(text.data() + run, at - run);
    if (length == 0) {
      out->append("\xEF\xBF\xBD");
    } else if (byte == '"' || byte == '\\') {
      out->push_back('\\');
      out->push_back(text[at]);
    } else {
      out->append("\\u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
    }
    run = ++at;
  }
  out->append(text.data() + run, text.size() - run);
  out->push_back('"');
}

std::string PodPath(absl::string_view pod_namespace, absl::string_view pod_name) {
  std::string path = "/api/v1/namespaces/";
  AppendSegment(pod_namespace, &path);
  path += "/pods/";
  AppendSegment(pod_name, &path);
  return path;
}

std::string BindingPath(const BindRequest& request) {
  return PodPath(request.pod_namespace, request.pod_name) + "/binding";
}

std::string PodStatusPath(absl::string_view pod_namespace, absl::string_view pod_name) {
  return PodPath(pod_namespace, pod_name) + "/status";
}

std::string BindingBody(const BindRequest& request) {
  std::string body;
  body.reserve(160 + request.pod_namespace.size() + request.pod_name.size() +
               request.pod_uid.size() + request.node_name.size());
  body += "{\"kind\":\"Binding\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":";
  AppendJsonString(request.pod_name, &body);
  AppendField("namespace", request.pod_namespace, &body);
  AppendField("uid", request.pod_uid, &body);
  AppendMap("annotations", request.annotations, {}, &body);
  body += "},\"target\":{\"kind\":\"Node\",\"name\":";
  AppendJsonString(request.node_name, &body);
  body += "}}";
  return body;
}

std::optional<std::string> PodStatusPatchBody(const PodFacts& pod, const StatusChange& change,
                                              absl::Time now) {
  std::string status = change.reason.empty() ? std::string() : ConditionPatch(pod, change, now);
  if (change.nominated_node_name.has_value() &&
      *change.nominated_node_name != pod.nominated_node_name) {
    if (!status.empty()) status.push_back(',');
    status += "\"nominatedNodeName\":";
    if (change.nominated_node_name->empty()) {
      status += "null";
    } else {
      AppendJsonString(*change.nominated_node_name, &status);
    }
  }
  if (status.empty()) return std::nullopt;
  return absl::StrCat(StatusPatchStart(pod.pod_uid), status, "}}");
}

std::string DisruptionPatchBody(const EvictRequest& request, absl::Time now) {
  std::string body = StatusPatchStart(request.pod_uid);
  body += "\"conditions\":[{\"lastProbeTime\":null";
  AppendField("lastTransitionTime", SecondsText(now), &body);
  AppendField("message", request.message, &body);
  if (request.generation != 0) {
    absl::StrAppend(&body, ",\"observedGeneration\":", request.generation);
  }
  AppendField("reason", "PreemptionByScheduler", &body);
  body += ",\"status\":\"True\",\"type\":\"DisruptionTarget\"}]}}";
  return body;
}

bool IsPodGone(const kube::ApiResponse& answer) {
  switch (answer.http_status) {
    case 404:
      return true;
    case 409:
      return absl::StrContains(answer.body, "UID in precondition");
    case 422:
      return absl::StrContains(answer.body, "metadata.uid: Invalid value");
    default:
      return false;
  }
}

bool IsPatchOutdated(const kube::ApiResponse& answer) {
  return IsPodGone(answer) ||
         (answer.http_status == 422 &&
          absl::StrContains(answer.body, "may not be set on pods that are already bound"));
}

std::string DeleteBody(const EvictRequest& request) {
  std::string body =
      "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{\"uid\":";
  AppendJsonString(request.pod_uid, &body);
  body += "}}";
  return body;
}

namespace {

std::string Preconditions(const std::string& uid, const std::string& resource_version) {
  std::string out = "{\"metadata\":{\"uid\":";
  AppendJsonString(uid, &out);
  AppendField("resourceVersion", resource_version, &out);
  return out;
}

EffectRequest BindVolumeRequest(const v1beta1::BindVolume& bind) {
  EffectRequest request;
  request.path = "/api/v1/persistentvolumes/";
  AppendSegment(bind.name(), &request.path);
  std::string& body = request.body;
  body = Preconditions(bind.uid(), bind.resource_version());
  if (bind.bound_by_controller()) {
    body += ",\"annotations\":{\"pv.kubernetes.io/bound-by-controller\":\"yes\"}";
  }
  body += "},\"spec\":{\"claimRef\":{\"kind\":\"PersistentVolumeClaim\",\"apiVersion\":\"v1\"";
  AppendField("namespace", bind.claim().namespace_(), &body);
  AppendField("name", bind.claim().name(), &body);
  AppendField("uid", bind.claim().uid(), &body);
  if (!bind.claim_resource_version().empty()) {
    AppendField("resourceVersion", bind.claim_resource_version(), &body);
  }
  body += "}}}";
  return request;
}

EffectRequest SelectNodeRequest(const v1beta1::SelectNode& select) {
  EffectRequest request;
  request.path = "/api/v1/namespaces/";
  AppendSegment(select.namespace_(), &request.path);
  request.path += "/persistentvolumeclaims/";
  AppendSegment(select.name(), &request.path);
  request.body = Preconditions(select.uid(), select.resource_version());
  request.body += ",\"annotations\":{\"volume.kubernetes.io/selected-node\":";
  AppendJsonString(select.node_name(), &request.body);
  request.body += "}}}";
  return request;
}

absl::StatusOr<EffectRequest> PutRequest(const v1beta1::PutObject& put) {
  absl::StatusOr<kube::CustomResourceName> resource = kube::ParseCustomResourceName(put.resource());
  if (!resource.ok()) return resource.status();
  absl::StatusOr<std::string> body = kube::BodyOf(put);
  if (!body.ok()) return body.status();
  const bool creates = put.uid().empty();
  EffectRequest request;
  request.method = creates ? kube::Method::kPost : kube::Method::kPut;
  request.path =
      creates ? resource->path(put.namespace_()) : resource->path(put.namespace_(), put.name());
  if (put.status()) request.path += "/status";
  request.content_type = std::string(kube::kJson);
  request.body = *std::move(body);
  if (!kube::IsWriteOnly(*resource)) request.resource = put.resource();
  request.object_path = resource->path(put.namespace_(), put.name());
  return request;
}

absl::StatusOr<EffectRequest> PatchRequest(const v1beta1::PatchObject& patch) {
  absl::StatusOr<kube::CustomResourceName> resource =
      kube::ParseCustomResourceName(patch.resource());
  if (!resource.ok()) return resource.status();
  absl::StatusOr<std::string> body = kube::BodyOf(patch);
  if (!body.ok()) return body.status();
  EffectRequest request;
  request.path = resource->path(patch.namespace_(), patch.name());
  if (patch.status()) request.path += "/status";
  if (!kube::IsOwnGroup(resource->group)) request.content_type = std::string(kube::kMergePatch);
  request.body = *std::move(body);
  if (!kube::IsWriteOnly(*resource)) request.resource = patch.resource();
  request.object_path = resource->path(patch.namespace_(), patch.name());
  return request;
}

EffectRequest ReportRequest(const v1beta1::ReportExtendedResourceClaim& report,
                            const v1beta1::Pod& pod) {
  EffectRequest request;
  request.path = PodStatusPath(pod.namespace_(), pod.name());
  std::string& body = request.body;
  body = "{\"metadata\":{\"uid\":";
  AppendJsonString(pod.uid(), &body);
  body += "},\"status\":{\"extendedResourceClaimStatus\":{\"resourceClaimName\":";
  AppendJsonString(report.claim_name(), &body);
  body += ",\"requestMappings\":[";
  for (const auto& mapping : report.request_mappings()) {
    body += body.back() == '[' ? "{\"containerName\":" : ",{\"containerName\":";
    AppendJsonString(mapping.container_name(), &body);
    AppendField("resourceName", mapping.resource_name(), &body);
    AppendField("requestName", mapping.request_name(), &body);
    body += "}";
  }
  body += "]}}}";
  return request;
}

EffectRequest PatchPodRequest(const v1beta1::PatchPod& patch, const v1beta1::Pod& pod) {
  EffectRequest request;
  request.path = PodPath(pod.namespace_(), pod.name());
  std::string& body = request.body;
  body = "{\"metadata\":{\"uid\":";
  AppendJsonString(pod.uid(), &body);
  AppendMap("annotations", patch.set_annotations(), patch.remove_annotations(), &body);
  AppendMap("labels", patch.set_labels(), patch.remove_labels(), &body);
  body += "}}";
  return request;
}

absl::string_view StatusText(v1beta1::ConditionStatus status) {
  switch (status) {
    case v1beta1::CONDITION_STATUS_TRUE:
      return "True";
    case v1beta1::CONDITION_STATUS_FALSE:
      return "False";
    default:
      return "Unknown";
  }
}

EffectRequest ConditionRequest(const v1beta1::SetPodCondition& condition, const v1beta1::Pod& pod,
                               absl::Time wall) {
  EffectRequest request;
  request.path = PodStatusPath(pod.namespace_(), pod.name());
  std::string& body = request.body;
  body = StatusPatchStart(pod.uid());
  body += "\"conditions\":[{\"lastProbeTime\":null";
  AppendField("lastTransitionTime", SecondsText(wall), &body);
  // An empty one clears an earlier message.
  AppendField("message", condition.message(), &body);
  if (pod.generation() != 0) absl::StrAppend(&body, ",\"observedGeneration\":", pod.generation());
  AppendField("reason", condition.reason(), &body);
  AppendField("status", StatusText(condition.status()), &body);
  AppendField("type", condition.type(), &body);
  body += "}]}}";
  return request;
}

absl::StatusOr<EffectRequest> DeleteRequest(const v1beta1::DeleteObject& del) {
  absl::StatusOr<kube::CustomResourceName> resource = kube::ParseCustomResourceName(del.resource());
  if (!resource.ok()) return resource.status();
  EffectRequest request;
  request.method = kube::Method::kDelete;
  request.path = resource->path(del.namespace_(), del.name());
  request.content_type = std::string(kube::kJson);
  request.body = "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{\"uid\":";
  AppendJsonString(del.uid(), &request.body);
  AppendField("resourceVersion", del.resource_version(), &request.body);
  request.body += "}}";
  return request;
}

// The names of the written object. A name from a host must not lead to another path.
absl::Status CheckNames(const v1beta1::Effect& effect) {
  const auto check = [](const std::string& ns, const std::string& name) -> absl::Status {
    std::string wrong = kube::CheckPathSegment(name);
    if (wrong.empty() && !ns.empty()) wrong = kube::CheckPathSegment(ns);
    if (wrong.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the object's name or namespace ", wrong));
  };
  const auto check_name_of = [&](const auto& object) {
    return check(object.namespace_(), object.name());
  };
  if (effect.has_bind_volume()) return check("", effect.bind_volume().name());
  if (effect.has_select_node()) return check_name_of(effect.select_node());
  if (effect.has_put_object()) return check_name_of(effect.put_object());
  if (effect.has_patch_object()) return check_name_of(effect.patch_object());
  if (effect.has_delete_object()) return check_name_of(effect.delete_object());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EffectRequest> RequestOf(const v1beta1::Effect& effect, const v1beta1::Pod* pod,
                                        absl::Time wall) {
  if (absl::Status names = CheckNames(effect); !names.ok()) return names;
  if (effect.has_bind_volume()) return BindVolumeRequest(effect.bind_volume());
  if (effect.has_select_node()) return SelectNodeRequest(effect.select_node());
  if (effect.has_put_object()) return PutRequest(effect.put_object());
  if (effect.has_patch_object()) return PatchRequest(effect.patch_object());
  if (effect.has_delete_object()) return DeleteRequest(effect.delete_object());
  if (effect.has_report_extended_resource_claim()) {
    if (pod == nullptr) return absl::InvalidArgumentError("the claim requires a pod");
    return ReportRequest(effect.report_extended_resource_claim(), *pod);
  }
  if (effect.has_patch_pod() || effect.has_set_pod_condition()) {
    if (pod == nullptr) return absl::InvalidArgumentError("the effect requires a pod");
    if (effect.has_patch_pod()) return PatchPodRequest(effect.patch_pod(), *pod);
    return ConditionRequest(effect.set_pod_condition(), *pod, wall);
  }
  return absl::UnimplementedError("unknown effect");
}

std::string NamespaceOf(const EventFields& event) {
  return event.object_namespace.empty() ? "default" : event.object_namespace;
}

std::string EventsPath(absl::string_view event_namespace) {
  std::string path = "/apis/events.k8s.io/v1/namespaces/";
  AppendSegment(event_namespace, &path);
  return path + "/events";
}

std::string EventPath(absl::string_view event_namespace, absl::string_view name) {
  std::string path = EventsPath(event_namespace) + "/";
  AppendSegment(name, &path);
  return path;
}

std::string EventBody(const EventFields& event) {
  std::string body;
  body.reserve(640 + event.note.size());
  body += "{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/v1\",\"metadata\":{\"name\":";
  AppendJsonString(event.name, &body);
  AppendField("namespace", NamespaceOf(event), &body);
  if (!event.plugin.empty()) {
    body += ",\"annotations\":{\"outboard.dev/plugin\":";
    AppendJsonString(event.plugin, &body);
    body += "}";
  }
  body += "}";
  AppendField("eventTime", MicrosText(event.event_time), &body);
  if (event.series_count > 0) {
    absl::StrAppend(&body, ",\"series\":{\"count\":", event.series_count);
    AppendField("lastObservedTime", MicrosText(event.series_last_observed), &body);
    body += "}";
  }
  AppendField("reportingController", event.reporting_controller, &body);
  AppendField("reportingInstance", event.reporting_instance, &body);
  AppendField("action", event.action, &body);
  AppendField("reason", event.reason, &body);
  body += ",\"regarding\":{\"kind\":";
  AppendJsonString(event.kind, &body);
  if (!event.object_namespace.empty()) AppendField("namespace", event.object_namespace, &body);
  AppendField("name", event.object_name, &body);
  AppendField("uid", event.object_uid, &body);
  AppendField("apiVersion", event.api_version, &body);
  if (!event.object_resource_version.empty())
    AppendField("resourceVersion", event.object_resource_version, &body);
  body += "}";
  AppendField("note", event.note, &body);
  AppendField("type", event.type, &body);
  body += "}";
  return body;
}

std::string EventSeriesPatchBody(const EventFields& event) {
  return absl::StrCat("{\"series\":{\"count\":", event.series_count, ",\"lastObservedTime\":\"",
                      MicrosText(event.series_last_observed), "\"}}");
}

std::string EventName(absl::string_view object_name, absl::Time time) {
  std::string name = absl::StrFormat("%s.%x", object_name, absl::ToUnixNanos(time));
  if (name.size() <= kMaxName) return name;
  absl::BitGen random;
  const uint64_t high = absl::Uniform<uint64_t>(random);
  const uint64_t low = absl::Uniform<uint64_t>(random);
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%012x", high >> 32, (high >> 16) & 0xFFFF,
                         high & 0xFFF, 0x8000 | ((low >> 48) & 0x3FFF), low & 0xFFFFFFFFFFFF);
}

std::string TruncateNote(absl::string_view message) {
  constexpr absl::string_view kSuffix = " ...";
  if (message.size() <= kMaxNote) return std::string(message);
  return absl::StrCat(CutAtCharacter(message, kMaxNote - kSuffix.size()), kSuffix);
}

std::string AssignedNote(const BindRequest& request) {
  return absl::StrCat("Successfully assigned ", request.pod_namespace, "/", request.pod_name,
                      " to ", request.node_name);
}

}  // namespace outboard::bind
