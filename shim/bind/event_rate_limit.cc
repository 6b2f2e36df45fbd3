#include "shim/bind/event_rate_limit.h"

#include <algorithm>

namespace outboard::bind {
namespace {

constexpr double kBurst = 100;
constexpr double kPerSecond = 10;

}  // namespace

bool EventRateLimit::Take(const std::string& plugin, absl::Time now) {
  Bucket& bucket = buckets_.try_emplace(plugin, Bucket{kBurst, now}).first->second;
  // A clock that goes back adds nothing.
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - bucket.filled));
  bucket.tokens = std::min(kBurst, bucket.tokens + seconds * kPerSecond);
  bucket.filled = now;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

}  // namespace outboard::bind
