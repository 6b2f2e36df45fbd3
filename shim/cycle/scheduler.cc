#include "shim/cycle/scheduler.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "shim/cycle/answer_check.h"
#include "shim/cycle/scheduler_attempt.h"

namespace outboard::cycle {

using queue::QueuedPod;

namespace {

bool Reads(const v1alpha1::GetHostInfoResponse& host, absl::string_view plugin,
           absl::string_view field) {
  return absl::c_any_of(host.plugins(), [&](const v1alpha1::PluginInfo& its) {
    return its.name() == plugin && absl::c_linear_search(its.needed_fields(), field);
  });
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, queue::QueueOptions queue_options, Effects* effects,
                     Observer* observer, queue::QueueObserver* queue_observer, absl::Time now)
    : options_(options),
      effects_(effects),
      observer_(observer),
      queue_(queue_options, now, this, this, queue_observer),
      algorithm_(&cluster_),
      vain_attempts_(&cluster_, &queue_, options_.likeness,
                     [this](const std::string& plugin, absl::string_view field) {
                       return absl::c_any_of(hosts_, [&](const auto& entry) {
                         return entry.second.client != nullptr &&
                                Reads(entry.second.client->info(), plugin, field);
                       });
                     }) {}

Scheduler::~Scheduler() = default;

void Scheduler::SetProfileNames(const std::vector<std::string>& names) {
  profile_names_ = std::set<std::string>(names.begin(), names.end());
}

void Scheduler::ChangeProfileNames(const std::vector<std::string>& names, absl::Time now) {
  SetProfileNames(names);
  std::vector<kube::PodPtr> come;
  std::vector<std::string> gone;
  cluster_.ForEachPod([&](const kube::PodPtr& pod, bool assumed) {
    if (assumed || !pod->pod.node_name().empty() || attempt_of_pod_.contains(pod->uid())) return;
    const bool is_queued = queue_.Find(pod->uid()) != nullptr;
    const bool is_ours = HandlesProfile(pod->pod.scheduler_name());
    if (is_ours && !is_queued) come.push_back(pod);
    if (!is_ours && is_queued) gone.push_back(pod->uid());
  });
  for (const std::string& uid : gone) queue_.Forget(uid);
  for (const kube::PodPtr& pod : come) {
    queue_.Add(pod, now);
  }
  UpdateSortKeys(come, now);
}

void Scheduler::SetPlan(ProfilePlan plan) {
  const std::string name = plan.algorithm.name;
  queue_.SetWakeUpEvents(name, plan.wake_up_events);
  for (const std::string& host : plan.host_names) hosts_.try_emplace(host);
  plans_.Set(std::move(plan));
  for (auto& [host_name, host] : hosts_) FindKeepers(host_name, &host);
}

void Scheduler::FindKeepers(const std::string& name, Host* host) {
  host->keeps_objects = false;
  if (host->client == nullptr) return;
  for (const auto& [profile, plan] : plans_.all()) {
    if (!plan.object_keepers.contains(name)) continue;
    host->keeps_objects = true;
    cluster_.TellBindsOf(profile);
  }
}

void Scheduler::SetHost(const std::string& name, HostClient* client, ClusterState::Cursor cursor,
                        absl::Time now) {
  Host& host = hosts_[name];
  if (host.client != nullptr && host.client != client) {
    // What the one before has said already counts; it will not be asked about its attempts again.
    TakePushes(name, &host, now);
    for (const auto& [id, attempt] : attempts_) cluster_.EndAttempt(host.cursor, id);
  }
  for (Breaker* const breaker : {&host.breaker, &host.queue_breaker}) {
    breaker->SetLimit(options_.breaker_failures);
    breaker->Reset();
  }
  host.client = client;
  host.cursor = cursor;
  host.wants_new_session = false;
  host.away_since = client == nullptr ? now : absl::InfinitePast();
  host.hints.Clear();
  host.hints_lost = false;
  host.judges = client != nullptr && !options_.single_attempt &&
                absl::c_linear_search(client->info().capabilities(), v1alpha1::QUEUEING_HINTS);
  host.knows_events_from = queue_.next_event_number();
  host.pushes_from = client == nullptr ? 0 : client->acknowledged_version();
  host.all_listed.reset();
  FindKeepers(name, &host);
  ForgetConfirmations(name);
  if (client == nullptr) return;
  AwaitConfirmations(name, now);
  queue_.HostReturned(name, now);
  // Its predecessor's last words may be lost.
  for (const auto& [profile, plan] : plans_.all()) {
    if (absl::c_linear_search(plan.host_names, name)) queue_.JudgeLost(profile, now);
  }
  // Nor need it agree with what the predecessor said about the order.
  host.sort_keys_owed.clear();
  host.sort_keys_asked = absl::InfinitePast();
  queue_.ForEach([&](const queue::QueuedPod& pod) {
    const ProfilePlan* plan = PlanOf(*pod.pod);
    if (plan != nullptr && plan->sort_host == name) host.sort_keys_owed.insert(pod.uid());
  });
}

bool Scheduler::WantsNewSession(const std::string& host_name) const {
  const auto it = hosts_.find(host_name);
  return it != hosts_.end() && it->second.wants_new_session;
}

const ProfilePlan* Scheduler::PlanOf(const kube::PodObject& pod) const {
  return plans_.For(pod.pod.scheduler_name(), pod.pod, cluster_.device_class_resources());
}

Scheduler::Host* Scheduler::UsableHost(const std::string& name) {
  const auto it = hosts_.find(name);
  return it == hosts_.end() || !it->second.is_here() ? nullptr : &it->second;
}

bool Scheduler::IsUsable(const ProfilePlan& plan) {
  bool all_are_here = true;
  for (size_t i = 0; i < plan.host_names.size(); ++i) {
    if (!plan.CanDoWithout(i) && UsableHost(plan.host_names[i]) == nullptr) all_are_here = false;
  }
  return all_are_here || absl::c_any_of(plan.spared, [this](const SparedHost& spared) {
           return IsUsable(*spared.without);
         });
}

void Scheduler::NoteCall(Attempt* attempt, const HostClient& client) {
  if (VLOG_IS_ON(2)) attempt->asked.push_back(client.info().host_instance());
}

void Scheduler::FillHeader(const Attempt& attempt, const Host& host,
                           v1alpha1::CallHeader* header) const {
  header->set_attempt_id(attempt.id);
  header->set_snapshot_version(cluster_.VersionOf(host.cursor));
  header->set_profile(attempt.plan->algorithm.name);
}

bool Scheduler::ScheduleOne(absl::Time now) {
  // While no profile has its hosts, for a moment (one is being restarted), pods keep their places:
  // parking them all would tell thousands of stories about a hiccup.
  const bool any_ready = std::any_of(plans_.all().begin(), plans_.all().end(),
                                     [&](const auto& plan) { return IsUsable(plan.second); });
  if (!any_ready) {
    const bool all_within_grace = std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& entry) {
      const Host& host = entry.second;
      return host.is_here() || now - host.away_since < options_.host_grace;
    });
    if (plans_.all().empty() || all_within_grace) return false;
  }
  vain_attempts_.Release(now);
  QueuedPod* info = queue_.Pop(now);
  if (info == nullptr) return false;
  if (vain_attempts_.Spare(*info, now)) {
    observer_->OnAttemptSpared(*info->pod);
    return true;
  }
  auto attempt = std::make_unique<Attempt>();
  attempt->id = ++last_attempt_id_;
  attempt->info = info;
  attempt->pod = info->pod;
  attempt->plan = PlanOf(*info->pod);
  attempt->began = now;
  if (attempt->plan == nullptr) {
    FailError(std::move(attempt),
              absl::StrCat("profile not found for scheduler name \"",
                           info->pod->pod.scheduler_name(), "\""),
              now);
    return true;
  }
  if (info->pod->pod.deletion_unix_seconds() != 0) {
    effects_->RecordFailed(*info->pod, attempt->plan->algorithm.name,
                           absl::StrCat("skip schedule deleting pod: ", info->pod->key()), now);
    VLOG(3) << "Skip schedule deleting pod " << info->pod->key();
    queue_.Forget(info->uid());
    return true;
  }
  VLOG(3) << "Attempting to schedule pod " << info->pod->key();
  RunAlgorithm(std::move(attempt), now);
  return true;
}

