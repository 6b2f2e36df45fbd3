#include "plugin_host/sdk/testing/plugin_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/runtime/evaluator.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/runtime/queueing_hints.h"
#include "plugin_host/runtime/wake_up_events.h"
#include "plugin_host/sdk/plugin_registry.h"
#include "plugin_host/sdk/testing/figures.h"

namespace outboard::sdk::testing {
namespace {

constexpr char kProfile[] = "default-scheduler";

Verdict FromProto(const v1beta1::PluginStatus& status) {
  return Verdict(status.code(),
                 std::vector<std::string>(status.reasons().begin(), status.reasons().end()));
}

}  // namespace

struct PluginHarness::Impl : runtime::PushTarget {
  Figures figures;
  PluginRegistry registry;
  host_cache::ClusterCache cache;
  std::shared_ptr<const runtime::Profile> profile;
  runtime::Evaluator evaluator{&cache};
  runtime::AttemptRecord attempt;
  absl::Time now = absl::UnixEpoch();
  uint64_t next_attempt = 1;
  std::vector<Slot> free_slots;
  Slot next_slot = 0;
  std::vector<WaitDecision> decisions;
  std::vector<std::string> sort_key_changes;
  std::vector<std::string> gate_changes;
  std::vector<std::string> activated;
  std::vector<v1beta1::Effect> written;

  ~Impl() override {
    attempt = runtime::AttemptRecord();
    profile.reset();
  }
  void Decide(const std::string&, const WaitDecision& decision) override {
    decisions.push_back(decision);
  }
  void SortKeysChanged(absl::Span<const std::string> uids) override {
    sort_key_changes.insert(sort_key_changes.end(), uids.begin(), uids.end());
  }
  void GateChanged(absl::Span<const std::string> uids) override {
    gate_changes.insert(gate_changes.end(), uids.begin(), uids.end());
  }
  void Activate(const std::string&, absl::Span<const std::string> uids) override {
    activated.insert(activated.end(), uids.begin(), uids.end());
  }
  void Write(const std::string& plugin, v1beta1::Effect effect) override {
    effect.set_plugin(plugin);
    written.push_back(std::move(effect));
  }

  v1beta1::SyncRequest Delta() const {
    v1beta1::SyncRequest request;
    request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
    request.set_version(cache.version() + 1);
    return request;
  }
  void Apply(const v1beta1::SyncRequest& request) {
    const absl::Status status = cache.Apply(request, now);
    ASSERT_TRUE(status.ok()) << status;
  }
  const runtime::ProfilePlugin& plugin() const { return profile->plugins()[0]; }

  // The pod's record; adds an unknown pod.
  const PodRecord& Record(const v1beta1::Pod& pod) {
    if (cache.FindPod(pod.uid()) == nullptr) {
      v1beta1::SyncRequest request = Delta();
      *request.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
      Apply(request);
    }
    return *cache.FindPod(pod.uid());
  }
  // The attempt of a pod; begins it if necessary.
  const PodRecord& Begin(const v1beta1::Pod& pod) {
    const PodRecord& record = Record(pod);
    if (attempt.profile == nullptr || attempt.pod_uid != pod.uid()) {
      attempt.Begin(next_attempt++, pod.uid(), profile);
    }
    return record;
  }
  Attempt View(const PodRecord& pod) {
    return Attempt(attempt.id, PodView(&pod), cache.view(), now, &attempt.states[0]);
  }
  std::vector<Slot> Slots(const std::vector<std::string>& names) const {
    const NodeTable& nodes = cache.view().nodes();
    if (names.empty()) return nodes.order;
    std::vector<Slot> slots;
    for (const std::string& name : names) slots.push_back(nodes.slot_by_name.at(name));
    return slots;
  }
};

absl::StatusOr<std::unique_ptr<PluginHarness>> PluginHarness::Create(
    const PluginDescriptor& descriptor, absl::string_view args_json) {
  auto impl = std::make_unique<Impl>();
  if (absl::Status status = impl->registry.Add(descriptor); !status.ok()) return status;
  v1beta1::ProfileConfig config;
  config.set_name(kProfile);
  for (auto point : descriptor.extension_points) {
    v1beta1::PointConfig* out = config.add_points();
    out->set_extension_point(point);
    out->add_plugins(descriptor.name);
  }
  if (!args_json.empty()) {
    v1beta1::PluginArgs* args = config.add_args();
    args->set_plugin(descriptor.name);
    args->set_args_json(std::string(args_json));
  }
  google::protobuf::RepeatedPtrField<v1beta1::ConfigProblem> problems;
  impl->profile = runtime::Profile::Create(config, impl->registry, &impl->cache, impl.get(),
                                           &problems, &impl->figures);
  if (impl->profile == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrJoin(problems, "\n", [](std::string* out, const v1beta1::ConfigProblem& problem) {
          absl::StrAppend(out, problem.field(), problem.field().empty() ? "" : ": ",
                          problem.message());
        }));
  }
  v1beta1::SyncRequest snapshot;
  snapshot.set_version(1);
  snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
  impl->Apply(snapshot);
  snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
  impl->Apply(snapshot);
  return std::unique_ptr<PluginHarness>(new PluginHarness(std::move(impl)));
}

