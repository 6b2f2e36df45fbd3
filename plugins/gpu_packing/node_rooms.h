// What is idle on the GPUs of each node, kept as pods come and go.
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

// GPU Feature Discovery's labels. The first: GPUs that there are, where the node's resource counts
// shares of them.
inline constexpr char kCountLabel[] = "nvidia.com/gpu.count";
inline constexpr char kMemoryLabel[] = "nvidia.com/gpu.memory";      // MiB, of one.
inline constexpr char kReplicasLabel[] = "nvidia.com/gpu.replicas";  // Above 1: time-sliced, MPS.

// One node's GPUs.
struct GpuRoom {
  uint64_t generation = 0;  // Of the node, when it was laid out.
  int32_t gpus = 0;
  int32_t whole = 0;  // Of them, wholly idle; 0 if opaque.
  // The device plugin deals out slices by rules of its own, or there are too many GPUs: no layout.
  bool opaque = false;
  int64_t memory_mib = 0;  // Of one GPU; 0: unknown.
  int64_t idle_total = 0;
  std::vector<int32_t> idle;  // Empty if opaque.

  uint32_t model = 0;
  uint64_t workload = 0;  // The workload's number when `fragmentation` was computed.
  double fragmentation = 0;
};

// By slot. A node is laid out again when it is asked for and anything on it has changed; by what
// the cluster's view says then, so also with pods that are there or gone by hypothesis.
//
// Threading: thread-compatible. Lifetime: a reference from At holds until the next call.
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

  const GpuRoom& At(sdk::Slot slot);
  // GpuRoom::whole, and -1 where there is no layout; apart from the rest, since most nodes are only
  // asked for that.
  int32_t WholeAt(sdk::Slot slot) {
    return whole_.Of(cluster_.nodes(), slot, [&] {
      const GpuRoom& room = At(slot);
      return room.opaque ? -1 : room.whole;
    });
  }
  // As FragmentationGain takes it; `room` is At(slot).
  NodeRoom RoomFor(sdk::Slot slot, const GpuRoom& room) const;
  // The node's fragmentation; computed once for each state and number of the workload.
  double FragmentationAt(sdk::Slot slot, uint64_t workload_number);

  // What is left of CPU and GPU on a node, as parts of the largest node's: 0 if it is full.
  double LeftOn(sdk::Slot slot);
  // The place of the node's name among all names in order; by slot.
  const std::vector<uint32_t>& name_ranks();
  // The smallest memory of a GPU that is known; 0: of none.
  int64_t lowest_memory_mib();
  bool any_gpus();

 private:
  // The largest node's.
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
  sdk::NodeMemo<double> left_;  // by scale_
  std::vector<Tenant> tenants_;  // Scratch.
  bool summed_ = false;
  std::vector<std::string> names_;    // By slot, as when they were ranked.
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
