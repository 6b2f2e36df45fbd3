#include "integration/simulator/storms/play.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "integration/simulator/storms/host_pool.h"
#include "integration/simulator/storms/judge.h"
#include "integration/simulator/storms/objects.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/plans.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::simulate::storms {
namespace {

// The duration of a cycle on the virtual clock, so that no endless loop can happen at one instant.
constexpr absl::Duration kCycle = absl::Milliseconds(1);
// Without disturbances, and with unplaced gangs: after this time without a placement they are never
// placed.
constexpr absl::Duration kPatience = absl::Minutes(20);
constexpr size_t kStoryLines = 4000;

scheduler::SchedulerOptions Options(const config::Config& config) {
  scheduler::SchedulerOptions options;
  // Deadlines so long that no call fails because this machine is busy.
  options.cycle_deadline = options.reserve_deadline = options.permit_deadline =
      options.pre_bind_deadline = options.bind_deadline = options.queue_deadline =
          HostPool::kAnswerTimeout;
  options.custom_resources = hosts::AllowedResources(config.shim.custom_resources);
  return options;
}

// The cluster around the scheduler: API server, controllers, kubelets, users and hosts.
class Player final : private scheduler::ClusterActions, private scheduler::Observer {
 public:
  Player(const Storm& storm, const config::Config& config, const std::string& host_binary)
      : storm_(storm),
        random_(storm.seed),
        now_(absl::FromUnixSeconds(1767600000)),  // 2026-01-05T08:00:00Z
        begin_(now_),
        scheduler_(Options(config), queue::QueueOptions(), this, this, nullptr, now_),
        pool_(std::make_shared<config::Config>(config), host_binary, &loop_, &scheduler_) {
    scheduler_.SetProfileNames({"storm"});
  }

  absl::StatusOr<Outcome> Play() {
    if (absl::Status begun = Begin(); !begun.ok()) return begun;
    absl::Time last_progress = now_;
    int64_t placed = 0;
    while (!AllDone() && judge_.complaints().empty()) {
      const bool calm = now_ - begin_ > storm_.calm && events_.empty();
      if (placed != outcome_.placed || !calm) last_progress = now_;
      placed = outcome_.placed;
      if (now_ - last_progress > kPatience) {
        ReportUnplacedGangs();
        break;
      }
      if (absl::Status played = PlayInstant(); !played.ok()) return played;
    }
    outcome_.complaints.insert(outcome_.complaints.end(), judge_.complaints().begin(),
                               judge_.complaints().end());
    if (!outcome_.complaints.empty() || !outcome_.left.empty())
      outcome_.story.assign(story_.begin(), story_.end());
    outcome_.binds = judge_.binds();
    for (const auto& [why, count] : pool_.hosts().switches()) outcome_.switches += count;
    outcome_.took = now_ - begin_;
    return outcome_;
  }

 private:
  struct Member {
    kube::PodPtr pod;  // null: does not exist
    std::string node;  // bound
    bool leaving = false;
    int incarnation = 0;
  };
  struct GangState {
    std::vector<Member> members;
    int life = 0;
    bool there = false;   // created, neither deleted nor over
    bool placed = false;  // `min` members were bound at some time of this life
    bool over = false;    // nothing more follows
    kube::ClusterObjectPtr object;
  };

  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  // In whole microseconds, because hosts use nanoseconds.
  absl::Duration Within(absl::Duration longest) {
    return absl::Floor(longest * std::uniform_real_distribution<double>(0, 1)(random_),
                       absl::Microseconds(1));
  }
  void At(absl::Time when, std::function<void()> what) { events_.emplace(when, std::move(what)); }
  void In(absl::Duration delay, std::function<void()> what) { At(now_ + delay, std::move(what)); }
  void Tell(const std::string& line) {
    story_.push_back(
        absl::StrCat(absl::FormatTime("%H:%M:%E3S", now_, absl::UTCTimeZone()), " ", line));
    if (story_.size() > kStoryLines) story_.pop_front();
  }
  std::string NameOf(size_t gang) const {
    return absl::StrCat(storm_.gangs[gang].name, ".", gangs_[gang].life);
  }

  absl::Status Begin() {
    gangs_.resize(storm_.gangs.size());
    nodes_up_.resize(storm_.nodes.size(), false);
    node_incarnation_.resize(storm_.nodes.size(), 0);
    for (size_t i = 0; i < storm_.nodes.size(); ++i) NodeComes(i);
    for (size_t i = 0; i < storm_.gangs.size(); ++i)
      At(begin_ + storm_.gangs[i].arrives, [this, i] { GangComes(i); });
    for (const Disturbance& disturbance : storm_.disturbances)
      At(begin_ + disturbance.when, [this, disturbance] { Disturb(disturbance); });
    return pool_.Start(now_);
  }

