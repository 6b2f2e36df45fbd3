#include "cli/conformance/node_columns.h"

#include <map>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace outboard::conformance {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

namespace {

using google::protobuf::RepeatedPtrField;
using Nodes = RepeatedPtrField<InlineNode>;

constexpr int64_t kNotNamed = -1;

// The columns that a plugin with this path gets.
void AddNamed(absl::string_view path, NamedColumns* named) {
  if (!absl::ConsumeSuffix(&path, "']")) return;
  const std::pair<absl::string_view, std::set<std::string>*> forms[] = {
      {"Node.metadata.labels['", &named->labels},
      {"Node.metadata.annotations['", &named->annotations},
      {"Node.status.allocatable['", &named->allocatable},
      {"Node.requested['", &named->requested}};
  for (const auto& [prefix, names] : forms) {
    absl::string_view name = path;
    if (absl::ConsumePrefix(&name, prefix)) names->emplace(name);
  }
}

// `texts_of(node)`: a map.
template <typename TextsOf>
void AddTexts(const Nodes& nodes, std::set<std::string> keys, TextsOf texts_of,
              RepeatedPtrField<TextColumn>* columns) {
  for (const InlineNode& node : nodes) {
    for (const auto& [key, text] : texts_of(node)) keys.insert(key);
  }
  for (const std::string& key : keys) {
    TextColumn* column = columns->Add();
    column->set_key(key);
    std::map<std::string, uint32_t> indexes;
    for (const InlineNode& node : nodes) {
      const auto& texts = texts_of(node);
      const auto text = texts.find(key);
      if (text == texts.end()) {
        column->add_indexes(0);
        continue;
      }
      const auto [index, is_new] =
          indexes.try_emplace(text->second, static_cast<uint32_t>(indexes.size() + 1));
      if (is_new) column->add_values(text->second);
      column->add_indexes(index->second);
    }
  }
}

std::map<std::string, int64_t> Amounts(const ResourceList& list) {
  std::map<std::string, int64_t> amounts(list.scalar().begin(), list.scalar().end());
  if (list.has_cpu_millis()) amounts["cpu"] = list.cpu_millis();
  if (list.has_memory_bytes()) amounts["memory"] = list.memory_bytes();
  if (list.has_ephemeral_storage_bytes())
    amounts["ephemeral-storage"] = list.ephemeral_storage_bytes();
  if (list.has_pods()) amounts["pods"] = list.pods();
  return amounts;
}

// `list_of(node)`: a ResourceList.
template <typename ListOf>
void AddAmounts(const Nodes& nodes, std::set<std::string> names, int64_t absent, ListOf list_of,
                RepeatedPtrField<ResourceColumn>* columns) {
  names.insert({"cpu", "memory", "ephemeral-storage", "pods"});
  for (const InlineNode& node : nodes) {
    for (const auto& [name, amount] : Amounts(list_of(node))) names.insert(name);
  }
  for (const std::string& name : names) {
    ResourceColumn* column = columns->Add();
    column->set_resource(name);
    for (const InlineNode& node : nodes) {
      const std::map<std::string, int64_t> amounts = Amounts(list_of(node));
      const auto amount = amounts.find(name);
      column->add_amounts(amount == amounts.end() ? absent : amount->second);
    }
  }
}

void AddTaints(const Nodes& nodes, TaintColumn* column) {
  std::map<std::string, uint32_t> indexes;
  for (const InlineNode& node : nodes) {
    TaintList list;
    *list.mutable_taints() = node.node().taints();
    if (list.taints().empty()) {
      column->add_indexes(0);
      continue;
    }
    const auto [index, is_new] =
        indexes.try_emplace(list.SerializeAsString(), static_cast<uint32_t>(indexes.size() + 1));
    if (is_new) *column->add_values() = std::move(list);
    column->add_indexes(index->second);
  }
}

// Calls `change` with each column that has an entry per node.
template <typename Change>
void ForEachColumn(NodeColumns* columns, Change change) {
  change(columns->mutable_names());
  if (!columns->uids().empty()) change(columns->mutable_uids());
  if (!columns->creation_unix_seconds().empty()) change(columns->mutable_creation_unix_seconds());
  change(columns->mutable_unschedulable());
  for (auto* texts : {columns->mutable_labels(), columns->mutable_annotations()}) {
    for (TextColumn& column : *texts) change(column.mutable_indexes());
  }
  if (columns->has_taints()) change(columns->mutable_taints()->mutable_indexes());
  for (auto* amounts : {columns->mutable_allocatable(), columns->mutable_requested(),
                        columns->mutable_nominated_requested()}) {
    for (ResourceColumn& column : *amounts) change(column.mutable_amounts());
  }
}

}  // namespace

NamedColumns NamedBy(const GetHostInfoResponse& info) {
  NamedColumns named;
  for (const PluginInfo& plugin : info.plugins()) {
    for (const std::string& path : plugin.needed_fields()) AddNamed(path, &named);
    for (const std::string& path : plugin.optional_fields()) AddNamed(path, &named);
  }
  return named;
}

NodeColumns ColumnsOf(const Nodes& nodes, const NamedColumns& named) {
  NodeColumns columns;
  for (const InlineNode& node : nodes) {
    columns.add_names(node.node().name());
    columns.add_uids(node.node().uid());
    columns.add_creation_unix_seconds(node.node().creation_unix_seconds());
    columns.add_unschedulable(node.node().unschedulable());
  }
  AddTexts(
      nodes, named.labels,
      [](const InlineNode& node) -> const auto& { return node.node().labels(); },
      columns.mutable_labels());
  AddTexts(
      nodes, named.annotations,
      [](const InlineNode& node) -> const auto& { return node.node().annotations(); },
      columns.mutable_annotations());
  AddTaints(nodes, columns.mutable_taints());
  AddAmounts(
      nodes, named.allocatable, kNotNamed,
      [](const InlineNode& node) -> const auto& { return node.node().allocatable(); },
      columns.mutable_allocatable());
  AddAmounts(
      nodes, named.requested, 0,
      [](const InlineNode& node) -> const auto& { return node.requested(); },
      columns.mutable_requested());
  return columns;
}

void RemoveLastNode(NodeColumns* columns) {
  ForEachColumn(columns, [](auto* column) { column->RemoveLast(); });
}

void RepeatFirstNode(NodeColumns* columns) {
  ForEachColumn(columns, [](auto* column) {
    const auto first = column->Get(0);
    *column->Add() = first;
  });
}

}  // namespace outboard::conformance
