#include "plugins/gpu_model_match/numa_objects.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/quantity.h"

namespace outboard::gpu_model_match {
namespace {

using nlohmann::json;

constexpr int64_t kMaxZoneId = 63;
// Limits of what is read from an object, which anyone with rights to it can write.
constexpr size_t kMaxZones = 64;
constexpr size_t kMaxEntries = 256;  // of a zone's resources or costs

struct ZoneAmounts {
  NumaAmounts amounts;
  int64_t available = 0;
};
struct ReadZone {
  NumaZone zone;
  std::map<std::string, ZoneAmounts> resources;
};

// The entries of a list of objects, with their index; none if it is not a list.
template <typename Fn>
void ForEachEntry(const json& object, const char* key, size_t most, const Fn& fn) {
  const json* list = sdk::JsonAt(object, {key});
  if (list == nullptr || !list->is_array()) return;
  for (size_t i = 0; i < std::min(list->size(), most); ++i) fn((*list)[i], i);
}

std::optional<int> ZoneId(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "node-")) return std::nullopt;
  const std::optional<int64_t> id = sdk::ParseCount(name, kMaxZoneId);
  return id.has_value() ? std::optional(static_cast<int>(*id)) : std::nullopt;
}

class Reader {
 public:
  explicit Reader(NumaObject* result) : result_(*result) {}

  void ReadPolicies(const json& whole) {
    const json* list = sdk::JsonAt(whole, {"topologyPolicies"});
    if (list == nullptr || !list->is_array() || list->empty() || !(*list)[0].is_string()) return;
    // Values of the API's first version. Only the first entry counts.
    static const auto& known = *new std::map<std::string, std::pair<NumaPolicy, NumaScope>>{
        {"SingleNUMANodeContainerLevel", {NumaPolicy::kSingleNumaNode, NumaScope::kContainer}},
        {"SingleNUMANodePodLevel", {NumaPolicy::kSingleNumaNode, NumaScope::kPod}},
        {"RestrictedContainerLevel", {NumaPolicy::kRestricted, NumaScope::kContainer}},
        {"RestrictedPodLevel", {NumaPolicy::kRestricted, NumaScope::kPod}},
        {"BestEffortContainerLevel", {NumaPolicy::kBestEffort, NumaScope::kContainer}},
        {"BestEffortPodLevel", {NumaPolicy::kBestEffort, NumaScope::kPod}}};
    const auto found = known.find((*list)[0].get<std::string>());
    if (found != known.end()) {
      std::tie(result_.topology.policy, result_.topology.scope) = found->second;
    }
  }

  void ReadAttributes(const json& whole) {
    static const auto& policies =
        *new std::map<std::string, NumaPolicy>{{"none", NumaPolicy::kNone},
                                               {"best-effort", NumaPolicy::kBestEffort},
                                               {"restricted", NumaPolicy::kRestricted},
                                               {"single-numa-node", NumaPolicy::kSingleNumaNode}};
    static const auto& scopes = *new std::map<std::string, NumaScope>{
        {"container", NumaScope::kContainer}, {"pod", NumaScope::kPod}};
    ForEachEntry(whole, "attributes", kMaxEntries, [&](const json& attribute, size_t i) {
      const std::string name = sdk::TextAt(attribute, {"name"}).value_or("");
      const std::string value = sdk::TextAt(attribute, {"value"}).value_or("");
      const auto set = [&](const auto& known, auto* to, const char* wanted) {
        const auto found = known.find(value);
        if (found != known.end()) {
          *to = found->second;
        } else {
          Complain(absl::StrCat("attributes[", i, "].value"), value, wanted);
        }
      };
      if (name == "topologyManagerPolicy") {
        set(policies, &result_.topology.policy, "a policy of the kubelet's Topology Manager");
      } else if (name == "topologyManagerScope") {
        set(scopes, &result_.topology.scope, "container or pod");
      } else if (name == "topologyManagerMaxNUMANodes") {
        const std::optional<int64_t> most = sdk::ParseCount(value);
        if (most.has_value() && *most > 1) {
          result_.topology.max_numa_nodes = std::min<int64_t>(*most, 1024);
        } else {
          Complain(absl::StrCat("attributes[", i, "].value"), value, "a number above 1");
        }
      }
    });
  }

