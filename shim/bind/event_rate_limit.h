// Limits the events that each plugin records.
#ifndef OUTBOARD_SHIM_BIND_EVENT_RATE_LIMIT_H_
#define OUTBOARD_SHIM_BIND_EVENT_RATE_LIMIT_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace outboard::bind {

// A token bucket for each plugin: 100 events at once, then 10 a second. The contract names these
// numbers (RecordEvent).
//
// Threading: thread-compatible.
// Lifetime: keeps a few bytes for each plugin that ever recorded an event; callers pass only
// plugins of the profiles.
// Errors: none.
class EventRateLimit {
 public:
  // Whether the plugin may record one more event.
  bool Take(const std::string& plugin, absl::Time now);

 private:
  struct Bucket {
    double tokens;
    absl::Time filled;
  };
  absl::flat_hash_map<std::string, Bucket> buckets_;
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_EVENT_RATE_LIMIT_H_
