// Parts of sort keys, which compare as unsigned bytes.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_SORT_KEY_H_
#define OUTBOARD_PLUGIN_HOST_SDK_SORT_KEY_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace outboard::sdk {

inline void AppendBigEndian(uint64_t value, int bytes, std::string* key) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    key->push_back(static_cast<char>(value >> shift));
}

// Four bytes that decrease as the priority rises.
inline void AppendPriority(int32_t priority, std::string* key) {
  AppendBigEndian(~(static_cast<uint32_t>(priority) ^ 0x80000000u), 4, key);
}

// The largest time that fits into a key.
inline absl::Time LastKeyTime() { return absl::FromUnixNanos(INT64_MAX); }

// Eight bytes that rise with the time; times outside of the range count as its ends.
inline void AppendTime(absl::Time time, std::string* key) {
  const absl::Time in_range = std::clamp(time, absl::FromUnixNanos(INT64_MIN), LastKeyTime());
  AppendBigEndian(static_cast<uint64_t>(absl::ToUnixNanos(in_range)) ^ (uint64_t{1} << 63), 8, key);
}

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_SORT_KEY_H_
