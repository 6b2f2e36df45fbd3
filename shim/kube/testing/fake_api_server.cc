#include "shim/kube/testing/fake_api_server.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "shim/kube/testing/fake_api_encoding.h"
#include "shim/kube/wire/object_kinds.h"

namespace outboard::kube::testing {
namespace {

using nlohmann::json;

// One of object_kinds.h; null for others.
const ObjectKind* ObjectKindOf(const std::string& resource) {
  for (const ObjectKind& kind : ObjectKinds()) {
    if (kind.resource == resource) return &kind;
  }
  return nullptr;
}

std::string KindOf(const std::string& resource) {
  if (const ObjectKind* kind = ObjectKindOf(resource)) return std::string(kind->kind);
  if (resource == "pods") return "Pod";
  if (resource == "nodes") return "Node";
  if (resource == "namespaces") return "Namespace";
  if (resource == "leases") return "Lease";
  return "Event";
}

std::string VersionOf(const std::string& resource) {
  if (const ObjectKind* kind = ObjectKindOf(resource)) return std::string(kind->api_version);
  if (resource == "leases") return "coordination.k8s.io/v1";
  if (resource == "events") return "events.k8s.io/v1";
  return "v1";
}

std::string Text(const json& object, const char* pointer) {
  const json::json_pointer path(pointer);
  return object.contains(path) && object[path].is_string() ? object[path].get<std::string>() : "";
}

std::string KeyOf(const json& object) {
  const std::string ns = Text(object, "/metadata/namespace");
  const std::string name = Text(object, "/metadata/name");
  return ns.empty() ? name : ns + "/" + name;
}

std::string QueryOf(const HttpRequest& request, const char* name) {
  auto it = request.query.find(name);
  return it == request.query.end() ? "" : it->second;
}

// Supports only the shim's selectors: field comparisons with = and !=, and labels with =.
bool Matches(const json& object, const HttpRequest& request, const std::string& in_namespace) {
  if (object.is_null()) return false;
  if (!in_namespace.empty() && Text(object, "/metadata/namespace") != in_namespace) return false;
  const std::string labels = QueryOf(request, "labelSelector");
  for (absl::string_view term : absl::StrSplit(labels, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(term, absl::MaxSplits('=', 1));
    const json metadata = object.value("metadata", json::object());
    if (metadata.value("labels", json::object()).value(parts.first, "") != parts.second)
      return false;
  }
  const std::string selector = QueryOf(request, "fieldSelector");
  for (absl::string_view term : absl::StrSplit(selector, ',', absl::SkipEmpty())) {
    const bool negative = absl::StrContains(term, "!=");
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(term, absl::MaxSplits(negative ? "!=" : "=", 1));
    const std::string pointer =
        "/" + std::string(absl::StrJoin(absl::StrSplit(parts.first, '.'), "/"));
    if ((Text(object, pointer.c_str()) == parts.second) == negative) return false;
  }
  return true;
}

bool IsRequest(const std::string& method, const std::string& part, const std::string& its_method,
               const std::string& path, const std::map<std::string, std::string>& query) {
  if (!method.empty() && method != its_method) return false;
  if (absl::StrContains(path, part)) return true;
  return std::any_of(query.begin(), query.end(), [&](const auto& item) {
    return absl::StrContains(absl::StrCat(item.first, "=", item.second), part);
  });
}

// Strategic merge of conditions by type: sufficient for the shim's patches.
void MergePatch(json patch, json* object) {
  const json::json_pointer path("/status/conditions");
  json conditions;
  if (patch.contains(path)) {
    conditions = patch[path];
    patch["status"].erase("conditions");
  }
  if (patch.contains("status")) patch["status"].erase("$setElementOrder/conditions");
  object->merge_patch(patch);
  if (conditions.is_null()) return;
  json& all = (*object)["status"]["conditions"];
  if (!all.is_array()) all = json::array();
  for (const json& condition : conditions) {
    auto same = std::find_if(all.begin(), all.end(), [&](const json& other) {
      return Text(other, "/type") == Text(condition, "/type");
    });
    if (same == all.end()) {
      all.push_back(condition);
    } else {
      same->merge_patch(condition);
    }
  }
}

}  // namespace

FakeApiServer::FakeApiServer() {
  listener_ = std::make_unique<HttpListener>(
      [this](const HttpRequest& request, HttpConnection& connection) {
        Handle(request, connection);
      });
}

FakeApiServer::~FakeApiServer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  listener_->Stop();
}

std::string FakeApiServer::url() const {
  return absl::StrCat("http://127.0.0.1:", listener_->port());
}

ClientConfig FakeApiServer::Config() const {
  ClientConfig config;
  config.server = url();
  config.credentials = MakeStaticCredentials({});
  return config;
}

FakeApiServer::Answer FakeApiServer::Error(int code, const std::string& reason,
                                           const std::string& message) {
  return {code,
          {{"apiVersion", "v1"},
           {"kind", "Status"},
           {"metadata", json::object()},
           {"status", code < 300 ? "Success" : "Failure"},
           {"reason", reason},
           {"message", message},
           {"code", code}},
          {}};
}

std::string FakeApiServer::Store(const std::string& resource, json object) {
  json& metadata = object["metadata"];
  object["apiVersion"] = VersionOf(resource);
  object["kind"] = KindOf(resource);
  const std::string key = KeyOf(object);
  auto& all = objects_[resource];
  auto old = all.find(key);
  if (Text(object, "/metadata/uid").empty()) {
    metadata["uid"] =
        old != all.end() ? Text(old->second, "/metadata/uid") : absl::StrCat("uid-", next_uid_++);
  }
  if (Text(object, "/metadata/creationTimestamp").empty()) {
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z";
  }
  const std::string version = absl::StrCat(++version_);
  metadata["resourceVersion"] = version;
  history_.push_back({version_, old == all.end() ? "ADDED" : "MODIFIED", resource, object,
                      old == all.end() ? json() : old->second});
  all[key] = std::move(object);
  return version;
}

bool FakeApiServer::Remove(const std::string& resource, const std::string& key) {
  auto& all = objects_[resource];
  auto it = all.find(key);
  if (it == all.end()) return false;
  json object = it->second;
  all.erase(it);
  json old = object;
  object["metadata"]["resourceVersion"] = absl::StrCat(++version_);
  history_.push_back({version_, "DELETED", resource, std::move(object), std::move(old)});
  return true;
}

std::string FakeApiServer::Put(const std::string& resource, json object) {
  absl::MutexLock lock(&mutex_);
  return Store(resource, std::move(object));
}

bool FakeApiServer::Delete(const std::string& resource, const std::string& key) {
  absl::MutexLock lock(&mutex_);
  return Remove(resource, key);
}

json FakeApiServer::Get(const std::string& resource, const std::string& key) const {
  absl::MutexLock lock(&mutex_);
  auto all = objects_.find(resource);
  if (all == objects_.end()) return json();
  auto it = all->second.find(key);
  return it == all->second.end() ? json() : it->second;
}

std::vector<json> FakeApiServer::All(const std::string& resource) const {
  absl::MutexLock lock(&mutex_);
  std::vector<json> result;
  auto all = objects_.find(resource);
  if (all == objects_.end()) return result;
  for (const auto& [key, object] : all->second) result.push_back(object);
  return result;
}

void FakeApiServer::Inject(Fault fault) {
  absl::MutexLock lock(&mutex_);
  faults_.push_back(std::move(fault));
}

void FakeApiServer::ClearFaults() {
  absl::MutexLock lock(&mutex_);
  faults_.clear();
}

void FakeApiServer::Compact() {
  absl::MutexLock lock(&mutex_);
  compacted_ = ++version_;
  history_.clear();
}

void FakeApiServer::SendBookmarks() {
  absl::MutexLock lock(&mutex_);
  ++bookmarks_;
}

void FakeApiServer::Rewind(int64_t resource_version) {
  absl::MutexLock lock(&mutex_);
  version_ = resource_version;
  compacted_ = 0;
  history_.clear();
  for (auto& [resource, all] : objects_) {
    for (auto& [key, object] : all) {
      object["metadata"]["resourceVersion"] = absl::StrCat(resource_version);
    }
  }
}

void FakeApiServer::SetWatchListSupported(bool supported) {
  absl::MutexLock lock(&mutex_);
  watch_list_ = supported;
}

void FakeApiServer::SetProtobufSupported(bool supported) {
  absl::MutexLock lock(&mutex_);
  protobuf_ = supported;
}

void FakeApiServer::SetInitialEventsEnd(bool sent) {
  absl::MutexLock lock(&mutex_);
  initial_end_ = sent;
}

std::vector<RequestLog> FakeApiServer::Requests() const {
  absl::MutexLock lock(&mutex_);
  return log_;
}

int64_t FakeApiServer::version() const {
  absl::MutexLock lock(&mutex_);
  return version_;
}

int FakeApiServer::Count(const std::string& method, const std::string& path_part) const {
  absl::MutexLock lock(&mutex_);
  return std::count_if(log_.begin(), log_.end(), [&](const RequestLog& entry) {
    return IsRequest(method, path_part, entry.method, entry.path, entry.query);
  });
}

bool FakeApiServer::AwaitCount(const std::string& method, const std::string& path_part, int count,
                               absl::Duration timeout) const {
  auto reached = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::count_if(log_.begin(), log_.end(), [&](const RequestLog& entry) {
             return IsRequest(method, path_part, entry.method, entry.path, entry.query);
           }) >= count;
  };
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&reached), timeout);
}

