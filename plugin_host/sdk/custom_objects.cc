#include "plugin_host/sdk/custom_objects.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/cluster_objects.h"
#include "plugin_host/sdk/label_values.h"

namespace outboard::sdk {
namespace {

using nlohmann::json;

constexpr absl::Duration kFirstPace = absl::Milliseconds(950);  // the second tick
constexpr absl::Duration kSlowestPace = absl::Minutes(1);

// FNV-1a, because a name may be longer than a key.
std::string KeyOf(absl::string_view resource, absl::string_view ns, absl::string_view name) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : CustomKey(resource, ns, name)) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211u;
  }
  return absl::StrCat("object-", absl::Hex(hash, absl::kZeroPad16));
}

v1beta1::Effect Put(const v1beta1::GenericObject& object, const json& whole, bool status) {
  v1beta1::Effect effect;
  effect.set_key(KeyOf(object.resource(), object.namespace_(), object.name()));
  v1beta1::PutObject& put = *effect.mutable_put_object();
  put.set_resource(object.resource());
  put.set_namespace_(object.namespace_());
  put.set_name(object.name());
  put.set_uid(object.uid());
  put.set_resource_version(object.resource_version());
  put.set_json(JsonText(whole));
  put.set_status(status);
  return effect;
}

// Replaces `conditions` by a list if it has another type.
json& ConditionsOf(json* status) {
  if (!status->is_object()) *status = json::object();
  json& conditions = (*status)["conditions"];
  if (!conditions.is_array()) conditions = json::array();
  return conditions;
}

bool IsOfType(const json& condition, absl::string_view type) {
  return TextAt(condition, {"type"}) == std::string(type);
}

}  // namespace

json ParseCustomObject(const v1beta1::GenericObject& object) {
  json whole = json::parse(object.json(), nullptr, /*allow_exceptions=*/false);
  return whole.is_object() ? whole : json::object();
}

const json* JsonAt(const json& json, JsonPath path) {
  const nlohmann::json* at = &json;
  for (const char* key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::optional<std::string> TextAt(const json& json, JsonPath path) {
  const nlohmann::json* at = JsonAt(json, path);
  if (at == nullptr || !at->is_string()) return std::nullopt;
  return at->get<std::string>();
}

std::optional<int64_t> IntAt(const json& json, JsonPath path) {
  const nlohmann::json* at = JsonAt(json, path);
  if (at == nullptr || !at->is_number_integer()) return std::nullopt;
  if (at->is_number_unsigned() &&
      at->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return at->get<int64_t>();
}

std::map<std::string, std::string> StringsAt(const json& json, JsonPath path) {
  std::map<std::string, std::string> strings;
  const nlohmann::json* at = JsonAt(json, path);
  if (at == nullptr || !at->is_object()) return strings;
  for (const auto& [key, value] : at->items()) {
    if (value.is_string()) strings[key] = value.get<std::string>();
  }
  return strings;
}

std::string JsonText(const json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

v1beta1::Effect CreateObject(absl::string_view resource, absl::string_view ns,
                             absl::string_view name, const json& whole) {
  v1beta1::GenericObject object;
  object.set_resource(std::string(resource));
  object.set_namespace_(std::string(ns));
  object.set_name(std::string(name));
  return Put(object, whole, /*status=*/false);
}

v1beta1::Effect ReplaceObject(const v1beta1::GenericObject& object, const json& whole) {
  return Put(object, whole, /*status=*/false);
}

v1beta1::Effect ReplaceStatus(const v1beta1::GenericObject& object, const json& whole) {
  return Put(object, whole, /*status=*/true);
}

v1beta1::Effect DeleteObject(const v1beta1::GenericObject& object) {
  v1beta1::Effect effect;
  effect.set_key(KeyOf(object.resource(), object.namespace_(), object.name()));
  v1beta1::DeleteObject& del = *effect.mutable_delete_object();
  del.set_resource(object.resource());
  del.set_namespace_(object.namespace_());
  del.set_name(object.name());
  del.set_uid(object.uid());
  del.set_resource_version(object.resource_version());
  return effect;
}

void SetCondition(const Condition& condition, absl::Time now, json* status) {
  json& conditions = ConditionsOf(status);
  json set = {
      {"type", condition.type},
      {"status", condition.is_true ? "True" : "False"},
      {"reason", condition.reason},
      {"message", condition.message},
      {"lastTransitionTime", absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", now, absl::UTCTimeZone())}};
  for (json& old : conditions) {
    if (!IsOfType(old, condition.type)) continue;
    if (TextAt(old, {"status"}) == TextAt(set, {"status"}) && TransitionTime(old))
      set["lastTransitionTime"] = old["lastTransitionTime"];
    old = std::move(set);
    return;
  }
  conditions.push_back(std::move(set));
}

void RemoveCondition(absl::string_view type, json* status) {
  json& conditions = ConditionsOf(status);
  conditions.erase(std::remove_if(conditions.begin(), conditions.end(),
                                  [&](const json& old) { return IsOfType(old, type); }),
                   conditions.end());
}

const json* FindCondition(const json& status, absl::string_view type) {
  const json* conditions = JsonAt(status, {"conditions"});
  if (conditions == nullptr || !conditions->is_array()) return nullptr;
  for (const json& condition : *conditions) {
    if (IsOfType(condition, type)) return &condition;
  }
  return nullptr;
}

bool IsConditionTrue(const json& status, absl::string_view type) {
  const json* condition = FindCondition(status, type);
  return condition != nullptr && TextAt(*condition, {"status"}) == "True";
}

std::optional<absl::Time> TransitionTime(const json& condition) {
  const std::optional<std::string> text = TextAt(condition, {"lastTransitionTime"});
  return text ? ParseTimestamp(*text) : std::nullopt;
}

bool WritePace::MayBeDue(const std::string& object, absl::Time now) const {
  const auto it = pace_.find(object);
  return it == pace_.end() || now >= it->second.next;
}

bool WritePace::IsDue(const std::string& object, absl::Time now) {
  Entry& entry = pace_[object];
  if (now < entry.next) return false;
  entry.delay =
      entry.delay == absl::ZeroDuration() ? kFirstPace : std::min(entry.delay * 2, kSlowestPace);
  entry.next = now + entry.delay;
  return true;
}

void WritePace::Changed(const std::string& object) {
  if (const auto it = pace_.find(object); it != pace_.end())
    it->second.delay = absl::ZeroDuration();
}

}  // namespace outboard::sdk
