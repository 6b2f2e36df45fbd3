// What a replay says in the end.
#ifndef OUTBOARD_SHIM_SIMULATE_TRACE_REPORT_H_
#define OUTBOARD_SHIM_SIMULATE_TRACE_REPORT_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "shim/simulate/trace/records.h"
#include "shim/simulate/trace/trace.h"

namespace outboard::simulate::trace {

// What the summary is about, since the beginning.
struct Window {
  absl::Duration from = absl::ZeroDuration();
  absl::Duration to = absl::InfiniteDuration();  // later than the end: the end
  // Also the use in each piece of the window so long; zero: not.
  absl::Duration interval = absl::ZeroDuration();
};

// Of jobs that arrived in the window.
struct ClassSummary {
  size_t jobs = 0;
  size_t finished = 0;
  size_t unscheduled = 0;  // not all of their pods have had a node
  int preempted = 0;
  double gpu_seconds_lost = 0;
  double gpu_seconds_idle = 0;
  // Seconds from arrival until the last replica had a node for the first time; of the others.
  std::vector<double> queue_seconds;  // sorted

  double QueueMean() const;
  // The smallest value that so large a share does not exceed; 0 where there is none.
  double QueueQuantile(double share) const;
};

struct Summary {
  absl::Duration from, to;
  Records::Use use;
  std::map<std::string, ClassSummary> classes;
  ClassSummary all;
  absl::Duration makespan;  // the last end of a job, whenever it arrived
  int pods_waiting = 0;     // in the end
  int pods_bound = 0;
};
Summary Summarize(const std::vector<Job>& jobs, const Records& records, const Window& window);

// Lines of JSON: jobs in the trace's order, pieces of the window, then the summary.
std::string ToJsonLines(const std::vector<Job>& jobs, const Records& records, const Window& window);
// The same for people, with jobs only where they are few.
std::string ToTable(const std::vector<Job>& jobs, const Records& records, const Window& window);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_SHIM_SIMULATE_TRACE_REPORT_H_
