#include "plugins/volume_binding/volume_binding.h"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/volume_binding/binding_progress.h"
#include "plugins/volume_binding/claim_matching.h"
#include "plugins/volume_binding/hints.h"
#include "plugins/volume_binding/volume_index.h"

namespace outboard::volume_binding {
namespace {

using sdk::Verdict;

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "bindTimeoutSeconds": {"type": "integer", "minimum": 0, "default": 600,
      "description": "How long the volumes of a pod may take to be bound."}}})json";

constexpr std::array<const char*, 4> kReasonTexts = {
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"};

std::array<Verdict, kReasonSets> MakeRejections() {
  std::array<Verdict, kReasonSets> rejections;
  for (int set = 1; set < kReasonSets; ++set) {
    std::vector<std::string> reasons;
    for (size_t i = 0; i < kReasonTexts.size(); ++i) {
      if (set & (1 << i)) reasons.emplace_back(kReasonTexts[i]);
    }
    rejections[set] = Verdict(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, std::move(reasons));
  }
  return rejections;
}

// Hypotheses share it: only the incoming pod affects it.
struct ClaimsState : sdk::AttemptState {
  uint64_t version = 0;  // Of the cluster cache.
  PodClaims claims;
};

// Adds one effect per claim, even if two volumes of the pod name the same claim; kube-scheduler
// writes twice, and the second write fails.
void AddEffects(const Decision& decision, const std::string& node_name,
                std::vector<v1beta1::Effect>* effects) {
  absl::flat_hash_set<absl::string_view> claims;  // uids
  for (const Decision::Binding& binding : decision.bindings) {
    if (!claims.insert(binding.claim->uid()).second) continue;
    v1beta1::Effect& effect = effects->emplace_back();
    effect.set_key(absl::StrCat("volume-", effects->size()));
    v1beta1::BindVolume* bind = effect.mutable_bind_volume();
    const v1beta1::PersistentVolume& volume = binding.volume->volume;
    bind->set_name(volume.name());
    bind->set_uid(volume.uid());
    bind->set_resource_version(volume.resource_version());
    bind->mutable_claim()->set_namespace_(binding.claim->namespace_());
    bind->mutable_claim()->set_name(binding.claim->name());
    bind->mutable_claim()->set_uid(binding.claim->uid());
    bind->set_claim_resource_version(binding.claim->resource_version());
    bind->set_bound_by_controller(!volume.has_claim_ref() ||
                                  !IsMeantFor(volume.claim_ref(), *binding.claim));
  }
  for (const v1beta1::PersistentVolumeClaim* claim : decision.provisions) {
    if (!claims.insert(claim->uid()).second) continue;
    v1beta1::Effect& effect = effects->emplace_back();
    effect.set_key(absl::StrCat("volume-", effects->size()));
    v1beta1::SelectNode* select = effect.mutable_select_node();
    select->set_namespace_(claim->namespace_());
    select->set_name(claim->name());
    select->set_uid(claim->uid());
    select->set_resource_version(claim->resource_version());
    select->set_node_name(node_name);
  }
}

class VolumeBinding : public sdk::Plugin,
                      public sdk::PreFilterPlugin,
                      public sdk::FilterPlugin,
                      public sdk::PreScorePlugin,
                      public sdk::ScorePlugin,
                      public sdk::ReservePlugin,
                      public sdk::PreBindPlugin,
                      public sdk::QueueingHintPlugin,
                      public sdk::ClusterObserver {
 public:
  explicit VolumeBinding(absl::Duration bind_timeout) : bind_timeout_(bind_timeout) {}

  Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    PodClaims claims;
    bool any = false;
    Verdict verdict = Collect(attempt, &claims, &any);
    if (!verdict.ok()) return verdict;
    if (!any) return Verdict::Skip();
    if (claims.unbound_immediate) {
      return Verdict::Unresolvable("pod has unbound immediate PersistentVolumeClaims");
    }
    auto& state = attempt.NewFilterState<ClaimsState>();
    state.version = attempt.cluster().nodes().version;
    state.claims = std::move(claims);
    return verdict;
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* state = attempt.filter_state<ClaimsState>();
    if (state == nullptr || state->version != attempt.cluster().nodes().version) {
      // The profile may have no PreFilter.
      sdk::PreFilterResult ignored;
      const Verdict verdict = PreFilter(attempt, &ignored);
      if (verdict.skip()) return;
      if (!verdict.ok()) {
        block.ForEach([&](int i, sdk::Slot) { sink.RejectWith(i, verdict); });
        return;
      }
      state = attempt.filter_state<ClaimsState>();
    }
    const sdk::ClusterObjects& objects = attempt.cluster().objects();
    block.ForEach([&](int i, sdk::Slot slot) {
      const Outcome outcome =
          EvaluateNode(state->claims, attempt.cluster().node(slot), objects, index_, nullptr);
      if (!outcome.error.empty()) {
        sink.Fail(i, outcome.error);
      } else if (outcome.reasons != 0) {
        sink.Reject(i, rejections_[outcome.reasons]);
      }
    });
  }

  // Only the feature gate StorageCapacityScoring scores nodes; it is off.
  Verdict PreScore(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes) const override {
    return Verdict::Skip();
  }
  Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                absl::Span<int64_t> raw) const override {
    for (int64_t& score : raw) score = 0;
    return Verdict::Success();
  }

  Verdict Reserve(const sdk::Attempt& attempt, const sdk::NodeView& node,
                  sdk::ReserveAnswer* answer) override {
    PodClaims claims;
    bool any = false;
    Verdict verdict = Collect(attempt, &claims, &any);
    if (verdict.ok() && claims.delayed.empty() && !claims.unbound_immediate) return verdict;
    Decision decision;
    Outcome outcome;
    if (verdict.ok()) {
      outcome = EvaluateNode(claims, node, attempt.cluster().objects(), index_, &decision);
    }
    if (!verdict.ok() || claims.unbound_immediate || outcome.reasons != 0 ||
        !outcome.error.empty()) {
      return Verdict::Error(absl::StrCat("volumes for node ", sdk::Quote(node.name()),
                                         " changed since they were chosen"));
    }
    AddEffects(decision, node.name(), &answer->effects);
    return Verdict::Success();
  }
  // The cluster cache reports that the pod has no node any more.
  void Unreserve(const sdk::Attempt& attempt, absl::string_view node_name,
                 std::vector<sdk::WaitDecision>* decisions) override {}

  Verdict PreBind(const sdk::Attempt& attempt, absl::string_view node_name,
                  const sdk::PreBindProgress& progress) override {
    return CheckProgress(node_name, progress, attempt.cluster(), index_, bind_timeout_);
  }

  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    return HintOf(pod.proto(), change);
  }

  void OnReset() override { index_.Clear(); }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    index_.SetEffects(pod.pod.uid(), pod.effects);
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override { index_.SetEffects(pod.pod.uid(), {}); }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    index_.Set(object);
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override { index_.Remove(object); }

 private:
  Verdict Collect(const sdk::Attempt& attempt, PodClaims* claims, bool* any) const {
    return CollectClaims(attempt.pod().proto(), attempt.cluster().objects(), index_, claims, any);
  }

  const absl::Duration bind_timeout_;
  VolumeIndex index_;
  const std::array<Verdict, kReasonSets> rejections_ = MakeRejections();
};

