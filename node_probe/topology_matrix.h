// Parses the output of `nvidia-smi topo -m` into islands.
#ifndef OUTBOARD_NODE_PROBE_TOPOLOGY_MATRIX_H_
#define OUTBOARD_NODE_PROBE_TOPOLOGY_MATRIX_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/node_facts/gpu_islands.h"

namespace outboard::node_probe {

// Reads the matrix; skips columns of network cards, affinities, the legend and colours. Groups
// GPUs, lowest id first, into islands in which every pair has NVLink; a GPU without NVLink is its
// own island. Links of `isolated` GPUs do not count: their processes cannot use them. The topology
// is that of the largest island:
// - pcie: a single GPU
// - nvswitch: a pair has more links than a GPU could have to each of the others
// - nvlink: otherwise
// Pure.
//
// Errors: INVALID_ARGUMENT with the cause: no GPUs, a missing or short row, an unknown link, an
// asymmetric pair.
absl::StatusOr<sdk::GpuIslands> ParseTopologyMatrix(absl::string_view text,
                                                    sdk::GpuSet isolated = 0);

}  // namespace outboard::node_probe

#endif  // OUTBOARD_NODE_PROBE_TOPOLOGY_MATRIX_H_
