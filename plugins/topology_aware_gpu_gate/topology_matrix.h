// Parses the output of `nvidia-smi topo -m` into islands.
#ifndef OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_TOPOLOGY_MATRIX_H_
#define OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_TOPOLOGY_MATRIX_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plugins/topology_aware_gpu_gate/gpu_islands.h"

namespace outboard::topology_aware_gpu_gate {

// Reads the matrix; skips columns of network cards, affinities, the legend and colours. Groups
// GPUs, lowest id first, into islands in which every pair has NVLink; a GPU without NVLink is its
// own island. The topology is that of the largest island:
// - pcie: a single GPU
// - nvswitch: a pair has more links than a GPU could have to each of the others
// - nvlink: otherwise
// Pure.
//
// Errors: INVALID_ARGUMENT with the cause: no GPUs, a missing or short row, an unknown link, an
// asymmetric pair.
absl::StatusOr<GpuIslands> ParseTopologyMatrix(absl::string_view text);

}  // namespace outboard::topology_aware_gpu_gate

#endif  // OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_TOPOLOGY_MATRIX_H_