void Scheduler::RunAlgorithm(std::unique_ptr<Attempt> attempt, absl::Time now) {
  if (cluster_.node_order().empty()) return FailNoNodes(std::move(attempt), now);
  AlgorithmRequest request;
  request.explain = options_.explain;
  absl::InlinedVector<Host*, 2> hosts;
  for (const std::string& name : attempt->plan->host_names) {
    Host* host = UsableHost(name);
    if (host == nullptr && !attempt->plan->CanDoWithout(hosts.size())) {
      return FailHostAway(std::move(attempt), name, absl::UnavailableError("the host is away"),
                          now);
    }
    hosts.push_back(host);
  }
  // Those that are asked see the same cluster until the last of them has scored.
  hosts.resize(attempt->plan->num_algorithm_hosts());
  for (Host* host : hosts) {
    if (host == nullptr) {
      request.hosts.push_back({nullptr, 0});
      continue;
    }
    SendChanges(host, now);
    request.hosts.push_back({host->client, cluster_.VersionOf(host->cursor)});
  }
  request.profile = &attempt->plan->algorithm;
  request.pod = attempt->pod.get();
  request.attempt_id = attempt->id;
  request.start_offset = next_start_;
  request.budget = options_.cycle_deadline;
  request.place_group =
      AnyConcerns(attempt->plan->permit, attempt->pod->pod, cluster_.device_class_resources());
  if (!request.place_group) request.next_pod_uids = NextPods(*attempt);
  for (const auto& host : request.hosts) {
    if (host.client != nullptr) NoteCall(attempt.get(), *host.client);
  }
  ExchangeRecorder recorder;
  for (size_t i = 0; witness_ != nullptr && i < request.hosts.size(); ++i) {
    if (witness_->WantsPoints(attempt->plan->host_names[i])) recorder.Want(i);
  }
  request.recorder = recorder.empty() ? nullptr : &recorder;
  const absl::Time began = absl::Now();
  const AlgorithmResult& result = algorithm_.Run(request);
  const absl::Duration elapsed =
      (absl::Now() - began) / (1 + result.others.size() + result.rejected_with.size());
  observer_->OnAlgorithm(*attempt->pod, attempt->plan->algorithm, result, algorithm_.response(),
                         elapsed);
  if (result.outcome != AlgorithmResult::Outcome::kNoAnswer && result.left_out.empty()) {
    for (Host* host : hosts) host->breaker.OnAnswer();
  }
  for (const LeftOut& left_out : result.left_out) {
    const HostClient* client = request.hosts[left_out.host].client;
    if (client != nullptr) {
      OnCallFailed(attempt->plan->host_names[left_out.host], &Host::breaker, left_out.status, now);
    }
    observer_->OnFailurePolicy(attempt->plan->host_names[left_out.host], left_out.point,
                               left_out.used_last ? "UseLast" : "FailOpen");
    VLOG(2) << "Pod " << attempt->pod->key() << " goes on without host \""
            << attempt->plan->host_names[left_out.host] << "\": " << left_out.status;
  }
  if (const auto& fused = algorithm_.fused_answer();
      witness_ != nullptr && fused.has_value() && algorithm_.response().placements().empty() &&
      result.outcome != AlgorithmResult::Outcome::kNoAnswer) {
    const AlgorithmProfile& profile = attempt->plan->algorithm;
    witness_->OnCycle({attempt->plan->host_names[fused->host], *attempt->pod, profile,
                       *fused->request, *fused->response, result, algorithm_.num_candidates(),
                       Algorithm::NumToFind(profile, algorithm_.num_candidates())},
                      now);
  }
  if (result.outcome != AlgorithmResult::Outcome::kNoAnswer) {
    for (const HostExchange& exchange : recorder.exchanges()) {
      if (!exchange.pre_filter.has_value()) continue;  // It was not asked like this.
      witness_->OnPoints(
          {attempt->plan->host_names[exchange.host], *attempt->pod, attempt->plan->algorithm,
           attempt->id, exchange, result, algorithm_.num_candidates(),
           Algorithm::NumToFind(attempt->plan->algorithm, algorithm_.num_candidates())},
          now);
    }
  }
  next_start_ =
      (next_start_ + result.processed_nodes) % static_cast<uint32_t>(cluster_.node_order().size());

  switch (result.outcome) {
    case AlgorithmResult::Outcome::kPlaced: {
      const uint64_t id = attempt->id;
      const ProfilePlan& plan = *attempt->plan;
      const PlacedTogether others{result.others, result.is_group, result.snapshot_version, elapsed};
      last_attempt_id_ += others.placements.size();
      const bool placed = AssumeAndReserve(std::move(attempt), result.slot, now);
      return PlaceOthers(plan, id, placed, others, now);
    }
    case AlgorithmResult::Outcome::kUnschedulable:
      attempt->rejected_with = result.rejected_with;
      attempt->elapsed = elapsed;
      return PostFilter(std::move(attempt), result.diagnosis, now);
    case AlgorithmResult::Outcome::kError:
      return FailError(std::move(attempt), std::string(result.status.message()), now);
    case AlgorithmResult::Outcome::kNoAnswer: {
      if (const HostClient* client = request.hosts[result.silent_host].client; client != nullptr)
        observer_->OnProtocolError(client->info().host_instance(), result.status);
      const std::string& silent = attempt->plan->host_names[result.silent_host];
      return FailHostAway(std::move(attempt), silent, result.status, now);
    }
  }
}

