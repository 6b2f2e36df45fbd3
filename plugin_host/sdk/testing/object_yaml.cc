#include "plugin_host/sdk/testing/object_yaml.h"

#include <google/protobuf/util/json_util.h>

#include <cctype>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "plugin_host/sdk/quantity.h"
#include "plugin_host/sdk/testing/recorded_nodes.h"

namespace outboard::sdk::testing {
namespace {

using Json = nlohmann::json;

bool IsResourceList(const std::string& key) {
  static const auto& keys =
      *new std::set<std::string>{"requests",    "limits",    "allocatable",       "overhead",
                                 "podRequests", "podLimits", "allocatedRequests", "actualRequests"};
  return keys.contains(key);
}
// How the values of an enum field begin in the contract; empty: it has another type.
std::string EnumPrefix(const std::string& key) {
  if (key == "operator") return "OPERATOR_";
  if (key == "effect") return "TAINT_EFFECT_";
  if (key == "status") return "CONDITION_STATUS_";
  if (key == "whenUnsatisfiable") return "WHEN_UNSATISFIABLE_";
  if (key == "preemptionPolicy") return "PREEMPTION_POLICY_";
  if (key == "nodeAffinityPolicy" || key == "nodeTaintsPolicy") return "NODE_INCLUSION_POLICY_";
  return "";
}
bool IsBool(const std::string& key) {
  return key == "unschedulable" || key == "hostNetwork" || key == "restartPolicyAlways" ||
         key == "resizeInfeasible" || key == "deleting" || key == "boundByController" ||
         key == "bindCompleted" || key == "storageCapacity" || key == "readOnly";
}
// Amounts of storage, written as Kubernetes' quantities.
bool IsStorage(const std::string& key) {
  return key == "capacityBytes" || key == "requestBytes" || key == "maximumVolumeBytes";
}
// Maps with user-defined keys and values.
bool IsTextMap(const std::string& key) {
  return key == "labels" || key == "annotations" || key == "nodeSelector" || key == "matchLabels";
}

// DoesNotExist → DOES_NOT_EXIST.
std::string EnumName(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && absl::ascii_isupper(text[i])) result.push_back('_');
    result.push_back(absl::ascii_toupper(text[i]));
  }
  return result;
}

absl::StatusOr<Json> ResourceListJson(const YAML::Node& yaml) {
  v1beta1::ResourceList list;
  for (const auto& entry : yaml) {
    absl::Status status =
        SetResource(entry.first.as<std::string>(), entry.second.as<std::string>(), &list);
    if (!status.ok()) return status;
  }
  std::string text;
  auto status = google::protobuf::util::MessageToJsonString(list, &text);
  if (!status.ok()) return absl::InvalidArgumentError(status.ToString());
  return Json::parse(text);
}

// Every scalar becomes a string: the proto JSON parser also accepts numbers as strings.
absl::StatusOr<Json> ToJson(const YAML::Node& yaml, const std::string& key, bool user_map) {
  if (yaml.IsScalar()) {
    const std::string text = yaml.as<std::string>();
    if (!user_map && IsBool(key)) return Json(text == "true");
    if (!user_map && key == "protocol") return Json(absl::StrCat("PROTOCOL_", text));
    if (const std::string prefix = EnumPrefix(key); !user_map && !prefix.empty())
      return Json(absl::StrCat(prefix, EnumName(text)));
    if (!user_map && IsStorage(key)) {
      absl::StatusOr<int64_t> bytes = ParseQuantity(text, 1);
      if (!bytes.ok()) return bytes.status();
      return Json(absl::StrCat(*bytes));
    }
    return Json(text);
  }
  if (yaml.IsSequence()) {
    Json list = Json::array();
    for (const auto& item : yaml) {
      absl::StatusOr<Json> json = ToJson(item, key, user_map);
      if (!json.ok()) return json;
      list.push_back(*std::move(json));
    }
    return list;
  }
  Json object = Json::object();
  for (const auto& entry : yaml) {
    const std::string name = entry.first.as<std::string>();
    absl::StatusOr<Json> json;
    if (!user_map && IsResourceList(name)) {
      json = ResourceListJson(entry.second);
    } else {
      json = ToJson(entry.second, name, user_map || IsTextMap(name));
    }
    if (!json.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": ", json.status().message()));
    }
    object[name] = *std::move(json);
  }
  return object;
}

template <typename Message>
absl::Status Parse(const Json& json, Message* message) {
  auto status = google::protobuf::util::JsonStringToMessage(json.dump(), message);
  if (!status.ok()) return absl::InvalidArgumentError(status.ToString());
  return absl::OkStatus();
}

