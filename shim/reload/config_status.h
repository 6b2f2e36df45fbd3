// What became of the configuration file: in metrics, events, on /readyz?verbose and /configz.
#ifndef OUTBOARD_SHIM_RELOAD_CONFIG_STATUS_H_
#define OUTBOARD_SHIM_RELOAD_CONFIG_STATUS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "shim/bind/event_recorder.h"
#include "shim/config/config.h"
#include "shim/metrics/metrics.h"

namespace outboard::reload {

// Threading: Loaded and Refused on the scheduling thread; the others on any thread.
// Lifetime: the metrics outlive this object.
// Errors: none.
class ConfigStatus {
 public:
  // Records an event of which type, reason, action and note are set.
  using Record = std::function<void(bind::ObjectEvent event, absl::Time now)>;

  // `wall`: the time that people see.
  ConfigStatus(metrics::Metrics* metrics, Record record,
               std::function<absl::Time()> wall = absl::Now);

  // The configuration at the start; no event.
  void Started(const config::Config& config);
  // A configuration replaced the last one. `waiting`: its fields that wait for a restart.
  void Loaded(const config::Config& config, const std::vector<std::string>& waiting,
              absl::Time now);
  // A file of this hash (empty: it cannot be read) was refused; one problem a line. What runs now
  // is `running`, for people. The event is recorded once for a file and its problems.
  void Refused(absl::string_view file, absl::string_view sha256, absl::string_view problems,
               absl::string_view running, absl::Time now);

  // Whether the last file was refused.
  bool is_refused() const;
  // For a page that needs no credentials: what waits, and where the file is wrong, without values
  // of the file. "" if the file is in force.
  std::string Note() const;
  // The same with all problems, as comments of a YAML document; ends with a line break, or is "".
  std::string Comment() const;

 private:
  void TakeWaiting(std::vector<std::string> waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetInForce(const config::Config& config) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  metrics::Metrics* const metrics_;
  const Record record_;
  const std::function<absl::Time()> wall_;
  mutable absl::Mutex mutex_;
  std::string file_ ABSL_GUARDED_BY(mutex_);      // the refused one
  std::string problems_ ABSL_GUARDED_BY(mutex_);  // empty: the last file was loaded
  std::string running_ ABSL_GUARDED_BY(mutex_);
  absl::Time refused_at_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  std::string reported_ ABSL_GUARDED_BY(mutex_);  // hash and problems of the last event
};

// Where a problem of the form `FILE:LINE:COL: path: what` is, without `what`, which may quote
// values; "" if the problem has another form. Pure.
std::string PlaceOf(absl::string_view file, absl::string_view problem);

}  // namespace outboard::reload

#endif  // OUTBOARD_SHIM_RELOAD_CONFIG_STATUS_H_
