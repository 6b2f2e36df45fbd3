#include "shim/scheduler/post_filter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/clock.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/pod_group.h"

namespace outboard::scheduler {
namespace {

// Verdicts on nodes that the hosts gave together; empty: one host answered alone.
using CodeBySlot = absl::flat_hash_map<uint32_t, v1beta1::Code>;

bool MayHelp(const v1beta1::JudgedNodes& judged, const CodeBySlot& codes, uint32_t slot) {
  const auto it = codes.find(slot);
  return (it == codes.end() ? judged.others() : it->second) == v1beta1::CODE_UNSCHEDULABLE;
}

v1beta1::SimulatedNode WithoutVictims(const v1beta1::PreemptionCandidate& candidate) {
  v1beta1::SimulatedNode hypothesis;
  hypothesis.set_slot(candidate.slot());
  *hypothesis.mutable_removed_pod_uids() = candidate.victim_uids();
  return hypothesis;
}

// kube-scheduler's plugins return this for a state that their PreFilter did not write.
constexpr char kNoState[] = "not found";

// The plugin after which no further plugin ran; empty: all ran.
std::string PreFilterEndedAt(const v1beta1::PreFilterResponse& answer) {
  if (answer.rejection().code() != v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE) return "";
  // If no node was left: the plugin that excluded the last ones.
  if (answer.has_node_names() && !answer.restricted_by().empty())
    return *answer.restricted_by().rbegin();
  return answer.rejection().plugin();
}

void AppendReason(std::string* out, const framework::SkippedPostFilterStatus& skipped) {
  out->append(skipped.reason);
}

// Whether a skipped plugin lacks the state that its PreFilter would have written.
bool AnyLacksState(const std::vector<framework::SkippedPostFilterStatus>& skipped,
                   const std::string& ended_at) {
  return absl::c_any_of(skipped, [&](const framework::SkippedPostFilterStatus& status) {
    return status.behind.contains(ended_at);
  });
}

// What a usable answer adds to the outcome, but for the candidate.
void NoteAnswer(const v1beta1::PostFilterResponse& answer, PostFilterOutcome* outcome) {
  const v1beta1::PreemptionRejection& rejection = answer.rejection();
  outcome->code = answer.has_rejection() ? rejection.status().code() : v1beta1::CODE_SUCCESS;
  const auto& reasons = rejection.status().reasons();
  if (outcome->code != v1beta1::CODE_UNSCHEDULABLE) outcome->reasons.clear();
  outcome->reasons.insert(outcome->reasons.end(), reasons.begin(), reasons.end());
  if (rejection.clear_nomination()) outcome->keeps_nomination = false;
}

std::vector<std::string> NamesOf(const framework::HostExtensionPoint& point) {
  std::vector<std::string> names;
  for (const framework::InterestedPlugin& plugin : point.plugins) names.push_back(plugin.name);
  return names;
}

}  // namespace

bool PostFilter::IsAboutGroup(const framework::ProfilePlan& plan) const {
  return algorithm_.response().rejection().has_group() && !plan.pod_group_post_filter.empty();
}

std::vector<std::string> PostFilter::PluginsAsked(const framework::ProfilePlan& plan) const {
  if (!IsAboutGroup(plan)) return plan.algorithm.post_filter_plugins;
  std::vector<std::string> plugins;
  for (const framework::HostExtensionPoint& point : plan.pod_group_post_filter) {
    for (std::string& name : NamesOf(point)) plugins.push_back(std::move(name));
  }
  return plugins;
}

v1beta1::PendingGroup PostFilter::RejectedGroup(const kube::PodObject& pod) const {
  const v1beta1::PlannedGroup& rejected = algorithm_.response().rejection().group();
  v1beta1::PendingGroup group;
  group.set_name(rejected.name());
  group.set_namespace_(pod.pod.namespace_());
  group.set_needed(rejected.needed());
  group.add_pod_uids(pod.uid());
  for (const std::string& uid : rejected.pod_uids()) group.add_pod_uids(uid);
  return group;
}

PostFilterOutcome PostFilter::AskAboutGroup(const Attempt& attempt, absl::Time now) {
  const framework::ProfilePlan& plan = *attempt.plan;
  const absl::Time began = SteadyNow();
  PostFilterOutcome outcome;
  outcome.keeps_nomination = true;
  for (const framework::HostExtensionPoint& point : plan.pod_group_post_filter) {
    outcome.failed_host = static_cast<size_t>(absl::c_find(plan.host_names, point.host_name) -
                                              plan.host_names.begin());
    outcome.status =
        AskHostAboutGroup(attempt, point, began + state_.options.cycle_deadline, now, &outcome);
    if (!outcome.status.ok() &&
        host_calls_.IsFailureIgnored(point, v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER)) {
      outcome.status = absl::OkStatus();
      outcome.candidate.reset();
      outcome.code = v1beta1::CODE_UNSCHEDULABLE;
      continue;
    }
    if (!outcome.status.ok() || outcome.code != v1beta1::CODE_UNSCHEDULABLE) break;
  }
  state_.observer->OnCall(v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER, plan.algorithm.name,
                          outcome.status.ok() ? outcome.code : v1beta1::CODE_ERROR,
                          SteadyNow() - began);
  return outcome;
}

absl::Status PostFilter::AskHostAboutGroup(const Attempt& attempt,
                                           const framework::HostExtensionPoint& point,
                                           absl::Time deadline, absl::Time now,
                                           PostFilterOutcome* outcome) {
  HostRecord* const host = host_calls_.UsableHost(point.host_name);
  if (host == nullptr) return absl::UnavailableError("the host is unavailable");
  // The host of the algorithm gets no change during an attempt; there is none either.
  if (point.host_name != attempt.plan->host_names.front()) host_calls_.SendChanges(host, now);
  v1beta1::PostFilterRequest request;
  request.mutable_header()->set_attempt_id(attempt.id);
  request.mutable_header()->set_exact_version(state_.cluster.VersionOf(host->cursor));
  request.mutable_header()->set_profile(attempt.plan->algorithm.name);
  *request.mutable_group() = RejectedGroup(*attempt.pod);
  const absl::StatusOr<v1beta1::PostFilterResponse> answer =
      host->client->PostFilter(std::move(request), deadline);
  absl::Status status = answer.status();
  if (answer.ok()) {
    status = framework::CheckPostFilter(*answer, NamesOf(point), /*others_filter=*/false);
    if (status.ok() && answer->has_candidates())
      status = CheckVictims(*attempt.pod, answer->candidates().candidates(0));
    if (!status.ok())
      state_.observer->OnProtocolError(point.host_name, host->client->instance(), status);
  }
  host_calls_.OnHostCallEnded(point.host_name, framework::HostCall::kPostFilter, status, now);
  if (!status.ok()) return status;
  NoteAnswer(*answer, outcome);
  if (answer->has_candidates()) outcome->candidate = answer->candidates().candidates(0);
  return absl::OkStatus();
}

std::optional<std::string> PostFilter::MessageWithoutCalls(
    const framework::ProfilePlan& plan) const {
  if (IsAboutGroup(plan)) return std::nullopt;
  const bool lacks_state = AnyLacksState(
      plan.skipped_before, PreFilterEndedAt(framework::PreFilterOf(algorithm_.response())));
  if (!plan.algorithm.post_filter_plugins.empty() && !lacks_state) return std::nullopt;
  return lacks_state ? kNoState : absl::StrJoin(plan.skipped_before, ", ", AppendReason);
}

PostFilterOutcome PostFilter::Ask(const Attempt& attempt, absl::Time now) {
  const framework::ProfilePlan& plan = *attempt.plan;
  if (IsAboutGroup(plan)) return AskAboutGroup(attempt, now);
  const std::string ended_at = PreFilterEndedAt(framework::PreFilterOf(algorithm_.response()));
  framework::AttemptHosts hosts;
  for (size_t i = 0; i < plan.num_algorithm_hosts(); ++i) {
    HostRecord* const host = host_calls_.UsableHost(plan.host_names[i]);
    if (host == nullptr) {
      // It is only needed at PostFilter, or not at all.
      hosts.push_back({nullptr, 0});
    } else {
      hosts.push_back({host->client, state_.cluster.VersionOf(host->cursor)});
    }
  }
  const absl::Time began = SteadyNow();
  framework::ExtensionPointRunner runner(&hosts, &plan.algorithm, attempt.id,
                                         began + state_.options.cycle_deadline);
  runner.UseNominations(&state_.cluster, attempt.pod.get());
  PostFilterOutcome outcome;
  outcome.keeps_nomination = true;
  for (const std::string& name : plan.post_filter_hosts) {
    const size_t asked = static_cast<size_t>(
        std::find(plan.host_names.begin(), plan.host_names.end(), name) - plan.host_names.begin());
    if (const auto it = plan.pre_filter_behind.find(name);
        it != plan.pre_filter_behind.end() && it->second.contains(ended_at)) {
      outcome.code = v1beta1::CODE_ERROR;
      outcome.reasons = {kNoState};
      break;
    }
    outcome.failed_host = asked;
    outcome.status = AskHost(attempt, asked, hosts, &runner, &outcome);
    if (outcome.status.ok())
      host_calls_.OnHostCallEnded(name, framework::HostCall::kPostFilter, outcome.status, now);
    if (!outcome.status.ok() || outcome.code != v1beta1::CODE_UNSCHEDULABLE) break;
  }
  state_.observer->OnCall(v1beta1::EXTENSION_POINT_POST_FILTER, plan.algorithm.name,
                          outcome.status.ok() ? outcome.code : v1beta1::CODE_ERROR,
                          SteadyNow() - began);
  if (outcome.status.ok()) return outcome;
  if (const framework::HostClient* failed = hosts[outcome.failed_host].client; failed != nullptr) {
    const std::string& name = plan.host_names[outcome.failed_host];
    state_.observer->OnProtocolError(name, failed->instance(), outcome.status);
    host_calls_.OnHostCallEnded(name, framework::HostCall::kPostFilter, outcome.status, now);
  }
  return outcome;
}

std::string PostFilter::Message(const framework::ProfilePlan& plan,
                                const PostFilterOutcome& outcome) const {
  const std::string asked = absl::StrJoin(outcome.reasons, ", ");
  if (IsAboutGroup(plan)) return asked;
  if (outcome.code != v1beta1::CODE_UNSCHEDULABLE) return asked;
  if (AnyLacksState(plan.skipped_after,
                    PreFilterEndedAt(framework::PreFilterOf(algorithm_.response()))))
    return kNoState;
  std::vector<std::string> reasons;
  for (const auto& skipped : plan.skipped_before) reasons.push_back(skipped.reason);
  reasons.push_back(asked);
  for (const auto& skipped : plan.skipped_after) reasons.push_back(skipped.reason);
  return absl::StrJoin(reasons, ", ");
}

absl::Status PostFilter::AskHost(const Attempt& attempt, size_t asked,
                                 const framework::AttemptHosts& hosts,
                                 framework::ExtensionPointRunner* runner,
                                 PostFilterOutcome* outcome) {
  const framework::AlgorithmProfile& profile = attempt.plan->algorithm;
  const bool alone = hosts.size() == 1;
  if (hosts[asked].client == nullptr) return absl::UnavailableError("the host is unavailable");
  v1beta1::PostFilterRequest request;
  request.mutable_header()->set_attempt_id(attempt.id);
  request.mutable_header()->set_exact_version(hosts[asked].version);
  request.mutable_header()->set_profile(profile.name);
  if (algorithm_.response().rejection().has_group())
    *request.mutable_group() = RejectedGroup(*attempt.pod);
  if (!alone) {
    *request.mutable_judged() = algorithm_.JudgedNodes();
    for (size_t host = 0; host < hosts.size(); ++host) {
      if (host != asked && !profile.shares[host].filter_plugins.empty())
        request.set_others_filter(true);
    }
  }
  const auto check = [&](const v1beta1::PostFilterResponse& response) {
    return framework::CheckPostFilter(response, profile.post_filter_plugins,
                                      request.others_filter());
  };
  absl::StatusOr<v1beta1::PostFilterResponse> answer =
      hosts[asked].client->PostFilter(request, runner->deadline());
  while (answer.ok() && answer->has_questions()) {
    if (absl::Status checked = check(*answer); !checked.ok()) return checked;
    absl::StatusOr<std::vector<v1beta1::PluginStatus>> verdicts =
        runner->AnswerQuestions(answer->questions().questions(), asked);
    if (!verdicts.ok()) {
      outcome->failed_host = runner->failed_host();
      return verdicts.status();
    }
    request.mutable_answers()->Assign(verdicts->begin(), verdicts->end());
    answer = hosts[asked].client->PostFilter(request, runner->deadline());
  }
  if (!answer.ok()) return answer.status();
  if (absl::Status checked = check(*answer); !checked.ok()) return checked;

  NoteAnswer(*answer, outcome);
  if (!answer->has_candidates()) return absl::OkStatus();
  const v1beta1::PreemptionCandidates& candidates = answer->candidates();
  if (request.others_filter())
    return ChooseCandidate(attempt, asked, request.judged(), candidates, runner, outcome);
  outcome->candidate = candidates.candidates(0);
  return CheckVictims(*attempt.pod, candidates.candidates(0));
}

absl::Status PostFilter::ChooseCandidate(const Attempt& attempt, size_t asked,
                                         const v1beta1::JudgedNodes& judged,
                                         const v1beta1::PreemptionCandidates& answer,
                                         framework::ExtensionPointRunner* runner,
                                         PostFilterOutcome* outcome) {
  CodeBySlot codes;
  for (int i = 0; i < judged.slots_size(); ++i) codes[judged.slots(i)] = judged.codes(i);
  google::protobuf::RepeatedPtrField<v1beta1::SimulatedNode> hypotheses;
  std::vector<const v1beta1::PreemptionCandidate*> candidates;
  for (const v1beta1::PreemptionCandidate& candidate : answer.candidates()) {
    if (absl::Status checked = CheckVictims(*attempt.pod, candidate); !checked.ok()) return checked;
    if (!MayHelp(judged, codes, candidate.slot())) continue;
    *hypotheses.Add() = WithoutVictims(candidate);
    candidates.push_back(&candidate);
  }
  std::vector<std::vector<v1beta1::PluginStatus>> objections;
  if (!candidates.empty()) {
    auto verdicts = runner->EvaluateHypotheses(hypotheses, asked);
    if (!verdicts.ok()) {
      outcome->failed_host = runner->failed_host();
      return verdicts.status();
    }
    objections = *std::move(verdicts);
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!objections[i].empty()) continue;
    outcome->candidate = *candidates[i];
    return absl::OkStatus();
  }
  outcome->code = v1beta1::CODE_UNSCHEDULABLE;
  outcome->keeps_nomination = false;
  outcome->reasons.push_back(absl::StrCat("preemption: none of ", answer.candidates_size(),
                                          " candidates is accepted by all hosts"));
  return absl::OkStatus();
}

