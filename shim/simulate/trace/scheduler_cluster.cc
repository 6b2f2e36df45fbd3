#include "shim/simulate/trace/scheduler_cluster.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/simulate/trace/likeness.h"

namespace outboard::simulate::trace {
namespace {

// While pods wait, plugins hear of the time so often, on whole minutes: one may let a pod go when
// its hour comes.
constexpr absl::Duration kTick = absl::Minutes(1);

cycle::SchedulerOptions OptionsOf(const config::Config& config, bool spare_attempts) {
  cycle::SchedulerOptions options = SimulatedOptions(config);
  if (spare_attempts) options.likeness = LikenessOf;
  return options;
}

}  // namespace

SchedulerCluster::SchedulerCluster(const config::Config& config, const Scene& scene,
                                   absl::Time begin, bool spare_attempts)
    : stage_(config, OptionsOf(config, spare_attempts), scene.objects, this, begin), now_(begin) {
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
  // What follows from what ends now is judged by this time, in the order in which it is told.
  stage_.scheduler().TellTime(now);
  heard_at_ = absl::InfinitePast();
  return absl::OkStatus();
}

void SchedulerCluster::Create(const kube::PodPtr& pod, absl::Time now) {
  // The gate is asked about a pod as soon as it is created, so hosts have to know the time.
  if (heard_at_ != now) {
    heard_at_ = now;
    if (absl::Status heard = stage_.HearHosts(now); !heard.ok()) failed_ = heard;
  }
  auto created = std::make_shared<kube::PodObject>(*pod);
  created->pod.set_creation_unix_seconds(absl::ToUnixSeconds(now));
  stage_.scheduler().OnPodUpsert(std::move(created), now);
}

void SchedulerCluster::Delete(const std::string& uid, absl::Time now) {
  tried_.erase(uid);
  stage_.scheduler().OnPodDelete(uid, now);
}

void SchedulerCluster::OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                                    cycle::AttemptResult result, const std::string& node_name,
                                    const std::string& message,
                                    absl::Duration since_attempt_began) {
  if (result != cycle::AttemptResult::kScheduled) NoteTriedInVain(pod.uid());
}

void SchedulerCluster::OnNoAnswer(const std::string& host_instance, const absl::Status& status) {
  if (!failed_.ok()) return;
  failed_ = absl::UnavailableError(
      absl::StrCat("plugin host ", host_instance, " gave no answer: ", status.message()));
}

void SchedulerCluster::NoteTriedInVain(const std::string& uid) {
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

bool SchedulerCluster::NobodyWaits() {
  const queue::QueueCounts counts = stage_.scheduler().queue().counts();
  return counts.active + counts.backoff + counts.unschedulable + counts.gated + counts.parked +
             counts.in_flight + stage_.scheduler().attempts_in_flight() ==
         0;
}

absl::Status SchedulerCluster::Settle(absl::Time now, std::vector<News>* news) {
  cycle::Scheduler& scheduler = stage_.scheduler();
  now_ = now;
  tried_again_ = false;
  bool worked = true;
  while (worked && failed_.ok()) {
    if (absl::Status heard = stage_.HearHosts(now); !heard.ok()) return heard;
    const size_t known = news_.size();
    scheduler.Tick(now);
    stage_.world().CarryOut(&scheduler, now);
    const bool tried = ScheduleAll(now);
    // Nobody waits whom hosts could help: what else they want can wait until the next instant.
    if (tried && NobodyWaits() && !stage_.world().ReconcileVolumes(&scheduler, now)) break;
    worked = tried || stage_.world().ReconcileVolumes(&scheduler, now) ||
             news_.size() > known;  // Permit may have let pods go without an attempt of theirs.
  }
  news->insert(news->end(), std::make_move_iterator(news_.begin()),
               std::make_move_iterator(news_.end()));
  news_.clear();
  return failed_;
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
