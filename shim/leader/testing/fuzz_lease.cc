#include "shim/leader/testing/fuzz_lease.h"

#include "integration/fuzz/seeds.h"
#include "shim/leader/lease_record.h"

namespace outboard::leader {

void FuzzLease(absl::string_view bytes) {
  const absl::StatusOr<Lease> lease = ParseLease(bytes);
  if (!lease.ok()) return;
  LeaseRecord record;
  record.holder = "shim-a_1";
  record.duration_seconds = 15;
  record.acquire_time = record.renew_time = "2026-01-01T00:00:00.000000Z";
  record.transitions = 3;
  const absl::StatusOr<Lease> updated = ParseLease(UpdatedLeaseJson(*lease, record));
  fuzz::Require(updated.ok(), "an update of a lease is a lease");
  fuzz::Require(updated->record == record, "an update has the new record");
}

}  // namespace outboard::leader
