// A fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_SHIM_LEADER_TESTING_FUZZ_LEASE_H_
#define OUTBOARD_SHIM_LEADER_TESTING_FUZZ_LEASE_H_

#include "absl/strings/string_view.h"

namespace outboard::leader {

// A Lease as JSON. Aborts unless an update of it is a Lease with the new record.
void FuzzLease(absl::string_view bytes);

}  // namespace outboard::leader

#endif  // OUTBOARD_SHIM_LEADER_TESTING_FUZZ_LEASE_H_
