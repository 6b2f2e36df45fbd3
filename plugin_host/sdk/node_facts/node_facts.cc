#include "plugin_host/sdk/node_facts/node_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/node_facts/fact_readers.h"
#include "plugin_host/sdk/node_facts/node_labels.h"
#include "plugin_host/sdk/node_facts/node_prices.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {
namespace {

constexpr size_t kMaxKeys = 32;

std::vector<std::string> ReadKeys(const ArgsObject& args, const char* name) {
  std::vector<std::string> keys = args.Strings(name);
  if (keys.size() > kMaxKeys)
    args.Problem(name, absl::StrCat("Invalid value: must have at most ", kMaxKeys, " labels"));
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string field = absl::StrCat(name, "[", i, "]");
    for (const std::string& error : QualifiedNameErrors(keys[i]))
      args.Problem(field, InvalidValue(keys[i], error));
  }
  return keys;
}

std::vector<BadCondition> ReadConditions(const ArgsObject& args) {
  std::vector<BadCondition> conditions;
  for (const ArgsObject& entry : args.Objects("badConditions")) {
    BadCondition condition;
    condition.type = entry.String("type", "");
    if (condition.type.empty()) entry.Problem("type", RequiredValue("a condition must be named"));
    const std::string status = entry.String("status", "True");
    if (status == "False") {
      condition.status = v1beta1::CONDITION_STATUS_FALSE;
    } else if (status != "True") {
      entry.Problem("status", NotSupported(status, {"True", "False"}));
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

}  // namespace

const char* FactSourceName(FactSource source) {
  switch (source) {
    case FactSource::kAdministrator:
      return "administrator";
    case FactSource::kResourceSlice:
      return "resource slice";
    case FactSource::kFeatureDiscovery:
      return "GPU Feature Discovery";
    case FactSource::kVendorLabels:
      return "vendor's labels";
    case FactSource::kCloudLabels:
      return "cloud's labels";
    case FactSource::kMetrics:
      return "metrics";
    case FactSource::kInstanceType:
      return "instance type";
    case FactSource::kConclusion:
      return "concluded";
    case FactSource::kCluster:
      return "status";
    case FactSource::kNone:
      break;
  }
  return "unknown";
}

const char* SharingName(GpuSharing::Kind kind) {
  switch (kind) {
    case GpuSharing::Kind::kTimeSlicing:
      return "time-slicing";
    case GpuSharing::Kind::kMps:
      return "mps";
    case GpuSharing::Kind::kMigSingle:
      return "mig (single)";
    case GpuSharing::Kind::kMigMixed:
      return "mig (mixed)";
    case GpuSharing::Kind::kNone:
      break;
  }
  return "none";
}

const char* CapacityTypeName(CapacityType type) {
  switch (type) {
    case CapacityType::kSpot:
      return "spot";
    case CapacityType::kReserved:
      return "reserved";
    case CapacityType::kOnDemand:
      break;
  }
  return "on-demand";
}

const char kNodeFactsSchema[] =
    R"json("nodeFacts": {"type": "object", "additionalProperties": false,
      "description": "What is known of nodes, besides what components publish.",
      "properties": {
        "instanceTypes": {"type": "object", "additionalProperties": {"type": "object",
          "additionalProperties": false, "properties": {
            "model": {"type": "string"}, "memoryGB": {"type": "number", "minimum": 0},
            "gpus": {"type": "integer", "minimum": 0},
            "topology": {"enum": ["nvlink", "nvswitch", "pcie"]}}},
          "description": "GPUs by instance type; extends and replaces the builtin table."},
        "networkLevels": {"type": "array", "items": {"type": "string"},
          "description": "Labels of network levels, the nearest first; before known publishers'."},
        "nvlinkDomains": {"type": "array", "items": {"type": "string"},
          "description": "Labels of NVLink domains; before known publishers'."},
        "badConditions": {"type": "array", "items": {"type": "object",
          "additionalProperties": false, "required": ["type"], "properties": {
            "type": {"type": "string"}, "status": {"enum": ["True", "False"], "default": "True"}}},
          "description": "Conditions of nodes, and the status that means ill GPUs."}}})json";

NodeFactsOptions ReadNodeFactsOptions(const ArgsObject& root) {
  NodeFactsOptions options;
  const ArgsObject args = root.Object("nodeFacts");
  options.instance_types = ReadInstanceTypes(args.Object("instanceTypes"));
  options.network_levels = ReadKeys(args, "networkLevels");
  options.nvlink_domains = ReadKeys(args, "nvlinkDomains");
  options.bad_conditions = ReadConditions(args);
  return options;
}

std::vector<std::string> NodeFactsFields() {
  return {absl::StrCat("Node.metadata.annotations['", node_labels::kIslandsAnnotation, "']")};
}

NodeFacts NodeFactsReader::Of(const v1beta1::Node& node,
                              std::vector<MalformedLabel>* malformed) const {
  LabelReader labels(node.labels(), malformed);
  KnownInstance instance = nullptr;
  if (const std::string* type = labels.Text(node_labels::kInstanceType)) {
    const auto it = options_.instance_types.find(*type);
    if (it != options_.instance_types.end()) instance = &*it;
  }
  const GpuSources from{node, labels, slices_.Find(node.name()), instance, options_};
  NodeFacts facts;
  ReadGpus(from, &facts);
  facts.nvlink_domain = ReadNvlinkDomain(labels, options_.nvlink_domains);
  facts.network = ReadNetwork(labels, options_.network_levels);
  facts.capacity_type = ReadCapacityType(node.labels(), malformed);
  facts.price = ReadPrice(node, {options_.price_list.get(), nullptr}, malformed);
  facts.gpu_problems = ReadGpuProblems(from, options_.bad_conditions);
  facts.tainted_gpus = ReadTaintedGpus(from);
  return facts;
}

}  // namespace outboard::sdk