std::optional<Fault> FakeApiServer::TakeFault(const HttpRequest& request) {
  absl::MutexLock lock(&mutex_);
  for (auto it = faults_.begin(); it != faults_.end(); ++it) {
    if (!IsRequest(it->method, it->path_part, request.method, request.path, request.query)) {
      continue;
    }
    Fault fault = *it;
    if (--it->times <= 0) faults_.erase(it);
    return fault;
  }
  return std::nullopt;
}

std::optional<FakeApiServer::Target> FakeApiServer::ParsePath(const std::string& path) {
  std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  size_t at = parts.size() > 1 && parts[0] == "api" ? 2 : 3;
  if (parts.size() <= at) return std::nullopt;
  Target target;
  // "namespaces/NAME/RESOURCE…" is within a namespace; "namespaces[/NAME]" is the namespace itself.
  if (parts[at] == "namespaces" && parts.size() > at + 2) {
    target.object_namespace = parts[at + 1];
    at += 2;
  }
  target.resource = parts[at];
  if (parts.size() > at + 1) target.name = parts[at + 1];
  if (parts.size() > at + 2) target.subresource = parts[at + 2];
  return target;
}

void FakeApiServer::Handle(const HttpRequest& request, HttpConnection& connection) {
  {
    absl::MutexLock lock(&mutex_);
    log_.push_back({request.method, request.path, request.query, request.headers, request.body});
  }
  std::optional<Fault> fault = TakeFault(request);
  if (fault.has_value()) {
    if (fault->delay > absl::ZeroDuration()) {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&stopping_), fault->delay);
    }
    if (fault->drop_request) {
      connection.Drop();
      connection.Write(" ");
      return;
    }
    if (fault->http_status != 0) {
      std::map<std::string, std::string> headers;
      if (fault->retry_after_seconds > 0) {
        headers["Retry-After"] = absl::StrCat(fault->retry_after_seconds);
      }
      connection.Respond(fault->http_status, "text/plain; charset=utf-8", fault->body, headers);
      return;
    }
    if (fault->cut_after.has_value()) connection.CutAfter(*fault->cut_after);
    if (fault->drop_answer) connection.Drop();
  }
  std::optional<Target> target = ParsePath(request.path);
  if (!target.has_value()) {
    connection.Respond(404, "text/plain", "404 page not found");
    return;
  }
  if (QueryOf(request, "watch") == "true") {
    Watch(request, *target, fault, connection);
    return;
  }
  Send(Execute(request, *target), request, *target, connection);
}

