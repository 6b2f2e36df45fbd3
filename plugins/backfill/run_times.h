// Run times of pods, and the end times that follow for running pods.
#ifndef OUTBOARD_PLUGINS_BACKFILL_RUN_TIMES_H_
#define OUTBOARD_PLUGINS_BACKFILL_RUN_TIMES_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/run_facts/run_facts.h"

namespace outboard::backfill {

// When a pod ends, as far as known. A malformed value counts as absent.
struct RunTime {
  // The maximum run time after the start, declared or enforced.
  std::optional<absl::Duration> run;
  // The declared end of a started pod: an estimate.
  std::optional<absl::Time> end;
  // When the kubelet or a controller ends the pod. For a pod that has not started: a Job's
  // deadline, if no run time is known.
  std::optional<absl::Time> limit;
  // The end of a pod that is being deleted.
  std::optional<absl::Time> gone;
  bool preemptible = false;

  // The end of a pod with a node, if it does not depend on the pod's start.
  std::optional<absl::Time> FixedEnd() const;
  // The same for every pod with a node; a pod that has not started starts now. nullopt: unknown.
  // - A declared end that is past becomes `overrun` later; then it was a wrong estimate, and counts
  //   no more.
  // - A past end that others enforce becomes `now + overrun`.
  std::optional<absl::Time> EndAt(absl::Time now, absl::Duration overrun) const;
  // The declared end was wrong.
  bool Overran(absl::Time now, absl::Duration overrun) const {
    return end && *end + overrun <= now;
  }
  // Without the declared end.
  RunTime WithoutEstimate() const;
  // The end of a pod that starts now. nullopt: unknown.
  std::optional<absl::Time> EndOfStart(absl::Time now) const {
    return run ? std::optional(now + *run) : limit;
  }
};
// `otherwise`: run time of pods of which nothing is known; absent: unknown. Reports malformed
// values to `malformed`.
RunTime ReadRunTime(const v1beta1::Pod& pod, const sdk::RunFactsReader& runs,
                    std::optional<absl::Duration> otherwise, sdk::MalformedValues* malformed);

// `2h30m`, `45m`, `30s`: for people; whole minutes from one minute on.
std::string DurationText(absl::Duration duration);
// `14:05`, with the date if it is not today; UTC.
std::string ClockText(absl::Time time, absl::Time now);

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_RUN_TIMES_H_
