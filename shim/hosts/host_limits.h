// How much of an instance's misbehaviour the shim bears.
#ifndef OUTBOARD_SHIM_HOSTS_HOST_LIMITS_H_
#define OUTBOARD_SHIM_HOSTS_HOST_LIMITS_H_

#include <cstddef>

#include "absl/time/time.h"

namespace outboard::hosts {

struct HostLimits {
  // How long the host may take to answer Configure.
  absl::Duration configure = absl::Seconds(5);
  // Messages that an instance pushes within a second, and that wait for the scheduler. A cluster of
  // 150,000 pods fits: one message can name them all (6 MiB), and an acknowledgement that is news
  // does not count.
  size_t pushes = 20000;
  size_t push_bytes = size_t{32} << 20;  // in memory
  // How long a message to the host may lie in the connection before the host is given up.
  absl::Duration unread = absl::Seconds(10);
  // How long the host may take for its snapshot after the last piece was read or acknowledged.
  absl::Duration unacknowledged = absl::Minutes(1);
  // How long a host may leave probes unanswered before it is not called, and before it is given up.
  // A machine without power closes no connection: this is how its loss is noticed. (Pings of HTTP/2
  // would do, too, but hosts of gRPC's default settings end connections that send them.)
  absl::Duration silent_until_held_back = absl::Seconds(5);
  absl::Duration silent_until_lost = absl::Seconds(15);
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_HOST_LIMITS_H_
