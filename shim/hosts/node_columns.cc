#include "shim/hosts/node_columns.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shim/cache/node_guard.h"
#include "shim/hosts/resource_list.h"

namespace outboard::hosts {
namespace {

using google::protobuf::RepeatedField;
using google::protobuf::RepeatedPtrField;
using v1beta1::NodeColumns;

// names and unschedulable, uids and creation_unix_seconds, taints.
constexpr size_t kMaxOtherColumns = 5;
// So many more texts than slots are kept, above twice as many; then the rows are read again.
constexpr size_t kSpareTexts = 1024;
// NodeColumns.allocatable and NodeColumns.requested.
constexpr int64_t kNotNamed = -1;
constexpr int64_t kNoneRequested = 0;

constexpr absl::string_view kNotInColumns[] = {
    "Node.pods",
    "Node.status.images",
    "Node.status.declaredFeatures",
    "Node.status.capacity",
    "Node.status.conditions",
    "Node.status.addresses",
};

absl::Span<const uint32_t> SpanOf(const RepeatedField<uint32_t>& values) {
  return absl::MakeConstSpan(values.data(), static_cast<size_t>(values.size()));
}

// One entry per row, to be written; null without rows.
template <typename Entry>
Entry* AddEntries(size_t rows, RepeatedField<Entry>* column) {
  if (rows == 0) return nullptr;
  column->Reserve(static_cast<int>(rows));
  return column->AddNAlreadyReserved(static_cast<int>(rows));
}

// Removes the last column again if it has no content and was not requested by name.
template <typename Columns>
void DropUnless(bool is_needed, Columns* columns) {
  if (!is_needed) columns->RemoveLast();
}

}  // namespace

bool ComesInColumns(absl::string_view path) { return !absl::c_linear_search(kNotInColumns, path); }

void TextRows::Set(size_t row, std::optional<absl::string_view> text) {
  if (rows_.size() <= row) rows_.resize(row + 1);
  if (!text.has_value()) {
    rows_[row] = 0;
    return;
  }
  const auto [it, is_new] = ids_.try_emplace(*text, static_cast<uint32_t>(texts_.size() + 1));
  if (is_new) texts_.emplace_back(*text);
  rows_[row] = it->second;
}

void TextRows::Gather(absl::Span<const uint32_t> rows,
                      absl::FunctionRef<void(const std::string& text)> add_text,
                      RepeatedField<uint32_t>* indexes) const {
  std::vector<uint32_t> sent_as(texts_.size() + 1);
  uint32_t sent = 0;
  indexes->Reserve(static_cast<int>(rows.size()));
  for (const uint32_t row : rows) {
    const uint32_t id = row < rows_.size() ? rows_[row] : 0;
    if (id != 0 && sent_as[id] == 0) {
      sent_as[id] = ++sent;
      add_text(texts_[id - 1]);
    }
    indexes->AddAlreadyReserved(sent_as[id]);
  }
}

TextTable::TextTable(bool all, const absl::flat_hash_set<std::string>& keys) : all_(all) {
  for (const std::string& key : keys) columns_[key].is_named = true;
}

void TextTable::Set(size_t row, const google::protobuf::Map<std::string, std::string>& texts) {
  for (auto& [key, column] : columns_) {
    const auto it = texts.find(key);
    column.rows.Set(
        row, it == texts.end() ? std::nullopt : std::make_optional<absl::string_view>(it->second));
  }
  if (!all_) return;
  for (const auto& [key, text] : texts) {
    const auto [it, is_new] = columns_.try_emplace(key);
    if (is_new) it->second.rows.Set(row, text);
  }
}

void TextTable::Gather(absl::Span<const uint32_t> rows,
                       RepeatedPtrField<v1beta1::TextColumn>* columns) const {
  for (const auto& [key, column] : columns_) {
    v1beta1::TextColumn* out = columns->Add();
    out->set_key(key);
    column.rows.Gather(
        rows, [&](const std::string& text) { out->add_values(text); }, out->mutable_indexes());
    DropUnless(column.is_named || !out->values().empty(), columns);
  }
}

size_t TextTable::num_texts() const {
  size_t most = 0;
  for (const auto& [key, column] : columns_) most = std::max(most, column.rows.num_texts());
  return most;
}

AmountTable::AmountTable(bool all, const absl::flat_hash_set<std::string>& names, int64_t absent)
    : all_(all), absent_(absent) {
  for (const std::string& name : names) columns_[name].is_named = true;
  if (!all) return;
  for (const absl::string_view name : {kCpu, kMemory, kEphemeralStorage, kPods})
    columns_[std::string(name)].is_named = true;
}

void AmountTable::Set(size_t row, const v1beta1::ResourceList& amounts) {
  for (auto& [name, column] : columns_) {
    if (column.amounts.size() <= row) column.amounts.resize(row + 1, absent_);
    column.amounts[row] = absent_;
  }
  ForEachResource(amounts, [&](absl::string_view name, int64_t amount) {
    auto it = columns_.find(name);
    if (it == columns_.end()) {
      if (!all_) return;
      it = columns_.try_emplace(std::string(name)).first;
      it->second.amounts.resize(row + 1, absent_);
    }
    // The API server admits no negative amount; one would read as "not named".
    it->second.amounts[row] = std::max(amount, int64_t{0});
  });
}

void AmountTable::Gather(absl::Span<const uint32_t> rows,
                         RepeatedPtrField<v1beta1::ResourceColumn>* columns) const {
  for (const auto& [name, column] : columns_) {
    v1beta1::ResourceColumn* out = columns->Add();
    out->set_resource(name);
    int64_t* const amounts = AddEntries(rows.size(), out->mutable_amounts());
    bool any = false;
    for (size_t i = 0; i < rows.size(); ++i) {
      amounts[i] = rows[i] < column.amounts.size() ? column.amounts[rows[i]] : absent_;
      any |= amounts[i] != absent_;
    }
    DropUnless(column.is_named || any, columns);
  }
}

ColumnContent::Rows::Rows(const InlineParts& parts)
    : labels(parts.labels, parts.label_keys),
      annotations(false, parts.fields.node_annotations),
      allocatable(parts.allocatable, parts.allocatable_resources, kNotNamed),
      requested(parts.requested, parts.requested_resources, kNoneRequested) {}

ColumnContent::ColumnContent(const cache::ClusterState* cluster, InlineParts parts,
                             size_t max_entries)
    : cluster_(*cluster), parts_(std::move(parts)), max_entries_(max_entries), rows_(parts_) {}

AmountTable ColumnContent::NewSums() const {
  return AmountTable(parts_.requested, parts_.requested_resources, kNoneRequested);
}

void ColumnContent::SetRow(uint32_t slot) {
  const v1beta1::Node& node = cluster_.NodeAt(slot)->node;
  rows_->labels.Set(slot, node.labels());
  rows_->annotations.Set(slot, node.annotations());
  rows_->allocatable.Set(slot, node.allocatable());
  if (parts_.taints) {
    v1beta1::TaintList taints;
    *taints.mutable_taints() = node.taints();
    const std::string bytes = taints.SerializeAsString();
    rows_->taints.Set(slot,
                      bytes.empty() ? std::nullopt : std::make_optional<absl::string_view>(bytes));
  }
  if (parts_.any_requested()) {
    v1beta1::ResourceList requested;
    cluster_.UsageOf(node.name())->FillList(&requested);
    rows_->requested.Set(slot, requested);
  }
}

size_t ColumnContent::num_texts() const {
  return std::max(
      {rows_->labels.num_texts(), rows_->annotations.num_texts(), rows_->taints.num_texts()});
}

absl::Status ColumnContent::Refresh(absl::Span<const uint32_t> slots) {
  if (num_texts() > 2 * size_t{cluster_.slot_limit()} + kSpareTexts) {
    rows_.emplace(parts_);
    generations_.clear();
  }
  for (const uint32_t slot : slots) {
    const uint64_t generation = cluster_.NodeGeneration(slot);
    if (generation == 0) return NoNodeIn(slot);
    if (generations_.size() <= slot) generations_.resize(slot + 1);
    if (generations_[slot] == generation) continue;
    generations_[slot] = generation;
    SetRow(slot);
  }
  return absl::OkStatus();
}

absl::Status ColumnContent::CheckEntries(absl::Span<const uint32_t> slots) {
  const auto num_entries = [&] {
    // Those of nominated pods, too.
    return slots.size() * (rows_->labels.num_columns() + rows_->annotations.num_columns() +
                           rows_->allocatable.num_columns() + 2 * rows_->requested.num_columns() +
                           kMaxOtherColumns);
  };
  if (num_entries() <= max_entries_) return absl::OkStatus();
  rows_.emplace(parts_);
  generations_.clear();
  if (absl::Status fresh = Refresh(slots); !fresh.ok()) return fresh;
  if (num_entries() <= max_entries_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the columns of one call have ", num_entries(), " entries, limit ", max_entries_,
      ": the plugins of the host should name the labels and resources that they read"));
}

