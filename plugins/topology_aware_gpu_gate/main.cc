// outboard-gpu-islands: `nvidia-smi topo -m | outboard-gpu-islands` prints the value of a node's
// annotation accelerator.sched.io/gpu-islands.
#include <iostream>
#include <iterator>
#include <string>

#include "plugins/topology_aware_gpu_gate/topology_matrix.h"

int main() {
  const std::string text((std::istreambuf_iterator<char>(std::cin)), {});
  const auto islands = outboard::topology_aware_gpu_gate::ParseTopologyMatrix(text);
  if (!islands.ok()) {
    std::cerr << "outboard-gpu-islands: " << islands.status().message() << "\n";
    return 1;
  }
  std::cout << outboard::topology_aware_gpu_gate::FormatIslands(*islands) << "\n";
  return 0;
}
