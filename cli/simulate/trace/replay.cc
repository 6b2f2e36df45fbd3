#include "cli/simulate/trace/replay.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace outboard::simulate::trace {

namespace {

// Work that is left at an instant is retried after this time.
constexpr absl::Duration kMoment = absl::Milliseconds(1);

}  // namespace

bool Replay::Event::operator>(const Event& other) const {
  return std::tie(when, kind, job, replica, generation) >
         std::tie(other.when, other.kind, other.job, other.replica, other.generation);
}

Replay::Replay(const std::vector<Job>& jobs, const std::vector<kube::PodPtr>& running,
               Cluster* cluster, Records* records, absl::Time begin)
    : jobs_(jobs), cluster_(cluster), records_(records), begin_(begin), states_(jobs.size()) {
  for (size_t i = 0; i < jobs_.size(); ++i) {
    amounts_.push_back(AmountsOf(jobs_[i].pod->pod));
    events_.push({begin_ + jobs_[i].arrival, Event::kArrival, i, -1, 0});
  }
  for (const kube::PodPtr& pod : running) {
    const Amounts amounts = AmountsOf(pod->pod);
    others_.emplace(pod->uid(), amounts);
    records_->Take(amounts, 1, begin_);
  }
}

absl::Status Replay::Run(const ReplayOptions& options) {
  const absl::Time end = begin_ + options.until;
  absl::Time now = begin_;
  absl::Time last_change = begin_;
  std::vector<Cluster::News> news;
  while (true) {
    if (absl::Status begun = cluster_->Begin(now); !begun.ok()) return begun;
    while (!events_.empty() && events_.top().when <= now) {
      const Event event = events_.top();
      events_.pop();
      Handle(event, now);
      last_change = now;
    }
    // Pods preempted for returned pods come back a moment later. Otherwise two pods could preempt
    // each other for ever.
    for (int round = 0; round < 2 && (round == 0 || !returning_.empty()); ++round) {
      for (const auto& [job, replica] : std::exchange(returning_, {}))
        CreateReplica(job, replica, now);
      news.clear();
      if (absl::Status settled = cluster_->Settle(now, &news); !settled.ok()) return settled;
      for (const Cluster::News& item : news) {
        if (item.kind == Cluster::News::Kind::kBound) OnBound(item.uid, now);
        if (item.kind == Cluster::News::Kind::kEvicted) OnEvicted(item.uid, now);
        last_change = now;
      }
    }

    const absl::Time wakeup = returning_.empty() ? cluster_->NextWakeup(now) : now;
    absl::Time next = wakeup;
    if (!events_.empty()) next = std::min(next, events_.top().when);
    const bool over = events_.empty() &&
                      (wakeup == absl::InfiniteFuture() || next - last_change > options.patience);
    if (over || now >= end || by_uid_.size() - bound_ > options.most_waiting) break;
    if (next >= end) {
      now = end;
      break;
    }
    // Due work that is not done waits for time to pass.
    now = next > now ? next : now + kMoment;
  }
  Close(now);
  return absl::OkStatus();
}

void Replay::Close(absl::Time now) {
  for (size_t i = 0; i < states_.size(); ++i) {
    for (size_t k = 0; k < states_[i].replicas.size(); ++k) {
      const Replica& replica = states_[i].replicas[k];
      if (replica.uid.empty()) continue;
      ++(replica.bound.has_value() ? records_->job(i).pods_bound : records_->job(i).pods_waiting);
      BookIdle(i, replica, now);
    }
  }
  records_->End(now);
}

void Replay::BookIdle(size_t job, const Replica& replica, absl::Time now) {
  if (!jobs_[job].gang || !replica.bound.has_value() || states_[job].running_since.has_value())
    return;
  records_->job(job).gpu_seconds_idle +=
      static_cast<double>(amounts_[job].gpus) * absl::ToDoubleSeconds(now - *replica.bound);
}

void Replay::Handle(const Event& event, absl::Time now) {
  JobState& state = states_[event.job];
  if (event.kind == Event::kArrival) return Arrive(event.job, now);
  if (event.replica >= 0) {
    const Replica& replica = state.replicas[event.replica];
    if (!replica.uid.empty() && replica.incarnation == event.generation)
      EndReplica(event.job, event.replica, now);
    return;
  }
  if (state.run_number != event.generation || !state.running_since.has_value()) return;
  for (int i = 0; i < jobs_[event.job].replicas; ++i) EndReplica(event.job, i, now);
}

