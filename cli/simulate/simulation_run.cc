// The loop of a simulation.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/simulate/simulated_scheduler.h"
#include "cli/simulate/simulation.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::simulate {
namespace {

// Work that is left at an instant is retried after this time.
constexpr absl::Duration kMoment = absl::Milliseconds(1);
// If no pod was bound or evicted for so long, more attempts will change nothing either.
constexpr absl::Duration kQuiet = absl::Minutes(10);
constexpr size_t kMaxAttemptsPerPod = 100;

class SimulationRun {
 public:
  SimulationRun(const SimulationInput& scene, const config::Config& config,
                const SimulationOptions& options, const Reporter::Sink& sink)
      : scene_(scene),
        options_(options),
        sink_(sink),
        reporter_(&cluster_, options.until_settled,
                  [this](AttemptReport r) { OnReport(std::move(r)); }),
        stage_(config, OptionsOf(config, options), scene.objects, &reporter_, begin_) {
    cluster_ = scheduler().cluster();
    for (const config::ProfileSpec& profile : config.scheduler.profiles)
      profiles_.push_back(profile.scheduler_name);
    stage_.world().SetCallbacks(
        {.on_bound = [this](const kube::PodPtr&, absl::Time now) { last_change_ = now; },
         .on_evicted =
             [this](const kube::PodPtr& victim, absl::Time now) {
               last_change_ = now;
               reporter_.OnEvicted(*victim);
             },
         .on_write = [this](const scheduler::EffectOrder& order) { reporter_.OnWrite(order); }});
  }

  absl::StatusOr<SimulationEnd> Run(const std::vector<std::string>& addresses) {
    if (absl::Status open = stage_.Open(scene_, addresses, now_); !open.ok()) return open;
    for (const kube::PodPtr& pod : scene_.pending) scheduler().events()->OnPodUpsert(pod, now_);
    writes_objects_ = absl::c_any_of(
        stage_.hosts().plans()->profiles,
        [](const framework::ProfilePlan& plan) { return !plan.object_writers.empty(); });
    absl::Status ran = options_.until_settled ? RunUntilSettled() : TryEachPodOnce();
    if (!ran.ok()) return ran;
    if (stage_.host_lost())
      return absl::UnavailableError("lost a plugin host during the simulation");
    ReportPodsWithoutAttempt();
    end_.attempts = reporter_.all_attempts();
    end_.time = now_ - begin_;
    return std::move(end_);
  }

 private:
  static scheduler::SchedulerOptions OptionsOf(const config::Config& config,
                                               const SimulationOptions& options) {
    scheduler::SchedulerOptions result = SimulatedOptions(config);
    result.single_attempt = !options.until_settled;
    result.explain = true;
    return result;
  }

  scheduler::Scheduler& scheduler() { return stage_.scheduler(); }

  void OnReport(AttemptReport report) {
    if (report.result != kScheduled) {
      const auto [tried, first] = tried_.try_emplace(report.pod, now_);
      if (!first && tried->second == now_) tried_again_ = true;
      tried->second = now_;
    }
    sink_(std::move(report));
  }

  void SetTime(absl::Time now) {
    now_ = now;
    reporter_.SetTime(now - begin_);
  }

  // The hosts' clock begins with the machine's, because plugins may use the time of day.
  absl::Status PollHosts() {
    if (absl::Status polled = stage_.PollHosts(hosts_begin_ + (now_ - begin_)); !polled.ok())
      return polled;
    scheduler().Tick(now_);
    stage_.world().CarryOut(&scheduler(), now_);
    return absl::OkStatus();
  }

  // One step of the scheduler, and its consequences. False: there was no pod to take.
  bool Step() {
    const bool worked = scheduler().ScheduleOne(now_);
    stage_.world().CarryOut(&scheduler(), now_);
    stage_.loop().RunReady();
    scheduler().Tick(now_);
    stage_.world().CarryOut(&scheduler(), now_);
    stage_.hosts().Tick(now_);
    return worked;
  }

  absl::Status TryEachPodOnce() {
    // Hosts must have the complete snapshot before they can order anything. And a pod that was held
    // before the queue may only have waited for a later pod, for example of its gang.
    if (writes_objects_ || scheduler().queue().counts().gated > 0) {
      scheduler().Tick(now_);
      if (absl::Status polled = PollHosts(); !polled.ok()) return polled;
    }
    while (!stage_.host_lost()) {
      const bool worked = Step();
      // Executes the writes of an attempt before the next one.
      if (worked && writes_objects_) {
        if (absl::Status polled = PollHosts(); !polled.ok()) return polled;
      }
      if (worked) continue;
      // Only waits at Permit and for volumes are left; virtual time jumps to the end of the next
      // one.
      if (scheduler().attempts_in_flight() == 0) break;
      stage_.world().ReconcileVolumes(&scheduler(), now_);
      SetTime(std::max(now_, scheduler().NextWakeup(now_)));
    }
    return absl::OkStatus();
  }

