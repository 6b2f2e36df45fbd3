// The fuzz target of what nvidia-smi prints, which also runs over the seeds in testdata/fuzz as a
// test.
#ifndef OUTBOARD_NODE_PROBE_TESTING_FUZZ_TARGETS_H_
#define OUTBOARD_NODE_PROBE_TESTING_FUZZ_TARGETS_H_

#include "absl/strings/string_view.h"

namespace outboard::node_probe {

// The first byte chooses the reader (`L`: -L, `P`: the annotation of pods' GPUs, others: topo -m),
// the rest is its text. Aborts unless what is accepted is bounded, and is written and read again
// without a change.
void FuzzNvidiaSmi(absl::string_view bytes);

}  // namespace outboard::node_probe

#endif  // OUTBOARD_NODE_PROBE_TESTING_FUZZ_TARGETS_H_
