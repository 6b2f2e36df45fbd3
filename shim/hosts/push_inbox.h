// The pushes of one instance until the scheduler takes them.
#ifndef OUTBOARD_SHIM_HOSTS_PUSH_INBOX_H_
#define OUTBOARD_SHIM_HOSTS_PUSH_INBOX_H_

#include <cstddef>
#include <vector>

#include "absl/time/time.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "shim/hosts/host_limits.h"

namespace outboard::hosts {

// Threading: thread-compatible.
// Errors: Add returns false at and after the first push beyond the limits; nothing is held then.
class PushInbox {
 public:
  explicit PushInbox(const HostLimits& limits) : limits_(limits) {}

  bool Add(v1beta1::SyncResponse push, absl::Time now);
  // Counts a message that is not held.
  bool Count(const v1beta1::SyncResponse& push, absl::Time now) {
    return Count(push.SpaceUsedLong(), now);
  }
  std::vector<v1beta1::SyncResponse> Take();
  bool overflowed() const { return overflowed_; }

 private:
  struct Amount {
    size_t pushes = 0;
    size_t bytes = 0;
    void Add(size_t more) {
      ++pushes;
      bytes += more;
    }
  };
  bool Count(size_t bytes, absl::Time now);
  bool IsBeyondLimits(const Amount& amount) const {
    return amount.pushes > limits_.pushes || amount.bytes > limits_.push_bytes;
  }

  const HostLimits limits_;
  std::vector<v1beta1::SyncResponse> pushes_;
  Amount held_;
  Amount in_second_;
  absl::Time second_began_ = absl::InfinitePast();
  bool overflowed_ = false;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_PUSH_INBOX_H_
