// outboard-gpu-islands: `nvidia-smi topo -m | outboard-gpu-islands` prints the value of a node's
// annotation accelerator.sched.io/gpu-islands.
#include <iostream>
#include <iterator>
#include <string>

#include "plugins/topology_aware_gpu_gate/topology_matrix.h"

namespace {

constexpr char kHelp[] =
    R"help(outboard-gpu-islands: the NVLink islands of a node, for plugin TopologyAwareGPUGate

Reads the output of `nvidia-smi topo -m` from standard input. Prints the value of the node's annotation
accelerator.sched.io/gpu-islands: the GPUs of each island.

Usage:
  nvidia-smi topo -m | outboard-gpu-islands

Flags:
  --version              Print the version
  -h, --help             Print this text

Exit codes: 0 printed; 1 the input is not such an output, or has no GPUs; 2 invalid usage.

Example:
  kubectl annotate node "$NODE" accelerator.sched.io/gpu-islands="$(nvidia-smi topo -m | outboard-gpu-islands)"
)help";

}  // namespace

int main(int argc, char** argv) {
  const std::string argument = argc > 1 ? argv[1] : "";
  if (argument == "--help" || argument == "-h") {
    std::cout << kHelp;
    return 0;
  }
  if (argument == "--version") {
    std::cout << "outboard-gpu-islands " << OUTBOARD_VERSION << "\n";
    return 0;
  }
  if (!argument.empty()) {
    std::cerr << "outboard-gpu-islands: unknown argument " << argument
              << "\nTry: outboard-gpu-islands --help\n";
    return 2;
  }
  const std::string text((std::istreambuf_iterator<char>(std::cin)), {});
  const auto islands = outboard::topology_aware_gpu_gate::ParseTopologyMatrix(text);
  if (!islands.ok()) {
    std::cerr << "outboard-gpu-islands: standard input: " << islands.status().message() << "\n";
    return 1;
  }
  std::cout << outboard::topology_aware_gpu_gate::FormatIslands(*islands) << "\n";
  return 0;
}
