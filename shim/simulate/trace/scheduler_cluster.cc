#include "shim/simulate/trace/scheduler_cluster.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"

namespace outboard::simulate::trace {
namespace {

// While pods wait, plugins hear of the time so often, on whole minutes: one may let a pod go when
// its hour comes.
constexpr absl::Duration kTick = absl::Minutes(1);
// On the machine's clock.
constexpr absl::Duration kHearTimeout = absl::Seconds(30);

}  // namespace

SchedulerCluster::SchedulerCluster(const config::Config& config, const Scene& scene,
                                   absl::Time begin)
    : stage_(config, SimulatedOptions(config), scene.objects, this, begin), now_(begin) {
  stage_.world().SetCallbacks({[this](const kube::PodPtr& pod, absl::Time) {
                                 tried_.erase(pod->uid());
                                 news_.push_back({News::Kind::kBound, pod->uid()});
                               },
                               [this](const kube::PodPtr& pod, absl::Time) {
                                 news_.push_back({News::Kind::kEvicted, pod->uid()});
                               }});
}

void SchedulerCluster::Create(const kube::PodPtr& pod, absl::Time now) {
  stage_.scheduler().OnPodUpsert(pod, now);
}

void SchedulerCluster::Delete(const std::string& uid, absl::Time now) {
  tried_.erase(uid);
  stage_.scheduler().OnPodDelete(uid, now);
}

void SchedulerCluster::OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                                    cycle::AttemptResult result, const std::string& node_name,
                                    const std::string& message,
                                    absl::Duration since_attempt_began) {
  ++attempts_;
  if (result == cycle::AttemptResult::kScheduled) return;
  auto [tried, first] = tried_.try_emplace(pod.uid(), now_);
  if (first) return;
  if (tried->second == now_) tried_again_ = true;
  tried->second = now_;
}

absl::Status SchedulerCluster::HearHosts(absl::Time now) {
  cycle::Scheduler& scheduler = stage_.scheduler();
  scheduler.TellTime(now);
  const absl::Time deadline = absl::Now() + kHearTimeout;
  while (!scheduler.HostsHeardTime()) {
    if (absl::Now() >= deadline) {
      return absl::UnavailableError(
          "a plugin host does not say that it has heard the time; is it of an older build?");
    }
    stage_.loop().Wait(deadline);
    stage_.hosts().Tick(now);
    if (stage_.host_lost()) break;
  }
  if (stage_.host_lost())
    return absl::UnavailableError("a plugin host was lost in the middle of the simulation");
  return absl::OkStatus();
}

bool SchedulerCluster::ScheduleAll(absl::Time now) {
  bool worked = false;
  while (!tried_again_ && stage_.scheduler().ScheduleOne(now)) {
    stage_.world().CarryOut(&stage_.scheduler(), now);
    worked = true;
  }
  return worked;
}

absl::Status SchedulerCluster::Settle(absl::Time now, std::vector<News>* news) {
  cycle::Scheduler& scheduler = stage_.scheduler();
  now_ = now;
  tried_again_ = false;
  bool worked = true;
  while (worked) {
    if (absl::Status heard = HearHosts(now); !heard.ok()) return heard;
    const size_t known = news_.size();
    scheduler.Tick(now);
    stage_.world().CarryOut(&scheduler, now);
    worked = ScheduleAll(now) || stage_.world().ReconcileVolumes(&scheduler, now) ||
             news_.size() > known;  // Permit may have let pods go without an attempt of theirs.
  }
  news->insert(news->end(), std::make_move_iterator(news_.begin()),
               std::make_move_iterator(news_.end()));
  news_.clear();
  return absl::OkStatus();
}

absl::Time SchedulerCluster::NextWakeup(absl::Time now) {
  cycle::Scheduler& scheduler = stage_.scheduler();
  if (scheduler.queue().HasNext()) return now;
  absl::Time next = scheduler.NextWakeup(now);
  const queue::QueueCounts counts = scheduler.queue().counts();
  if (counts.unschedulable + counts.gated + counts.in_flight > 0) {
    next = std::min(next, absl::UnixEpoch() + absl::Floor(now - absl::UnixEpoch(), kTick) + kTick);
  }
  return next;
}

}  // namespace outboard::simulate::trace
