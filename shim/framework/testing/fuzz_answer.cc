#include "shim/framework/testing/fuzz_answer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "integration/fuzz/seeds.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/custom_resources.h"
#include "shim/framework/pod_effects.h"
#include "shim/framework/profile_plan.h"
#include "shim/framework/rejections.h"

namespace outboard::framework {
namespace {

using fuzz::Require;
using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr uint32_t kNodes = 70;
constexpr uint32_t kToFind = 9;

const std::vector<std::string>& Plugins() {
  static const auto* const plugins = new std::vector<std::string>{"A", "B"};
  return *plugins;
}

HostExtensionPoint Share() {
  HostExtensionPoint share;
  share.host_name = "h";
  for (const std::string& name : Plugins()) share.plugins.push_back({name, {}, 0});
  return share;
}

Pod ClaimingPod() {
  Pod pod;
  pod.set_namespace_("ns");
  pod.set_name("p");
  pod.set_uid("u");
  pod.add_containers()->set_name("main");
  Volume* volume = pod.add_volumes();
  volume->set_source("persistentVolumeClaim");
  volume->set_claim_name("data");
  return pod;
}

void RequireStatus(const PluginStatus& status) {
  Require(!status.plugin().empty(), "a verdict names its plugin");
  Require(status.reasons_size() <= 16, "reasons are bounded");
}

// An error is a text for people, of a bounded length.
bool Passes(const absl::Status& status) {
  Require(status.ok() || absl::IsInternal(status) || absl::IsPermissionDenied(status),
          "a fault of a host is INTERNAL");
  Require(status.message().size() <= 8192, "the text of a fault is bounded");
  return status.ok();
}

void CheckedFilter(const FilterResponse& filter) {
  std::vector<uint32_t> feasible;
  if (!Passes(CheckFilter(filter, kNodes, kToFind, &feasible))) return;
  Require(feasible.size() <= kToFind, "no more nodes than asked for");
  Require(std::is_sorted(feasible.begin(), feasible.end()), "nodes are in order");
  Require(feasible.empty() || feasible.back() < filter.processed(), "nodes were examined");
  Require(filter.processed() <= kNodes, "examined nodes exist");
  Require(CountSetBits(filter.feasible()) == feasible.size(), "bits are counted");
  RejectedNodes rejected;
  auto next = feasible.begin();
  for (uint32_t node = 0; node < filter.processed(); ++node) {
    if (next != feasible.end() && *next == node) {
      ++next;
      continue;
    }
    const std::optional<uint32_t> reason = rejected.NextReason(filter, node);
    Require(reason.has_value() && *reason < static_cast<uint32_t>(filter.reasons_size()),
            "each rejected node has a reason");
  }
  for (const PluginStatus& status : filter.reasons()) RequireStatus(status);
  if (!Passes(CheckNames(filter, Plugins()))) return;
  for (const PluginStatus& status : filter.reasons())
    Require(absl::c_linear_search(Plugins(), status.plugin()), "verdicts are of known plugins");
}

void CheckedPostFilter(const PostFilterResponse& post_filter) {
  if (!Passes(CheckPostFilter(post_filter, Plugins(), /*others_filter=*/true))) return;
  const auto& candidates = post_filter.candidates().candidates();
  Require(candidates.size() <= 32, "candidates are bounded");
  Require(post_filter.questions().questions_size() <= 65536, "questions are bounded");
  for (const PreemptionCandidate& candidate : candidates) {
    Require(!candidate.victim_uids().empty(), "a candidate has victims");
    Require(absl::c_linear_search(Plugins(), candidate.plugin()), "of a known plugin");
  }
}

void RequireEffects(const google::protobuf::RepeatedPtrField<Effect>& effects) {
  Require(effects.size() <= 256, "effects are bounded");
  for (const Effect& effect : effects) {
    Require(HasKey(effect), "an effect has a key");
    if (effect.has_select_node()) {
      Require(effect.select_node().namespace_() == "ns" && effect.select_node().name() == "data",
              "a claim is the pod's");
      Require(effect.select_node().node_name() == "n1", "a node is the pod's");
    }
    if (effect.has_bind_volume()) {
      const std::string& name = effect.bind_volume().name();
      Require(name != "." && name != ".." && name.find('/') == std::string::npos,
              "a volume's name is one segment of a path");
      Require(effect.bind_volume().claim().name() == "data", "a claim is the pod's");
      Require(!effect.bind_volume().uid().empty(), "a write has a precondition");
    }
  }
}

void CheckedReserve(const ReserveResponse& reserve) {
  if (!Passes(CheckReserve(reserve, Share(), ClaimingPod(), "n1"))) return;
  if (reserve.has_rejection()) return RequireStatus(reserve.rejection());
  size_t kept = 0;
  for (const PluginState& state : reserve.states()) {
    Require(absl::c_linear_search(Plugins(), state.plugin()), "a state is of a known plugin");
    kept += state.state().size();
  }
  Require(kept <= 16 << 10, "what plugins keep is bounded");
  RequireEffects(reserve.effects());
}

// As HostCalls checks it, after an effect of Reserve with the key "first".
void CheckedPreBind(const PreBindResponse& pre_bind) {
  if (!Passes(CheckPreBind(pre_bind, {"A", "B"}))) return;
  if (pre_bind.has_rejection()) return RequireStatus(pre_bind.rejection());
  google::protobuf::RepeatedPtrField<Effect> all;
  Effect* const first = all.Add();
  first->set_key("first");
  first->set_plugin("A");
  first->mutable_patch_pod();
  all.MergeFrom(pre_bind.effects());
  if (!Passes(CheckEffects(all, "PreBind", ClaimingPod(), "n1"))) return;
  RequireEffects(all);
  for (const Effect& effect : pre_bind.effects()) {
    Require(absl::c_linear_search(Plugins(), effect.plugin()), "effects are of known plugins");
    Require(effect.key() != "first", "a key is not used twice in an attempt");
  }
}

void CheckedBind(const BindResponse& bind) {
  if (!Passes(CheckBind(bind, "A", {"kubernetes.io/allowed"}))) return;
  Require(bind.outcome_case() != BindResponse::OUTCOME_NOT_SET, "an answer has an outcome");
  if (bind.has_rejection()) {
    RequireStatus(bind.rejection());
    Require(bind.rejection().plugin() == "A", "a rejection is the requested plugin's");
  }
  const auto& annotations = bind.shim_binds().annotations();
  Require(annotations.size() <= 256, "annotations are bounded");
  for (const auto& [key, value] : annotations) {
    Require(!BelongsToKubernetes(key) || key == "kubernetes.io/allowed",
            "an annotation is not Kubernetes'");
  }
}

void CheckedPodEffect(const Effect& effect) {
  if (!Passes(CheckPodEffect(effect, {}))) return;
  for (const auto& [key, value] : effect.patch_pod().set_labels())
    Require(!BelongsToKubernetes(key) && value.size() <= 63, "a label is not Kubernetes'");
  for (const auto& [key, value] : effect.patch_pod().set_annotations())
    Require(!BelongsToKubernetes(key), "an annotation is not Kubernetes'");
  Require(!BelongsToKubernetes(effect.set_pod_condition().type()),
          "a condition is not Kubernetes'");
}

void CheckedWrite(const Effect& effect) {
  CheckedPodEffect(effect);
  GetHostInfoResponse host;
  PluginInfo* plugin = host.add_plugins();
  plugin->set_name("A");
  DeclaredResource* used = plugin->add_declared_resources();
  used->set_resource("things.v1.example.com");
  const std::vector<DeclaredResource::Verb> verbs = {
      DeclaredResource::VERB_CREATE, DeclaredResource::VERB_UPDATE, DeclaredResource::VERB_DELETE,
      DeclaredResource::VERB_PATCH};
  for (const DeclaredResource::Verb verb : verbs) used->add_verbs(verb);
  const std::vector<CustomResourceRule> rules = {{"things.v1.example.com", verbs, {"ns"}}};
  if (!Passes(CheckObjectWrite(effect, host, rules)) || !IsObjectWrite(effect)) return;
  const std::string& ns = effect.has_put_object()     ? effect.put_object().namespace_()
                          : effect.has_patch_object() ? effect.patch_object().namespace_()
                                                      : effect.delete_object().namespace_();
  Require(ns == "ns", "a write stays in the allowed namespaces");
  const std::string& name = WrittenObject(effect);
  Require(!name.empty() && name != ".." && name.find('/') == std::string::npos,
          "an object's name is one segment of a path");
  Require(effect.plugin() == "A", "a write is of a plugin that declared it");
}

template <typename Message, typename Check>
void Parsed(absl::string_view bytes, Check check) {
  Message message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) check(message);
}

}  // namespace

