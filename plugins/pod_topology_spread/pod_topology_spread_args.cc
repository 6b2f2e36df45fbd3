#include "plugins/pod_topology_spread/pod_topology_spread_args.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::pod_topology_spread {
namespace {

using Proto = v1beta1::TopologySpreadConstraint;

int32_t ReadInt32(const sdk::ArgsObject& object, absl::string_view key) {
  const int64_t value = object.Int(key, 0);
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    object.Problem(key, sdk::InvalidValue(value, "must fit in 32 bits"));
    return 1;
  }
  return static_cast<int32_t>(value);
}

// kube-scheduler does not validate this field: any text except `Honor` means Ignore.
Proto::NodeInclusionPolicy ReadPolicy(const sdk::ArgsObject& object, absl::string_view key) {
  if (!object.Has(key)) return Proto::NODE_INCLUSION_POLICY_UNSPECIFIED;
  return object.String(key, "") == "Honor" ? Proto::NODE_INCLUSION_POLICY_HONOR
                                           : Proto::NODE_INCLUSION_POLICY_IGNORE;
}

void CheckTopologyKey(const sdk::ArgsObject& object, const std::string& key) {
  if (key.empty()) return object.Problem("topologyKey", sdk::RequiredValue("can not be empty"));
  for (const std::string& error : sdk::QualifiedNameErrors(key)) {
    object.Problem("topologyKey", sdk::InvalidValue(key, error));
  }
}

Proto::WhenUnsatisfiable ReadAction(const sdk::ArgsObject& object, const std::string& text) {
  if (text == "DoNotSchedule") return Proto::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE;
  if (text == "ScheduleAnyway") return Proto::WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY;
  object.Problem("whenUnsatisfiable",
                 text.empty() ? sdk::RequiredValue("can not be empty")
                              : sdk::NotSupported(text, {"DoNotSchedule", "ScheduleAnyway"}));
  return Proto::WHEN_UNSATISFIABLE_UNSPECIFIED;
}

Proto ReadConstraint(const sdk::ArgsObject& object, const std::string& action) {
  Proto result;
  result.set_max_skew(ReadInt32(object, "maxSkew"));
  if (result.max_skew() <= 0) {
    object.Problem("maxSkew",
                   sdk::InvalidValue(int64_t{result.max_skew()}, "not in valid range (0, inf)"));
  }
  result.set_topology_key(object.String("topologyKey", ""));
  CheckTopologyKey(object, result.topology_key());
  result.set_when_unsatisfiable(ReadAction(object, action));
  if (object.Has("labelSelector")) {
    object.Problem(
        "labelSelector",
        sdk::Forbidden("constraint must not define a selector, as they deduced for each pod"));
  }
  if (object.Has("minDomains")) result.set_min_domains(ReadInt32(object, "minDomains"));
  result.set_node_affinity_policy(ReadPolicy(object, "nodeAffinityPolicy"));
  result.set_node_taints_policy(ReadPolicy(object, "nodeTaintsPolicy"));
  // Accepted without effect: a default constraint uses the selector of the pod's owners.
  object.Strings("matchLabelKeys");
  return result;
}

Proto SystemDefault(const char* key, int32_t max_skew) {
  Proto result;
  result.set_topology_key(key);
  result.set_max_skew(max_skew);
  result.set_when_unsatisfiable(Proto::WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY);
  return result;
}

}  // namespace

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "defaultingType": {"enum": ["System", "List"], "default": "System",
      "description": "Constraints for pods without any: the system's, or the listed ones."},
    "defaultConstraints": {"type": "array",
      "items": {"type": "object", "additionalProperties": false,
        "required": ["maxSkew", "topologyKey", "whenUnsatisfiable"],
        "properties": {
          "maxSkew": {"type": "integer", "minimum": 1},
          "topologyKey": {"type": "string"},
          "whenUnsatisfiable": {"enum": ["DoNotSchedule", "ScheduleAnyway"]},
          "minDomains": {"type": "integer"},
          "nodeAffinityPolicy": {"enum": ["Honor", "Ignore"]},
          "nodeTaintsPolicy": {"enum": ["Honor", "Ignore"]},
          "matchLabelKeys": {"type": "array", "items": {"type": "string"}}}}}}})json";

SpreadArgs ReadArgs(sdk::ArgsReader* reader) {
  const sdk::ArgsObject args = reader->root();
  SpreadArgs result;
  std::string type = args.String("defaultingType", "System");
  if (type.empty()) type = "System";
  const std::vector<sdk::ArgsObject> listed = args.Objects("defaultConstraints");
  if (type != "System" && type != "List") {
    args.Problem("defaultingType", sdk::NotSupported(type, {"System", "List"}));
  } else if (type == "System" && !listed.empty()) {
    args.Problem("defaultingType",
                 sdk::InvalidValue(type, "when .defaultConstraints are not empty"));
  }
  std::vector<std::string> actions;
  for (const sdk::ArgsObject& object : listed) {
    const std::string action = object.String("whenUnsatisfiable", "");
    Proto constraint = ReadConstraint(object, action);
    for (size_t i = 0; i < actions.size(); ++i) {
      if (result.default_constraints[i].topology_key() != constraint.topology_key() ||
          actions[i] != action) {
        continue;
      }
      reader->AddProblem(object.path(), sdk::DuplicateValue(absl::StrCat(
                                            "{", constraint.topology_key(), ", ", action, "}")));
      break;
    }
    actions.push_back(action);
    result.default_constraints.push_back(std::move(constraint));
  }
  result.system_defaulted = type == "System";
  if (result.system_defaulted) {
    result.default_constraints = {SystemDefault("kubernetes.io/hostname", 3),
                                  SystemDefault("topology.kubernetes.io/zone", 5)};
  }
  return result;
}

}  // namespace outboard::pod_topology_spread
