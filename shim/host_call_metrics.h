// Turns calls of hosts into metrics.
#ifndef OUTBOARD_SHIM_HOST_CALL_METRICS_H_
#define OUTBOARD_SHIM_HOST_CALL_METRICS_H_

#include <map>
#include <memory>
#include <string>

#include "shim/hosts/call_observer.h"
#include "shim/metrics/metrics.h"

namespace outboard::shim {

// The observers of all hosts. A call costs two clock readings and atomic additions: each host keeps
// references to its children.
//
// Threading: scheduling thread.
// Lifetime: the metrics outlive this object.
class HostCallMetrics {
 public:
  explicit HostCallMetrics(metrics::Metrics* metrics) : metrics_(metrics) {}

  // Always the same object for a host; valid as long as this object.
  hosts::CallObserver* Of(const std::string& host);

 private:
  class Observer;

  metrics::Metrics* const metrics_;
  std::map<std::string, std::unique_ptr<hosts::CallObserver>> observers_;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_HOST_CALL_METRICS_H_
