#include "plugin_host/sdk/testing/object_store.h"

#include <utility>

#include "plugin_host/sdk/cluster_objects.h"
#include "plugin_host/sdk/custom_objects.h"

namespace outboard::sdk::testing {

using nlohmann::json;

namespace {

bool HasFinalizers(const json& whole) {
  const json* finalizers = JsonAt(whole, {"metadata", "finalizers"});
  return finalizers != nullptr && finalizers->is_array() && !finalizers->empty();
}

}  // namespace

v1beta1::ClusterObject ObjectStore::ToObject(const Entry& entry) const {
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& custom = *object.mutable_generic_object();
  custom.set_resource(entry.resource);
  custom.set_namespace_(entry.ns);
  custom.set_name(entry.name);
  custom.set_uid(TextAt(entry.whole, {"metadata", "uid"}).value_or(""));
  custom.set_resource_version(TextAt(entry.whole, {"metadata", "resourceVersion"}).value_or(""));
  custom.set_deleting(JsonAt(entry.whole, {"metadata", "deletionTimestamp"}) != nullptr);
  custom.set_json(JsonText(entry.whole));
  return object;
}

void ObjectStore::Publish(const std::string& key) {
  const auto it = entries_.find(key);
  Entry& entry = it->second;
  if (JsonAt(entry.whole, {"metadata", "deletionTimestamp"}) != nullptr &&
      !HasFinalizers(entry.whole)) {
    harness_->RemoveObject(ToObject(entry));
    entries_.erase(it);
    return;
  }
  entry.whole["metadata"]["resourceVersion"] = NextVersion();
  harness_->AddObject(ToObject(entry));
}

absl::Status ObjectStore::Write(const v1beta1::Effect& effect) {
  if (effect.has_delete_object()) {
    const v1beta1::DeleteObject& del = effect.delete_object();
    const std::string key = CustomKey(del.resource(), del.namespace_(), del.name());
    const auto it = entries_.find(key);
    if (it == entries_.end()) return absl::NotFoundError(key);
    const v1beta1::GenericObject present = ToObject(it->second).generic_object();
    if (present.uid() != del.uid() || present.resource_version() != del.resource_version())
      return absl::AbortedError(key);
    it->second.whole["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    Publish(key);
    return absl::OkStatus();
  }
  const v1beta1::PutObject& put = effect.put_object();
  const std::string key = CustomKey(put.resource(), put.namespace_(), put.name());
  const auto it = entries_.find(key);
  json whole = json::parse(put.json());
  if (put.uid().empty()) {
    if (it != entries_.end()) return absl::AlreadyExistsError(key);
    whole.erase("status");
    whole["metadata"]["uid"] = "uid-" + NextVersion();
    whole["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
    entries_[key] = {put.resource(), put.namespace_(), put.name(), std::move(whole)};
    Publish(key);
    return absl::OkStatus();
  }
  if (it == entries_.end()) return absl::NotFoundError(key);
  const v1beta1::GenericObject present = ToObject(it->second).generic_object();
  if (present.uid() != put.uid() || present.resource_version() != put.resource_version())
    return absl::AbortedError(key);
  json& stored = it->second.whole;
  const json before = stored;
  if (put.status()) {
    stored["status"] = whole.value("status", json::object());
  } else {
    whole["status"] = stored.value("status", json::object());
    for (const char* kept : {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"}) {
      if (const json* value = JsonAt(stored, {"metadata", kept})) whole["metadata"][kept] = *value;
    }
    if (whole["status"].empty()) whole.erase("status");
    stored = std::move(whole);
  }
  if (stored != before) Publish(key);
  return absl::OkStatus();
}

int ObjectStore::Tick(absl::Time now) {
  harness_->SetNow(now);
  harness_->Tick();
  const std::vector<v1beta1::Effect> written = harness_->TakeWritten();
  for (const v1beta1::Effect& effect : written) Write(effect).IgnoreError();
  return static_cast<int>(written.size());
}

int ObjectStore::Settle(absl::Time* now) {
  int writes = 0;
  for (int quiet = 0; quiet < 3;) {
    *now += absl::Seconds(1);
    const int wrote = Tick(*now);
    writes += wrote;
    quiet = wrote == 0 ? quiet + 1 : 0;
    if (writes > 10000) break;  // it never settles
  }
  return writes;
}

void ObjectStore::Apply(const std::string& resource, const std::string& ns, const std::string& name,
                        const std::string& text) {
  const std::string key = CustomKey(resource, ns, name);
  json whole = json::parse(text);
  json metadata = whole.value("metadata", json::object());
  const auto it = entries_.find(key);
  const json* uid = it == entries_.end() ? nullptr : JsonAt(it->second.whole, {"metadata", "uid"});
  metadata["uid"] = uid == nullptr ? json("uid-" + NextVersion()) : *uid;
  whole["metadata"] = std::move(metadata);
  entries_[key] = {resource, ns, name, std::move(whole)};
  Publish(key);
}

void ObjectStore::Delete(const std::string& resource, const std::string& ns,
                         const std::string& name) {
  const std::string key = CustomKey(resource, ns, name);
  entries_.at(key).whole["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  Publish(key);
}

json ObjectStore::Get(const std::string& resource, const std::string& ns,
                      const std::string& name) const {
  const auto it = entries_.find(CustomKey(resource, ns, name));
  return it == entries_.end() ? json() : it->second.whole;
}

std::vector<std::string> ObjectStore::Names(const std::string& resource) const {
  std::vector<std::string> names;
  for (const auto& [key, entry] : entries_) {
    if (entry.resource == resource) names.push_back(entry.name);
  }
  return names;
}

}  // namespace outboard::sdk::testing
