// Objects of custom resources: reading what people may have written, and asking for writes.
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
#include "proto/outboard/v1alpha1/effect.pb.h"
#include "proto/outboard/v1alpha1/objects.pb.h"

namespace outboard::sdk {

// The whole object; an empty one where the text is none. Whatever is below may be of any type.
nlohmann::json ParseCustomObject(const v1alpha1::CustomObject& object);

using JsonPath = std::initializer_list<const char*>;
// What stands at a path of keys, null where nothing does or something on the way is no object.
const nlohmann::json* JsonAt(const nlohmann::json& json, JsonPath path);
// A text at a path; none where it is not there or is no string.
std::optional<std::string> TextAt(const nlohmann::json& json, JsonPath path);
// A map of strings; entries of other types are left out.
std::map<std::string, std::string> StringsAt(const nlohmann::json& json, JsonPath path);
// Compact, with keys in order; equal objects give equal texts. Bytes that are no UTF-8 are
// replaced.
std::string JsonText(const nlohmann::json& json);

// Effects with preconditions on the object as it is in the mirror. The key is made from the name,
// so that of one object one write is under way at a time.
v1alpha1::Effect CreateObject(absl::string_view resource, absl::string_view ns,
                              absl::string_view name, const nlohmann::json& whole);
v1alpha1::Effect ReplaceObject(const v1alpha1::CustomObject& object, const nlohmann::json& whole);
// Nothing but `status` of `whole` is taken over.
v1alpha1::Effect ReplaceStatus(const v1alpha1::CustomObject& object, const nlohmann::json& whole);
v1alpha1::Effect DeleteObject(const v1alpha1::CustomObject& object);

// A condition as metav1.Condition has them.
struct Condition {
  std::string type;
  bool is_true = false;
  std::string reason;  // CamelCase
  std::string message;
};
// Sets one in `status`.conditions. lastTransitionTime stays while the truth does.
void SetCondition(const Condition& condition, absl::Time now, nlohmann::json* status);
void RemoveCondition(absl::string_view type, nlohmann::json* status);
// Null if there is none.
const nlohmann::json* FindCondition(const nlohmann::json& status, absl::string_view type);
bool IsConditionTrue(const nlohmann::json& status, absl::string_view type);
// When the condition became what it is; none if that cannot be read.
std::optional<absl::Time> TransitionTime(const nlohmann::json& condition);

// Says when a write that the mirror does not show is worth asking for again: at once, then less and
// less often, up to once in a minute; as often as at first once the object changes.
//
// Threading: thread-compatible.
class WritePace {
 public:
  // False: it is too early to ask; for those to whom finding out what to ask for is dear.
  bool MayBeDue(const std::string& object, absl::Time now) const;
  // True: ask now.
  bool IsDue(const std::string& object, absl::Time now);
  // The object changed, or is as it should be.
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
