#include "cli/simulate/trace/scheduler_cluster.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/simulate/trace/equivalence_cache.h"
#include "cli/simulate/trace/equivalence_class.h"

namespace outboard::simulate::trace {
namespace {

// While pods wait, plugins get the time at this interval, on whole minutes: a plugin can release a
// pod at a given hour.
constexpr absl::Duration kTick = absl::Minutes(1);

scheduler::SchedulerOptions OptionsOf(const config::Config& config, bool equivalence_cache) {
  scheduler::SchedulerOptions options = SimulatedOptions(config);
  if (equivalence_cache) {
    options.skipper = [](const cache::ClusterState* cluster, queue::SchedulingQueue* queue,
                         scheduler::AttemptSkipper::Reads reads) {
      return std::make_unique<EquivalenceCache>(cluster, queue, EquivalenceClassOf,
                                                std::move(reads));
    };
  }
  return options;
}

}  // namespace

SchedulerCluster::SchedulerCluster(const config::Config& config, const SimulationInput& scene,
                                   absl::Time begin, bool equivalence_cache)
    : stage_(config, OptionsOf(config, equivalence_cache), scene.objects, this, begin),
      now_(begin) {
  stage_.world().SetCallbacks({[this](const kube::PodPtr& pod, absl::Time) {
                                 tried_.erase(pod->uid());
                                 news_.push_back({News::Kind::kBound, pod->uid()});
                               },
                               [this](const kube::PodPtr& pod, absl::Time) {
                                 news_.push_back({News::Kind::kEvicted, pod->uid()});
                               }});
  stage_.world().StartPods();
}

absl::Status SchedulerCluster::Begin(absl::Time now) {
  // Consequences of ends at this instant use this time, in the order of the calls.
  stage_.scheduler().AdvanceHostClocks(now);
  heard_at_ = absl::InfinitePast();
  return absl::OkStatus();
}

void SchedulerCluster::Create(const kube::PodPtr& pod, absl::Time now) {
  // PreEnqueue runs when the pod is created, so hosts need the time before.
  if (heard_at_ != now) {
    heard_at_ = now;
    if (absl::Status polled = stage_.PollHosts(now); !polled.ok()) failed_ = polled;
  }
  auto created = std::make_shared<kube::PodObject>(*pod);
  created->pod.set_creation_unix_seconds(absl::ToUnixSeconds(now));
  stage_.scheduler().events()->OnPodUpsert(std::move(created), now);
}

void SchedulerCluster::Delete(const std::string& uid, absl::Time now) {
  tried_.erase(uid);
  stage_.scheduler().events()->OnPodDelete(uid, now);
}

void SchedulerCluster::OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                                    scheduler::AttemptResult result, const std::string& node_name,
                                    const std::string& message,
                                    absl::Duration since_attempt_began) {
  if (result != scheduler::AttemptResult::kScheduled) NoteUnplaced(pod.uid());
}

void SchedulerCluster::OnHostCallFailed(const std::string& host_instance,
                                        const absl::Status& status) {
  if (!failed_.ok()) return;
  failed_ = absl::UnavailableError(
      absl::StrCat("plugin host ", host_instance, " did not answer: ", status.message()));
}

void SchedulerCluster::NoteUnplaced(const std::string& uid) {
  auto [tried, first] = tried_.try_emplace(uid, now_);
  if (first) return;
  if (tried->second == now_) tried_again_ = true;
  tried->second = now_;
}

bool SchedulerCluster::ScheduleAll(absl::Time now) {
  bool worked = false;
  while (!tried_again_ && failed_.ok() && stage_.scheduler().ScheduleOne(now)) {
    stage_.world().CarryOut(&stage_.scheduler(), now);
    worked = true;
  }
  return worked;
}

bool SchedulerCluster::NoPodWaits() {
  const queue::QueueCounts counts = stage_.scheduler().queue().counts();
  return counts.active + counts.backoff + counts.unschedulable + counts.gated + counts.parked +
             counts.in_flight + stage_.scheduler().attempts_in_flight() ==
         0;
}

absl::Status SchedulerCluster::Settle(absl::Time now, std::vector<News>* news) {
  scheduler::Scheduler& scheduler = stage_.scheduler();
  now_ = now;
  tried_again_ = false;
  bool worked = true;
  while (worked && failed_.ok()) {
    if (absl::Status polled = stage_.PollHosts(now); !polled.ok()) return polled;
    const size_t known = news_.size();
    scheduler.Tick(now);
    stage_.world().CarryOut(&scheduler, now);
    const bool tried = ScheduleAll(now);
    // No waiting pod can be helped by hosts: their other pushes can wait until the next instant.
    if (tried && NoPodWaits() && !stage_.world().ReconcileVolumes(&scheduler, now)) break;
    worked = tried || stage_.world().ReconcileVolumes(&scheduler, now) ||
             news_.size() > known;  // Permit may have allowed pods without an attempt.
  }
  news->insert(news->end(), std::make_move_iterator(news_.begin()),
               std::make_move_iterator(news_.end()));
  news_.clear();
  return failed_;
}

absl::Time SchedulerCluster::NextWakeup(absl::Time now) {
  scheduler::Scheduler& scheduler = stage_.scheduler();
  if (scheduler.queue().HasNext()) return now;
  absl::Time next = scheduler.NextWakeup(now);
  const queue::QueueCounts counts = scheduler.queue().counts();
  if (counts.unschedulable + counts.gated + counts.in_flight > 0) {
    next = std::min(next, absl::UnixEpoch() + absl::Floor(now - absl::UnixEpoch(), kTick) + kTick);
  }
  return next;
}

}  // namespace outboard::simulate::trace
