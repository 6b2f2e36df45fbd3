#include "plugins/gpu_packing/fragmentation.h"

#include <algorithm>
#include <cmath>

namespace outboard::gpu_packing {

double Fragmentation(const NodeRoom& room, absl::Span<const Shape> shapes) {
  int64_t total = 0;
  for (const int32_t idle : room.idle) total += idle;
  if (total == 0) return 0;
  double fragmentation = 0;
  // For GPUs with at least `milli`, and with less; reused while shapes need the same.
  int32_t milli = -1;
  int32_t able = 0;
  int64_t too_small = 0;
  for (const Shape& shape : shapes) {
    int64_t unusable = total;
    const Demand& demand = shape.demand;
    if (demand.gpus > 0 && demand.cpu_millis <= room.cpu_millis &&
        demand.memory_bytes <= room.memory_bytes &&
        (shape.models.empty() ||
         std::binary_search(shape.models.begin(), shape.models.end(), room.model))) {
      if (demand.milli != milli) {
        milli = demand.milli;
        able = 0;
        too_small = 0;
        for (const int32_t idle : room.idle) {
          able += idle >= milli ? 1 : 0;
          too_small += idle >= milli ? 0 : idle;
        }
      }
      if (able >= demand.gpus) unusable = too_small;
    }
    fragmentation += shape.weight * static_cast<double>(unusable);
  }
  return fragmentation;
}

bool ChooseDevices(absl::Span<const int32_t> idle, const Demand& demand,
                   std::vector<int32_t>* chosen) {
  chosen->clear();
  for (int32_t i = 0; i < static_cast<int32_t>(idle.size()); ++i) {
    if (idle[i] < demand.milli) continue;
    // Sorted by remaining capacity, at most as many as needed.
    auto place = chosen->end();
    while (place != chosen->begin() && idle[*(place - 1)] > idle[i]) --place;
    if (place == chosen->end() && static_cast<int32_t>(chosen->size()) >= demand.gpus) continue;
    chosen->insert(place, i);
    if (static_cast<int32_t>(chosen->size()) > demand.gpus) chosen->pop_back();
  }
  if (static_cast<int32_t>(chosen->size()) == demand.gpus) return true;
  chosen->clear();
  return false;
}

double FragmentationGain(const NodeRoom& room, absl::Span<const Shape> shapes, double before,
                         const Demand& demand, Scratch* scratch) {
  NodeRoom after = room;
  after.cpu_millis -= demand.cpu_millis;
  after.memory_bytes -= demand.memory_bytes;
  if (demand.gpus > 0 && ChooseDevices(room.idle, demand, &scratch->chosen)) {
    scratch->idle.assign(room.idle.begin(), room.idle.end());
    for (const int32_t device : scratch->chosen) scratch->idle[device] -= demand.milli;
    after.idle = scratch->idle;
  }
  return before - Fragmentation(after, shapes);
}

int64_t GainScore(double gain) {
  return static_cast<int64_t>(100.0 / (1.0 + std::exp(-gain / 1000.0)));
}

}  // namespace outboard::gpu_packing
