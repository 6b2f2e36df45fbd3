// What hosts with the capability NODE_COLUMNS receive with each call: nodes in columns
// (node_columns.proto), read once per change.
#ifndef OUTBOARD_SHIM_HOSTS_NODE_COLUMNS_H_
#define OUTBOARD_SHIM_HOSTS_NODE_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/node_columns.pb.h"
#include "shim/cache/cluster_state.h"
#include "shim/hosts/inline_content.h"
#include "shim/hosts/pods_of_call.h"

namespace outboard::hosts {

// Whether what this path of PluginInfo.needed_fields names can be sent to a host with the
// capability NODE_COLUMNS. Pure.
bool ComesInColumns(absl::string_view path);

// A text for each row, each distinct text once. Texts that no row has any more stay.
//
// Threading: thread-compatible.
class TextRows {
 public:
  // Replaces the row's text; nullopt: it has none. Rows in between have none.
  void Set(size_t row, std::optional<absl::string_view> text);
  // Appends one index per given row to `indexes`: 0 for a row without a text, else 1 + the position
  // of its text among the calls of `add_text`, one for each distinct text of these rows.
  void Gather(absl::Span<const uint32_t> rows,
              absl::FunctionRef<void(const std::string& text)> add_text,
              google::protobuf::RepeatedField<uint32_t>* indexes) const;
  size_t num_texts() const { return texts_.size(); }

 private:
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, uint32_t> ids_;  // 1 + position in texts_
  std::vector<uint32_t> rows_;                      // 0, or an id
};

// Labels or annotations by row.
//
// Threading: thread-compatible.
class TextTable {
 public:
  // All keys; or only these, which have a column even if no row has the key.
  TextTable(bool all, const absl::flat_hash_set<std::string>& keys);

  void Set(size_t row, const google::protobuf::Map<std::string, std::string>& texts);
  // Appends the columns; entry i is about rows[i].
  void Gather(absl::Span<const uint32_t> rows,
              google::protobuf::RepeatedPtrField<v1beta1::TextColumn>* columns) const;
  size_t num_columns() const { return columns_.size(); }
  // Of the column with the most.
  size_t num_texts() const;

 private:
  struct Column {
    bool is_named = false;
    TextRows rows;
  };

  const bool all_;
  std::map<std::string, Column> columns_;  // by key
};

// Amounts of resources by row.
//
// Threading: thread-compatible.
class AmountTable {
 public:
  // All resources; or only these, which have a column even if no row names the resource. With
  // `all`, cpu, memory, ephemeral-storage and pods always have one. `absent` stands for a resource
  // that a row does not name.
  AmountTable(bool all, const absl::flat_hash_set<std::string>& names, int64_t absent);

  void Set(size_t row, const v1beta1::ResourceList& amounts);
  // Appends the columns; entry i is about rows[i].
  void Gather(absl::Span<const uint32_t> rows,
              google::protobuf::RepeatedPtrField<v1beta1::ResourceColumn>* columns) const;
  size_t num_columns() const { return columns_.size(); }

 private:
  struct Column {
    bool is_named = false;
    std::vector<int64_t> amounts;
  };

  const bool all_;
  const int64_t absent_;
  std::map<std::string, Column, std::less<>> columns_;  // by resource
};

// Puts the nodes of a cluster into the columns of requests to one host. The parts of a node are
// copied to rows, one per slot, on first use after it changed; a request then copies integers.
//
// Threading: thread-compatible.
// Lifetime: the cluster outlives it.
// Errors: INTERNAL: a slot is free; RESOURCE_EXHAUSTED: more entries than the contract allows. The
// request is then incomplete.
class ColumnContent {
 public:
  // The limit of node_columns.proto on the entries of all columns of a call.
  static constexpr size_t kMaxEntries = 16 << 20;

  ColumnContent(const cache::ClusterState* cluster, InlineParts parts,
                size_t max_entries = kMaxEntries);

  // The nodes in these slots. `columns` is empty.
  absl::Status AddNodes(const google::protobuf::RepeatedField<uint32_t>& slots,
                        v1beta1::NodeColumns* columns);
  // The nodes of the request's search, with the sums of the pods nominated to them.
  absl::Status AddNodesFor(const kube::PodObject& pod, v1beta1::FilterRequest* request);
  // The request's simulated nodes, with the pods that they then have.
  absl::Status AddSimulated(const kube::PodObject& pod, v1beta1::FilterRequest* request);

  // The texts that the column with the most keeps, also those of past nodes. Bounded by the number
  // of slots.
  size_t num_texts() const;

 private:
  // By slot. What the host does not receive has no columns.
  struct Rows {
    explicit Rows(const InlineParts& parts);
    TextTable labels;
    TextTable annotations;
    TextRows taints;  // serialised TaintLists
    AmountTable allocatable;
    AmountTable requested;
  };

  AmountTable NewSums() const;
  // Brings the rows of these slots up to date.
  absl::Status Refresh(absl::Span<const uint32_t> slots);
  void SetRow(uint32_t slot);
  // Whether these nodes, whose rows are up to date, can be sent. Forgets columns of past nodes
  // before it refuses.
  absl::Status CheckEntries(absl::Span<const uint32_t> slots);
  // Everything but sums of pods.
  absl::Status AddWithoutSums(absl::Span<const uint32_t> slots, v1beta1::NodeColumns* columns);
  void AddNominated(absl::Span<const uint32_t> slots, const kube::PodObject& pod,
                    v1beta1::NodeColumns* columns) const;

  const cache::ClusterState& cluster_;
  const InlineParts parts_;
  const size_t max_entries_;
  std::optional<Rows> rows_;
  std::vector<uint64_t> generations_;  // by slot: that of the node in the rows
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_NODE_COLUMNS_H_
