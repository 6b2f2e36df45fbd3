// What `nvidia-smi topo -m` prints, as islands.
#ifndef OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_TOPOLOGY_MATRIX_H_
#define OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_TOPOLOGY_MATRIX_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plugins/topology_aware_gpu_gate/gpu_islands.h"

namespace outboard::topology_aware_gpu_gate {

// Reads the matrix (columns of network cards, affinities, the legend and colours are skipped). GPUs
// are gathered, lowest id first, into islands in which every pair has NVLink; a GPU without NVLink
// is an island of its own. The topology is that of the largest island: pcie where it is a single
// GPU, nvswitch where a pair has more links than a GPU could have to each of the others, else
// nvlink.
//
// Errors: INVALID_ARGUMENT with what is wrong: no GPUs, a row that is missing or too short, a link
// that nobody knows, two GPUs that see each other differently. Pure.
absl::StatusOr<GpuIslands> ParseTopologyMatrix(absl::string_view text);

}  // namespace outboard::topology_aware_gpu_gate

#endif  // OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_TOPOLOGY_MATRIX_H_
