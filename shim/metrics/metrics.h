// The shim's metrics: children bound once, cheap observations, Prometheus text output.
#ifndef OUTBOARD_SHIM_METRICS_METRICS_H_
#define OUTBOARD_SHIM_METRICS_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "shim/metrics/certificate_metrics.h"
#include "shim/metrics/names.h"

namespace outboard::metrics {

using Counter = prometheus::Counter;
using Gauge = prometheus::Gauge;
using Histogram = prometheus::Histogram;

inline void Observe(Histogram& histogram, absl::Duration duration) {
  histogram.Observe(absl::ToDoubleSeconds(duration));
}

// The children of one metric, created at first use. With costs a lock and a look-up (about 0.1 us);
// keep the reference on hot paths.
//
// Threading: thread-safe.
// Lifetime: references are valid as long as the Metrics object.
// Errors: a number of labels other than in the spec crashes tests.
template <typename T>
class Children {
 public:
  Children(prometheus::Registry& registry, const MetricSpec& spec);
  T& With(std::initializer_list<absl::string_view> labels);
  // Removes all children, for gauges whose labels disappear (a removed host). Invalidates
  // references.
  void Clear();

 private:
  const MetricSpec& spec_;
  prometheus::Family<T>& family_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, T*> children_ ABSL_GUARDED_BY(mutex_);
};

enum class AttemptResult { kScheduled, kUnschedulable, kError };
inline constexpr std::array<const char*, 3> kAttemptResults = {"scheduled", "unschedulable",
                                                               "error"};

// The children that every attempt of one profile uses.
struct ProfileMetrics {
  std::array<Counter*, 3> attempts;            // by AttemptResult
  std::array<Histogram*, 3> attempt_duration;  // by AttemptResult

  void AttemptEnded(AttemptResult result, absl::Duration duration) {
    attempts[static_cast<size_t>(result)]->Increment();
    Observe(*attempt_duration[static_cast<size_t>(result)], duration);
  }
};

// All metrics of one shim process; create one and share it.
//
// Threading: thread-safe.
// Lifetime: outlives its users.
// Errors: none.
class Metrics {
 public:
  explicit Metrics(absl::string_view version);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Prometheus' text format, version 0.0.4.
  std::string Text() const;

  // Returns the same object for the same name.
  ProfileMetrics& Profile(absl::string_view name);
  // Observes both histograms of the algorithm.
  void AlgorithmEnded(absl::Duration duration) {
    Observe(algorithm_duration, duration);
    Observe(fine_algorithm_duration, duration);
  }
  // A pod was bound after `attempts` attempts, `since_queued` after it first arrived.
  void PodScheduled(int attempts, absl::Duration since_queued);

 private:
  std::shared_ptr<prometheus::Registry> registry_;  // declared before the families, which it owns

 public:
  Children<Counter> schedule_attempts;
  Children<Histogram> attempt_duration;
  Histogram& algorithm_duration;
  Histogram& fine_algorithm_duration;
  Children<Histogram> event_handling_duration;
  Histogram& preemption_victims;
  Counter& preemption_attempts;
  Children<Gauge> pending_pods_by_queue;
  Gauge& pending_active;
  Gauge& pending_backoff;
  Gauge& pending_unschedulable;
  Gauge& pending_gated;
  Children<Gauge> in_flight_events;
  Children<Histogram> pod_scheduling_sli_duration;
  Histogram& pod_scheduling_attempts;
  Counter& pod_scheduled_after_flush;
  Children<Histogram> extension_point_duration;
  Children<Counter> queue_incoming_pods;
  Children<Histogram> permit_wait_duration;
  Children<Gauge> cache_size;
  Gauge& cache_nodes;
  Gauge& cache_pods;
  Gauge& cache_assumed_pods;
  Children<Gauge> unschedulable_pods;
  Children<Counter> plugin_evaluations;

  Children<Counter> client_requests;
  Children<Histogram> client_request_duration;
  Children<Gauge> leader;

  Children<Histogram> host_call_duration;
  Children<Histogram> host_evaluation_duration;
  Children<Counter> host_calls;
  Children<Counter> host_protocol_errors;
  Children<Counter> host_failure_policies;
  Gauge& hosts_ready;
  Children<Gauge> host_state;
  Children<Gauge> host_info;
  Children<Counter> host_switches;
  Children<Gauge> host_acked_version;
  Gauge& snapshot_version;
  Gauge& parked_pods;
  Children<Counter> guard_refusals;
  Children<Counter> preemptions_limited;
  Counter& budget_violations;
  Gauge& binds_in_flight;
  Children<Counter> binds;
  Children<Counter> effects;
  Counter& binds_settled_by_read;
  Counter& bindings_denied;
  Histogram& bind_duration;
  Children<Counter> status_patches;
  Children<Counter> events;
  Gauge& events_queued;
  Children<Gauge> informer_objects;
  Children<Gauge> informer_undecoded_objects;
  Children<Counter> informer_events;
  Children<Counter> informer_lists;
  Children<Counter> ai_attempts;
  Children<Histogram> gang_wait;
  CertificateMetrics certificates;
  Children<Counter> serving_certificate_reloads;
  Children<Counter> http_authorization;
  Children<Histogram> extender_duration;
  Gauge& config_reload_successful;
  Gauge& config_reload_time;
  Children<Gauge> config_info;
  Gauge& config_restart_required;
  Children<Gauge> unknown_profile_pods;

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<ProfileMetrics>> profiles_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_METRICS_H_
