#include "shim/scheduler/host_calls.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/clock.h"
#include "shim/fail_point.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/pod_effects.h"
#include "shim/framework/volume_effects.h"

namespace outboard::scheduler {
namespace {

using framework::HostCall;
using v1beta1::CallError;

constexpr absl::Duration kChangesPeriod = absl::Milliseconds(250);

// Errors that concern the state of the connection and not the pod: a new handshake repairs them.
bool NeedsNewSession(const absl::Status& status) {
  switch (framework::CallErrorReason(status)) {
    case CallError::REASON_SESSION_UNKNOWN:
    case CallError::REASON_WRONG_INSTANCE:
    case CallError::REASON_NOT_CONFIGURED:
    case CallError::REASON_OBJECT_UNKNOWN:
      return true;
    default:
      return false;
  }
}

absl::Status HostUnavailable() { return absl::UnavailableError("the host is unavailable"); }

// The code of an answer of Reserve, Permit or PreBind, for observers.
template <typename Response>
v1beta1::Code CodeOf(const absl::StatusOr<Response>& answer) {
  return answer.ok() ? framework::CodeOfAnswer(*answer) : v1beta1::CODE_ERROR;
}

// `to_wall`: from the scheduler's clock to the session's time.
void AddQueued(const queue::SchedulingQueue& queue, absl::Span<const kube::PodObject* const> pods,
               absl::Duration to_wall, v1beta1::SortKeysRequest* request) {
  for (const kube::PodObject* pod : pods) {
    v1beta1::QueuedPodInfo* out = request->add_queued();
    const queue::QueuedPod* queued = queue.Find(pod->uid());
    if (queued == nullptr) continue;
    out->set_attempts(static_cast<uint32_t>(queued->attempts));
    if (queued->initial_attempt_time.has_value())
      out->set_initial_attempt_unix_micros(
          absl::ToUnixMicros(*queued->initial_attempt_time + to_wall));
  }
}

}  // namespace

HostRecord* HostCalls::UsableHost(const std::string& name) const {
  const auto it = state_.hosts.find(name);
  return it == state_.hosts.end() || !it->second.is_here() ? nullptr : &it->second;
}

bool HostCalls::IsUsable(const framework::ProfilePlan& plan) const {
  bool all_are_here = true;
  for (size_t i = 0; i < plan.host_names.size(); ++i) {
    if (!plan.CanDoWithout(i) && UsableHost(plan.host_names[i]) == nullptr) all_are_here = false;
  }
  return all_are_here ||
         absl::c_any_of(plan.skipped, [this](const framework::SkippedHost& skipped) {
           return IsUsable(*skipped.without);
         });
}

bool HostCalls::WantsNewSession(const std::string& name) const {
  const auto it = state_.hosts.find(name);
  return it != state_.hosts.end() && it->second.wants_new_session;
}

bool HostCalls::IsHeldBack(const std::string& name) const {
  const auto it = state_.hosts.find(name);
  return it != state_.hosts.end() && it->second.client != nullptr && it->second.held_back();
}

void HostCalls::OnProbesUnanswered(const std::string& name, absl::Duration silence,
                                   absl::Time now) {
  const auto it = state_.hosts.find(name);
  if (it == state_.hosts.end() || it->second.client == nullptr || it->second.held_back()) return;
  if (!it->second.breaker.Open()) return;
  it->second.unavailable_since = now;
  LOG(ERROR) << "Host \"" << name << "\" has not answered probes for "
             << absl::FormatDuration(absl::Trunc(silence, absl::Seconds(1)))
             << "; not calling it until it answers one";
}

void HostCalls::OnProbeAnswered(const std::string& name, absl::Time now) {
  const auto it = state_.hosts.find(name);
  if (it == state_.hosts.end()) return;
  if (!it->second.breaker.OnProbeAnswered(now)) return;
  LOG(INFO) << "Host \"" << name << "\" answered a probe; calling it again";
  it->second.unavailable_since = absl::InfinitePast();
  state_.queue.HostReturned(name, now);
}

absl::Time HostCalls::ChangesDue(const HostRecord& host) const {
  // A host that still reads wakes the loop when it has read.
  if (!host.is_here() || host.client->sending()) return absl::InfiniteFuture();
  if (!host.push_results.empty()) return host.changes_sent;
  return state_.cluster.HasChanges(host.cursor) ? host.changes_sent + kChangesPeriod
                                                : absl::InfiniteFuture();
}

void HostCalls::SendDueChanges(absl::Time now) {
  for (auto& [name, host] : state_.hosts) {
    if (now >= ChangesDue(host)) SendChanges(&host, now);
  }
}

absl::Time HostCalls::NextWakeup() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, host] : state_.hosts) next = std::min(next, ChangesDue(host));
  return next;
}

