// The run times that pods declare, and the end times that follow for running pods.
#ifndef OUTBOARD_PLUGINS_BACKFILL_RUN_TIMES_H_
#define OUTBOARD_PLUGINS_BACKFILL_RUN_TIMES_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/label_values.h"

namespace outboard::backfill {

// Annotations of pods. Times are RFC 3339.
inline constexpr char kRunSeconds[] = "outboard/run-seconds";
// Shared with CostAwarePreemptor.
inline constexpr char kStart[] = "outboard/start-time";
inline constexpr char kEstimatedEnd[] = "outboard/estimated-end";
// `true`: a pod ahead in line may have this pod evicted. KAI's label means the same.
inline constexpr char kPreemptible[] = "outboard/preemptible";
inline constexpr char kPreemptibilityLabel[] = "kai.scheduler/preemptibility";

// A pod's declared run time. A malformed value counts as absent.
struct RunTime {
  // The maximum run time after the start.
  std::optional<absl::Duration> run;
  // The end of a started pod.
  std::optional<absl::Time> end;
  // The end of a pod that is being deleted.
  std::optional<absl::Time> gone;
  bool preemptible = false;

  // The end of a pod with a node, if it does not depend on the pod's start.
  std::optional<absl::Time> FixedEnd() const;
  // The same for every pod with a node; a pod that has not started starts now. nullopt: none.
  // A past end was a wrong estimate and becomes `now + overrun`.
  std::optional<absl::Time> EndAt(absl::Time now, absl::Duration overrun) const;
};
// `otherwise`: run time of pods without a declared one and without activeDeadlineSeconds; absent:
// unknown. Reports malformed values to `malformed`.
RunTime ReadRunTime(const v1beta1::Pod& pod, std::optional<absl::Duration> otherwise,
                    sdk::MalformedValues* malformed);

// `2h30m`, `45m`, `30s`: for people; whole minutes from one minute on.
std::string DurationText(absl::Duration duration);
// `14:05`, with the date if it is not today; UTC.
std::string ClockText(absl::Time time, absl::Time now);

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_RUN_TIMES_H_