absl::Status PostFilter::CheckVictims(const kube::PodObject& preemptor,
                                      const v1beta1::PreemptionCandidate& candidate) const {
  const auto wrong = [](auto... parts) {
    return absl::InternalError(absl::StrCat("PostFilter ", parts...));
  };
  if (preemptor.pod.preemption_policy() == v1beta1::PREEMPTION_POLICY_NEVER) {
    return wrong("wants to evict pods for pod ", preemptor.key(),
                 ", whose preemptionPolicy is Never");
  }
  const cache::ClusterState& cluster = state_.cluster;
  const std::string own_group = framework::DeclaredGroup(preemptor.pod);
  const kube::NodePtr& node = cluster.NodeAt(candidate.slot());
  if (node == nullptr) return wrong("names slot ", candidate.slot(), ", which has no node");
  std::set<std::string> nodes = {node->key()};
  for (const v1beta1::Nomination& nomination : candidate.nominations()) {
    const kube::NodePtr& other = cluster.NodeAt(nomination.slot());
    if (other == nullptr) return wrong("names slot ", nomination.slot(), ", which has no node");
    nodes.insert(other->key());
    const kube::PodPtr pod = cluster.FindPod(nomination.pod_uid());
    if (pod == nullptr || !cluster.NodeOf(pod->uid()).empty() ||
        pod->pod.scheduler_name() != preemptor.pod.scheduler_name() ||
        pod->uid() == preemptor.uid()) {
      return wrong("names a node for pod ", nomination.pod_uid(),
                   ", which is not waiting for a node");
    }
    // Otherwise its victims could be on any nodes.
    if (own_group.empty() || framework::DeclaredGroup(pod->pod) != own_group)
      return wrong("names a node for pod ", pod->key(), ", which is not of the pod's group");
  }
  // Companions leave because their groups cannot run without the victims.
  std::set<std::string> groups;
  for (const auto* uids : {&candidate.victim_uids(), &candidate.companion_uids()}) {
    const bool elsewhere = uids == &candidate.companion_uids();
    for (const std::string& uid : *uids) {
      const kube::PodPtr victim = cluster.FindPod(uid);
      if (victim == nullptr) return wrong("wants to evict an unknown pod ", uid);
      const std::string place = cluster.NodeOf(uid);
      if (elsewhere ? place.empty() : !nodes.contains(place)) {
        return wrong("wants to evict pod ", victim->key(), " from ",
                     elsewhere ? "any node" : absl::StrCat("node ", node->key()),
                     ", but it is on \"", place, "\"");
      }
      if (victim->pod.priority() >= preemptor.pod.priority()) {
        return wrong("wants to evict pod ", victim->key(), " of priority ", victim->pod.priority(),
                     " for one of priority ", preemptor.pod.priority());
      }
      const std::string group = framework::DeclaredGroup(victim->pod);
      if (elsewhere && !groups.contains(group))
        return wrong("wants to evict pod ", victim->key(), ", which is of no victim's group");
      if (!group.empty()) groups.insert(group);
    }
  }
  return absl::OkStatus();
}

}  // namespace outboard::scheduler