void FuzzAnswer(absl::string_view bytes) {
  const google::protobuf::LogSilencer silencer;  // of lines about invalid UTF-8
  if (bytes.empty()) return;
  const int point = static_cast<unsigned char>(bytes[0]) % 13;
  bytes.remove_prefix(1);
  switch (point) {
    case 0:
      return Parsed<PreFilterResponse>(bytes, [](const auto& answer) {
        if (!Passes(CheckPreFilter(answer)) || !Passes(CheckNames(answer, Plugins()))) return;
        Require(!answer.has_rejection() || answer.rejection().code() != CODE_SUCCESS,
                "a rejection is not a success");
      });
    case 1:
      return Parsed<FilterResponse>(bytes, CheckedFilter);
    case 2:
      return Parsed<PostFilterResponse>(bytes, CheckedPostFilter);
    case 3:
      return Parsed<PreScoreResponse>(
          bytes, [](const auto& answer) { (void)Passes(CheckPreScore(answer)); });
    case 4:
      return Parsed<ScoreResponse>(bytes, [](const auto& answer) {
        std::vector<int64_t> totals;
        if (!Passes(CheckScores(answer, kNodes, {{"A", 3}, {"B", 1}}, &totals))) return;
        Require(totals.size() == kNodes, "each node has a score");
        for (const int64_t total : totals)
          Require(total >= 0 && total <= 400, "scores are in their range");
      });
    case 5:
      return Parsed<PlanResponse>(bytes, [](const auto& answer) {
        if (!Passes(CheckCycle(answer))) return;
        const CyclePlan& plan = answer.plan();
        if (Passes(CheckPlacements(plan, "u0", {"u1", "u2"}, plan.has_group()))) {
          Require(plan.placements_size() <= 4096, "placements are bounded");
          Require(plan.placements(0).pod_uid() == "u0", "the first is the requested pod's");
        }
        (void)Passes(CheckRejectedGroup(answer.rejection().group(), "u0"));
      });
    case 6:
      return Parsed<ReserveResponse>(bytes, CheckedReserve);
    case 7:
      return Parsed<PermitResponse>(bytes, [](const auto& answer) {
        if (!Passes(CheckPermit(answer, Share())) || answer.has_rejection()) return;
        for (const PermitWait& wait : answer.waits())
          Require(wait.timeout_micros() > 0, "a wait has an end");
      });
    case 8:
      return Parsed<PreBindResponse>(bytes, CheckedPreBind);
    case 9:
      return Parsed<PluginStatus>(bytes, [](const auto& verdict) {
        if (Passes(CheckGate(verdict, Share())) && verdict.code() != CODE_SUCCESS)
          RequireStatus(verdict);
      });
    case 10:
      return Parsed<WaitDecision>(bytes, [](const auto& decision) {
        if (Passes(CheckDecision(decision)))
          Require(decision.attempt_id() != 0 && !decision.plugin().empty(), "it is about a wait");
      });
    case 11:
      return Parsed<Effect>(bytes, CheckedWrite);
    default:
      return Parsed<BindResponse>(bytes, CheckedBind);
  }
}

}  // namespace outboard::framework
