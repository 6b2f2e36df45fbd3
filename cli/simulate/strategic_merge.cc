#include "cli/simulate/strategic_merge.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace outboard::simulate {
namespace {

using nlohmann::json;

constexpr absl::string_view kDeleteFrom = "$deleteFromPrimitiveList/";

bool HasUid(const json& element) { return element.is_object() && element.contains("uid"); }

void MergeByUid(const json& patch, json* list) {
  for (const json& change : patch) {
    const auto found = std::find_if(list->begin(), list->end(), [&](const json& element) {
      return HasUid(element) && element["uid"] == change["uid"];
    });
    if (change.value("$patch", "") == "delete") {
      if (found != list->end()) list->erase(found);
    } else if (found != list->end()) {
      StrategicMerge(change, &*found);
    } else {
      list->push_back(change);
    }
  }
}

void Unite(const json& patch, json* list) {
  for (const json& element : patch) {
    if (std::find(list->begin(), list->end(), element) == list->end()) list->push_back(element);
  }
}

void TakeOff(const json& patch, json* list) {
  list->erase(std::remove_if(list->begin(), list->end(),
                             [&](const json& element) {
                               return std::find(patch.begin(), patch.end(), element) != patch.end();
                             }),
              list->end());
}

}  // namespace

void StrategicMerge(const json& patch, json* object) {
  if (!object->is_object()) *object = json::object();
  for (const auto& [name, value] : patch.items()) {
    absl::string_view of = name;
    if (absl::ConsumePrefix(&of, kDeleteFrom)) {
      const auto list = object->find(std::string(of));
      if (list != object->end() && list->is_array() && value.is_array()) TakeOff(value, &*list);
      continue;
    }
    if (absl::StartsWith(name, "$")) continue;
    if (value.is_null()) {
      object->erase(name);
      continue;
    }
    json& member = (*object)[name];
    if (value.is_object()) {
      StrategicMerge(value, &member);
    } else if (value.is_array() && !value.empty() &&
               std::all_of(value.begin(), value.end(), HasUid)) {
      if (!member.is_array()) member = json::array();
      MergeByUid(value, &member);
    } else if (value.is_array() && name == "finalizers") {
      if (!member.is_array()) member = json::array();
      Unite(value, &member);
    } else {
      member = value;
    }
  }
}

}  // namespace outboard::simulate