bool FakeApiServer::WantsProtobuf(const HttpRequest& request, const std::string& resource) const {
  auto accept = request.headers.find("accept");
  absl::MutexLock lock(&mutex_);
  return protobuf_ && HasProtobuf(resource) && accept != request.headers.end() &&
         absl::StartsWith(accept->second, "application/vnd.kubernetes.protobuf");
}

void FakeApiServer::Send(const Answer& answer, const HttpRequest& request, const Target& target,
                         HttpConnection& connection) {
  if (WantsProtobuf(request, target.resource)) {
    connection.Respond(answer.status, "application/vnd.kubernetes.protobuf",
                       ToProtobuf(answer.body), answer.headers);
  } else {
    connection.Respond(answer.status, "application/json", answer.body.dump(), answer.headers);
  }
}

FakeApiServer::Answer FakeApiServer::Execute(const HttpRequest& request, const Target& target) {
  absl::MutexLock lock(&mutex_);
  if (request.method == "POST") {
    return target.subresource == "binding" ? Bind(request, target) : Create(request, target);
  }
  if (target.name.empty()) return List(request, target);
  auto& all = objects_[target.resource];
  auto it = all.find(target.key());
  if (it == all.end()) {
    return Error(404, "NotFound",
                 absl::StrCat(target.resource, " \"", target.name, "\" not found"));
  }
  if (request.method == "GET") return {200, it->second, {}};
  if (request.method == "DELETE") {
    Remove(target.resource, target.key());
    return Error(200, "", "");
  }
  return Change(request, target);
}

