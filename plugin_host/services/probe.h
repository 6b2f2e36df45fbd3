// Whether a host answers: the liveness check for containers.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_PROBE_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_PROBE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace outboard::services {

// Probes the host behind `listen`, as given to --listen: `unix:PATH`. {instance} matches every
// instance with a socket there whose process is visible from this container, so that containers
// that share the folder are not confused. A host without a configuration, or that drains, answers
// too; the shim decides whether it can use the host.
//
// Threading: blocks, for at most `timeout` per socket.
// Errors: INVALID_ARGUMENT for anything but a Unix socket; UNAVAILABLE with the cause if no
//         instance answers.
absl::Status ProbeListener(const std::string& listen, absl::Duration timeout);

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_PROBE_H_
