// How long an instance that lost its session waits for the next one.
#ifndef OUTBOARD_SHIM_HOSTS_PAUSE_H_
#define OUTBOARD_SHIM_HOSTS_PAUSE_H_

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace outboard::hosts {

// The first loss may be chance: the next session begins at once. If it is short, too, the pause
// before each further one doubles, from a second to a minute: an instance that floods the shim,
// fails Configure or ends its streams must not keep it busy with snapshots.
//
// Threading: thread-compatible.
class Pause {
 public:
  static constexpr absl::Duration kShortest = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Minutes(1);
  // A session of this length was a good one.
  static constexpr absl::Duration kLong = absl::Minutes(1);

  // `lasted`: the length of the session that was lost.
  void Add(absl::string_view instance, absl::Duration lasted, absl::Time now) {
    const bool is_repeated = instance == instance_ && lasted < kLong;
    instance_ = std::string(instance);
    length_ = is_repeated ? std::clamp(2 * length_, kShortest, kLongest) : absl::ZeroDuration();
    until_ = now + length_;
  }
  // InfinitePast: this instance need not wait.
  absl::Time Until(absl::string_view instance) const {
    return instance == instance_ ? until_ : absl::InfinitePast();
  }
  absl::Duration length() const { return length_; }

 private:
  std::string instance_;
  absl::Duration length_ = absl::ZeroDuration();
  absl::Time until_ = absl::InfinitePast();
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_PAUSE_H_