  void ReadZones(const json& whole) {
    std::map<int, ReadZone> zones;
    ForEachEntry(whole, "zones", kMaxZones, [&](const json& entry, size_t i) {
      if (sdk::TextAt(entry, {"type"}) != "Node") return;
      const std::string name = sdk::TextAt(entry, {"name"}).value_or("");
      const std::optional<int> id = ZoneId(name);
      const std::string path = absl::StrCat("zones[", i, "]");
      if (!id.has_value() || zones.contains(*id)) {
        Complain(absl::StrCat(path, ".name"), name, "node-0 to node-63, each once");
        return;
      }
      ReadZone zone = ReadOne(entry, path);
      zone.zone.id = *id;
      if (!zone.resources.empty()) zones.emplace(*id, std::move(zone));
    });
    DropUnmanagedCpus(&zones);
    Fill(zones);
  }

 private:
  void Complain(std::string field, std::string value, std::string wanted) {
    if (result_.malformed.has_value()) return;
    result_.malformed = {std::move(field), std::move(value), std::move(wanted)};
  }

  // None if absent or malformed. Negative amounts count as 0.
  std::optional<int64_t> Amount(const json& resource, const char* key, const std::string& path,
                                int64_t scale) {
    const json* value = sdk::JsonAt(resource, {key});
    if (value == nullptr) return std::nullopt;
    const std::string text = value->is_string() ? value->get<std::string>() : sdk::JsonText(*value);
    const absl::StatusOr<int64_t> amount = sdk::ParseQuantity(text, scale);
    if (amount.ok()) return std::clamp<int64_t>(*amount, 0, kMaxNumaAmount);
    Complain(absl::StrCat(path, ".", key), text, "a quantity");
    return std::nullopt;
  }

  ReadZone ReadOne(const json& entry, const std::string& path) {
    ReadZone zone;
    ForEachEntry(entry, "resources", kMaxEntries, [&](const json& resource, size_t i) {
      const std::string name = sdk::TextAt(resource, {"name"}).value_or("");
      if (name.empty()) return;
      const std::string of = absl::StrCat(path, ".resources[", i, "]");
      const int64_t scale = name == "cpu" ? 1000 : 1;
      ZoneAmounts read;
      read.amounts.listed = true;
      read.available = Amount(resource, "available", of, scale).value_or(0);
      read.amounts.allocatable =
          std::max(read.available, Amount(resource, "allocatable", of, scale).value_or(0));
      read.amounts.capacity =
          std::max(read.amounts.allocatable, Amount(resource, "capacity", of, scale).value_or(0));
      zone.resources[name] = read;
    });
    ForEachEntry(entry, "costs", kMaxEntries, [&](const json& cost, size_t) {
      const std::optional<int> to = ZoneId(sdk::TextAt(cost, {"name"}).value_or(""));
      const json* value = sdk::JsonAt(cost, {"value"});
      if (!to.has_value() || value == nullptr || !value->is_number_integer()) return;
      zone.zone.distances[*to] =
          std::clamp<int64_t>(value->get<int64_t>(), 0, kMaxNumaAmount >> 16);
    });
    return zone;
  }

  // Without the CPU manager's policy `static` the kubelet reports no CPUs, and aligns none. Node
  // Feature Discovery's topology updater then lists CPUs only of zones without any other resource,
  // with the zone's capacity and nothing allocatable.
  static void DropUnmanagedCpus(std::map<int, ReadZone>* zones) {
    const auto is_unmanaged = [](const NumaAmounts& cpus) {
      return cpus.capacity > 0 && cpus.allocatable == 0;
    };
    for (const auto& [id, zone] : *zones) {
      const auto cpus = zone.resources.find("cpu");
      if (cpus != zone.resources.end() && !is_unmanaged(cpus->second.amounts)) return;
    }
    for (auto& [id, zone] : *zones) zone.resources.erase("cpu");
  }

  void Fill(const std::map<int, ReadZone>& zones) {
    NumaTopology& topology = result_.topology;
    for (const auto& [id, zone] : zones) {
      for (const auto& [name, amounts] : zone.resources) topology.resources.push_back(name);
    }
    std::sort(topology.resources.begin(), topology.resources.end());
    topology.resources.erase(std::unique(topology.resources.begin(), topology.resources.end()),
                             topology.resources.end());
    for (const auto& [id, zone] : zones) {
      topology.zones.push_back(zone.zone);
      for (const std::string& name : topology.resources) {
        const auto found = zone.resources.find(name);
        const ZoneAmounts read = found == zone.resources.end() ? ZoneAmounts() : found->second;
        topology.amounts.push_back(read.amounts);
        result_.available.push_back(read.available);
      }
    }
  }

  NumaObject& result_;
};

}  // namespace

NumaObject ReadNumaObject(const v1beta1::GenericObject& object) {
  NumaObject result;
  const json whole = sdk::ParseCustomObject(object);
  Reader reader(&result);
  reader.ReadPolicies(whole);
  reader.ReadAttributes(whole);
  reader.ReadZones(whole);
  return result;
}

}  // namespace outboard::gpu_model_match
