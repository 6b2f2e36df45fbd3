// How a plugin's log lines and spans name a pod and its attempt, so that they can be found together
// with those of the shim and of other plugins.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_LOG_NAME_H_
#define OUTBOARD_PLUGIN_HOST_SDK_LOG_NAME_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "plugin_host/sdk/attempt.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

// Prints `pod shop/web-0, uid 0af76519-…, attempt 17`; without the attempt if there is none.
// Plugins log with glog, and with their own name:
//   LOG(WARNING) << kName << ": " << sdk::LogName(attempt) << ": the price list is empty";
//   VLOG(4) << kName << ": " << sdk::LogName(pod) << ": gated";        // in PreEnqueue and SortKey
// Levels: 2 for one line an attempt, 4 for lines about each node (`outboard-host --v`). A line that
// is not printed costs a comparison.
//
// Threading: within the call.
// Lifetime:  of the attempt or pod that it names; does not allocate memory.
// Errors:    none.
class LogName {
 public:
  explicit LogName(const Attempt& attempt) : pod_(attempt.pod()), attempt_id_(attempt.id()) {}
  explicit LogName(const PodView& pod) : pod_(pod), attempt_id_(0) {}
  friend std::ostream& operator<<(std::ostream& out, const LogName& name);

 private:
  PodView pod_;
  uint64_t attempt_id_;
};

// W3C's `traceparent` of the attempt (call.proto, CallHeader): the parent for a plugin's spans, and
// a header for its own requests to other services. Empty without an attempt or a trace id.
//
// Threading: pure.
// Lifetime:  the caller's.
// Errors:    none.
std::string TraceParentOf(const Attempt& attempt);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_LOG_NAME_H_
