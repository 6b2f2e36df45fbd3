#include "plugins/gpu_packing/node_rooms.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace outboard::gpu_packing {
namespace {

// Larger amounts are capped at this.
constexpr int64_t kMaxAmount = int64_t{1} << 40;

int64_t CountLabel(const sdk::NodeView& node, const char* key, sdk::MalformedValues* malformed) {
  const std::string* text = sdk::FindValue(node.proto().labels(), key);
  if (text == nullptr) return 0;
  if (const std::optional<int64_t> count = sdk::ParseCount(*text, kMaxAmount)) return *count;
  malformed->Warn(absl::StrCat("node ", node.name()), key, *text, "a whole number");
  return 0;
}

}  // namespace

void NodeRooms::OnNodeChanged(sdk::Slot slot) {
  if (slot >= rooms_.size()) rooms_.resize(slot + 1);
  const sdk::NodeView node = cluster_.node(slot);
  GpuRoom room;
  int64_t gpus = std::clamp<int64_t>(reader_->gpus().AllocatableOn(node), 0, kMaxAmount);
  if (gpus > 0) {
    room.opaque = CountLabel(node, kReplicasLabel, malformed_) > 1;
    const int64_t real = CountLabel(node, kCountLabel, malformed_);
    if (real > 0 && !room.opaque) gpus = std::min(gpus, real);
    room.memory_mib = CountLabel(node, kMemoryLabel, malformed_);
    if (const std::string* model = sdk::FindValue(node.proto().labels(), workload_->model_label()))
      room.model = workload_->ModelId(*model);
  }
  if (gpus > kMaxGpus) room.opaque = true;
  room.gpus = static_cast<int32_t>(std::min<int64_t>(gpus, kMaxGpus));
  rooms_[slot] = std::move(room);
  summed_ = false;
  if (slot >= names_.size() || names_[slot] != node.name()) ranked_ = false;
}

void NodeRooms::OnNodeRemoved(sdk::Slot slot, const std::string& name) {
  if (slot < rooms_.size()) rooms_[slot] = GpuRoom();
  malformed_->Forget(absl::StrCat("node ", name));
  summed_ = false;
}

void NodeRooms::OnClaimsChanged(bool all) {
  whole_.Clear();
  left_.Clear();
  for (GpuRoom& room : rooms_) room.generation = 0;
  if (!all) return;
  for (const sdk::Slot slot : cluster_.node_order()) OnNodeChanged(slot);
}

const GpuRoom& NodeRooms::At(sdk::Slot slot) {
  GpuRoom& room = rooms_[slot];
  const uint64_t generation = cluster_.nodes().generation[slot];
  if (room.generation == generation) return room;
  room.generation = generation;
  room.workload = 0;
  if (room.gpus == 0 || room.opaque) return room;
  tenants_.clear();
  std::set<std::string> claims;
  for (const sdk::PodRecord* pod : cluster_.nodes().pods[slot]) {
    const PodGpus wanted = reader_->Demand(pod->pod, pod->usage.requests, malformed_, &claims);
    if (wanted.gpus == 0) continue;
    Tenant tenant;
    tenant.created = pod->pod.creation_unix_seconds();
    tenant.uid = pod->pod.uid();
    tenant.gpus = wanted.gpus;
    tenant.milli = wanted.MilliOn(room.memory_mib);
    tenant.holds_only = wanted.holds_only;
    tenant.devices = reader_->Devices(pod->pod, malformed_);
    tenants_.push_back(std::move(tenant));
  }
  LayOut(&tenants_, room.gpus, &room.idle);
  room.idle_total = 0;
  room.whole = 0;
  for (const int32_t idle : room.idle) {
    room.idle_total += idle;
    room.whole += idle == kWholeGpu ? 1 : 0;
  }
  return room;
}

NodeRoom NodeRooms::RoomFor(sdk::Slot slot, const GpuRoom& room) const {
  const sdk::NodeTable& nodes = cluster_.nodes();
  NodeRoom result;
  result.cpu_millis = nodes.allocatable_cpu[slot] - nodes.requested_cpu[slot];
  result.memory_bytes = nodes.allocatable_memory[slot] - nodes.requested_memory[slot];
  result.model = room.model;
  result.idle = room.idle;
  return result;
}

double NodeRooms::FragmentationAt(sdk::Slot slot, uint64_t workload_number) {
  At(slot);
  GpuRoom& room = rooms_[slot];
  if (room.workload != workload_number) {
    room.fragmentation = Fragmentation(RoomFor(slot, room), workload_->shapes());
    room.workload = workload_number;
  }
  return room.fragmentation;
}

void NodeRooms::SumUp() {
  if (summed_) return;
  summed_ = true;
  int64_t highest_cpu_millis = 1, highest_gpus = 1;
  lowest_memory_mib_ = 0;
  any_gpus_ = false;
  for (const sdk::Slot slot : cluster_.node_order()) {
    if (slot >= rooms_.size()) continue;
    const GpuRoom& room = rooms_[slot];
    highest_cpu_millis =
        std::max(highest_cpu_millis, std::min(kMaxAmount, cluster_.nodes().allocatable_cpu[slot]));
    highest_gpus = std::max<int64_t>(highest_gpus, room.gpus);
    any_gpus_ = any_gpus_ || room.gpus > 0;
    if (room.memory_mib > 0 && (lowest_memory_mib_ == 0 || room.memory_mib < lowest_memory_mib_))
      lowest_memory_mib_ = room.memory_mib;
  }
  if (highest_cpu_millis == highest_cpu_millis_ && highest_gpus == highest_gpus_) return;
  highest_cpu_millis_ = highest_cpu_millis;
  highest_gpus_ = highest_gpus;
  left_.Clear();
  scale_.per_cpu_milli = 1 / static_cast<double>(highest_cpu_millis);
  scale_.per_gpu_milli = 1 / static_cast<double>(highest_gpus * kWholeGpu);
}

double NodeRooms::LeftOn(sdk::Slot slot) {
  SumUp();
  const sdk::NodeTable& nodes = cluster_.nodes();
  return left_.Of(nodes, slot, [&] {
    const int64_t cpu_millis = nodes.allocatable_cpu[slot] - nodes.requested_cpu[slot];
    return static_cast<double>(cpu_millis) * scale_.per_cpu_milli +
           static_cast<double>(At(slot).idle_total) * scale_.per_gpu_milli;
  });
}

const std::vector<uint32_t>& NodeRooms::name_ranks() {
  if (!ranked_) RankNames();
  return name_ranks_;
}

// Names of removed nodes leave gaps, which do not change the order.
void NodeRooms::RankNames() {
  ranked_ = true;
  std::vector<sdk::Slot> slots(cluster_.node_order().begin(), cluster_.node_order().end());
  names_.resize(cluster_.nodes().nodes.size());
  for (const sdk::Slot slot : slots) names_[slot] = cluster_.node(slot).name();
  std::sort(slots.begin(), slots.end(),
            [&](sdk::Slot a, sdk::Slot b) { return names_[a] < names_[b]; });
  name_ranks_.assign(names_.size(), 0);
  for (uint32_t rank = 0; rank < slots.size(); ++rank) name_ranks_[slots[rank]] = rank;
}

int64_t NodeRooms::lowest_memory_mib() {
  SumUp();
  return lowest_memory_mib_;
}
bool NodeRooms::any_gpus() {
  SumUp();
  return any_gpus_;
}

}  // namespace outboard::gpu_packing