std::vector<v1beta1::ClusterEvent> WakeUpEvents() {
  using Event = v1beta1::ClusterEvent;
  return {sdk::WakeOn("StorageClass", {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER}),
          sdk::WakeOn("PersistentVolumeClaim", {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER}),
          sdk::WakeOn("PersistentVolume", {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER}),
          sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_LABEL}),
          sdk::WakeOn("CSINode", {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER}),
          sdk::WakeOn("CSIDriver", {Event::ACTION_UPDATE_OTHER}),
          sdk::WakeOn("CSIStorageCapacity", {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER})};
}

absl::StatusOr<std::unique_ptr<sdk::Plugin>> Create(const sdk::PluginContext& context) {
  const sdk::ArgsObject args = context.args->root();
  const int64_t timeout = args.Int("bindTimeoutSeconds", 600);
  if (timeout < 0) {
    args.Problem(
        "bindTimeoutSeconds",
        sdk::InvalidValue(timeout, "invalid BindTimeoutSeconds, should not be a negative value"));
  }
  if (args.Has("shape")) {
    const std::vector<sdk::ArgsObject> points = args.Objects("shape");
    std::string text;
    for (const sdk::ArgsObject& point : points) {
      absl::StrAppend(&text, text.empty() ? "" : ",",
                      "{\"Utilization\":", point.Int("utilization", 0),
                      ",\"Score\":", point.Int("score", 0), "}");
    }
    args.Problem("shape",
                 absl::StrCat("Invalid value: [", text,
                              "]: unexpected field `shape`, remove it or turn on the feature gate "
                              "StorageCapacityScoring"));
  }
  return std::make_unique<VolumeBinding>(absl::Seconds(timeout));
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "VolumeBinding";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                        v1beta1::EXTENSION_POINT_PRE_SCORE,  v1beta1::EXTENSION_POINT_SCORE,
                        v1beta1::EXTENSION_POINT_RESERVE,    v1beta1::EXTENSION_POINT_PRE_BIND};
  d.args_schema = kArgsSchema;
  d.wake_up_events = WakeUpEvents();
  d.interests = {
      sdk::InterestIn(v1beta1::EXTENSION_POINT_RESERVE,
                      {"spec.volumes[*].persistentVolumeClaim", "spec.volumes[*].ephemeral"})};
  d.signature = {{"metadata.namespace", "spec.volumes"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = Create;
  return d;
}

}  // namespace outboard::volume_binding
