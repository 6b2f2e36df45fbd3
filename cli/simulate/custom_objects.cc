#include "cli/simulate/custom_objects.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/simulate/strategic_merge.h"
#include "shim/kube/wire/custom_resource.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/json_decode.h"

namespace outboard::simulate {
namespace {

using nlohmann::json;

template <typename Write>
std::string KeyOf(const Write& write) {
  v1beta1::ObjectReference reference;
  reference.set_kind(write.resource());
  reference.set_namespace_(write.namespace_());
  reference.set_name(write.name());
  return kube::KeyOf(reference);
}

absl::Status Conflict(const std::string& name) {
  return absl::AbortedError(absl::StrCat("Operation cannot be fulfilled on \"", name,
                                         "\": the object has been modified"));
}

// Stores `whole`, the object after a write, in `stored` and in the result.
template <typename Write>
absl::Status Store(const Write& write, json whole, kube::ClusterObjectPtr* stored,
                   CustomObjects::Outcome* outcome) {
  whole["metadata"]["resourceVersion"] = outcome->version;
  absl::StatusOr<kube::DocNode> document = kube::ParseJson(write.name(), whole.dump());
  if (!document.ok()) return document.status();
  absl::StatusOr<kube::ClusterObjectPtr> object =
      kube::DecodeCustomObject(write.resource(), *document);
  if (!object.ok()) return object.status();
  outcome->written = *stored = *std::move(object);
  outcome->uid = outcome->written->uid();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<kube::ClusterObjectPtr> CustomObjectOf(const std::string& resource,
                                                      const manifests::OtherObject& object) {
  json whole = json::parse(object.json, nullptr, /*allow_exceptions=*/false);
  // The API server's defaults.
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
    if (object->object.has_generic_object())
      objects_[KeyOf(object->object.generic_object())] = object;
  }
}

absl::Status CustomObjects::Delete(const v1beta1::DeleteObject& del, Outcome* outcome) {
  const auto found = objects_.find(KeyOf(del));
  if (found == objects_.end()) return absl::NotFoundError(absl::StrCat(del.name(), " not found"));
  if (found->second->uid() != del.uid() ||
      found->second->resource_version != del.resource_version()) {
    return Conflict(del.name());
  }
  outcome->deleted = std::move(found->second);
  objects_.erase(found);
  return absl::OkStatus();
}

absl::Status CustomObjects::Patch(const v1beta1::PatchObject& patch, Outcome* outcome) {
  const auto found = objects_.find(KeyOf(patch));
  if (found == objects_.end()) return absl::NotFoundError(absl::StrCat(patch.name(), " not found"));
  kube::ClusterObjectPtr& stored = found->second;
  if (stored->uid() != patch.uid() ||
      (!patch.resource_version().empty() && stored->resource_version != patch.resource_version())) {
    return Conflict(patch.name());
  }
  absl::StatusOr<std::string> body = kube::BodyOf(patch);
  if (!body.ok()) return body.status();
  json change = json::parse(*body);
  json whole = json::parse(stored->object.generic_object().json());
  if (patch.status()) {
    change = {{"status", change.value("status", json::object())}};
  } else {
    change.erase("status");
  }
  absl::StatusOr<kube::CustomResourceName> resource =
      kube::ParseCustomResourceName(patch.resource());
  if (!resource.ok()) return resource.status();
  if (kube::IsOwnGroup(resource->group)) {
    StrategicMerge(change, &whole);
  } else {
    whole.merge_patch(change);
  }
  return Store(patch, std::move(whole), &stored, outcome);
}

absl::Status CustomObjects::Put(const v1beta1::PutObject& put, Outcome* outcome) {
  absl::StatusOr<std::string> body = kube::BodyOf(put);
  if (!body.ok()) return body.status();
  json whole = json::parse(*body);
  const auto found = objects_.find(KeyOf(put));
  if (put.uid().empty()) {
    if (found != objects_.end())
      return absl::AlreadyExistsError(absl::StrCat("\"", put.name(), "\" already exists"));
    whole["metadata"]["uid"] = absl::StrCat("uid-", put.name(), "-", version_);
    kube::ClusterObjectPtr made;
    if (absl::Status status = Store(put, std::move(whole), &made, outcome); !status.ok())
      return status;
    objects_.emplace(KeyOf(put), std::move(made));
    return absl::OkStatus();
  }
  if (found == objects_.end()) return absl::NotFoundError(absl::StrCat(put.name(), " not found"));
  kube::ClusterObjectPtr& stored = found->second;
  if (stored->uid() != put.uid() || stored->resource_version != put.resource_version())
    return Conflict(put.name());
  if (put.status()) {
    json before = json::parse(stored->object.generic_object().json());
    before["status"] = whole.value("status", json::object());
    whole = std::move(before);
  }
  return Store(put, std::move(whole), &stored, outcome);
}

absl::StatusOr<CustomObjects::Outcome> CustomObjects::Write(const v1beta1::Effect& effect) {
  Outcome outcome;
  outcome.version = absl::StrCat("written-", ++version_);
  const absl::Status status = effect.has_delete_object()  ? Delete(effect.delete_object(), &outcome)
                              : effect.has_patch_object() ? Patch(effect.patch_object(), &outcome)
                                                          : Put(effect.put_object(), &outcome);
  if (!status.ok()) return status;
  return outcome;
}

}  // namespace outboard::simulate