  // --- Time

  absl::Status PlayInstant() {
    while (!events_.empty() && events_.begin()->first <= now_) {
      const auto due = std::move(events_.extract(events_.begin()).mapped());
      due();
      judge_.StepEnded(now_);
    }
    for (; wanted_hosts_ > 0; --wanted_hosts_) {
      if (absl::Status started = pool_.Start(now_); !started.ok()) return started;
      host_was_changed_ = true;
    }
    if (absl::Status polled = pool_.Poll(now_); !polled.ok()) return polled;
    LookForHost();
    scheduler_.Tick(now_);
    judge_.StepEnded(now_);
    // Several cycles at a time, because processing the hosts' messages takes as long as a cycle.
    for (int i = 0; i < 4; ++i) {
      const absl::Time due = events_.empty() ? absl::InfiniteFuture() : events_.begin()->first;
      if (now_ >= due || !scheduler_.ScheduleOne(now_)) break;
      judge_.StepEnded(now_);
      now_ += kCycle;
    }
    if (scheduler_.queue().HasNext() && !host_is_unavailable_) return absl::OkStatus();
    LookWhoHolds();
    absl::Time next = scheduler_.NextWakeup(now_);
    if (!events_.empty()) next = std::min(next, events_.begin()->first);
    // Plugins get the time about once a second.
    next = std::min(next, now_ + absl::Seconds(1));
    now_ = std::max(next, now_ + kCycle);
    return absl::OkStatus();
  }

  void LookWhoHolds() {
    std::vector<std::string> holding;
    for (const GangState& gang : gangs_) {
      for (const Member& member : gang.members) {
        if (member.pod == nullptr || !member.node.empty()) continue;
        const std::string& uid = member.pod->uid();
        if (!ordered_.contains(uid) && scheduler_.cluster()->IsAssumed(uid)) holding.push_back(uid);
      }
    }
    judge_.Holding(holding, now_, std::exchange(host_was_changed_, false) || host_is_unavailable_);
  }

  // --- Gangs and their controllers

  void GangComes(size_t index) {
    const Gang& gang = storm_.gangs[index];
    GangState& state = gangs_[index];
    ++state.life;
    state.there = true;
    state.placed = false;
    state.members.assign(gang.members.size(), Member());
    judge_.GangCame(NameOf(index), gang.min);
    Tell(absl::StrCat("gang ", NameOf(index), " comes: ", gang.min, " of ", gang.members.size(),
                      ", ", gang.members[0].gpus, " GPUs ", gang.members[0].cpu_millis, "m, ",
                      DialectName(gang.dialect), ", priority ", gang.priority));
    const int life = state.life;
    if (gang.object_late == absl::ZeroDuration()) {
      ObjectComes(index, life);
    } else {
      In(gang.object_late, [=, this] { ObjectComes(index, life); });
    }
    for (size_t i = 0; i < gang.members.size(); ++i) {
      In(absl::Floor(
             gang.spread * static_cast<double>(i) / static_cast<double>(gang.members.size()),
             absl::Microseconds(1)),
         [=, this] { MemberComes(index, life, i); });
    }
  }

  void ObjectComes(size_t index, int life) {
    GangState& state = gangs_[index];
    if (state.life != life || !state.there) return;
    state.object = ObjectOf(storm_.gangs[index], life, now_);
    if (state.object != nullptr) scheduler_.events()->OnObjectUpsert(state.object, now_);
  }

  void MemberComes(size_t index, int life, size_t i) {
    GangState& state = gangs_[index];
    if (state.life != life || !state.there || state.members[i].pod != nullptr) return;
    Member& member = state.members[i];
    const int incarnation = member.incarnation + 1;
    member = {PodOf(storm_.gangs[index], life, i, incarnation, now_), "", false, incarnation};
    by_uid_[member.pod->uid()] = {index, i};
    judge_.PodCame(member.pod->uid(), NameOf(index), storm_.gangs[index].members[i]);
    scheduler_.events()->OnPodUpsert(member.pod, now_);
  }