v1beta1::SyncRequest HostCalls::NoChanges(const HostRecord& host) const {
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  request.set_version(state_.cluster.VersionOf(host.cursor));
  return request;
}

void HostCalls::SendChanges(HostRecord* host, absl::Time now) {
  host->changes_sent = now;
  std::vector<v1beta1::SyncRequest> requests = state_.cluster.TakeChanges(host->cursor, now);
  if (host->evaluates_hints && !(host->hints.empty() && requests.size() <= 1)) {
    if (requests.empty()) requests.push_back(NoChanges(*host));
    if (requests.size() > 1 || host->hints.overflowed()) {
      // The states before and after an event are no longer distinct; and a snapshot makes the host
      // forget which pods wait.
      host->hints.Clear();
      host->hints_lost = true;
    } else {
      host->hints.TakeInto(state_.queue.EventsNeededFrom(), &requests.back());
    }
  }
  // Results wait for a host that does not read; so their number stays bounded.
  const bool takes_results = !host->client->sending();
  while (takes_results && !host->push_results.empty()) {
    // Messages of their own, because one with changes may be full.
    requests.push_back(NoChanges(*host));
    host->push_results.TakeInto(&requests.back());
  }
  for (const v1beta1::SyncRequest& changes : requests) host->client->SendChanges(changes);
  OUTBOARD_FAIL_POINT_IF(!requests.empty(), changes_sent);
}

void HostCalls::EndAttempt(const framework::ProfilePlan& plan, uint64_t attempt_id) {
  for (const std::string& name : plan.host_names) {
    if (const HostRecord& host = state_.hosts[name]; host.client != nullptr)
      state_.cluster.EndAttempt(host.cursor, attempt_id);
  }
}

void HostCalls::FillHeader(const Attempt& attempt, const HostRecord& host,
                           v1beta1::CallHeader* header) const {
  header->set_attempt_id(attempt.id);
  header->set_min_version(state_.cluster.VersionOf(host.cursor));
  header->set_profile(attempt.plan->algorithm.name);
  if (state_.leader_epoch) header->set_leader_epoch(state_.leader_epoch());
}

void HostCalls::NoteCall(Attempt* attempt, const framework::HostClient& client) {
  if (VLOG_IS_ON(2)) attempt->asked.push_back(client.instance());
}

absl::StatusOr<v1beta1::ReserveResponse> HostCalls::Reserve(
    Attempt* attempt, const framework::HostExtensionPoint& point, absl::Time now) {
  HostRecord* const host = UsableHost(point.host_name);
  if (host == nullptr) return HostUnavailable();
  SendChanges(host, now);
  v1beta1::ReserveRequest request;
  FillHeader(*attempt, *host, request.mutable_header());
  request.set_pod_uid(attempt->pod->uid());
  request.set_node_name(attempt->node_name);
  const absl::Time began = SteadyNow();
  NoteCall(attempt, *host->client);
  OUTBOARD_FAIL_POINT(before_reserve);
  absl::StatusOr<v1beta1::ReserveResponse> answer =
      host->client->Reserve(std::move(request), SteadyNow() + state_.options.reserve_deadline);
  OUTBOARD_FAIL_POINT(reserved);
  state_.observer->OnCall(v1beta1::EXTENSION_POINT_RESERVE, attempt->plan->algorithm.name,
                          CodeOf(answer), SteadyNow() - began);
  if (!answer.ok()) {
    OnHostCallEnded(point.host_name, HostCall::kReserve, answer.status(), now);
    return answer;
  }
  absl::Status bad = framework::CheckReserve(*answer, point, attempt->pod->pod, attempt->node_name);
  bad.Update(CheckAllowed(answer->effects(), *attempt, attempt->slot, *host));
  if (!bad.ok()) state_.observer->OnProtocolError(point.host_name, host->client->instance(), bad);
  OnHostCallEnded(point.host_name, HostCall::kReserve, bad, now);
  if (!bad.ok()) return bad;
  return answer;
}

