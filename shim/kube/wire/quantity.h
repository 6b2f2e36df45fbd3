// Kubernetes quantities ("500m", "1.5Gi", "2e3") as integers.
//
// Accepts every text that resource.Quantity accepts, with the same value, rounded up (away from
// zero) like Value() and MilliValue(). One deliberate difference: an amount out of range saturates
// at the largest (smallest) int64, whereas resource.Quantity wraps around or returns 0. Therefore
// an absurd request can never look like a small one. Sums of such values must saturate too.
//
// Threading: pure functions.
// Errors: InvalidArgument with resource.Quantity's own texts.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_QUANTITY_H_
#define OUTBOARD_SHIM_KUBE_WIRE_QUANTITY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outboard::kube {

// In the quantity's own unit: bytes, pieces.
absl::StatusOr<int64_t> QuantityValue(absl::string_view text);

// In thousandths of the unit: "1" is 1000, "100m" is 100.
absl::StatusOr<int64_t> QuantityMilliValue(absl::string_view text);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_QUANTITY_H_