  // It is deleted; its controller creates another while the gang exists.
  void MemberGoes(size_t index, size_t i) {
    GangState& state = gangs_[index];
    Member& member = state.members[i];
    if (member.pod == nullptr) return;
    const std::string uid = member.pod->uid();
    by_uid_.erase(uid);
    ordered_.erase(uid);
    judge_.PodWent(uid);
    member.pod = nullptr;
    member.node.clear();
    scheduler_.events()->OnPodDelete(uid, now_);
    if (!state.there) return FinishIfEmpty(index);
    In(Within(absl::Seconds(3)), [=, this, life = state.life] { MemberComes(index, life, i); });
  }

  // A running pod gets its grace period; others are deleted at once.
  void DeleteMember(size_t index, size_t i, absl::Duration grace) {
    Member& member = gangs_[index].members[i];
    if (member.pod == nullptr || member.leaving) return;
    if (member.node.empty() || grace == absl::ZeroDuration()) return MemberGoes(index, i);
    member.leaving = true;
    judge_.PodIsLeaving(member.pod->uid());
    auto leaving = std::make_shared<kube::PodObject>(*member.pod);
    leaving->pod.set_deletion_unix_seconds(absl::ToUnixSeconds(now_ + grace));
    leaving->resource_version = absl::StrCat("leaving-", leaving->uid());
    member.pod = leaving;
    scheduler_.events()->OnPodUpsert(leaving, now_);
    In(grace, [=, this, uid = leaving->uid()] {
      const Member& now = gangs_[index].members[i];
      if (now.pod != nullptr && now.pod->uid() == uid) MemberGoes(index, i);
    });
  }

  // Deleted by a user, or at its end.
  void DeleteGang(size_t index, bool at_once) {
    GangState& state = gangs_[index];
    state.there = false;
    Tell(absl::StrCat("gang ", NameOf(index), at_once ? " is over" : " is deleted"));
    if (state.object != nullptr) {
      scheduler_.events()->OnObjectDelete(state.object, now_);
      state.object = nullptr;
    }
    for (size_t i = 0; i < state.members.size(); ++i) {
      if (at_once) {
        DeleteMember(index, i, absl::ZeroDuration());
        continue;
      }
      In(Within(absl::Milliseconds(200)), [=, this] {
        DeleteMember(index, i, Below(2) == 0 ? absl::ZeroDuration() : Within(absl::Seconds(20)));
      });
    }
    FinishIfEmpty(index);
  }
  void FinishIfEmpty(size_t index) {
    GangState& state = gangs_[index];
    if (state.there || state.over) return;
    for (const Member& member : state.members) {
      if (member.pod != nullptr) return;
    }
    const bool comes_again = comes_again_.erase(index) > 0;
    if (comes_again) return In(Within(absl::Seconds(2)), [=, this] { GangComes(index); });
    state.over = true;
  }

  void OnBound(size_t index) {
    const Gang& gang = storm_.gangs[index];
    GangState& state = gangs_[index];
    if (state.placed || !state.there || judge_.BoundOf(NameOf(index)) < gang.min) return;
    state.placed = true;
    ++outcome_.placed;
    outcome_.placed_after.try_emplace(gang.name, now_ - begin_);
    Tell(absl::StrCat("gang ", NameOf(index), " has bound ", gang.min));
    if (gang.run == absl::InfiniteDuration()) return;
    In(gang.run, [=, this, life = state.life] {
      if (gangs_[index].there && gangs_[index].life == life) DeleteGang(index, true);
    });
  }

  // Each gang is over, or stays for ever with all of its members.
  bool AllDone() const {
    if (now_ - begin_ < storm_.calm || !events_.empty()) return false;
    for (size_t i = 0; i < gangs_.size(); ++i) {
      if (gangs_[i].over) continue;
      if (!gangs_[i].there || storm_.gangs[i].run != absl::InfiniteDuration()) return false;
      for (const Member& member : gangs_[i].members) {
        if (member.node.empty() || member.leaving) return false;
      }
    }
    return true;
  }
  void ReportUnplacedGangs() {
    for (size_t i = 0; i < gangs_.size(); ++i) {
      if (gangs_[i].over) continue;
      const size_t bound = static_cast<size_t>(judge_.BoundOf(NameOf(i)));
      if (gangs_[i].there && bound == gangs_[i].members.size()) continue;
      outcome_.left.push_back(absl::StrCat("gang ", NameOf(i), " is never placed: ", bound, " of ",
                                           gangs_[i].members.size(), " bound, ",
                                           storm_.gangs[i].min, " wanted, no change for ",
                                           absl::FormatDuration(kPatience)));
    }
  }

  // --- Disturbances

