// How long pods say that they run, and when those that run will be over.
#ifndef OUTBOARD_PLUGINS_BACKFILL_RUN_TIMES_H_
#define OUTBOARD_PLUGINS_BACKFILL_RUN_TIMES_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "plugin_host/sdk/label_values.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::backfill {

// Annotations of pods. Times are RFC 3339.
inline constexpr char kRunSeconds[] = "outboard/run-seconds";
// As CostAwarePreemptor reads them.
inline constexpr char kStart[] = "outboard/start-time";
inline constexpr char kEstimatedEnd[] = "outboard/estimated-end";
// `true`: whoever comes before may have the pod leave. KAI's label says the same.
inline constexpr char kPreemptible[] = "outboard/preemptible";
inline constexpr char kPreemptibilityLabel[] = "kai.scheduler/preemptibility";

// What a pod says of its run. What cannot be read is absent.
struct RunTime {
  // How long it runs at most, once it has started.
  std::optional<absl::Duration> run;
  // When it will be over, if it has started.
  std::optional<absl::Time> end;
  // It is being deleted, and will be gone then.
  std::optional<absl::Time> gone;
  bool preemptible = false;

  // When a pod that has a node will be over, if that does not depend on when it starts.
  std::optional<absl::Time> FixedEnd() const;
  // The same of every such pod; one that has not started starts now. None: it does not say. An end
  // that is past was a wrong estimate: nobody knows better than `now + overrun`.
  std::optional<absl::Time> EndAt(absl::Time now, absl::Duration overrun) const;
};
// `otherwise`: of pods that do not say how long they run, and have no activeDeadlineSeconds;
// absent: nobody knows. `malformed` is told what cannot be read.
RunTime ReadRunTime(const v1alpha1::Pod& pod, std::optional<absl::Duration> otherwise,
                    sdk::MalformedValues* malformed);

// `2h30m`, `45m`, `30s`: for people, to the minute where it is more than one.
std::string DurationText(absl::Duration duration);
// `14:05`, with the date where it is not today's; UTC.
std::string ClockText(absl::Time time, absl::Time now);

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_RUN_TIMES_H_