bool Scheduler::AssumeAndReserve(std::unique_ptr<Attempt> attempt, uint32_t slot, absl::Time now) {
  attempt->slot = slot;
  attempt->node_name = cluster_.NodeAt(slot)->key();
  if (absl::Status fits = cluster_.CheckFits(attempt->pod->uid(), slot, attempt->plan->guard);
      !fits.ok()) {
    // The hosts' books and ours differ: whatever they say, no node is overcommitted by us.
    const std::string message =
        absl::StrCat("plugin host placed the pod on node ", attempt->node_name,
                     ", which cannot take it: ", fits.message());
    OnBadAnswer(attempt->plan->host_names.front(), fits);
    FailError(std::move(attempt), message, now);
    return false;
  }
  if (absl::Status assumed = cluster_.Assume(attempt->pod->uid(), slot); !assumed.ok()) {
    FailError(std::move(attempt), std::string(assumed.message()), now);
    return false;
  }
  attempt->assumed = true;
  for (const PointShare& share : attempt->plan->reserve) {
    if (!AnyConcerns(share.plugins, attempt->pod->pod, cluster_.device_class_resources())) continue;
    Host* host = UsableHost(share.host_name);
    absl::StatusOr<v1alpha1::ReserveResponse> answer = absl::UnavailableError("the host is away");
    if (host != nullptr) {
      SendChanges(host, now);
      v1alpha1::ReserveRequest request;
      FillHeader(*attempt, *host, request.mutable_header());
      request.set_pod_uid(attempt->pod->uid());
      request.set_node_name(attempt->node_name);
      const absl::Time began = absl::Now();
      NoteCall(attempt.get(), *host->client);
      answer = host->client->Reserve(std::move(request), absl::Now() + options_.reserve_deadline);
      observer_->OnCall(v1alpha1::RESERVE, attempt->plan->algorithm.name,
                        answer.ok() ? answer->rejection().code() : v1alpha1::ERROR,
                        absl::Now() - began);
    }
    if (answer.ok()) {
      absl::Status bad = CheckReserve(*answer, share, attempt->pod->pod, attempt->node_name);
      for (const v1alpha1::Effect& effect : answer->effects())
        bad.Update(CheckObjectWrite(effect, host->client->info(), options_.custom_resources));
      if (!bad.ok()) {
        observer_->OnProtocolError(host->client->info().host_instance(), bad);
        answer = bad;
      }
    }
    if (!answer.ok() && share.is_open) {
      observer_->OnFailurePolicy(share.host_name, v1alpha1::RESERVE, "FailOpen");
      continue;
    }
    if (!answer.ok()) {
      GiveBack(attempt.get(), "reserve was not answered", now);
      FailHostAway(std::move(attempt), share.host_name, answer.status(), now);
      return false;
    }
    if (answer->has_rejection()) {
      GiveBack(attempt.get(), "reserve was rejected", now);
      if (answer->rejection().code() == v1alpha1::ERROR) {
        FailError(std::move(attempt), absl::StrJoin(answer->rejection().reasons(), ", "), now);
        return false;
      }
      FailUnschedulable(std::move(attempt), DiagnosisOfRejectedNode(answer->rejection()), now);
      return false;
    }
    for (const v1alpha1::Effect& effect : answer->effects()) {
      attempt->asks_pre_bind |= attempt->plan->pre_bind_plugins.contains(effect.plugin());
    }
    if (answer->effects().empty()) continue;
    attempt->effects.insert(attempt->effects.end(), answer->effects().begin(),
                            answer->effects().end());
    attempt->effect_hosts.resize(attempt->effects.size(), share.host_name);
  }
  // It was assumed a moment ago.
  if (!attempt->effects.empty()) {
    cluster_.SetEffects(attempt->pod->uid(), attempt->effects).IgnoreError();
  }
  Permit(std::move(attempt), now);
  return true;
}