void Replay::Arrive(size_t job, absl::Time now) {
  states_[job].replicas.resize(static_cast<size_t>(jobs_[job].replicas));
  for (int i = 0; i < jobs_[job].replicas; ++i) CreateReplica(job, i, now);
}

void Replay::CreateReplica(size_t job, int replica, absl::Time now) {
  Replica& state = states_[job].replicas[replica];
  const kube::PodPtr pod = PodOf(jobs_[job], replica, state.incarnation);
  state.uid = pod->uid();
  by_uid_[state.uid] = {job, replica};
  cluster_->Create(pod, now);
}

void Replay::OnBound(const std::string& uid, absl::Time now) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return;
  const auto [index, replica_index] = found->second;
  const Job& job = jobs_[index];
  JobState& state = states_[index];
  Replica& replica = state.replicas[replica_index];
  if (replica.bound.has_value()) return;
  replica.bound = now;
  ++state.bound;
  ++bound_;
  records_->Take(amounts_[index], 1, now);
  if (!std::exchange(replica.was_bound, true) && ++state.ever_bound == state.replicas.size())
    records_->job(index).all_bound = now;
  if (!job.gang) {
    if (job.run.has_value()) {
      events_.push(
          {now + *job.run - replica.done, Event::kEnd, index, replica_index, replica.incarnation});
    }
    return;
  }
  if (state.bound < state.replicas.size()) return;
  for (const Replica& member : state.replicas) BookIdle(index, member, now);
  state.running_since = now;
  ++state.run_number;
  if (job.run.has_value()) {
    events_.push({now + *job.run - state.done, Event::kEnd, index, -1, state.run_number});
  }
}

void Replay::Unbind(size_t job, int replica, absl::Time now) {
  Replica& state = states_[job].replicas[replica];
  if (!state.bound.has_value()) return;
  state.bound.reset();
  --states_[job].bound;
  --bound_;
  records_->Take(amounts_[job], -1, now);
}

void Replay::EndReplica(size_t job, int replica, absl::Time now) {
  Replica& state = states_[job].replicas[replica];
  cluster_->Delete(state.uid, now);
  Unbind(job, replica, now);
  by_uid_.erase(state.uid);
  state.uid.clear();
  if (++states_[job].over == states_[job].replicas.size()) records_->job(job).ended = now;
}

absl::Duration Replay::Save(size_t job, absl::Duration done, double replicas) {
  absl::Duration saved = absl::ZeroDuration();
  if (const auto& every = jobs_[job].checkpoint_every; every.has_value())
    saved = *every == absl::ZeroDuration() ? done : absl::Floor(done, *every);
  JobRecord& record = records_->job(job);
  const double lost = absl::ToDoubleSeconds(done - saved) * replicas;
  record.gpu_seconds_lost += lost * static_cast<double>(amounts_[job].gpus);
  record.cpu_seconds_lost += lost * static_cast<double>(amounts_[job].cpu_millis) / 1000;
  return saved;
}

void Replay::OnEvicted(const std::string& uid, absl::Time now) {
  if (const auto other = others_.find(uid); other != others_.end()) {
    records_->Take(other->second, -1, now);
    others_.erase(other);
    return;
  }
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return;
  const auto [index, evicted] = found->second;
  const Job& job = jobs_[index];
  JobState& state = states_[index];
  ++records_->job(index).preempted;
  const auto comes_back = [&, index = index](int replica) {
    Replica& its = state.replicas[replica];
    Unbind(index, replica, now);
    by_uid_.erase(its.uid);
    ++its.incarnation;
    returning_.emplace_back(index, replica);
  };
  if (!job.gang) {
    Replica& replica = state.replicas[evicted];
    if (replica.bound.has_value())
      replica.done = Save(index, replica.done + (now - *replica.bound), 1);
    return comes_back(evicted);
  }
  if (!state.running_since.has_value()) {
    BookIdle(index, state.replicas[evicted], now);
    return comes_back(evicted);
  }
  state.done = Save(index, state.done + (now - *state.running_since), job.replicas);
  state.running_since.reset();
  ++state.run_number;
  for (int i = 0; i < job.replicas; ++i) {
    if (i != evicted) cluster_->Delete(state.replicas[i].uid, now);
    comes_back(i);
  }
}

}  // namespace outboard::simulate::trace