absl::Status ColumnContent::AddWithoutSums(absl::Span<const uint32_t> slots, NodeColumns* columns) {
  if (absl::Status fresh = Refresh(slots); !fresh.ok()) return fresh;
  if (absl::Status few = CheckEntries(slots); !few.ok()) return few;
  columns->mutable_names()->Reserve(static_cast<int>(slots.size()));
  bool* const cordoned = AddEntries(slots.size(), columns->mutable_unschedulable());
  for (size_t i = 0; i < slots.size(); ++i) {
    const v1beta1::Node& node = cluster_.NodeAt(slots[i])->node;
    columns->add_names(node.name());
    cordoned[i] = node.unschedulable();
    if (parts_.uids) columns->add_uids(node.uid());
    if (parts_.creation_times) columns->add_creation_unix_seconds(node.creation_unix_seconds());
  }
  rows_->labels.Gather(slots, columns->mutable_labels());
  rows_->annotations.Gather(slots, columns->mutable_annotations());
  rows_->allocatable.Gather(slots, columns->mutable_allocatable());
  if (parts_.taints) {
    v1beta1::TaintColumn* const taints = columns->mutable_taints();
    // SetRow wrote these bytes; they are valid.
    rows_->taints.Gather(
        slots, [&](const std::string& bytes) { taints->add_values()->ParseFromString(bytes); },
        taints->mutable_indexes());
  }
  return absl::OkStatus();
}

