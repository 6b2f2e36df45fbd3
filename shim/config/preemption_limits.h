// How many pods preemptions may evict.
#ifndef OUTBOARD_SHIM_CONFIG_PREEMPTION_LIMITS_H_
#define OUTBOARD_SHIM_CONFIG_PREEMPTION_LIMITS_H_

#include <cstdint>

namespace outboard::config {

// `preemption` of the ShimConfiguration: against plugin hosts that preempt without measure; no
// legitimate preemption should reach the defaults. 0: any number. A preemption beyond a limit is
// put off.
struct PreemptionLimits {
  int32_t per_attempt = 4096;
  int32_t per_minute = 30000;  // of all preemptions
};

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_PREEMPTION_LIMITS_H_
