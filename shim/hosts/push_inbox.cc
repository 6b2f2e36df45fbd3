#include "shim/hosts/push_inbox.h"

#include <utility>

namespace outboard::hosts {

bool PushInbox::Count(size_t bytes, absl::Time now) {
  if (overflowed_) return false;
  if (now < second_began_ || now - second_began_ >= absl::Seconds(1)) {
    second_began_ = now;
    in_second_ = {};
  }
  in_second_.Add(bytes);
  overflowed_ = IsBeyondLimits(in_second_);
  return !overflowed_;
}

bool PushInbox::Add(v1beta1::SyncResponse push, absl::Time now) {
  const size_t bytes = push.SpaceUsedLong();
  if (Count(bytes, now)) {
    held_.Add(bytes);
    overflowed_ = IsBeyondLimits(held_);
  }
  if (overflowed_) {
    std::vector<v1beta1::SyncResponse>().swap(pushes_);
    return false;
  }
  pushes_.push_back(std::move(push));
  return true;
}

std::vector<v1beta1::SyncResponse> PushInbox::Take() {
  held_ = {};
  return std::exchange(pushes_, {});
}

}  // namespace outboard::hosts