std::vector<HostDecisions> HostCalls::Unreserve(const Attempt& attempt, const std::string& reason,
                                                absl::Time now) {
  std::vector<std::string> names;
  if (!attempt.node_name.empty()) {
    for (const auto* points : {&attempt.plan->reserve, &attempt.plan->permit}) {
      for (const framework::HostExtensionPoint& point : *points) {
        if (state_.IsInterested(point.plugins, attempt.pod->pod) &&
            !absl::c_linear_search(names, point.host_name)) {
          names.push_back(point.host_name);
        }
      }
    }
  }
  std::vector<HostDecisions> decisions;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    HostRecord* host = UsableHost(*name);
    if (host == nullptr) continue;
    // What its effects wrote comes first: the host may drop its own record of it.
    SendChanges(host, now);
    v1beta1::UnreserveRequest request;
    FillHeader(attempt, *host, request.mutable_header());
    request.set_pod_uid(attempt.pod->uid());
    request.set_node_name(attempt.node_name);
    request.set_reason(framework::CutText(reason));
    auto answer =
        host->client->Unreserve(std::move(request), SteadyNow() + state_.options.reserve_deadline);
    OnHostCallEnded(*name, HostCall::kUnreserve, answer.status(), now);
    if (answer.ok()) {
      decisions.push_back({*name, std::move(*answer->mutable_decisions())});
    } else {
      LOG(WARNING) << "Unreserve of pod " << attempt.pod->key() << " failed: host \"" << *name
                   << "\" did not answer: " << answer.status();
    }
  }
  return decisions;
}

absl::StatusOr<v1beta1::PermitResponse> HostCalls::Permit(
    Attempt* attempt, const framework::HostExtensionPoint& point, bool resumed, absl::Time now) {
  HostRecord* host = UsableHost(point.host_name);
  if (host == nullptr) return HostUnavailable();
  SendChanges(host, now);
  v1beta1::PermitRequest request;
  FillHeader(*attempt, *host, request.mutable_header());
  request.set_pod_uid(attempt->pod->uid());
  request.set_node_name(attempt->node_name);
  request.set_resumed(resumed);
  const absl::Time began = SteadyNow();
  NoteCall(attempt, *host->client);
  absl::StatusOr<v1beta1::PermitResponse> answer =
      host->client->Permit(std::move(request), SteadyNow() + state_.options.permit_deadline);
  OUTBOARD_FAIL_POINT(permit_answered);
  state_.observer->OnCall(v1beta1::EXTENSION_POINT_PERMIT, attempt->plan->algorithm.name,
                          CodeOf(answer), SteadyNow() - began);
  if (answer.ok()) {
    if (absl::Status bad = framework::CheckPermit(*answer, point); !bad.ok()) {
      state_.observer->OnProtocolError(point.host_name, host->client->instance(), bad);
      answer = bad;
    }
  }
  OnHostCallEnded(point.host_name, HostCall::kPermit, answer.status(), now);
  return answer;
}

