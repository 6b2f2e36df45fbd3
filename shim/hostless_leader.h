// When a leader without plugin hosts gives its lease up.
#ifndef OUTBOARD_SHIM_HOSTLESS_LEADER_H_
#define OUTBOARD_SHIM_HOSTLESS_LEADER_H_

#include <optional>

#include "absl/time/time.h"

namespace outboard::shim {

// A leader whose hosts are gone keeps pods waiting that another replica, which may have a host,
// could place. A replica that never had a host while it led keeps the lease: another replica need
// not be better, and without any leader nothing tells pods why they wait.
//
// Threading: thread-compatible.
class HostlessLeader {
 public:
  // Longer than a host needs to restart.
  static constexpr absl::Duration kTimeout = absl::Seconds(30);

  // Whether to give the lease up. `serves`: pods of some profile can be placed. Call it whenever
  // one of these may have changed, and from time to time.
  bool GivesUp(bool leads, bool serves, absl::Time now) {
    if (!leads || serves) {
      led_with_hosts_ = led_with_hosts_ || leads;
      since_.reset();
      return false;
    }
    if (!led_with_hosts_) return false;
    if (!since_.has_value()) since_ = now;
    return now - *since_ > kTimeout;
  }

 private:
  bool led_with_hosts_ = false;
  std::optional<absl::Time> since_;  // since when no pod can be placed
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_HOSTLESS_LEADER_H_
