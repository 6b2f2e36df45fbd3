// How answers get from the API client's thread to the scheduling thread.
#ifndef OUTBOARD_SHIM_BIND_INBOX_H_
#define OUTBOARD_SHIM_BIND_INBOX_H_

#include <functional>

#include "absl/time/time.h"

namespace outboard::bind {

// Hands a closure to the scheduling thread, which runs it with its own clock. Safe from any thread;
// never blocks for long.
using Inbox = std::function<void(std::function<void(absl::Time now)>)>;

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_INBOX_H_