absl::StatusOr<v1beta1::PreBindResponse> HostCalls::PreBind(const Attempt& attempt,
                                                            const std::string& host_name,
                                                            absl::Time now, bool* is_invalid) {
  *is_invalid = false;
  HostRecord* host = UsableHost(host_name);
  if (host == nullptr) return HostUnavailable();
  SendChanges(host, now);
  v1beta1::PreBindRequest request;
  FillHeader(attempt, *host, request.mutable_header());
  request.set_pod_uid(attempt.pod->uid());
  request.set_node_name(attempt.node_name);
  for (size_t i = 0; i < attempt.effects.size(); ++i) {
    if (attempt.effect_hosts[i] != host_name) continue;
    *request.add_effects() = attempt.effects[i];
    *request.add_results() = attempt.effect_results[i];
  }
  request.set_elapsed_micros(absl::ToInt64Microseconds(now - attempt.pre_bind_began));
  const absl::Time began = SteadyNow();
  OUTBOARD_FAIL_POINT(before_pre_bind);
  absl::StatusOr<v1beta1::PreBindResponse> answer =
      host->client->PreBind(std::move(request), SteadyNow() + state_.options.pre_bind_deadline);
  OUTBOARD_FAIL_POINT(pre_bind_answered);
  if (answer.ok()) {
    absl::Status bad = framework::CheckPreBind(*answer, attempt.plan->pre_bind_plugins);
    bad.Update(CheckMoreEffects(attempt, *answer, *host));
    if (!bad.ok()) {
      state_.observer->OnProtocolError(host_name, host->client->instance(), bad);
      *is_invalid = true;
      answer = bad;
    }
  }
  OnHostCallEnded(host_name, HostCall::kPreBind, answer.status(), now);
  const v1beta1::Code code = answer.ok() && answer->wait() ? kWait : CodeOf(answer);
  state_.observer->OnCall(v1beta1::EXTENSION_POINT_PRE_BIND, attempt.plan->algorithm.name, code,
                          SteadyNow() - began);
  return answer;
}

absl::Status HostCalls::CheckMoreEffects(const Attempt& attempt,
                                         const v1beta1::PreBindResponse& answer,
                                         const HostRecord& host) const {
  if (answer.has_rejection() || answer.effects().empty()) return absl::OkStatus();
  const uint32_t slot = state_.cluster.SlotOf(attempt.node_name);
  if (slot == cache::ClusterState::kNoSlot)
    return framework::WrongAnswer("PreBind names effects although the node is gone");
  google::protobuf::RepeatedPtrField<v1beta1::Effect> all(attempt.effects.begin(),
                                                          attempt.effects.end());
  all.MergeFrom(answer.effects());
  absl::Status bad = framework::CheckEffects(all, "PreBind", attempt.pod->pod, attempt.node_name);
  bad.Update(CheckAllowed(answer.effects(), attempt, slot, host));
  return bad;
}

absl::Status HostCalls::CheckAllowed(
    const google::protobuf::RepeatedPtrField<v1beta1::Effect>& effects, const Attempt& attempt,
    uint32_t slot, const HostRecord& host) const {
  absl::Status bad = framework::CheckVolumeEffects(
      effects, attempt.pod->pod, state_.cluster.NodeAt(slot)->node, state_.cluster);
  for (const v1beta1::Effect& effect : effects) {
    bad.Update(
        framework::CheckObjectWrite(effect, host.client->info(), state_.options.custom_resources));
    bad.Update(framework::CheckPodEffect(effect, state_.options.allowed_pod_keys));
  }
  return bad;
}

absl::StatusOr<v1beta1::BindResponse> HostCalls::Bind(const Attempt& attempt,
                                                      const framework::HostExtensionPoint& point,
                                                      absl::Time now) {
  HostRecord* const host = UsableHost(point.host_name);
  if (host == nullptr) return HostUnavailable();
  SendChanges(host, now);
  v1beta1::BindRequest request;
  FillHeader(attempt, *host, request.mutable_header());
  request.set_pod_uid(attempt.pod->uid());
  request.set_node_name(attempt.node_name);
  request.set_plugin(point.plugins.front().name);
  absl::StatusOr<v1beta1::BindResponse> answer =
      host->client->Bind(std::move(request), SteadyNow() + state_.options.bind_deadline);
  if (absl::IsUnimplemented(answer.status())) {
    // A host from before this service: there the shim binds in the name of its plugins.
    answer.emplace().mutable_shim_binds();
  }
  if (answer.ok()) {
    if (absl::Status bad = framework::CheckBind(*answer, point.plugins.front().name,
                                                state_.options.allowed_pod_keys);
        !bad.ok()) {
      state_.observer->OnProtocolError(point.host_name, host->client->instance(), bad);
      answer = bad;
    }
  }
  OnHostCallEnded(point.host_name, HostCall::kBind, answer.status(), now);
  return answer;
}