  void Disturb(const Disturbance& disturbance) {
    const uint32_t dice = disturbance.dice;
    switch (disturbance.kind) {
      case Disturbance::kDeleteMember: {
        const size_t gang = dice % gangs_.size();
        if (!gangs_[gang].there) return;
        const size_t member = (dice >> 8) % gangs_[gang].members.size();
        Tell(absl::StrCat("pod ", member, " of gang ", NameOf(gang), " is deleted"));
        return DeleteMember(gang, member, absl::Seconds((dice >> 16) % 3 * 5));
      }
      case Disturbance::kDeleteGang: {
        const size_t gang = dice % gangs_.size();
        if (!gangs_[gang].there) return;
        if (dice >> 30 == 0) comes_again_.insert(gang);
        if (!gangs_[gang].placed) ++outcome_.removed;
        return DeleteGang(gang, false);
      }
      case Disturbance::kFailNode:
        return NodeFails(dice % storm_.nodes.size(), absl::Seconds((dice >> 8) % 120));
      case Disturbance::kNewHost:
        Tell("a new host process takes over");
        ++wanted_hosts_;
        return;
      case Disturbance::kKillHost:
        return KillHost();
      case Disturbance::kSwapBack:
        if (pool_.SwapBack(now_)) {
          host_was_changed_ = true;
          Tell("the previous host process takes over again");
        }
        return;
    }
  }

  void NodeComes(size_t index) {
    nodes_up_[index] = true;
    ++node_incarnation_[index];
    judge_.NodeCame(NodeName(index), storm_.nodes[index]);
    scheduler_.events()->OnNodeUpsert(NodeOf(index, node_incarnation_[index], storm_.nodes[index]),
                                      now_);
  }
  // Its pods are deleted a moment later, or earlier.
  void NodeFails(size_t index, absl::Duration away) {
    if (!nodes_up_[index]) return;
    Tell(absl::StrCat("node ", NodeName(index), " fails"));
    nodes_up_[index] = false;
    const bool pods_first = Below(2) == 0;
    if (pods_first) DeletePodsOf(index);
    judge_.NodeWent(NodeName(index));
    scheduler_.events()->OnNodeDelete(NodeName(index), now_);
    if (!pods_first) In(Within(absl::Seconds(5)), [this, index] { DeletePodsOf(index); });
    In(absl::Seconds(6) + away, [this, index] {
      Tell(absl::StrCat("node ", NodeName(index), " is back"));
      NodeComes(index);
    });
  }
  void DeletePodsOf(size_t node) {
    for (size_t gang = 0; gang < gangs_.size(); ++gang) {
      for (size_t i = 0; i < gangs_[gang].members.size(); ++i) {
        if (gangs_[gang].members[i].node == NodeName(node)) MemberGoes(gang, i);
      }
    }
  }

  // --- Hosts

  void KillHost() {
    if (!pool_.Kill()) return;
    Tell("the serving host process is killed");
    host_was_changed_ = true;
  }
  // Starts another after a while, if none took over.
  void LookForHost() {
    host_is_unavailable_ = !pool_.Serves();
    if (!host_is_unavailable_ || host_comes_) return;
    Tell("no host is running");
    host_comes_ = true;
    In(Within(absl::Seconds(30)), [this] {
      host_comes_ = false;
      if (!host_is_unavailable_) return;
      Tell("a host process starts");
      ++wanted_hosts_;
    });
  }

  // --- The scheduler's orders

