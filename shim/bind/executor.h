// Passes answers from the API client's thread to the scheduling thread.
#ifndef OUTBOARD_SHIM_BIND_EXECUTOR_H_
#define OUTBOARD_SHIM_BIND_EXECUTOR_H_

#include <functional>

#include "absl/time/time.h"

namespace outboard::bind {

// Posts a closure to the scheduling thread, which passes its own time. Thread-safe; never blocks
// for long.
using Executor = std::function<void(std::function<void(absl::Time now)>)>;

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_EXECUTOR_H_
