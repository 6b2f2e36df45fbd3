// The results of a replay.
#ifndef OUTBOARD_CLI_SIMULATE_TRACE_REPORT_H_
#define OUTBOARD_CLI_SIMULATE_TRACE_REPORT_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/simulate/trace/records.h"
#include "cli/simulate/trace/trace.h"

namespace outboard::simulate::trace {

// The period of the summary, since the beginning.
struct Window {
  absl::Duration from = absl::ZeroDuration();
  absl::Duration to = absl::InfiniteDuration();  // later than the end: the end
  // Length of the intervals whose use is printed too; zero: none.
  absl::Duration interval = absl::ZeroDuration();
};

// Figures of jobs that arrived in the window.
struct ClassSummary {
  size_t jobs = 0;
  size_t finished = 0;
  size_t unscheduled = 0;  // not all their pods had a node
  int preempted = 0;
  double gpu_seconds_lost = 0;
  double gpu_seconds_idle = 0;
  // Seconds from arrival until all replicas had a node for the first time; without unscheduled
  // jobs.
  std::vector<double> queue_seconds;  // sorted

  double QueueMean() const;
  // The quantile; 0 without values.
  double QueueQuantile(double share) const;
};

struct Summary {
  absl::Duration from, to;
  Records::Use use;
  std::map<std::string, ClassSummary> classes;
  ClassSummary all;
  absl::Duration makespan;  // the last end of any job
  int pods_waiting = 0;     // in the end
  int pods_bound = 0;
};
Summary Summarize(const std::vector<Job>& jobs, const Records& records, const Window& window);

// JSON Lines: jobs in the trace's order, intervals of the window, then the summary.
std::string ToJsonLines(const std::vector<Job>& jobs, const Records& records, const Window& window);
// The same as a table; lists jobs only if they are few.
std::string ToTable(const std::vector<Job>& jobs, const Records& records, const Window& window);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_CLI_SIMULATE_TRACE_REPORT_H_
