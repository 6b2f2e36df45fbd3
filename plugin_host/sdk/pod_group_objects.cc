#include "plugin_host/sdk/pod_group_objects.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/quantity.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {
namespace {

using nlohmann::json;

// Limit of entries read from a user's list or map.
constexpr size_t kMaxEntries = 256;

// Reads one part of an object; complaints have the whole path.
class Part {
 public:
  // `json` null: absent.
  Part(const json* json, std::string path, std::vector<MalformedValue>* malformed)
      : json_(json), path_(std::move(path)), malformed_(malformed) {}

  bool there() const { return json_ != nullptr; }
  const std::string& path() const { return path_; }
  const json* value() const { return json_; }
  // null counts as absent, as for the API server.
  Part At(const char* key) const {
    const json* found = json_ == nullptr ? nullptr : JsonAt(*json_, {key});
    if (found != nullptr && found->is_null()) found = nullptr;
    return Part(found, path_.empty() ? key : absl::StrCat(path_, ".", key), malformed_);
  }
  Part At(const json& entry, std::string name) const {
    return Part(&entry, absl::StrCat(path_, name), malformed_);
  }

  MaybeSourced<int64_t> Int(int64_t least, int64_t most) const {
    if (json_ == nullptr) return std::nullopt;
    if (json_->is_number_integer() &&
        (!json_->is_number_unsigned() ||
         json_->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))) {
      const int64_t value = json_->get<int64_t>();
      if (value >= least && value <= most) return Sourced<int64_t>{value, path_};
    }
    Complain(absl::StrCat("a whole number between ", least, " and ", most));
    return std::nullopt;
  }
  // Empty counts as absent.
  MaybeSourced<std::string> Text() const {
    if (json_ == nullptr) return std::nullopt;
    if (!json_->is_string()) {
      Complain("a text");
      return std::nullopt;
    }
    std::string text = json_->get<std::string>();
    if (text.empty()) return std::nullopt;
    return Sourced<std::string>{std::move(text), path_};
  }
  MaybeSourced<v1beta1::ResourceList> Resources() const {
    if (json_ == nullptr) return std::nullopt;
    if (!json_->is_object() || json_->size() > kMaxEntries) {
      Complain("a map of quantities");
      return std::nullopt;
    }
    Sourced<v1beta1::ResourceList> list{{}, path_};
    for (const auto& [name, quantity] : json_->items()) {
      const std::string text =
          quantity.is_string() ? quantity.get<std::string>() : JsonText(quantity);
      v1beta1::ResourceList one;
      const bool is_negative = !text.empty() && text[0] == '-';
      if (!is_negative && SetResource(name, text, &one).ok()) {
        list.value.MergeFrom(one);
      } else {
        malformed_->push_back({absl::StrCat(path_, "['", name, "']"), text, "a quantity"});
      }
    }
    return list;
  }
  void Complain(std::string wanted) const {
    malformed_->push_back({path_, JsonText(*json_), std::move(wanted)});
  }

 private:
  const json* json_;
  std::string path_;
  std::vector<MalformedValue>* malformed_;
};

// The gang's number. A malformed number is a fault: treating the group as absent would place only a
// part of it.
void ReadMin(const Part& part, int64_t least, bool required, GroupSpec* spec) {
  spec->min = part.Int(least, kMaxGroupMembers);
  if (spec->min || !spec->fault.empty()) return;
  if (part.there()) {
    spec->fault =
        absl::StrCat(part.path(), ": ", Quote(JsonText(*part.value())),
                     " is not a number of members between ", least, " and ", kMaxGroupMembers);
  } else if (required) {
    spec->fault = absl::StrCat(part.path(), " is missing");
  }
}

// The same for a part, where it is optional.
void ReadPartMin(const Part& number, SubGroup* part, GroupSpec* spec) {
  GroupSpec own;
  ReadMin(number, 0, /*required=*/false, &own);
  part->min = own.min;
  if (spec->fault.empty()) spec->fault = own.fault;
}

// An unsupported constraint on members' nodes is a fault: ignoring it would place members wrongly.
void RefuseIfThere(const Part& part, GroupSpec* spec) {
  if (part.there() && spec->fault.empty())
    spec->fault = absl::StrCat(part.path(), " is not served");
}

