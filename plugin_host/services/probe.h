// Whether a host answers: what a supervisor of containers asks now and then.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_PROBE_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_PROBE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace outboard::services {

// Asks the host behind `listen`, as given to --listen: `unix:PATH`, where {instance} stands for
// every instance that has a socket there and whose process can be seen from here, so that
// containers which share the folder are not taken for each other. A host that no shim has
// configured yet, or that drains, answers as well; whether it is of use to a shim is for the shim
// to find out.
//
// Threading: blocks, for at most `timeout` per socket.
// Errors:    INVALID_ARGUMENT for anything but a Unix socket; UNAVAILABLE if no instance answers,
//            with what was heard instead.
absl::Status ProbeListener(const std::string& listen, absl::Duration timeout);

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_PROBE_H_
