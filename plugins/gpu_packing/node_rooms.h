// The idle GPU capacity of each node, updated as pods come and go.
#ifndef OUTBOARD_PLUGINS_GPU_PACKING_NODE_ROOMS_H_
#define OUTBOARD_PLUGINS_GPU_PACKING_NODE_ROOMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plugin_host/sdk/node_memo.h"
#include "plugin_host/sdk/views.h"
#include "plugins/gpu_packing/gpu_demand.h"
#include "plugins/gpu_packing/workload.h"

namespace outboard::gpu_packing {

// GPU Feature Discovery's labels. The first: the number of GPUs, where the node's resource counts
// shares.
inline constexpr char kCountLabel[] = "nvidia.com/gpu.count";
inline constexpr char kMemoryLabel[] = "nvidia.com/gpu.memory";      // MiB of one GPU.
inline constexpr char kReplicasLabel[] = "nvidia.com/gpu.replicas";  // Above 1: time-sliced, MPS.

// One node's GPUs.
struct GpuRoom {
  uint64_t generation = 0;  // Of the node, at the time of the layout.
  int32_t gpus = 0;
  int32_t whole = 0;  // Completely idle GPUs; 0 if opaque.
  // No layout: the device plugin slices GPUs by its own rules, or there are too many GPUs.
  bool opaque = false;
  int64_t memory_mib = 0;  // Of one GPU; 0: unknown.
  int64_t idle_total = 0;
  std::vector<int32_t> idle;  // Empty if opaque.

  uint32_t model = 0;
  uint64_t workload = 0;  // The workload's number when `fragmentation` was computed.
  double fragmentation = 0;
};

// By slot. A node's layout is computed on use after any change. It reads the cluster's view, so it
// includes the changes of dry runs.
//
// Threading: thread-compatible.
// Lifetime: a reference from At is valid until the next call.
class NodeRooms {
 public:
  NodeRooms(const GpuDemandReader* reader, Workload* workload, sdk::MalformedValues* malformed,
            const sdk::ClusterView& cluster)
      : reader_(reader), workload_(workload), malformed_(malformed), cluster_(cluster) {}

  void Clear() {
    rooms_.clear();
    whole_.Clear();
    left_.Clear();
    ranked_ = summed_ = false;
  }
  void OnNodeChanged(sdk::Slot slot);
  void OnNodeRemoved(sdk::Slot slot, const std::string& name);
  // GPUs of claims changed. `all`: also what nodes have, as with the first claim.
  void OnClaimsChanged(bool all);

  const GpuRoom& At(sdk::Slot slot);
  // GpuRoom::whole, or -1 without a layout. Stored separately, since most calls need only this.
  int32_t WholeAt(sdk::Slot slot) {
    return whole_.Of(cluster_.nodes(), slot, [&] {
      const GpuRoom& room = At(slot);
      return room.opaque ? -1 : room.whole;
    });
  }
  // The input of FragmentationGain; `room` is At(slot).
  NodeRoom RoomFor(sdk::Slot slot, const GpuRoom& room) const;
  // The node's fragmentation; cached per state of the node and number of the workload.
  double FragmentationAt(sdk::Slot slot, uint64_t workload_number);

  // Free CPU and GPU of a node, as parts of the largest node's: 0 if it is full.
  double LeftOn(sdk::Slot slot);
  // By slot: the rank of the node's name in sorted order.
  const std::vector<uint32_t>& name_ranks();
  // The smallest known memory of a GPU; 0: all unknown.
  int64_t lowest_memory_mib();
  bool any_gpus();

 private:
  // The inverse amounts of the largest node.
  struct Scale {
    double per_cpu_milli = 1;
    double per_gpu_milli = 1;
  };

  void SumUp();
  void RankNames();

  const GpuDemandReader* reader_;
  Workload* workload_;
  sdk::MalformedValues* malformed_;
  const sdk::ClusterView cluster_;
  std::vector<GpuRoom> rooms_;
  sdk::NodeMemo<int32_t> whole_;
  sdk::NodeMemo<double> left_;   // by scale_
  std::vector<Tenant> tenants_;  // Scratch.
  bool summed_ = false;
  std::vector<std::string> names_;    // By slot, at the last ranking.
  std::vector<uint32_t> name_ranks_;  // By slot.
  bool ranked_ = false;
  Scale scale_;
  int64_t highest_cpu_millis_ = 0;
  int64_t highest_gpus_ = 0;
  int64_t lowest_memory_mib_ = 0;
  bool any_gpus_ = false;
};

}  // namespace outboard::gpu_packing

#endif  // OUTBOARD_PLUGINS_GPU_PACKING_NODE_ROOMS_H_
