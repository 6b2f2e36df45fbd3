#include "shim/simulate/custom_objects.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/kube/wire/custom_resource.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/json_decode.h"

namespace outboard::simulate {
namespace {

using nlohmann::json;

std::string KeyOf(const v1alpha1::ClusterObject& object) {
  return absl::StrCat(kube::KindOf(object), "/", kube::NamespacedName(object));
}

template <typename Write>
std::string KeyOf(const Write& write) {
  v1alpha1::ClusterObject named;
  v1alpha1::CustomObject& custom = *named.mutable_custom_object();
  custom.set_resource(write.resource());
  custom.set_namespace_(write.namespace_());
  custom.set_name(write.name());
  return KeyOf(named);
}

absl::Status Conflict(const std::string& name) {
  return absl::AbortedError(absl::StrCat("Operation cannot be fulfilled on \"", name,
                                         "\": the object has been modified"));
}

}  // namespace

absl::StatusOr<kube::ClusterObjectPtr> CustomObjectOf(const std::string& resource,
                                                      const kube::OtherObject& object) {
  json whole = json::parse(object.json, nullptr, /*allow_exceptions=*/false);
  // What the API server would fill in.
  json& metadata = whole["metadata"];
  if (!metadata.contains("uid"))
    metadata["uid"] = absl::StrCat("uid-", object.ns, "-", object.name);
  if (!metadata.contains("resourceVersion")) metadata["resourceVersion"] = "1";
  absl::StatusOr<kube::DocNode> document = kube::ParseJson(object.name, whole.dump());
  if (!document.ok()) return document.status();
  return kube::DecodeCustomObject(resource, *document);
}

CustomObjects::CustomObjects(const std::vector<kube::ClusterObjectPtr>& objects) {
  for (const kube::ClusterObjectPtr& object : objects) {
    if (object->object.has_custom_object()) objects_[KeyOf(object->object)] = object;
  }
}

absl::StatusOr<CustomObjects::Outcome> CustomObjects::Write(const v1alpha1::Effect& effect) {
  Outcome outcome;
  outcome.version = absl::StrCat("written-", ++version_);
  if (effect.has_delete_object()) {
    const v1alpha1::DeleteObject& del = effect.delete_object();
    const auto found = objects_.find(KeyOf(del));
    if (found == objects_.end()) return absl::NotFoundError(absl::StrCat(del.name(), " not found"));
    if (found->second->uid() != del.uid() ||
        found->second->resource_version != del.resource_version()) {
      return Conflict(del.name());
    }
    outcome.deleted = std::move(found->second);
    objects_.erase(found);
    return outcome;
  }
  const v1alpha1::PutObject& put = effect.put_object();
  absl::StatusOr<std::string> body = kube::BodyOf(put);
  if (!body.ok()) return body.status();
  json whole = json::parse(*body);
  kube::ClusterObjectPtr& stored = objects_[KeyOf(put)];
  if (put.uid().empty()) {
    if (stored != nullptr)
      return absl::AlreadyExistsError(absl::StrCat("\"", put.name(), "\" already exists"));
    whole["metadata"]["uid"] = absl::StrCat("uid-", put.name(), "-", version_);
  } else if (stored == nullptr) {
    objects_.erase(KeyOf(put));
    return absl::NotFoundError(absl::StrCat(put.name(), " not found"));
  } else if (stored->uid() != put.uid() || stored->resource_version != put.resource_version()) {
    return Conflict(put.name());
  } else if (put.status()) {
    json before = json::parse(stored->object.custom_object().json());
    before["status"] = whole.value("status", json::object());
    whole = std::move(before);
  }
  whole["metadata"]["resourceVersion"] = outcome.version;
  absl::StatusOr<kube::DocNode> document = kube::ParseJson(put.name(), whole.dump());
  if (!document.ok()) return document.status();
  absl::StatusOr<kube::ClusterObjectPtr> object =
      kube::DecodeCustomObject(put.resource(), *document);
  if (!object.ok()) return object.status();
  outcome.written = stored = *std::move(object);
  return outcome;
}

}  // namespace outboard::simulate
