// The part of a session after a placement: Reserve, Unreserve, Permit, PreBind, Bind, PostBind, and
// decisions on waiting pods.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/runtime/cut_text.h"
#include "plugin_host/runtime/session.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::runtime {
namespace {

using v1beta1::CallError;

// Limit of a wait, for every plugin.
constexpr absl::Duration kMaxPermitWait = absl::Minutes(15);
// The contract's limits of what plugins keep for a pod: each, and all of a host together.
constexpr size_t kMaxStateBytes = 4 << 10;
constexpr size_t kMaxStatesBytes = 16 << 10;
// How many decisions an answer of Permit may have; the host pushes the others.
constexpr int kMaxDecisions = 4096;

void FillDecision(const std::string& plugin, const sdk::WaitDecision& decision,
                  v1beta1::WaitDecision* out) {
  out->set_attempt_id(decision.attempt_id);
  out->set_pod_uid(decision.pod_uid);
  out->set_plugin(plugin);
  out->set_allow(decision.allow);
  out->set_message(TextForPeople(decision.message));
}

// Whether a decision names a wait. Because of a decision without, the shim refuses the whole
// answer.
bool IsAboutAWait(const sdk::WaitDecision& decision) {
  return decision.attempt_id != 0 && !decision.pod_uid.empty();
}

// A wait needs a limit, in whole microseconds.
sdk::Verdict CheckTimeout(const sdk::Verdict& verdict, absl::Duration timeout) {
  if (verdict.code() != sdk::kWait || timeout >= absl::Microseconds(1)) return verdict;
  return sdk::Verdict::Error("WAIT without a timeout");
}

// Returns rejections as they are; any other code except success is a failure of the plugin.
void FillRejection(absl::string_view point, const std::string& plugin, const sdk::Verdict& verdict,
                   v1beta1::PluginStatus* status) {
  if (verdict.rejected()) {
    FillStatus(plugin, verdict, status);
  } else {
    FillErrorStatus(
        plugin,
        absl::StrCat("running ", point, " plugin ", sdk::Quote(plugin), ": ", ErrorText(verdict)),
        status);
  }
}

// Adds what the plugin keeps for the pod. An error if it is too much: the shim would refuse the
// whole answer.
sdk::Verdict AddState(const std::string& plugin, std::string state,
                      v1beta1::ReserveResponse* response) {
  if (state.empty()) return sdk::Verdict::Success();
  size_t bytes = state.size();
  if (bytes > kMaxStateBytes)
    return sdk::Verdict::Error(absl::StrCat("a state of ", bytes, " bytes; the limit is 4 KiB"));
  for (const v1beta1::PluginState& its : response->states()) bytes += its.state().size();
  if (bytes > kMaxStatesBytes)
    return sdk::Verdict::Error("the states of all plugins exceed 16 KiB");
  v1beta1::PluginState* const out = response->add_states();
  out->set_plugin(plugin);
  out->set_state(std::move(state));
  return sdk::Verdict::Success();
}

CallStatus UnknownNode(const std::string& name) {
  return CallStatus(CallError::REASON_OBJECT_UNKNOWN, absl::StrCat("unknown node ", name));
}

}  // namespace

sdk::Attempt Session::View(const Target& target, uint32_t plugin, absl::Time now) const {
  return sdk::Attempt(target.attempt->id, sdk::PodView(target.pod), cache_.view(), Clock(now),
                      &target.attempt->states[plugin], target.leader_epoch);
}

CallStatus Session::Reserve(const v1beta1::ReserveRequest& request, absl::Time now,
                            v1beta1::ReserveResponse* response) {
  Target target;
  if (CallStatus status = FindOrBegin(request.header(), request.pod_uid(), false, &target);
      !status.ok()) {
    return status;
  }
  const std::optional<sdk::NodeView> node = cache_.view().FindNode(request.node_name());
  if (!node) return UnknownNode(request.node_name());
  const Profile& profile = *target.attempt->profile;
  for (uint32_t index : profile.at(v1beta1::EXTENSION_POINT_RESERVE)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    sdk::ReserveAnswer answer;
    const sdk::Attempt view = View(target, index, now);
    sdk::Verdict verdict =
        profile.times().Measure(index, v1beta1::EXTENSION_POINT_RESERVE, sdk::LogName(view),
                                [&] { return plugin.reserve->Reserve(view, *node, &answer); });
    if (verdict.ok()) verdict = AddState(plugin.name, std::move(answer.state), response);
    if (verdict.ok()) {
      for (v1beta1::Effect& effect : answer.effects) {
        effect.set_plugin(plugin.name);
        *response->add_effects() = std::move(effect);
      }
      continue;
    }
    response->clear_effects();
    response->clear_states();
    FillRejection("Reserve", plugin.name, verdict, response->mutable_rejection());
    google::protobuf::RepeatedPtrField<v1beta1::WaitDecision> decisions;
    RunUnreserve(target, request.node_name(), now, &decisions);
    // The answer has no field for decisions, so the host pushes them.
    for (const v1beta1::WaitDecision& decision : decisions) {
      if (!push_) break;
      v1beta1::SyncResponse push;
      *push.mutable_wait_decision() = decision;
      push_(push);
    }
    break;
  }
  return CallStatus::Ok();
}

