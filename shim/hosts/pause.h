// How long instances that lost their sessions wait for the next one.
#ifndef OUTBOARD_SHIM_HOSTS_PAUSE_H_
#define OUTBOARD_SHIM_HOSTS_PAUSE_H_

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace outboard::hosts {

struct Pause {
  absl::Duration length = absl::ZeroDuration();
  absl::Time until = absl::InfinitePast();  // the instance may have its next session from then on
  std::string why_lost;                     // why the session before the pause ended
};

// The first loss may be chance: the next session begins at once. If it is short, too, the pause
// before each further one of the same instance doubles, from a second to a minute: an instance that
// floods the shim, fails Configure, ends its streams or is too slow must not keep it busy with
// snapshots. Each instance has its own pause, as two of them may fail in turn.
//
// Threading: thread-compatible.
class Pauses {
 public:
  static constexpr absl::Duration kShortest = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Minutes(1);
  // A session of this length was a good one.
  static constexpr absl::Duration kLong = absl::Minutes(1);
  // How long an instance is remembered after the end of its pause.
  static constexpr absl::Duration kRemembered = absl::Minutes(10);

  // `lasted`: the length of the session that was lost. `why`: the reason for the loss.
  void Add(const std::string& instance, absl::Duration lasted, const std::string& why,
           absl::Time now) {
    absl::erase_if(pauses_,
                   [now](const auto& entry) { return now - entry.second.until > kRemembered; });
    const bool is_repeated = pauses_.contains(instance) && lasted < kLong;
    Pause& pause = pauses_[instance];
    pause.length =
        is_repeated ? std::clamp(2 * pause.length, kShortest, kLongest) : absl::ZeroDuration();
    pause.until = now + pause.length;
    pause.why_lost = why;
  }
  Pause Of(const std::string& instance) const {
    const auto found = pauses_.find(instance);
    return found == pauses_.end() ? Pause() : found->second;
  }

 private:
  absl::flat_hash_map<std::string, Pause> pauses_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_PAUSE_H_
