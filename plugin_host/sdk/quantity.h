// Kubernetes' quantities, for objects of custom resources and tests. The shim has already parsed
// the contract's own types.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_QUANTITY_H_
#define OUTBOARD_PLUGIN_HOST_SDK_QUANTITY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::sdk {

// A quantity in units of 1/scale, rounded up: ParseQuantity("500m", 1000) is 500.
// Errors: INVALID_ARGUMENT for text that is not a quantity, or is out of range.
absl::StatusOr<int64_t> ParseQuantity(absl::string_view text, int64_t scale);
// Sets the amount of a resource in a list.
absl::Status SetResource(absl::string_view name, absl::string_view quantity,
                         v1beta1::ResourceList* list);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_QUANTITY_H_