void Scheduler::Bind(Attempt* attempt, absl::Time now) {
  if (absl::Status fits =
          StillFits(attempt->pod->uid(), attempt->node_name, attempt->plan->algorithm.name);
      !fits.ok()) {
    // While it waited, somebody else's pod came to the node, or the node went.
    std::unique_ptr<Attempt> taken = TakeAttempt(attempt->id);
    const std::string message(fits.message());
    GiveBack(taken.get(), message, now);
    queue_.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
    return FailError(std::move(taken), message, now);
  }
  attempt->bind_began = now;
  effects_->Bind({attempt->id, attempt->pod, attempt->node_name, attempt->plan->algorithm.name},
                 now);
}

void Scheduler::OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string& message,
                            absl::Time now) {
  if (!attempts_.contains(attempt_id)) return;
  if (end == BindEnd::kUnknown) return;  // The process is on its way out; the assumption stays.
  std::unique_ptr<Attempt> attempt = TakeAttempt(attempt_id);
  const std::string uid = attempt->pod->uid();
  observer_->OnCall(v1alpha1::BIND, attempt->plan->algorithm.name,
                    end == BindEnd::kBound ? v1alpha1::SUCCESS : v1alpha1::ERROR,
                    now - attempt->bind_began);
  if (end == BindEnd::kBound) {
    const QueuedPod& info = *attempt->info;
    VLOG(2) << "Successfully bound pod " << attempt->pod->key() << " to node "
            << attempt->node_name;
    effects_->RecordScheduled(*attempt->pod, attempt->plan->algorithm.name, attempt->node_name,
                              now);
    observer_->OnAttemptEnd(*attempt->pod, attempt->plan->algorithm.name, AttemptResult::kScheduled,
                            attempt->node_name, "", now - attempt->began);
    observer_->OnBound(*attempt->pod, attempt->plan->algorithm.name, info.attempts,
                       info.initial_attempt_time.has_value() ? now - *info.initial_attempt_time
                                                             : absl::ZeroDuration(),
                       info.was_flushed);
    queue_.Forget(uid);
    EndAttempt(*attempt);
    return;
  }
  GiveBack(attempt.get(), message, now);
  queue_.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  if (end == BindEnd::kGone || attempt->pod_gone) {
    queue_.Forget(uid);
    EndAttempt(*attempt);
    return;
  }
  FailError(std::move(attempt),
            absl::StrCat("binding rejected: running Bind plugin \"DefaultBinder\": ", message),
            now);
}

