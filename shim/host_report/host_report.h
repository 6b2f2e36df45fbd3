// The hosts at one moment, for people and tests: which instance serves, which others are there, and
// what would change.
#ifndef OUTBOARD_SHIM_HOST_REPORT_HOST_REPORT_H_
#define OUTBOARD_SHIM_HOST_REPORT_HOST_REPORT_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "shim/hosts/host_set.h"

namespace outboard::host_report {

struct Report {
  absl::Time time;
  std::vector<hosts::HostSet::View> instances;
};

// Threading: the scheduling thread.
Report Collect(const hosts::HostSet& hosts, absl::Time now);

// One object: `time`, `instances`; times in RFC 3339. Any thread.
std::string ToJson(const Report& report);

}  // namespace outboard::host_report

#endif  // OUTBOARD_SHIM_HOST_REPORT_HOST_REPORT_H_
