#include "plugin_host/node_facts_output.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/node_facts/describe.h"
#include "plugin_host/sdk/node_facts/node_facts.h"

namespace outboard::plugin_host {
namespace {

using nlohmann::json;

json NodeJson(const sdk::NodeFactsReader& reader, const v1beta1::Node& node) {
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
  for (const v1beta1::Change& change : changes.changes()) {
    if (change.has_object_upsert()) reader.SetObject(change.object_upsert());
  }
  json nodes = json::array();
  for (const v1beta1::Change& change : changes.changes()) {
    if (change.has_node_upsert()) nodes.push_back(NodeJson(reader, change.node_upsert().node()));
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