void HostCalls::SendPostBind(const Attempt& attempt, const std::string& host_name, absl::Time now) {
  HostRecord* const host = UsableHost(host_name);
  bool is_sent = false;
  if (host != nullptr) {
    SendChanges(host, now);
    v1beta1::PostBindRequest request;
    FillHeader(attempt, *host, request.mutable_header());
    request.set_pod_uid(attempt.pod->uid());
    request.set_node_name(attempt.node_name);
    is_sent =
        host->client->SendPostBind(std::move(request), SteadyNow() + state_.options.bind_deadline);
  }
  if (is_sent) return;
  // PostBind's default policy: what the plugin misses is information.
  state_.observer->OnFailurePolicy(host_name, v1beta1::EXTENSION_POINT_POST_BIND, "FailOpen");
  VLOG(2) << "PostBind of pod " << attempt.pod->key() << " not sent: host \"" << host_name
          << "\" is unavailable or has too many unanswered notices";
}

absl::StatusOr<v1beta1::PreEnqueueResponse> HostCalls::PreEnqueue(
    const framework::ProfilePlan& plan, const framework::HostExtensionPoint& point,
    const std::vector<std::string>& uids, absl::Time now) {
  HostRecord* const host = UsableHost(point.host_name);
  if (host == nullptr) return HostUnavailable();
  SendChanges(host, now);
  v1beta1::PreEnqueueRequest request;
  request.mutable_header()->set_min_version(state_.cluster.VersionOf(host->cursor));
  request.mutable_header()->set_profile(plan.algorithm.name);
  request.mutable_pod_uids()->Assign(uids.begin(), uids.end());
  absl::StatusOr<v1beta1::PreEnqueueResponse> answer =
      host->client->PreEnqueue(std::move(request), SteadyNow() + state_.options.queue_deadline);
  if (answer.ok() && answer->verdicts_size() != static_cast<int>(uids.size())) {
    answer = absl::InternalError("PreEnqueue answered for another number of pods");
    state_.observer->OnProtocolError(point.host_name, host->client->instance(), answer.status());
  }
  for (int i = 0; answer.ok() && i < answer->verdicts_size(); ++i) {
    if (absl::Status bad = framework::CheckGate(answer->verdicts(i), point); !bad.ok()) {
      answer = bad;
      state_.observer->OnProtocolError(point.host_name, host->client->instance(), bad);
    }
  }
  OnHostCallEnded(point.host_name, HostCall::kPreEnqueue, answer.status(), now);
  return answer;
}

absl::StatusOr<v1beta1::SortKeysResponse> HostCalls::SortKeys(
    const framework::ProfilePlan& plan, HostRecord* host,
    absl::Span<const kube::PodObject* const> pods, absl::Time now) {
  SendChanges(host, now);
  v1beta1::SortKeysRequest request;
  request.mutable_header()->set_min_version(state_.cluster.VersionOf(host->cursor));
  request.mutable_header()->set_profile(plan.algorithm.name);
  for (const kube::PodObject* pod : pods) request.add_pod_uids(pod->uid());
  if (plan.sort_reads_attempts) {
    // In a simulation the scheduler's clock is the session's time.
    const bool simulated = host->clock_advanced_to != absl::InfinitePast();
    AddQueued(state_.queue, pods, simulated ? absl::ZeroDuration() : absl::Now() - now, &request);
  }
  absl::StatusOr<v1beta1::SortKeysResponse> answer =
      host->client->SortKeys(std::move(request), SteadyNow() + state_.options.queue_deadline);
  if (answer.ok() && answer->keys_size() != static_cast<int>(pods.size()))
    answer = absl::InternalError("SortKeys answered for other pods");
  OnHostCallEnded(plan.sort_host, HostCall::kSortKeys, answer.status(), now);
  return answer;
}

