// Objects of custom resources: reading untrusted content, and requesting writes.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_CUSTOM_OBJECTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_CUSTOM_OBJECTS_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/effect.pb.h"
#include "outboard/v1beta1/objects.pb.h"

namespace outboard::sdk {

// The whole object; empty if the text is not an object. Fields may have any type.
nlohmann::json ParseCustomObject(const v1beta1::GenericObject& object);

using JsonPath = std::initializer_list<const char*>;
// The value at a path of keys; null if absent or if a parent is not an object.
const nlohmann::json* JsonAt(const nlohmann::json& json, JsonPath path);
// The string at a path; none if absent or not a string.
std::optional<std::string> TextAt(const nlohmann::json& json, JsonPath path);
// The whole number at a path; none if absent, not a whole number, or too large for an int64_t.
std::optional<int64_t> IntAt(const nlohmann::json& json, JsonPath path);
// A map of strings, without entries of other types.
std::map<std::string, std::string> StringsAt(const nlohmann::json& json, JsonPath path);
// Compact, with sorted keys; equal objects give equal texts. Replaces bytes that are not UTF-8.
std::string JsonText(const nlohmann::json& json);

// Effects with preconditions on the object as it is in the cache. The key derives from the name,
// so that one write per object is in progress at a time.
v1beta1::Effect CreateObject(absl::string_view resource, absl::string_view ns,
                             absl::string_view name, const nlohmann::json& whole);
v1beta1::Effect ReplaceObject(const v1beta1::GenericObject& object, const nlohmann::json& whole);
// Writes only `status` of `whole`.
v1beta1::Effect ReplaceStatus(const v1beta1::GenericObject& object, const nlohmann::json& whole);
v1beta1::Effect DeleteObject(const v1beta1::GenericObject& object);

// A condition, as metav1.Condition.
struct Condition {
  std::string type;
  bool is_true = false;
  std::string reason;  // CamelCase
  std::string message;
};
// Sets a condition in `status`.conditions. lastTransitionTime changes only with `is_true`.
void SetCondition(const Condition& condition, absl::Time now, nlohmann::json* status);
void RemoveCondition(absl::string_view type, nlohmann::json* status);
// Null if absent.
const nlohmann::json* FindCondition(const nlohmann::json& status, absl::string_view type);
bool IsConditionTrue(const nlohmann::json& status, absl::string_view type);
// The condition's last transition; none if not readable.
std::optional<absl::Time> TransitionTime(const nlohmann::json& condition);

// Decides when to retry a write that the cache does not show: at once, then with a growing backoff
// of at most a minute. A change of the object resets the backoff.
//
// Threading: thread-compatible.
class WritePace {
 public:
  // False: too early. Lets callers skip expensive computation of the write.
  bool MayBeDue(const std::string& object, absl::Time now) const;
  // True: write now.
  bool IsDue(const std::string& object, absl::Time now);
  // The object changed, or is up to date.
  void Changed(const std::string& object);
  void Forget(const std::string& object) { pace_.erase(object); }
  void Clear() { pace_.clear(); }

 private:
  struct Entry {
    absl::Time next = absl::InfinitePast();
    absl::Duration delay;
  };
  absl::flat_hash_map<std::string, Entry> pace_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_CUSTOM_OBJECTS_H_
