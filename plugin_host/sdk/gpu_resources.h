// GPUs among extended resources: which of them are GPUs, how many a pod requests, and how many are
// free on a node.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_GPU_RESOURCES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_GPU_RESOURCES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/objects.pb.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

// Part of a JSON schema: the argument that Read reads.
inline constexpr char kGpuResourceNamesSchema[] =
    R"json("gpuResourceNames": {"type": "array", "minItems": 1, "items": {"type": "string"},
      "default": ["nvidia.com/gpu"], "description": "Extended resources that are GPUs."})json";

// Indices of the columns of some resources in a table; valid within an attempt.
using GpuColumnIds = absl::InlinedVector<uint32_t, 4>;

// The columns of GPU resources, found once for a loop over nodes.
//
// Threading: a value.
// Lifetime: within one call of a plugin, as the table's columns.
// Errors: none.
class GpuColumns {
 public:
  GpuColumns(const NodeTable& nodes, absl::Span<const uint32_t> ids) {
    if (ids.empty()) return;
    first_ = ColumnOf(nodes, ids[0]);
    for (const uint32_t id : ids.subspan(1)) others_.push_back(ColumnOf(nodes, id));
  }
  // Resources that no node or pod names have no column.
  static GpuColumnIds Find(const NodeTable& nodes, absl::Span<const std::string> names) {
    GpuColumnIds ids;
    for (const std::string& name : names) {
      const auto it = nodes.extended_by_name.find(name);
      if (it != nodes.extended_by_name.end()) ids.push_back(it->second);
    }
    return ids;
  }
  // Entries by slot.
  struct Column {
    const int64_t* allocatable = nullptr;
    const int64_t* requested = nullptr;
  };
  // The only column, which is the usual case and faster than sums in loops over nodes; null if
  // there are several or none.
  const Column* only() const {
    return others_.empty() && first_.allocatable != nullptr ? &first_ : nullptr;
  }
  // Sums of a node over all names. Free: allocatable minus requested, at least 0.
  int64_t Allocatable(Slot slot) const {
    return Sum([slot](const Column& column) { return column.allocatable[slot]; });
  }
  int64_t Requested(Slot slot) const {
    return Sum([slot](const Column& column) { return column.requested[slot]; });
  }
  int64_t Free(Slot slot) const {
    return Sum([slot](const Column& column) {
      return std::max<int64_t>(0, column.allocatable[slot] - column.requested[slot]);
    });
  }

 private:
  static Column ColumnOf(const NodeTable& nodes, uint32_t id) {
    return {nodes.extended[id].allocatable.data(), nodes.extended[id].requested.data()};
  }
  template <typename Of>
  int64_t Sum(const Of& of) const {
    int64_t sum = first_.allocatable == nullptr ? 0 : of(first_);
    for (const Column& column : others_) sum += of(column);
    return sum;
  }

  Column first_;  // Null: none.
  std::vector<Column> others_;
};

class GpuResources {
 public:
  // Reads the argument `gpuResourceNames`; reports problems in `root`.
  static GpuResources Read(const ArgsObject& root);

  const std::vector<std::string>& names() const { return names_; }
  GpuColumnIds ColumnIdsOf(const ClusterView& cluster) const {
    return GpuColumns::Find(cluster.nodes(), names_);
  }
  GpuColumns ColumnsOf(const ClusterView& cluster) const {
    return {cluster.nodes(), ColumnIdsOf(cluster)};
  }
  // The pod's GPU requests (limits where requests are absent; init containers as Kubernetes counts
  // them), each resource with an amount above 0. Empty: none.
  std::vector<std::pair<std::string, int64_t>> DemandByName(const v1beta1::Pod& pod) const;
  // Their sum.
  int64_t DemandOf(const v1beta1::Pod& pod) const;
  // Of one node, over all names; in a loop over nodes use ColumnsOf.
  int64_t AllocatableOn(const NodeView& node) const;

 private:
  std::vector<std::string> names_ = {"nvidia.com/gpu"};
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GPU_RESOURCES_H_