FakeApiServer::Answer FakeApiServer::List(const HttpRequest& request, const Target& target) {
  const std::string token = QueryOf(request, "continue");
  // "VERSION:OFFSET"
  int64_t version = version_;
  size_t offset = 0;
  if (!token.empty()) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(token, ':');
    version = std::atoll(parts.first.c_str());
    offset = std::atoll(parts.second.c_str());
    if (version < compacted_) return Error(410, "Expired", "The provided continue is too old");
  }
  const size_t limit = std::atoll(QueryOf(request, "limit").c_str());
  json items = json::array();
  size_t index = 0;
  std::string next;
  for (const auto& [key, object] : objects_[target.resource]) {
    if (!Matches(object, request, target.object_namespace)) continue;
    if (index++ < offset) continue;
    if (limit > 0 && items.size() == limit) {
      next = absl::StrCat(version, ":", offset + limit);
      break;
    }
    items.push_back(object);
  }
  json metadata = {{"resourceVersion", absl::StrCat(version)}};
  if (!next.empty()) metadata["continue"] = next;
  return {200,
          {{"apiVersion", VersionOf(target.resource)},
           {"kind", absl::StrCat(KindOf(target.resource), "List")},
           {"metadata", metadata},
           {"items", items}},
          {}};
}

FakeApiServer::Answer FakeApiServer::Create(const HttpRequest& request, const Target& target) {
  json object = json::parse(request.body, nullptr, false);
  if (!object.is_object()) return Error(400, "BadRequest", "the body is not a JSON object");
  if (!target.object_namespace.empty()) {
    object["metadata"]["namespace"] = target.object_namespace;
  }
  const std::string key = KeyOf(object);
  if (objects_[target.resource].count(key) > 0) {
    return Error(409, "AlreadyExists",
                 absl::StrCat(target.resource, " \"", key, "\" already exists"));
  }
  Store(target.resource, std::move(object));
  return {201, objects_[target.resource][key], {}};
}

FakeApiServer::Answer FakeApiServer::Bind(const HttpRequest& request, const Target& target) {
  const json binding = json::parse(request.body, nullptr, false);
  if (!binding.is_object()) return Error(400, "BadRequest", "the body is not a JSON object");
  auto& pods = objects_["pods"];
  auto it = pods.find(target.key());
  if (it == pods.end()) return Error(404, "NotFound", "pods \"" + target.name + "\" not found");
  json pod = it->second;
  const std::string wanted = Text(binding, "/metadata/uid");
  const std::string prefix =
      "Operation cannot be fulfilled on pods/binding \"" + target.name + "\": ";
  if (!wanted.empty() && wanted != Text(pod, "/metadata/uid")) {
    return Error(409, "Conflict",
                 prefix + "Precondition failed: UID in precondition: " + wanted +
                     ", UID in object meta: " + Text(pod, "/metadata/uid"));
  }
  if (!Text(pod, "/metadata/deletionTimestamp").empty()) {
    return Error(409, "Conflict",
                 prefix + "pod " + target.name + " is being deleted, cannot be assigned to a host");
  }
  if (!Text(pod, "/spec/nodeName").empty()) {
    return Error(409, "Conflict",
                 absl::StrCat(prefix, "pod ", target.name, " is already assigned to node \"",
                              Text(pod, "/spec/nodeName"), "\""));
  }
  pod["spec"]["nodeName"] = Text(binding, "/target/name");
  if (binding.contains("/metadata/annotations"_json_pointer)) {
    pod["metadata"]["annotations"].update(binding["metadata"]["annotations"]);
  }
  pod["status"].erase("nominatedNodeName");
  MergePatch({{"status", {{"conditions", {{{"type", "PodScheduled"}, {"status", "True"}}}}}}},
             &pod);
  Store("pods", std::move(pod));
  return Error(201, "", "");
}

