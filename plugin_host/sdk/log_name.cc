#include "plugin_host/sdk/log_name.h"

#include "proto/trace_context/trace_context.h"

namespace outboard::sdk {

std::ostream& operator<<(std::ostream& out, const LogName& name) {
  out << "pod " << name.pod_.namespace_name() << "/" << name.pod_.name() << ", uid "
      << name.pod_.uid();
  if (name.attempt_id_ != 0) out << ", attempt " << name.attempt_id_;
  return out;
}

std::string TraceParentOf(const Attempt& attempt) {
  return std::string(trace_context::TraceParent(attempt.pod().uid(), attempt.id()).text());
}

}  // namespace outboard::sdk
