// Versions of the shim and of hosts that are too far apart.
#ifndef OUTBOARD_SHIM_HOSTS_VERSION_SKEW_H_
#define OUTBOARD_SHIM_HOSTS_VERSION_SKEW_H_

#include <string>

#include "absl/strings/string_view.h"

namespace outboard::hosts {

// Whether two builds of this repository are of different major versions, or more than one minor
// version apart. Only texts MAJOR.MINOR or MAJOR.MINOR.PATCH, with or without a leading v and a
// suffix after - or +, are versions; others ("dev", "gpu-host 7") are never too far apart. Pure.
bool AreTooFarApart(absl::string_view shim_version, absl::string_view host_build);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_VERSION_SKEW_H_