bool HostCalls::IsFailureIgnored(const framework::HostExtensionPoint& point,
                                 v1beta1::ExtensionPoint which) {
  if (point.fail_open) state_.observer->OnFailurePolicy(point.host_name, which, "FailOpen");
  return point.fail_open;
}

void HostCalls::OnAlgorithmEnded(const Attempt& attempt, const framework::AlgorithmRequest& request,
                                 const framework::AlgorithmResult& result,
                                 absl::Span<HostRecord* const> hosts, absl::Time now) {
  if (result.outcome == framework::AlgorithmResult::Outcome::kNoAnswer &&
      result.failed_group_host.empty()) {
    if (request.hosts[result.failed_host].client != nullptr) {
      OnHostCallEnded(attempt.plan->host_names[result.failed_host], HostCall::kAlgorithm,
                      result.status, now);
    }
  } else if (result.ignored_failures.empty()) {
    for (HostRecord* host : hosts) host->breaker.OnAnswer(HostCall::kAlgorithm);
  }
  for (const framework::IgnoredFailure& ignored : result.ignored_failures) {
    const std::string& name = attempt.plan->host_names[ignored.host];
    if (request.hosts[ignored.host].client != nullptr)
      OnHostCallEnded(name, HostCall::kAlgorithm, ignored.status, now);
    state_.observer->OnFailurePolicy(name, ignored.point,
                                     ignored.used_last ? "UseLast" : "FailOpen");
    VLOG(2) << "Pod " << attempt.pod->key() << " continues without host \"" << name
            << "\": " << ignored.status;
  }
}

void HostCalls::OnHostCallEnded(const std::string& name, HostCall call, const absl::Status& status,
                                absl::Time now) {
  HostRecord& host = state_.hosts[name];
  if (status.ok()) return host.breaker.OnAnswer(call);
  state_.observer->OnHostCallFailed(host.client->instance(), status);
  if (NeedsNewSession(status)) host.wants_new_session = true;
  if (!host.breaker.OnFailure(call, now)) return;
  host.unavailable_since = now;
  LOG(ERROR) << "Host \"" << name << "\" failed " << state_.options.breaker_failures
             << " calls in a row; not calling it until it answers a probe; last error: "
             << status.message();
}

void HostCalls::OnBadPlacement(const std::string& name, const absl::Status& status) {
  const HostRecord& host = state_.hosts[name];
  if (host.client == nullptr) return;
  state_.observer->OnProtocolError(name, host.client->instance(), status);
  state_.observer->OnHostCallFailed(host.client->instance(), status);
}

void HostCalls::AdvanceHostClocks(absl::Time now) {
  for (auto& [name, host] : state_.hosts) {
    if (host.client == nullptr || !host.client->usable()) continue;
    SendChanges(&host, now);
    // Each message needs a time of its own, by which it is acknowledged.
    // In whole microseconds, and not before `now`: what is due then must be done.
    const absl::Time then =
        absl::UnixEpoch() + absl::Ceil(now - absl::UnixEpoch(), absl::Microseconds(1));
    host.clock_advanced_to = std::max(then, host.clock_advanced_to + absl::Microseconds(1));
    v1beta1::SyncRequest request = NoChanges(host);
    request.set_time_unix_micros(absl::ToUnixMicros(host.clock_advanced_to));
    host.client->SendChanges(request);
  }
}

bool HostCalls::HostClocksAdvanced() const {
  return absl::c_all_of(state_.hosts, [](const auto& entry) {
    const framework::HostClient* client = entry.second.client;
    return client == nullptr || !client->usable() ||
           client->acknowledged_time() >= entry.second.clock_advanced_to;
  });
}

}  // namespace outboard::scheduler