  void Bind(const scheduler::BindOrder& order, absl::Time now) override {
    const std::string uid = order.pod->uid();
    judge_.Ordered(uid, order.node_name, now);
    ordered_.insert(uid);
    const bool fails = Below(200) == 0 && now_ - begin_ < storm_.calm;
    In(Within(absl::Milliseconds(Below(10) == 0 ? 500 : 5)), [=, this] {
      const auto found = by_uid_.find(uid);
      if (found == by_uid_.end())
        return order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kGone,
                                             "not found", now_);
      ordered_.erase(uid);
      if (fails) {
        ++outcome_.failed_binds;
        Tell(absl::StrCat("the bind of ", uid, " fails"));
        judge_.NotBound(uid);
        return order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kNotBound,
                                             "refused", now_);
      }
      const auto [gang, i] = found->second;
      Member& member = gangs_[gang].members[i];
      auto bound = std::make_shared<kube::PodObject>(*member.pod);
      bound->pod.set_node_name(order.node_name);
      bound->phase = "Running";
      bound->resource_version = absl::StrCat("bound-", uid);
      member.pod = bound;
      member.node = order.node_name;
      judge_.Bound(uid, now_);
      // The answer and the watch event arrive in either order.
      if (Below(2) == 0) {
        order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kBound, "", now_);
        scheduler_.events()->OnPodUpsert(bound, now_);
      } else {
        scheduler_.events()->OnPodUpsert(bound, now_);
        order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kBound, "", now_);
      }
      OnBound(gang);
      // The node was removed during the bind.
      if (!nodes_up_[NodeIndex(order.node_name)])
        In(Within(absl::Seconds(5)), [=, this, node = NodeIndex(order.node_name)] {
          if (!nodes_up_[node]) DeletePodsOf(node);
        });
    });
  }
  static size_t NodeIndex(const std::string& name) {
    return static_cast<size_t>(std::stoul(name.substr(1)));
  }
  void Evict(const scheduler::EvictOrder& order, absl::Time) override {
    outcome_.complaints.push_back(
        absl::StrCat("pod ", order.victim->uid(), " is evicted, although preemption is off"));
  }
  void Write(const scheduler::EffectOrder& order, absl::Time) override {
    In(absl::Milliseconds(1), [=, this] {
      const scheduler::EffectEnd end = {absl::PermissionDeniedError("no writes expected"), ""};
      order.ordered_by->OnEffectEnded(order, end, now_);
    });
  }
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject& pod, const std::string&, const std::string& message,
                    absl::Time) override {
    std::string& last = said_[pod.uid()];
    if (std::exchange(last, message) != message) Tell(absl::StrCat(pod.uid(), ": ", message));
  }
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void PatchStatus(const kube::PodObject&, const std::optional<scheduler::PodScheduledFalse>&,
                   const std::optional<std::string>&, absl::Time) override {}
  void OnAttemptEnd(const kube::PodObject& pod, const std::string&, scheduler::AttemptResult result,
                    const std::string&, const std::string&, absl::Duration) override {
    ++outcome_.attempts;
    if (result != scheduler::AttemptResult::kScheduled) judge_.GaveBack(pod.uid());
  }
  void OnHostCallFailed(const std::string& instance, const absl::Status& status) override {
    pool_.hosts().OnHostCallFailed(instance, status);
  }
  void OnProtocolError(const std::string&, const std::string&,
                       const absl::Status& status) override {
    outcome_.complaints.push_back(
        absl::StrCat("invalid answer of the host: ", std::string(status.message())));
  }

  const Storm& storm_;
  std::mt19937_64 random_;
  absl::Time now_;
  const absl::Time begin_;
  hosts::HostLoop loop_;
  scheduler::Scheduler scheduler_;
  HostPool pool_;
  int wanted_hosts_ = 0;
  bool host_is_unavailable_ = false;
  bool host_comes_ = false;
  bool host_was_changed_ = false;

  Judge judge_;
  std::vector<GangState> gangs_;
  std::set<size_t> comes_again_;
  std::map<std::string, std::pair<size_t, size_t>> by_uid_;
  std::set<std::string> ordered_;
  std::vector<bool> nodes_up_;
  std::vector<int> node_incarnation_;
  std::multimap<absl::Time, std::function<void()>> events_;
  std::deque<std::string> story_;
  std::map<std::string, std::string> said_;  // by pod: the last logged reason why it is not placed
  Outcome outcome_;
};

}  // namespace

absl::StatusOr<config::Config> StormConfig(const std::string& queue_sort) {
  return config::ParseConfig(
      absl::StrCat(R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: storm
  plugins:
    multiPoint:
      enabled: [{name: AtomicReplicaCoordinator}]
      disabled: [{name: DefaultPreemption}]
)",
                   queue_sort.empty()
                       ? ""
                       : absl::StrCat("    queueSort: {enabled: [{name: ", queue_sort,
                                      "}], disabled: [{name: PrioritySort}]}\n"
                                      "    postFilter: {enabled: [{name: ",
                                      queue_sort, "}]}\n"),
                   R"(  pluginConfig:
  - {name: NotServed, args: {served: [spec.schedulingGroup]}}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:/started/by/the/storm"}]
replacement: {shadowCycles: 0, keepWarm: 1m}
customResources:
- {resource: podgroups.v1alpha2.scheduling.k8s.io}
- {resource: podgroups.v1alpha1.scheduling.x-k8s.io}
- {resource: podgroups.v1beta1.scheduling.volcano.sh}
- {resource: podgroups.v2alpha2.scheduling.run.ai}
)"),
      "storm");
}

absl::StatusOr<Outcome> Play(const Storm& storm, const config::Config& config,
                             const std::string& host_binary) {
  return Player(storm, config, host_binary).Play();
}

}  // namespace outboard::simulate::storms