PluginHarness::PluginHarness(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PluginHarness::~PluginHarness() = default;

void PluginHarness::AddNode(const v1beta1::Node& node) {
  const NodeTable& nodes = impl_->cache.view().nodes();
  auto known = nodes.slot_by_name.find(node.name());
  v1beta1::SyncRequest request = impl_->Delta();
  v1beta1::NodeUpsert* upsert = request.add_changes()->mutable_node_upsert();
  if (known != nodes.slot_by_name.end()) {
    upsert->set_slot(known->second);
  } else if (!impl_->free_slots.empty()) {  // Reuses slots like the shim.
    upsert->set_slot(impl_->free_slots.back());
    impl_->free_slots.pop_back();
  } else {
    upsert->set_slot(impl_->next_slot++);
  }
  *upsert->mutable_node() = node;
  impl_->Apply(request);
}

void PluginHarness::RemoveNode(const std::string& name) {
  const Slot slot = impl_->cache.view().nodes().slot_by_name.at(name);
  v1beta1::SyncRequest request = impl_->Delta();
  request.add_changes()->mutable_node_remove()->set_slot(slot);
  impl_->Apply(request);
  impl_->free_slots.push_back(slot);
}

void PluginHarness::AddPod(const v1beta1::Pod& pod) {
  v1beta1::SyncRequest request = impl_->Delta();
  *request.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
  impl_->Apply(request);
}

void PluginHarness::RemovePod(const std::string& uid) {
  v1beta1::SyncRequest request = impl_->Delta();
  request.add_changes()->mutable_pod_remove()->set_uid(uid);
  impl_->Apply(request);
}

void PluginHarness::Place(const std::string& uid, v1beta1::PlacementState state,
                          const std::string& node, const std::vector<v1beta1::Effect>& effects) {
  v1beta1::SyncRequest request = impl_->Delta();
  v1beta1::PodPlacement* placement = request.add_changes()->mutable_pod_placement();
  placement->mutable_effects()->Add(effects.begin(), effects.end());
  placement->set_uid(uid);
  placement->set_state(state);
  if (state != v1beta1::PLACEMENT_STATE_UNPLACED) {
    placement->set_slot(impl_->cache.view().nodes().slot_by_name.at(node));
  }
  if (state == v1beta1::PLACEMENT_STATE_WAITING) {
    placement->set_attempt_id(impl_->attempt.pod_uid == uid ? impl_->attempt.id
                                                            : impl_->next_attempt++);
    v1beta1::PluginWait* wait = placement->add_waits();
    wait->set_plugin(impl_->plugin().name);
    wait->set_remaining_micros(60'000'000);
  }
  impl_->Apply(request);
}

void PluginHarness::AddNamespace(const std::string& name,
                                 const std::map<std::string, std::string>& labels) {
  v1beta1::SyncRequest request = impl_->Delta();
  v1beta1::Namespace* ns = request.add_changes()->mutable_namespace_upsert()->mutable_namespace_();
  ns->set_name(name);
  ns->mutable_labels()->insert(labels.begin(), labels.end());
  impl_->Apply(request);
}

void PluginHarness::RemoveNamespace(const std::string& name) {
  v1beta1::SyncRequest request = impl_->Delta();
  request.add_changes()->mutable_namespace_remove()->set_name(name);
  impl_->Apply(request);
}

void PluginHarness::AddObject(const v1beta1::ClusterObject& object) {
  v1beta1::SyncRequest request = impl_->Delta();
  *request.add_changes()->mutable_object_upsert() = object;
  impl_->Apply(request);
}

void PluginHarness::RemoveObject(const v1beta1::ClusterObject& object) {
  v1beta1::SyncRequest request = impl_->Delta();
  *request.add_changes()->mutable_object_remove() = ReferenceTo(object);
  impl_->Apply(request);
}

void PluginHarness::SetNow(absl::Time now) { impl_->now = now; }
ClusterView PluginHarness::cluster() const { return impl_->cache.view(); }
Plugin& PluginHarness::plugin() { return *impl_->plugin().plugin; }

PluginHarness::PreFilterOutcome PluginHarness::PreFilter(const v1beta1::Pod& pod) {
  const PodRecord& record = impl_->Record(pod);
  impl_->attempt.Begin(impl_->next_attempt++, pod.uid(), impl_->profile);
  v1beta1::PreFilterResponse response;
  impl_->evaluator.PreFilter(impl_->attempt, record, impl_->now, &response);
  PreFilterOutcome outcome;
  if (response.has_rejection()) {
    outcome.verdict = FromProto(response.rejection());
  } else if (impl_->attempt.skip_filter[0]) {
    outcome.verdict = Verdict::Skip();
  }
  if (response.has_node_names()) {
    outcome.node_names.emplace(response.node_names().names().begin(),
                               response.node_names().names().end());
  }
  return outcome;
}

std::map<std::string, Verdict> PluginHarness::Filter(const v1beta1::Pod& pod) {
  const PreFilterOutcome pre_filter = PreFilter(pod);
  std::map<std::string, Verdict> verdicts;
  if (!pre_filter.verdict.ok() && !pre_filter.verdict.skip()) {
    ADD_FAILURE() << "PreFilter rejected the pod: "
                  << ::testing::PrintToString(pre_filter.verdict.reasons());
    return verdicts;
  }
  const NodeTable& nodes = impl_->cache.view().nodes();
  std::vector<Slot> slots;
  for (Slot slot : nodes.order) {
    const std::string& name = nodes.nodes[slot].name();
    if (!pre_filter.node_names ||
        std::find(pre_filter.node_names->begin(), pre_filter.node_names->end(), name) !=
            pre_filter.node_names->end()) {
      slots.push_back(slot);
    }
  }
  // Node by node, so that an error on one does not hide the others.
  for (Slot slot : slots) {
    v1beta1::FilterResponse response;
    std::vector<Slot> feasible;
    impl_->evaluator.Filter(impl_->attempt, *impl_->cache.FindPod(pod.uid()), impl_->now,
                            {&slot, 1}, {}, &response, &feasible);
    Verdict verdict;
    if (response.has_error()) verdict = FromProto(response.error());
    if (response.reasons_size() > 0) verdict = FromProto(response.reasons(0));
    verdicts[nodes.nodes[slot].name()] = verdict;
  }
  return verdicts;
}

absl::StatusOr<std::map<std::string, int64_t>> PluginHarness::Score(
    const v1beta1::Pod& pod, std::vector<std::string> names) {
  const PodRecord& record = impl_->Begin(pod);
  const std::vector<Slot> slots = impl_->Slots(names);
  v1beta1::PreScoreResponse pre_score;
  impl_->evaluator.PreScore(impl_->attempt, record, impl_->now, slots, &pre_score);
  if (pre_score.has_error()) return absl::InternalError(pre_score.error().reasons(0));
  v1beta1::ScoreResponse score;
  impl_->evaluator.Score(impl_->attempt, record, impl_->now, slots, /*explain=*/false, &score);
  if (score.has_error()) return absl::InternalError(score.error().reasons(0));
  std::map<std::string, int64_t> result;
  if (score.plugins().empty()) return result;
  for (size_t i = 0; i < slots.size(); ++i) {
    result[impl_->cache.view().nodes().nodes[slots[i]].name()] =
        static_cast<unsigned char>(score.plugins(0).scores()[i]);
  }
  return result;
}

absl::StatusOr<std::map<std::string, int64_t>> PluginHarness::RawScore(
    const v1beta1::Pod& pod, std::vector<std::string> names) {
  const PodRecord& record = impl_->Begin(pod);
  const std::vector<Slot> slots = impl_->Slots(names);
  v1beta1::PreScoreResponse pre_score;
  impl_->evaluator.PreScore(impl_->attempt, record, impl_->now, slots, &pre_score);
  if (pre_score.has_error()) return absl::InternalError(pre_score.error().reasons(0));
  std::map<std::string, int64_t> result;
  if (impl_->attempt.skip_score[0]) return result;
  std::vector<int64_t> raw(slots.size());
  const Verdict verdict =
      impl_->plugin().score->Score(impl_->View(record), slots, absl::Span<int64_t>(raw));
  if (!verdict.ok()) return absl::InternalError(absl::StrJoin(verdict.reasons(), ", "));
  for (size_t i = 0; i < slots.size(); ++i) {
    result[impl_->cache.view().nodes().nodes[slots[i]].name()] = raw[i];
  }
  return result;
}

std::map<std::string, std::map<std::string, double>> PluginHarness::Terms(const v1beta1::Pod& pod) {
  const PodRecord& record = impl_->Begin(pod);
  const std::vector<Slot> slots = impl_->Slots({});
  v1beta1::PreScoreResponse pre_score;
  impl_->evaluator.PreScore(impl_->attempt, record, impl_->now, slots, &pre_score);
  v1beta1::ScoreResponse score;
  impl_->evaluator.Score(impl_->attempt, record, impl_->now, slots, /*explain=*/true, &score);
  std::map<std::string, std::map<std::string, double>> result;
  if (score.plugins().empty()) return result;
  for (int i = 0; i < score.plugins(0).terms_size(); ++i) {
    auto& terms = result[impl_->cache.view().nodes().nodes[slots[i]].name()];
    for (const v1beta1::ScoreTerm& term : score.plugins(0).terms(i).terms()) {
      EXPECT_TRUE(terms.emplace(term.name(), term.value()).second) << term.name() << " twice";
    }
  }
  return result;
}

Verdict PluginHarness::PostFilter(const v1beta1::Pod& pod) {
  const PodRecord& record = impl_->Begin(pod);
  v1beta1::PostFilterResponse response;
  impl_->evaluator.PostFilter(impl_->attempt, record, impl_->now, {}, &response);
  return response.has_rejection() ? FromProto(response.rejection().status()) : Verdict::Success();
}

v1beta1::PostFilterResponse PluginHarness::PostFilterOfRejected(const v1beta1::Pod& pod) {
  const PodRecord& record = impl_->Begin(pod);
  v1beta1::PostFilterRequest request;
  request.mutable_judged()->set_others(v1beta1::CODE_UNSCHEDULABLE);
  v1beta1::PostFilterResponse response;
  impl_->evaluator.PostFilter(impl_->attempt, record, impl_->now, request, &response);
  return response;
}

Verdict PluginHarness::PreEnqueue(const v1beta1::Pod& pod) {
  return impl_->plugin().pre_enqueue->PreEnqueue(PodView(&impl_->Record(pod)), impl_->cache.view(),
                                                 impl_->now);
}

std::string PluginHarness::SortKey(const v1beta1::Pod& pod) {
  return impl_->plugin().queue_sort->SortKey(PodView(&impl_->Record(pod)), impl_->cache.view());
}

Verdict PluginHarness::Reserve(const v1beta1::Pod& pod, const std::string& node,
                               ReserveAnswer* answer) {
  const PodRecord& record = impl_->Begin(pod);
  ReserveAnswer ignored;
  return impl_->plugin().reserve->Reserve(impl_->View(record), *impl_->cache.view().FindNode(node),
                                          answer != nullptr ? answer : &ignored);
}

Verdict PluginHarness::PreBind(const v1beta1::Pod& pod, const std::string& node,
                               const std::vector<v1beta1::Effect>& effects,
                               const std::vector<v1beta1::EffectResult>& results,
                               absl::Duration elapsed, std::vector<v1beta1::Effect>* further) {
  const PodRecord& record = impl_->Begin(pod);
  std::vector<const v1beta1::Effect*> effect_pointers;
  std::vector<const v1beta1::EffectResult*> result_pointers;
  std::vector<v1beta1::Effect> ignored;
  for (const auto& effect : effects) effect_pointers.push_back(&effect);
  for (const auto& result : results) result_pointers.push_back(&result);
  return impl_->plugin().pre_bind->PreBind(
      impl_->View(record), node,
      {effect_pointers, result_pointers, elapsed, further != nullptr ? further : &ignored});
}

Verdict PluginHarness::Bind(const v1beta1::Pod& pod, const std::string& node, BindAnswer* answer) {
  const PodRecord& record = impl_->Begin(pod);
  return impl_->plugin().bind->Bind(impl_->View(record), node, answer);
}

void PluginHarness::PostBind(const v1beta1::Pod& pod, const std::string& node) {
  const PodRecord& record = impl_->Begin(pod);
  impl_->plugin().post_bind->PostBind(impl_->View(record), node);
}

std::vector<WaitDecision> PluginHarness::Unreserve(const v1beta1::Pod& pod,
                                                   const std::string& node) {
  const PodRecord& record = impl_->Begin(pod);
  std::vector<WaitDecision> decisions;
  impl_->plugin().reserve->Unreserve(impl_->View(record), node, &decisions);
  return decisions;
}

Verdict PluginHarness::Permit(const v1beta1::Pod& pod, const std::string& node,
                              PermitAnswer* answer) {
  const PodRecord& record = impl_->Begin(pod);
  return impl_->plugin().permit->Permit(impl_->View(record), *impl_->cache.view().FindNode(node),
                                        answer);
}

std::vector<WaitDecision> PluginHarness::TakeDecisions() {
  return std::exchange(impl_->decisions, {});
}

std::vector<std::string> PluginHarness::TakeSortKeyChanges() {
  return std::exchange(impl_->sort_key_changes, {});
}

std::vector<std::string> PluginHarness::TakeGateChanges() {
  return std::exchange(impl_->gate_changes, {});
}

std::vector<v1beta1::Effect> PluginHarness::TakeWritten() {
  return std::exchange(impl_->written, {});
}

std::vector<std::string> PluginHarness::TakeActivated() {
  return std::exchange(impl_->activated, {});
}

std::string PluginHarness::Hint(const v1beta1::Pod& pod, const ObjectChange& change) {
  const PodRecord& record = impl_->Record(pod);
  const runtime::ProfilePlugin& plugin = impl_->plugin();
  if (!runtime::AnyRegistered(plugin.wake_up_events, change.resource, change.action)) {
    return "not registered";
  }
  return runtime::Helps(plugin, record, change) ? "queue" : "skip";
}

std::optional<double> PluginHarness::Metric(const std::string& name,
                                            const std::vector<std::string>& label_values) const {
  return impl_->figures.Find({name, label_values});
}

void PluginHarness::Tick() { impl_->cache.Tick(impl_->now); }

}  // namespace outboard::sdk::testing
