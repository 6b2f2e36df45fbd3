// Bounds of what a host says about itself.
#ifndef OUTBOARD_SHIM_HOSTS_HOST_INFO_CHECK_H_
#define OUTBOARD_SHIM_HOSTS_HOST_INFO_CHECK_H_

#include "absl/status/status.h"
#include "proto/outboard/v1alpha1/plugin_host.pb.h"

namespace outboard::hosts {

// Whether the lengths and counts of the answer are within the contract's bounds: names become
// labels of metrics and keys of maps, and the answer is kept as long as the instance. Pure.
// Errors: FAILED_PRECONDITION, with the bound.
absl::Status CheckHostInfo(const v1alpha1::GetHostInfoResponse& info);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_HOST_INFO_CHECK_H_