  absl::Status RunUntilSettled() {
    const size_t max_attempts = kMaxAttemptsPerPod * (scene_.pending.size() + 1);
    while (!stage_.host_lost()) {
      // Until the hosts have judged all events, it is not known which pods these help.
      if (absl::Status polled = PollHosts(); !polled.ok()) return polled;
      bool worked = false;
      // After two failed attempts at one pod at one instant, time passes: otherwise two pods could
      // retry each other for ever.
      tried_again_ = false;
      while (!tried_again_ && !stage_.host_lost() && Step()) {
        worked = true;
        if (!writes_objects_) continue;
        if (absl::Status polled = PollHosts(); !polled.ok()) return polled;
      }
      if (reporter_.all_attempts() > max_attempts) {
        end_.gave_up = true;
        break;
      }
      if (now_ - last_change_ > kQuiet && scheduler().attempts_in_flight() == 0) break;
      if (tried_again_) {
        SetTime(now_ + kMoment);
        continue;
      }
      if (stage_.world().ReconcileVolumes(&scheduler(), now_) || worked) continue;
      const queue::QueueCounts counts = scheduler().queue().counts();
      const size_t due = counts.active + counts.backoff + counts.parked + counts.in_flight +
                         scheduler().attempts_in_flight();
      if (due == 0) break;
      const absl::Time next = scheduler().NextWakeup(now_);
      if (next == absl::InfiniteFuture()) break;
      SetTime(next > now_ ? next : now_ + kMoment);
    }
    scheduler().queue().ForEach([this](const queue::QueuedPod& pod) {
      if (pod.place != queue::Place::kUnschedulable && pod.place != queue::Place::kGated)
        end_.restless.push_back(pod.pod->key());
    });
    absl::c_sort(end_.restless);
    return absl::OkStatus();
  }

  void ReportPodsWithoutAttempt() {
    for (const kube::PodPtr& pod : scene_.pending) {
      if (reporter_.attempts(pod->uid()) > 0) continue;
      if (!stage_.HandlesScheduler(pod->pod.scheduler_name())) {
        sink_(ReportOf(*pod, kSkipped,
                       absl::StrCat("no profile is called \"", pod->pod.scheduler_name(),
                                    "\"; profiles: ", absl::StrJoin(profiles_, ", "))));
      } else if (pod->pod.deletion_unix_seconds() != 0) {
        sink_(ReportOf(*pod, kSkipped, "is being deleted"));
      } else {
        const queue::QueuedPod* const info = scheduler().queue().Find(pod->uid());
        sink_(ReportOf(*pod, kUnschedulable, info == nullptr ? "" : info->gate_message));
      }
    }
    for (const SkippedPod& skipped : scene_.skipped) {
      AttemptReport report = ReportOf(*skipped.pod, kSkipped, skipped.why);
      report.node = skipped.pod->pod.node_name();
      sink_(std::move(report));
    }
  }

  const SimulationInput& scene_;
  const SimulationOptions& options_;
  const Reporter::Sink& sink_;
  // The scheduler's time is arbitrary: no result may depend on it.
  const absl::Time begin_ = absl::FromUnixSeconds(1000000000);
  const absl::Time hosts_begin_ = absl::Now();
  absl::Time now_ = begin_;
  absl::Time last_change_ = begin_;
  std::vector<std::string> profiles_;
  const cache::ClusterState* cluster_ = nullptr;
  Reporter reporter_;
  SimulatedScheduler stage_;
  bool writes_objects_ = false;
  // By pod: when it was last tried without success.
  absl::flat_hash_map<std::string, absl::Time> tried_;
  bool tried_again_ = false;
  SimulationEnd end_;
};

}  // namespace

absl::StatusOr<SimulationEnd> Simulate(const SimulationInput& scene, const config::Config& config,
                                       const std::vector<std::string>& addresses,
                                       const SimulationOptions& options,
                                       const Reporter::Sink& sink) {
  return SimulationRun(scene, config, options, sink).Run(addresses);
}

}  // namespace outboard::simulate