void Session::RunUnreserve(const Target& target, const std::string& node_name, absl::Time now,
                           google::protobuf::RepeatedPtrField<v1beta1::WaitDecision>* decisions) {
  const Profile& profile = *target.attempt->profile;
  const std::vector<uint32_t>& enabled = profile.at(v1beta1::EXTENSION_POINT_RESERVE);
  for (auto it = enabled.rbegin(); it != enabled.rend(); ++it) {
    const ProfilePlugin& plugin = profile.plugins()[*it];
    std::vector<sdk::WaitDecision> made;
    plugin.reserve->Unreserve(View(target, *it, now), node_name, &made);
    for (const sdk::WaitDecision& decision : made) {
      if (IsAboutAWait(decision)) FillDecision(plugin.name, decision, decisions->Add());
    }
  }
}

CallStatus Session::Unreserve(const v1beta1::UnreserveRequest& request, absl::Time now,
                              v1beta1::UnreserveResponse* response) {
  Target target;
  if (FindAttempt(request.header(), &target).ok()) {
    RunUnreserve(target, request.node_name(), now, response->mutable_decisions());
    return CallStatus::Ok();
  }
  // After a restart the plugins are still notified, with the cache's data only.
  std::shared_ptr<const Profile> profile = FindProfile(request.header().profile());
  target.pod = cache_.FindPod(request.pod_uid());
  if (profile == nullptr || target.pod == nullptr) return CallStatus::Ok();
  AttemptRecord attempt;
  attempt.Begin(request.header().attempt_id(), request.pod_uid(), std::move(profile));
  target.attempt = &attempt;
  RunUnreserve(target, request.node_name(), now, response->mutable_decisions());
  return CallStatus::Ok();
}

CallStatus Session::Permit(const v1beta1::PermitRequest& request, absl::Time now,
                           v1beta1::PermitResponse* response) {
  Target target;
  if (CallStatus status =
          FindOrBegin(request.header(), request.pod_uid(), request.resumed(), &target);
      !status.ok()) {
    return status;
  }
  const std::optional<sdk::NodeView> node = cache_.view().FindNode(request.node_name());
  if (!node) return UnknownNode(request.node_name());
  const Profile& profile = *target.attempt->profile;
  for (uint32_t index : profile.at(v1beta1::EXTENSION_POINT_PERMIT)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    sdk::PermitAnswer answer;
    const sdk::Attempt view = View(target, index, now);
    sdk::Verdict verdict =
        profile.times().Measure(index, v1beta1::EXTENSION_POINT_PERMIT, sdk::LogName(view),
                                [&] { return plugin.permit->Permit(view, *node, &answer); });
    verdict = CheckTimeout(verdict, answer.timeout);
    for (const sdk::WaitDecision& decision : answer.decisions) {
      if (!IsAboutAWait(decision)) continue;
      if (response->decisions_size() < kMaxDecisions) {
        FillDecision(plugin.name, decision, response->add_decisions());
      } else {
        Decide(plugin.name, decision);
      }
    }
    if (verdict.ok()) continue;
    if (verdict.code() == sdk::kWait) {
      v1beta1::PermitWait* wait = response->add_waits();
      wait->set_plugin(plugin.name);
      wait->set_timeout_micros(absl::ToInt64Microseconds(std::min(answer.timeout, kMaxPermitWait)));
      wait->set_reason(TextForPeople(answer.wait_reason));
      continue;
    }
    response->clear_waits();
    FillRejection("Permit", plugin.name, verdict, response->mutable_rejection());
    break;
  }
  return CallStatus::Ok();
}

template <typename Request>
CallStatus Session::FindOrRestore(const Request& request, Placement* placed) {
  Target* const target = &placed->target;
  if (FindAttempt(request.header(), target).ok()) return CallStatus::Ok();
  std::shared_ptr<const Profile> profile = FindProfile(request.header().profile());
  if (profile == nullptr)
    return CallStatus(CallError::REASON_NOT_CONFIGURED, request.header().profile());
  target->pod = cache_.FindPod(request.pod_uid());
  if (target->pod == nullptr) {
    return CallStatus(CallError::REASON_OBJECT_UNKNOWN,
                      absl::StrCat("unknown pod ", request.pod_uid()));
  }
  placed->restored.Begin(request.header().attempt_id(), request.pod_uid(), std::move(profile));
  target->attempt = &placed->restored;
  return CallStatus::Ok();
}