std::unique_ptr<Scheduler::Attempt> Scheduler::TakeAttempt(uint64_t attempt_id) {
  auto node = attempts_.extract(attempt_id);
  attempt_of_pod_.erase(node.mapped()->pod->uid());
  return std::move(node.mapped());
}

void Scheduler::EndAttempt(const Attempt& attempt) {
  waiting_.EndAttempt(attempt.id);
  if (attempt.plan == nullptr) return;
  for (const std::string& name : attempt.plan->host_names) {
    if (const Host& host = hosts_[name]; host.client != nullptr)
      cluster_.EndAttempt(host.cursor, attempt.id);
  }
}

void Scheduler::GiveBack(Attempt* attempt, const std::string& reason, absl::Time now) {
  // Those that hear of it: in reverse order, whether they were asked or not.
  std::vector<std::string> names;
  if (!attempt->node_name.empty()) {
    for (const auto* shares : {&attempt->plan->reserve, &attempt->plan->permit}) {
      for (const PointShare& share : *shares) {
        if (AnyConcerns(share.plugins, attempt->pod->pod, cluster_.device_class_resources()) &&
            !absl::c_linear_search(names, share.host_name)) {
          names.push_back(share.host_name);
        }
      }
    }
  }
  google::protobuf::RepeatedPtrField<v1alpha1::WaitDecision> decisions;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    Host* host = UsableHost(*name);
    if (host == nullptr) continue;
    // What its effects have made of objects comes first: the host may give up its own word for it.
    SendChanges(host, now);
    v1alpha1::UnreserveRequest request;
    FillHeader(*attempt, *host, request.mutable_header());
    request.set_pod_uid(attempt->pod->uid());
    request.set_node_name(attempt->node_name);
    request.set_reason(CutText(reason));
    auto answer =
        host->client->Unreserve(std::move(request), absl::Now() + options_.reserve_deadline);
    if (answer.ok()) {
      decisions.MergeFrom(answer->decisions());
    } else {
      LOG(WARNING) << "Unreserve of pod " << attempt->pod->key() << " was not answered by host \""
                   << *name << "\": " << answer.status();
    }
  }
  Forget(attempt);
  ApplyDecisions(decisions, now);
}

void Scheduler::Forget(Attempt* attempt) {
  if (!std::exchange(attempt->assumed, false)) return;
  // NOT_FOUND: the informer confirmed the pod or took it away meanwhile, and its word counts.
  const absl::Status forgotten = cluster_.Forget(attempt->pod->uid());
  // As in kube-scheduler, a place that is given back within the cycle in which it was taken is no
  // event: nobody else was tried meanwhile.
  if (forgotten.ok() && attempt->binding) AnnouncePlaceGivenBack(*attempt->pod);
}

absl::Status Scheduler::StillFits(const std::string& pod_uid, const std::string& node_name,
                                  const std::string& profile) const {
  const ProfilePlan* const plan = plans_.Find(profile);
  if (plan == nullptr) return absl::OkStatus();
  const uint32_t slot = cluster_.SlotOf(node_name);
  // A pod that is gone is for the API server to judge.
  absl::Status fits = slot == ClusterState::kNoSlot
                          ? absl::ResourceExhaustedError("the node is gone")
                          : cluster_.CheckFits(pod_uid, slot, plan->guard);
  if (!absl::IsResourceExhausted(fits)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("node ", node_name, " can no longer take the pod: ", fits.message()));
}

}  // namespace outboard::cycle