// A string in Kubernetes 1.36, a union of structs later.
void ReadDisruptionMode(const Part& mode, GroupSpec* out) {
  if (!mode.there()) return;
  const bool is_struct = mode.value()->is_object();
  const std::string word = mode.value()->is_string() ? mode.value()->get<std::string>() : "";
  if (word == "PodGroup" || (is_struct && mode.At("all").there())) {
    out->disrupted_as_whole = {true, mode.path()};
  } else if (word == "Pod" || (is_struct && mode.At("single").there())) {
    out->disrupted_as_whole = {false, mode.path()};
  } else {
    mode.Complain("Pod, PodGroup, single or all");
  }
}

void ReadKubernetes(const Part& spec, GroupSpec* out) {
  const Part policy = spec.At("schedulingPolicy");
  if (policy.At("gang").there()) {
    ReadMin(policy.At("gang").At("minCount"), 1, /*required=*/true, out);
  } else if (!policy.At("basic").there()) {
    out->fault = absl::StrCat(policy.path(), " is neither basic nor gang");
  }
  const Part levels = spec.At("schedulingConstraints").At("topology");
  if (levels.there()) {
    if (!levels.value()->is_array() || levels.value()->size() > 1) {
      levels.Complain("a list of one level");
    } else if (!levels.value()->empty()) {
      out->topology.required = levels.At((*levels.value())[0], "[0]").At("key").Text();
    }
  }
  const MaybeSourced<int64_t> priority =
      spec.At("priority")
          .Int(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  if (priority) out->priority = {static_cast<int32_t>(priority->value), priority->from};
  out->priority_class = spec.At("priorityClassName").Text();
  ReadDisruptionMode(spec.At("disruptionMode"), out);
}

void ReadSchedulerPlugins(const Part& spec, GroupSpec* out) {
  ReadMin(spec.At("minMember"), 1, /*required=*/true, out);
  out->min_resources = spec.At("minResources").Resources();
  const MaybeSourced<int64_t> timeout =
      spec.At("scheduleTimeoutSeconds").Int(1, std::numeric_limits<int32_t>::max());
  if (timeout) out->timeout = {absl::Seconds(timeout->value), timeout->from};
}

// Zero counts as absent if a dialect allows groups without a number.
void DropZero(GroupSpec* spec) {
  if (spec->min && spec->min->value == 0) spec->min.reset();
}

void ReadVolcano(const Part& spec, GroupSpec* out) {
  ReadMin(spec.At("minMember"), 0, /*required=*/false, out);
  DropZero(out);
  out->min_resources = spec.At("minResources").Resources();
  out->priority_class = spec.At("priorityClassName").Text();
  const Part tasks = spec.At("minTaskMember");
  if (tasks.there()) {
    if (!tasks.value()->is_object() || tasks.value()->size() > kMaxEntries) {
      tasks.Complain("a map of numbers");
    } else {
      for (const auto& [name, number] : tasks.value()->items()) {
        SubGroup& task = out->sub_groups.emplace_back();
        task.name = name;
        ReadPartMin(tasks.At(number, absl::StrCat("['", name, "']")), &task, out);
      }
    }
  }
  const Part policies = spec.At("subGroupPolicy");
  if (policies.there() && policies.value()->is_array()) {
    for (size_t i = 0; i < policies.value()->size(); ++i) {
      const Part policy = policies.At((*policies.value())[i], absl::StrCat("[", i, "]"));
      RefuseIfThere(policy.At("minSubGroups"), out);
      const Part topology = policy.At("networkTopology");
      const MaybeSourced<std::string> mode = topology.At("mode").Text();
      if (!mode || mode->value != "soft") RefuseIfThere(topology, out);
    }
  } else if (policies.there()) {
    policies.Complain("a list of policies");
  }
  const Part topology = spec.At("networkTopology");
  if (!topology.there()) return;
  MaybeSourced<std::string> tier = topology.At("highestTierName").Text();
  if (!tier) {
    const MaybeSourced<int64_t> number =
        topology.At("highestTierAllowed").Int(0, std::numeric_limits<int32_t>::max());
    if (number) tier = {absl::StrCat(number->value), number->from};
  }
  const MaybeSourced<std::string> mode = topology.At("mode").Text();
  if (!mode || mode->value == "hard") {
    out->topology.required = std::move(tier);
  } else if (mode->value == "soft") {
    out->topology.preferred = std::move(tier);
  } else {
    topology.At("mode").Complain("hard or soft");
  }
}

TopologyPreference KaiTopology(const Part& part) {
  return {part.At("topology").Text(), part.At("requiredTopologyLevel").Text(),
          part.At("preferredTopologyLevel").Text()};
}

// All parts of `parent` must be placed; choosing a subset is not supported.
void ReadMinSubGroup(const Part& number, absl::string_view parent, GroupSpec* out) {
  if (!number.there() || !out->fault.empty()) return;
  const auto parts =
      std::count_if(out->sub_groups.begin(), out->sub_groups.end(),
                    [&](const SubGroup& sub_group) { return sub_group.parent == parent; });
  GroupSpec own;
  ReadMin(number, 0, /*required=*/true, &own);
  if (!own.fault.empty()) {
    out->fault = own.fault;
  } else if (own.min->value != parts) {
    out->fault = absl::StrCat(number.path(), ": ", own.min->value, " of ", parts,
                              " subGroups is not served, only all of them");
  }
}

void ReadKai(const Part& spec, GroupSpec* out) {
  ReadMin(spec.At("minMember"), 0, /*required=*/false, out);
  DropZero(out);
  out->topology = KaiTopology(spec.At("topologyConstraint"));
  out->priority_class = spec.At("priorityClassName").Text();
  const Part parts = spec.At("subGroups");
  const bool is_list =
      parts.there() && parts.value()->is_array() && parts.value()->size() <= kMaxEntries;
  if (parts.there() && !is_list) parts.Complain("a list of groups");
  const size_t size = is_list ? parts.value()->size() : 0;
  const auto part_at = [&](size_t i) {
    return parts.At((*parts.value())[i], absl::StrCat("[", i, "]"));
  };
  for (size_t i = 0; i < size; ++i) {
    const Part part = part_at(i);
    const MaybeSourced<std::string> name = part.At("name").Text();
    if (!name) {
      part.Complain("a group with a name");
      continue;
    }
    SubGroup& sub_group = out->sub_groups.emplace_back();
    sub_group.name = name->value;
    if (const MaybeSourced<std::string> parent = part.At("parent").Text())
      sub_group.parent = parent->value;
    ReadPartMin(part.At("minMember"), &sub_group, out);
    const Part topology = part.At("topologyConstraint");
    sub_group.topology = KaiTopology(topology);
    RefuseIfThere(topology.At("requiredTopologyLevel"), out);
  }
  // After all parts are known.
  ReadMinSubGroup(spec.At("minSubGroup"), "", out);
  for (size_t i = 0; i < size; ++i) {
    const Part part = part_at(i);
    if (const MaybeSourced<std::string> name = part.At("name").Text())
      ReadMinSubGroup(part.At("minSubGroup"), name->value, out);
  }
}

}  // namespace