CallStatus Session::PreBind(const v1beta1::PreBindRequest& request, absl::Time now,
                            v1beta1::PreBindResponse* response) {
  if (request.results_size() != request.effects_size()) {
    return CallStatus(CallError::REASON_INVALID, "effects and results differ in number");
  }
  Placement placed;
  if (CallStatus status = FindOrRestore(request, &placed); !status.ok()) return status;
  const Target& target = placed.target;
  const Profile& profile = *target.attempt->profile;
  for (uint32_t index : profile.at(v1beta1::EXTENSION_POINT_PRE_BIND)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    std::vector<const v1beta1::Effect*> effects;
    std::vector<const v1beta1::EffectResult*> results;
    for (int i = 0; i < request.effects_size(); ++i) {
      if (request.effects(i).plugin() != plugin.name) continue;
      effects.push_back(&request.effects(i));
      results.push_back(&request.results(i));
    }
    if (effects.empty() && !plugin.pre_bind_without_effects) continue;
    std::vector<v1beta1::Effect> further;
    const sdk::PreBindProgress progress{effects, results,
                                        absl::Microseconds(request.elapsed_micros()), &further};
    const sdk::Attempt view = View(target, index, now);
    const sdk::Verdict verdict = profile.times().Measure(
        index, v1beta1::EXTENSION_POINT_PRE_BIND, sdk::LogName(view),
        [&] { return plugin.pre_bind->PreBind(view, request.node_name(), progress); });
    if (verdict.ok() || verdict.code() == sdk::kWait) {
      if (!verdict.ok()) response->set_wait(true);
      for (v1beta1::Effect& effect : further) {
        effect.set_plugin(plugin.name);
        *response->add_effects() = std::move(effect);
      }
      continue;
    }
    response->set_wait(false);
    response->clear_effects();
    FillRejection("PreBind", plugin.name, verdict, response->mutable_rejection());
    break;
  }
  return CallStatus::Ok();
}

CallStatus Session::Bind(const v1beta1::BindRequest& request, absl::Time now,
                         v1beta1::BindResponse* response) {
  Placement placed;
  if (CallStatus status = FindOrRestore(request, &placed); !status.ok()) return status;
  const Target& target = placed.target;
  const Profile& profile = *target.attempt->profile;
  const std::vector<uint32_t>& enabled = profile.at(v1beta1::EXTENSION_POINT_BIND);
  const auto index = std::find_if(enabled.begin(), enabled.end(), [&](uint32_t its) {
    return profile.plugins()[its].name == request.plugin();
  });
  if (index == enabled.end()) {
    return CallStatus(CallError::REASON_INVALID,
                      absl::StrCat("plugin ", request.plugin(), " is not at bind in the profile"));
  }
  const ProfilePlugin& plugin = profile.plugins()[*index];
  if (plugin.bind == nullptr) {  // only a name in the profile
    response->mutable_shim_binds();
    return CallStatus::Ok();
  }
  sdk::BindAnswer answer;
  const sdk::Attempt view = View(target, *index, now);
  const sdk::Verdict verdict = profile.times().Measure(
      *index, v1beta1::EXTENSION_POINT_BIND, sdk::LogName(view),
      [&] { return plugin.bind->Bind(view, request.node_name(), &answer); });
  if (!verdict.ok()) {
    FillRejection("Bind", plugin.name, verdict, response->mutable_rejection());
  } else if (answer.by == sdk::BindAnswer::By::kPlugin) {
    response->mutable_bound();
  } else if (answer.by == sdk::BindAnswer::By::kNext) {
    response->mutable_skip();
  } else {
    response->mutable_shim_binds()->mutable_annotations()->insert(answer.annotations.begin(),
                                                                  answer.annotations.end());
  }
  return CallStatus::Ok();
}

CallStatus Session::PostBind(const v1beta1::PostBindRequest& request, absl::Time now) {
  Placement placed;
  if (CallStatus status = FindOrRestore(request, &placed); !status.ok()) return status;
  const Target& target = placed.target;
  const Profile& profile = *target.attempt->profile;
  for (uint32_t index : profile.at(v1beta1::EXTENSION_POINT_POST_BIND)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    if (plugin.post_bind == nullptr) continue;
    const sdk::Attempt view = View(target, index, now);
    profile.times().Measure(index, v1beta1::EXTENSION_POINT_POST_BIND, sdk::LogName(view), [&] {
      plugin.post_bind->PostBind(view, request.node_name());
      return 0;
    });
  }
  return CallStatus::Ok();
}

void Session::Decide(const std::string& plugin, const sdk::WaitDecision& decision) {
  if (!push_ || !IsAboutAWait(decision)) return;
  v1beta1::SyncResponse response;
  FillDecision(plugin, decision, response.mutable_wait_decision());
  push_(response);
}

}  // namespace outboard::runtime
