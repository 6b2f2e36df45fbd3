// A fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_SHIM_SCHEDULER_TESTING_FUZZ_HOSTILE_HOST_H_
#define OUTBOARD_SHIM_SCHEDULER_TESTING_FUZZ_HOSTILE_HOST_H_

#include "absl/strings/string_view.h"

namespace outboard::scheduler {

// The script of a plugin host that may answer and push anything: records of a kind (one byte), a
// length (two bytes, little-endian) and that many bytes, which are the next answer of that kind, a
// push, or a pause. A scheduler with a small cluster works with this host. Aborts if the scheduler
// harms the cluster: it binds a pod twice, to an unknown node or beyond the node's capacity, evicts
// a pod that is not of lower priority, or writes what no rule allows.
void FuzzHostileHost(absl::string_view script);

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_TESTING_FUZZ_HOSTILE_HOST_H_
