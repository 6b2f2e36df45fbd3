// Records of a replay: waiting times, use and losses.
#ifndef OUTBOARD_CLI_SIMULATE_TRACE_RECORDS_H_
#define OUTBOARD_CLI_SIMULATE_TRACE_RECORDS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "cli/simulate/trace/trace.h"

namespace outboard::simulate::trace {

struct JobRecord {
  // When all its replicas had a node for the first time.
  std::optional<absl::Time> all_bound;
  std::optional<absl::Time> ended;
  int preempted = 0;  // evictions of its pods
  double gpu_seconds_lost = 0;
  double cpu_seconds_lost = 0;
  // GPUs held by members of its gang while others had no node.
  double gpu_seconds_idle = 0;
  // At the end of the replay.
  int pods_bound = 0;
  int pods_waiting = 0;
};

// Threading: one thread. Times never decrease.
class Records {
 public:
  Records(size_t jobs, Amounts capacity, absl::Time begin);

  JobRecord& job(size_t index) { return jobs_[index]; }
  const JobRecord& job(size_t index) const { return jobs_[index]; }
  // `count` times the amounts are in use from now on; negative: are no longer in use.
  void Take(const Amounts& amounts, int64_t count, absl::Time now);
  void End(absl::Time now) { end_ = now; }

  absl::Time begin() const { return begin_; }
  absl::Time end() const { return end_; }
  const Amounts& capacity() const { return capacity_; }
  // Mean shares of the capacity in use; 0 without capacity.
  struct Use {
    double cpu = 0;
    double gpu = 0;
  };
  // Requires `from` < `to`.
  Use MeanUse(absl::Time from, absl::Time to) const;

 private:
  // In use from `since` until the next step.
  struct Step {
    absl::Time since;
    Amounts used;
  };
  const Amounts capacity_;
  const absl::Time begin_;
  absl::Time end_;
  std::vector<JobRecord> jobs_;
  std::vector<Step> steps_;
};

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_CLI_SIMULATE_TRACE_RECORDS_H_
