// Bounds of what a host says about itself.
#ifndef OUTBOARD_SHIM_HOSTS_HOST_INFO_CHECK_H_
#define OUTBOARD_SHIM_HOSTS_HOST_INFO_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "outboard/handshake/v1/handshake.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::hosts {

// Whether the lengths and counts of an answer are within the contract's bounds: names become
// labels of metrics and keys of maps, and the answers are kept as long as the instance. And whether
// the host has the capabilities that its other capabilities require. Pure.
// Errors: FAILED_PRECONDITION, with the bound.
absl::Status CheckIdentity(const handshake::v1::HandshakeResponse& identity);
absl::Status CheckHostInfo(const v1beta1::GetHostInfoResponse& info);

// A warning that names the actions that plugins register and this build does not know, which count
// as every action on the resource; empty: none. Pure.
std::string UnknownActions(const v1beta1::GetHostInfoResponse& info);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_HOST_INFO_CHECK_H_
