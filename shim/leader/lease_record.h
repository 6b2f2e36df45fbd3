// The Lease object of the API, as JSON.
#ifndef OUTBOARD_SHIM_LEADER_LEASE_RECORD_H_
#define OUTBOARD_SHIM_LEADER_LEASE_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace outboard::leader {

// LeaseSpec of coordination.k8s.io/v1. Times are from their writer's clock and are only compared
// for equality: clocks of two machines are not comparable.
struct LeaseRecord {
  std::string holder;
  int duration_seconds = 0;
  std::string acquire_time;
  std::string renew_time;
  int transitions = 0;

  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

struct Lease {
  LeaseRecord record;
  // metadata.resourceVersion, which grows with each write of any object; 0: it is not a decimal
  // number.
  int64_t resource_version = 0;
  // The whole object, so that an update preserves fields of other writers.
  std::string json;
};

absl::StatusOr<Lease> ParseLease(absl::string_view json);

// Body of a create request.
std::string NewLeaseJson(absl::string_view lease_namespace, absl::string_view name,
                         const LeaseRecord& record);
// Body of an update request: `base` with another record and unchanged resourceVersion.
std::string UpdatedLeaseJson(const Lease& base, const LeaseRecord& record);

// metav1.MicroTime: UTC with exactly six decimals.
std::string FormatMicroTime(absl::Time time);

}  // namespace outboard::leader

#endif  // OUTBOARD_SHIM_LEADER_LEASE_RECORD_H_
