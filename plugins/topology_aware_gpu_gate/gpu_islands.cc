#include "plugins/topology_aware_gpu_gate/gpu_islands.h"

#include <algorithm>

namespace outboard::topology_aware_gpu_gate {

int64_t Roomiest(const std::vector<IslandUse>& islands) {
  int64_t most = 0;
  for (const IslandUse& island : islands) most = std::max(most, island.gpus - island.used);
  return most;
}

bool MustFit(const std::vector<IslandUse>& islands, int64_t wanted, int64_t free, int64_t hidden) {
  if (wanted > free || wanted <= 0) return wanted <= 0;
  // An island no longer fits when all but wanted - 1 of its GPUs are in use.
  int64_t needed_to_break_all = 0;
  for (const IslandUse& island : islands)
    needed_to_break_all += std::max<int64_t>(0, island.gpus - island.used - wanted + 1);
  return hidden < needed_to_break_all;
}

}  // namespace outboard::topology_aware_gpu_gate