std::optional<PodGroupObject> ReadPodGroup(const v1beta1::GenericObject& object) {
  const std::optional<GroupDialect> dialect = DialectOfResource(object.resource());
  if (!dialect) return std::nullopt;
  PodGroupObject group;
  group.key = {*dialect, object.namespace_(), object.name(), ""};
  const json whole = ParseCustomObject(object);
  const Part root(&whole, "", &group.malformed);
  const Part spec = root.At("spec");
  switch (*dialect) {
    case GroupDialect::kKubernetes:
      ReadKubernetes(spec, &group.spec);
      break;
    case GroupDialect::kSchedulerPlugins:
      ReadSchedulerPlugins(spec, &group.spec);
      break;
    case GroupDialect::kVolcano:
      ReadVolcano(spec, &group.spec);
      break;
    case GroupDialect::kKai:
      ReadKai(spec, &group.spec);
      break;
    default:
      break;
  }
  const Part created = root.At("metadata").At("creationTimestamp");
  if (const MaybeSourced<std::string> text = created.Text()) {
    if (const std::optional<absl::Time> time = ParseTimestamp(text->value)) {
      group.spec.created = {*time, text->from};
    } else {
      created.Complain("a time as in RFC 3339");
    }
  }
  return group;
}

std::vector<v1beta1::DeclaredResource> PodGroupResources() {
  std::vector<v1beta1::DeclaredResource> resources;
  for (const GroupDialect dialect : kGroupDialects) {
    if (GroupResource(dialect).empty()) continue;
    v1beta1::DeclaredResource& resource = resources.emplace_back();
    resource.set_resource(std::string(GroupResource(dialect)));
    resource.set_optional(true);
  }
  return resources;
}

}  // namespace outboard::sdk
