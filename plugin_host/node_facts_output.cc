#include "plugin_host/node_facts_output.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/node_facts/describe.h"
#include "plugin_host/sdk/node_facts/node_facts.h"

namespace outboard::plugin_host {
namespace {

using nlohmann::json;

constexpr char kTopologies[] = "noderesourcetopologies.v1alpha2.topology.node.k8s.io";

// A quantity in a NodeResourceTopology, as its publisher wrote it.
std::string AmountText(const json& resource, const char* key) {
  const json* amount = sdk::JsonAt(resource, {key});
  if (amount == nullptr) return "?";
  return amount->is_string() ? amount->get<std::string>() : amount->dump();
}

// `node-0: cpu 30 of 32, nvidia.com/gpu 4 of 4; node-1: …`: what is available of each zone.
std::string ZonesText(const json& topology) {
  std::string text;
  const json* zones = sdk::JsonAt(topology, {"zones"});
  if (zones == nullptr || !zones->is_array()) return text;
  for (const json& zone : *zones) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", sdk::TextAt(zone, {"name"}).value_or("?"));
    const json* resources = sdk::JsonAt(zone, {"resources"});
    if (resources == nullptr || !resources->is_array()) continue;
    const char* separator = ": ";
    for (const json& resource : *resources) {
      absl::StrAppend(&text, separator, sdk::TextAt(resource, {"name"}).value_or("?"), " ",
                      AmountText(resource, "available"), " of ", AmountText(resource, "capacity"));
      separator = ", ";
    }
  }
  return text;
}

// Not a fact of the SDK, because only GPUModelMatch reads zones. Null: no object about the node.
json ZonesFact(const json* topology) {
  const std::string zones = topology == nullptr ? "" : ZonesText(*topology);
  json fact = {{"fact", "NUMA zones"}, {"value", nullptr}, {"source", "unknown"}};
  if (zones.empty()) {
    fact["publishers"] = "Node Feature Discovery's topology updater, resource-topology-exporter";
  } else {
    fact["value"] = zones;
    fact["source"] = sdk::FactSourceName(sdk::FactSource::kCluster);
    fact["origin"] = "NodeResourceTopology";
  }
  return fact;
}

json NodeJson(const sdk::NodeFactsReader& reader, const v1beta1::Node& node,
              const std::map<std::string, json>& topologies) {
  std::vector<sdk::MalformedLabel> malformed;
  json facts = json::array();
  for (const sdk::FactLine& line : sdk::DescribeFacts(reader.Of(node, &malformed))) {
    json fact = {{"fact", line.fact}, {"value", nullptr}, {"source", line.source}};
    if (line.value.empty()) {
      fact["publishers"] = line.publishers;
    } else {
      fact["value"] = line.value;
      fact["origin"] = line.origin;
    }
    facts.push_back(std::move(fact));
  }
  const auto topology = topologies.find(node.name());
  facts.push_back(ZonesFact(topology == topologies.end() ? nullptr : &topology->second));
  json labels = json::array();
  for (const sdk::MalformedLabel& label : malformed)
    labels.push_back({{"key", label.key}, {"value", label.value}, {"wanted", label.wanted}});
  return {{"name", node.name()}, {"facts", std::move(facts)}, {"malformed", std::move(labels)}};
}

}  // namespace

std::string NodeFactsJson(const v1beta1::SyncRequest& changes,
                          std::shared_ptr<const sdk::PriceList> price_list) {
  sdk::NodeFactsOptions options;
  options.checks_generations = true;
  options.price_list = std::move(price_list);
  sdk::NodeFactsReader reader(std::move(options));
  std::map<std::string, json> topologies;  // By the node's name, which is theirs.
  for (const v1beta1::Change& change : changes.changes()) {
    if (!change.has_object_upsert()) continue;
    reader.SetObject(change.object_upsert());
    const v1beta1::GenericObject& object = change.object_upsert().generic_object();
    if (object.resource() == kTopologies)
      topologies[object.name()] = sdk::ParseCustomObject(object);
  }
  json nodes = json::array();
  for (const v1beta1::Change& change : changes.changes()) {
    if (change.has_node_upsert())
      nodes.push_back(NodeJson(reader, change.node_upsert().node(), topologies));
  }
  const json whole = {{"nodes", std::move(nodes)}};
  return whole.dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<std::string> NodeFactsOfFile(const std::string& path,
                                            const std::string& price_list) {
  std::ifstream file(path, std::ios::binary);
  v1beta1::SyncRequest changes;
  if (!file || !changes.ParseFromIstream(&file))
    return absl::InvalidArgumentError(absl::StrCat("--node-facts ", path, ": not a SyncRequest"));
  if (price_list.empty()) return NodeFactsJson(changes);
  const absl::StatusOr<std::string> text = sdk::PriceList::ReadText(price_list);
  if (!text.ok()) return text.status();
  absl::StatusOr<sdk::PriceList> list = sdk::PriceList::Parse(*text, price_list);
  if (!list.ok()) return list.status();
  return NodeFactsJson(changes, std::make_shared<const sdk::PriceList>(*std::move(list)));
}

}  // namespace outboard::plugin_host
