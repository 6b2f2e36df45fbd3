// How many GPUs a pod requests, and how many are free on a node: those among extended resources,
// and those that resource claims give (gpu_claims.h).
#ifndef OUTBOARD_PLUGIN_HOST_SDK_GPU_RESOURCES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_GPU_RESOURCES_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/objects.pb.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/gpu_claims.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

// Part of a JSON schema: the arguments that Read reads.
inline constexpr char kGpuResourceNamesSchema[] =
    R"json("gpuResourceNames": {"type": "array", "minItems": 1, "items": {"type": "string"},
      "default": ["nvidia.com/gpu"], "description": "Extended resources that are GPUs."},
    "gpuDeviceClasses": {"type": "array", "items": {"type": "string"}, "default": ["gpu.nvidia.com"],
      "description": "Device classes whose devices are GPUs, for pods with resource claims."})json";

// Indices of the columns of some resources in a table; valid within an attempt.
using GpuColumnIds = absl::InlinedVector<uint32_t, 4>;

// The columns of GPU resources, found once for a loop over nodes.
//
// Threading: a value.
// Lifetime: within one call of a plugin, as the table's columns.
// Errors: none.
class GpuColumns {
 public:
  // `claims`: null, or those of GpuResources::active_claims. `pod`: null, or a pod whose own claims
  // are free for it.
  GpuColumns(const NodeTable& nodes, absl::Span<const uint32_t> ids,
             const GpuClaims* claims = nullptr, const v1beta1::Pod* pod = nullptr)
      : nodes_(claims == nullptr ? nullptr : &nodes), claims_(claims), pod_(pod) {
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
  // there are several or none, or if claims count.
  const Column* only() const {
    return others_.empty() && first_.allocatable != nullptr && claims_ == nullptr ? &first_
                                                                                  : nullptr;
  }
  // Sums of a node over all names. A node whose device plugin offers no GPUs has those that its
  // driver publishes.
  int64_t Allocatable(Slot slot) const {
    const int64_t offered = Sum([slot](const Column& column) { return column.allocatable[slot]; });
    return claims_ != nullptr && offered <= 0 ? Devices(slot) : offered;
  }
  int64_t Requested(Slot slot) const {
    return Sum([slot](const Column& column) { return column.requested[slot]; }) +
           Claimed(slot, nullptr);
  }
  // Allocatable minus requested, at least 0.
  int64_t Free(Slot slot) const {
    const int64_t free = Sum([slot](const Column& column) {
      return std::max<int64_t>(0, column.allocatable[slot] - column.requested[slot]);
    });
    return claims_ == nullptr ? free : FreeWithClaims(slot, free);
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

  int64_t Devices(Slot slot) const { return claims_->DevicesOn(nodes_->nodes[slot].name()); }
  int64_t Claimed(Slot slot, const v1beta1::Pod* except) const {
    return claims_ == nullptr ? 0 : claims_->UsedBy(nodes_->pods[slot], except);
  }
  int64_t FreeWithClaims(Slot slot, int64_t of_columns) const;

  const NodeTable* nodes_;   // Null without claims.
  const GpuClaims* claims_;  // Null: they do not count.
  const v1beta1::Pod* pod_;
  Column first_;  // Null: none.
  std::vector<Column> others_;
};

// Which resources are GPUs, and the claims of the cluster. Copies share the claims.
//
// A plugin forwards its ClusterObserver's calls, and forgets what it derived from a node's GPUs
// when Set or Remove return true:
//
//   void OnReset() override { gpus_.claims().Clear(); }
//   void OnObjectChanged(…, object) override { if (gpus_.claims().Set(object)) … }
//   void OnObjectRemoved(object) override { if (gpus_.claims().Remove(object)) … }
//
// Threading: thread-compatible.
// Lifetime:  a value.
// Errors:    none.
class GpuResources {
 public:
  // Reads the arguments `gpuResourceNames` and, unless the plugin ignores claims,
  // `gpuDeviceClasses`; reports problems in `root`.
  static GpuResources Read(const ArgsObject& root, bool counts_claims = true);

  const std::vector<std::string>& names() const { return names_; }
  GpuClaims& claims() const { return *claims_; }
  // Null: claims do not count.
  const GpuClaims* active_claims() const { return claims_->active() ? claims_.get() : nullptr; }
  GpuColumnIds ColumnIdsOf(const ClusterView& cluster) const;
  // `pod`: as in GpuColumns.
  GpuColumns ColumnsOf(const ClusterView& cluster, const v1beta1::Pod* pod = nullptr) const {
    return {cluster.nodes(), ColumnIdsOf(cluster), active_claims(), pod};
  }
  // The pod's GPU requests (limits where requests are absent; init containers as Kubernetes counts
  // them), each resource with an amount above 0. Empty: none. Without claims.
  std::vector<std::pair<std::string, int64_t>> DemandByName(const v1beta1::Pod& pod) const;
  // Their sum, and the GPUs of its claims and of resources that device classes provide.
  int64_t DemandOf(const v1beta1::Pod& pod) const;
  // Of one node, over all names, or by its driver; in a loop over nodes use ColumnsOf.
  int64_t AllocatableOn(const NodeView& node) const;

 private:
  // `names_`, and further ones that device classes provide.
  std::vector<std::string> AllNames() const;

  std::vector<std::string> names_ = {"nvidia.com/gpu"};
  std::shared_ptr<GpuClaims> claims_ =
      std::make_shared<GpuClaims>(std::vector<std::string>{"gpu.nvidia.com"});
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GPU_RESOURCES_H_