FakeApiServer::Answer FakeApiServer::Change(const HttpRequest& request, const Target& target) {
  json object = objects_[target.resource][target.key()];
  const json body = json::parse(request.body, nullptr, false);
  if (!body.is_object()) return Error(400, "BadRequest", "the body is not a JSON object");
  const std::string version = Text(body, "/metadata/resourceVersion");
  const std::string uid = Text(body, "/metadata/uid");
  if ((!version.empty() && version != Text(object, "/metadata/resourceVersion")) ||
      (!uid.empty() && uid != Text(object, "/metadata/uid"))) {
    return Error(409, "Conflict",
                 absl::StrCat("Operation cannot be fulfilled on ", target.resource, " \"",
                              target.name, "\": the object has been modified"));
  }
  if (request.method == "PUT") {
    object = body;
  } else {
    MergePatch(body, &object);
  }
  Store(target.resource, std::move(object));
  return {200, objects_[target.resource][target.key()], {}};
}

void FakeApiServer::Watch(const HttpRequest& request, const Target& target,
                          const std::optional<Fault>& fault, HttpConnection& connection) {
  const bool protobuf = WantsProtobuf(request, target.resource);
  const bool initial = QueryOf(request, "sendInitialEvents") == "true";
  const auto matches = [&](const json& object) {
    return Matches(object, request, target.object_namespace);
  };
  auto frame = [protobuf](const std::string& type, const json& object) {
    return protobuf ? ProtobufFrame(type, object) : JsonFrame(type, object);
  };
  auto bookmark = [&](int64_t version, bool end) {
    json object = {{"apiVersion", VersionOf(target.resource)},
                   {"kind", KindOf(target.resource)},
                   {"metadata", {{"resourceVersion", absl::StrCat(version)}}}};
    if (end) object["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true";
    return frame("BOOKMARK", object);
  };
  std::string first;
  int64_t position = std::atoll(QueryOf(request, "resourceVersion").c_str());
  int bookmarks = 0;
  bool too_old = false;
  {
    absl::MutexLock lock(&mutex_);
    bookmarks = bookmarks_;
    if (initial && !watch_list_) {
      Answer refused = Error(422, "Invalid", "sendInitialEvents: Forbidden: not supported");
      connection.Respond(422, "application/json", refused.body.dump());
      return;
    }
    if (initial) {
      for (const auto& [key, object] : objects_[target.resource]) {
        if (matches(object)) first += frame("ADDED", object);
      }
      if (initial_end_) first += bookmark(version_, true);
      position = version_;
    }
    too_old = position < compacted_;
  }
  connection.BeginChunks(
      200, protobuf ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json");
  const int event_status =
      fault.has_value() && fault->event_status != 0 ? fault->event_status : (too_old ? 410 : 0);
  if (event_status != 0) {
    Answer error = Error(event_status, event_status == 410 ? "Expired" : "InternalError",
                         "too old resource version");
    connection.WriteChunk(frame("ERROR", error.body));
    connection.EndChunks();
    return;
  }
  if (!first.empty() && !connection.WriteChunk(first)) return;
  const int64_t seconds = std::atoll(QueryOf(request, "timeoutSeconds").c_str());
  const absl::Time end = absl::Now() + (seconds > 0 ? absl::Seconds(seconds) : absl::Minutes(30));
  while (absl::Now() < end && !connection.peer_closed()) {
    std::string bytes;
    {
      absl::MutexLock lock(&mutex_);
      auto news = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopping_ || bookmarks_ != bookmarks ||
               (!history_.empty() && history_.back().version > position);
      };
      // Wakes up periodically to detect a closed connection.
      mutex_.AwaitWithTimeout(absl::Condition(&news),
                              std::min(end - absl::Now(), absl::Milliseconds(50)));
      if (stopping_) return;
      for (const Event& event : history_) {
        if (event.version <= position || event.resource != target.resource) continue;
        const bool now = event.type != "DELETED" && matches(event.object);
        const bool before = matches(event.old);
        if (!now && !before) continue;
        bytes += frame(now ? (before ? "MODIFIED" : "ADDED") : "DELETED", event.object);
      }
      if (!history_.empty()) position = std::max(position, history_.back().version);
      if (bookmarks_ != bookmarks) {
        bookmarks = bookmarks_;
        bytes += bookmark(version_, false);
      }
    }
    if (!bytes.empty() && !connection.WriteChunk(bytes)) return;
  }
  connection.EndChunks();
}

}  // namespace outboard::kube::testing