// Kubernetes writes `resources: {requests, limits}`.
void LiftResources(Json* containers) {
  if (!containers->is_array()) return;
  for (Json& container : *containers) {
    auto resources = container.find("resources");
    if (resources == container.end()) continue;
    const Json lifted = *resources;
    container.erase("resources");
    for (const auto& [key, value] : lifted.items()) container[key] = value;
  }
}

Json ScalarJson(const YAML::Node& yaml) {
  const std::string text = yaml.as<std::string>();
  int64_t number;
  double real;
  if (yaml.Tag() == "!") return text;  // Quoted.
  if (text == "true" || text == "false") return text == "true";
  if (absl::SimpleAtoi(text, &number)) return number;
  if (absl::SimpleAtod(text, &real)) return real;
  return text;
}

Json ArgsJson(const YAML::Node& yaml) {
  if (yaml.IsScalar()) return ScalarJson(yaml);
  if (yaml.IsSequence()) {
    Json list = Json::array();
    for (const auto& item : yaml) list.push_back(ArgsJson(item));
    return list;
  }
  if (!yaml.IsMap()) return nullptr;
  Json object = Json::object();
  for (const auto& entry : yaml) object[entry.first.as<std::string>()] = ArgsJson(entry.second);
  return object;
}

}  // namespace

absl::StatusOr<v1beta1::Pod> PodFromYaml(const YAML::Node& yaml) {
  absl::StatusOr<Json> json = ToJson(yaml, "", false);
  if (!json.ok()) return json.status();
  if (!json->is_object() || !json->contains("name")) {
    return absl::InvalidArgumentError("a pod needs a name");
  }
  for (const char* key : {"containers", "initContainers"}) {
    if (json->contains(key)) LiftResources(&(*json)[key]);
  }
  if (!json->contains("containers")) {
    Json container = {{"name", "main"}};
    if (json->contains("requests")) container["requests"] = (*json)["requests"];
    (*json)["containers"] = Json::array({container});
    json->erase("requests");
  }
  v1beta1::Pod pod;
  if (absl::Status status = Parse(*json, &pod); !status.ok()) return status;
  if (pod.namespace_().empty()) pod.set_namespace_("default");
  if (pod.uid().empty()) pod.set_uid(absl::StrCat(pod.namespace_(), "/", pod.name()));
  if (pod.scheduler_name().empty()) pod.set_scheduler_name("default-scheduler");
  return pod;
}

absl::StatusOr<v1beta1::Node> NodeFromYaml(const YAML::Node& yaml) {
  const absl::StatusOr<YAML::Node> with_recorded = WithRecordedNode(yaml);
  if (!with_recorded.ok()) return with_recorded.status();
  absl::StatusOr<Json> json = ToJson(*with_recorded, "", false);
  if (!json.ok()) return json.status();
  v1beta1::Node node;
  if (absl::Status status = Parse(*json, &node); !status.ok()) return status;
  if (node.name().empty()) return absl::InvalidArgumentError("a node needs a name");
  if (node.uid().empty()) node.set_uid("uid-" + node.name());
  if (!node.allocatable().has_pods()) node.mutable_allocatable()->set_pods(110);
  return node;
}

absl::StatusOr<v1beta1::ClusterObject> ObjectFromYaml(const YAML::Node& yaml) {
  absl::StatusOr<Json> json = ToJson(yaml, "", false);
  if (!json.ok()) return json.status();
  if (!json->is_object() || json->size() != 1 || !json->begin()->is_object()) {
    return absl::InvalidArgumentError("an object is written as {kind: {name: …}}");
  }
  const auto* kind =
      v1beta1::ClusterObject::descriptor()->FindFieldByCamelcaseName(json->begin().key());
  if (kind == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("unknown kind ", json->begin().key()));
  }
  Json& object = *json->begin();
  const std::string name = object.value("name", "");
  if (name.empty()) return absl::InvalidArgumentError("an object needs a name");
  for (const char* key : {"namespace", "uid"}) {
    if (kind->message_type()->FindFieldByName(key) == nullptr || object.contains(key)) continue;
    object[key] = std::string(key) == "uid" ? absl::StrCat("uid-", name) : "default";
  }
  v1beta1::ClusterObject result;
  if (absl::Status status = Parse(*json, &result); !status.ok()) return status;
  return result;
}

std::string YamlToJson(const YAML::Node& yaml) { return ArgsJson(yaml).dump(); }

}  // namespace outboard::sdk::testing