void ColumnContent::AddNominated(absl::Span<const uint32_t> slots, const kube::PodObject& pod,
                                 NodeColumns* columns) const {
  if (!parts_.any_requested()) return;
  const NominatedPods nominated = cluster_.NominatedBeside(pod);
  if (nominated.empty()) return;
  AmountTable sums = NewSums();
  bool any = false;
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto beside = nominated.find(slots[i]);
    if (beside == nominated.end()) continue;
    v1beta1::ResourceList requested;
    FillRequested(beside->second, &requested);
    sums.Set(i, requested);
    any = true;
  }
  if (!any) return;
  std::vector<uint32_t> positions(slots.size());
  std::iota(positions.begin(), positions.end(), 0u);
  sums.Gather(positions, columns->mutable_nominated_requested());
}

absl::Status ColumnContent::AddNodes(const RepeatedField<uint32_t>& slots, NodeColumns* columns) {
  if (absl::Status added = AddWithoutSums(SpanOf(slots), columns); !added.ok()) return added;
  rows_->requested.Gather(SpanOf(slots), columns->mutable_requested());
  return absl::OkStatus();
}

absl::Status ColumnContent::AddNodesFor(const kube::PodObject& pod,
                                        v1beta1::FilterRequest* request) {
  const RepeatedField<uint32_t>& slots = request->search().nodes().slots();
  NodeColumns* const columns = request->mutable_node_columns();
  if (absl::Status added = AddNodes(slots, columns); !added.ok()) return added;
  AddNominated(SpanOf(slots), pod, columns);
  return absl::OkStatus();
}

absl::Status ColumnContent::AddSimulated(const kube::PodObject& pod,
                                         v1beta1::FilterRequest* request) {
  AmountTable sums = NewSums();
  std::vector<uint32_t> slots, positions;
  const absl::Status visited = ForEachSimulated(
      cluster_, request->simulation(), [&](uint32_t slot, const std::vector<kube::PodPtr>& pods) {
        positions.push_back(static_cast<uint32_t>(slots.size()));
        slots.push_back(slot);
        if (!parts_.any_requested()) return;
        v1beta1::ResourceList requested;
        FillRequested(pods, &requested);
        sums.Set(positions.back(), requested);
      });
  if (!visited.ok()) return visited;
  NodeColumns* const columns = request->mutable_node_columns();
  if (absl::Status added = AddWithoutSums(slots, columns); !added.ok()) return added;
  sums.Gather(positions, columns->mutable_requested());
  AddNominated(slots, pod, columns);
  return absl::OkStatus();
}

}  // namespace outboard::hosts
