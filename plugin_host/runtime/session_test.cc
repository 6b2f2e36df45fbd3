#include "plugin_host/runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/runtime/host.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::runtime {
namespace {

using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using v1beta1::CallError;

constexpr char kInstance[] = "host-a";

// A plugin's programmed answers and received calls.
struct Gate {
  Verdict reserve;
  Verdict permit;
  Verdict pre_bind;
  Verdict bind;
  sdk::BindAnswer bind_answer;
  std::vector<v1beta1::Effect> effects;
  std::string state;
  std::vector<v1beta1::Effect> further;      // of PreBind
  std::vector<sdk::WaitDecision> decisions;  // of Permit, before its usual decision
  Verdict pre_enqueue;                       // for the pod `long`
  absl::Duration timeout = absl::Hours(1);
  std::vector<std::string> calls;
  std::vector<std::string> states;  // what the plugin kept, as Permit and Bind saw it
  std::vector<absl::Time> ticks;
  std::vector<int64_t> epochs;  // of each call
  absl::Time permit_at;
  sdk::ShimNotifier* pushes = nullptr;
};

class GatePlugin : public sdk::Plugin,
                   public sdk::ReservePlugin,
                   public sdk::PermitPlugin,
                   public sdk::PreBindPlugin,
                   public sdk::BindPlugin,
                   public sdk::PostBindPlugin,
                   public sdk::PreEnqueuePlugin,
                   public sdk::QueueSortPlugin,
                   public sdk::ClusterObserver {
 public:
  GatePlugin(std::string name, Gate* gate) : name_(std::move(name)), gate_(gate) {}
  Verdict Reserve(const sdk::Attempt& attempt, const sdk::NodeView& node,
                  sdk::ReserveAnswer* answer) override {
    gate_->epochs.push_back(attempt.leader_epoch());
    gate_->calls.push_back(name_ + " reserve " + node.name());
    answer->effects = gate_->effects;
    answer->state = gate_->state;
    return gate_->reserve;
  }
  void Unreserve(const sdk::Attempt& attempt, absl::string_view node,
                 std::vector<sdk::WaitDecision>* decisions) override {
    gate_->epochs.push_back(attempt.leader_epoch());
    gate_->calls.push_back(name_ + " unreserve " + std::string(node));
    decisions->push_back({attempt.id() + 1, "default/other", false, "gave up"});
  }
  void OnTick(absl::Time now) override { gate_->ticks.push_back(now); }
  Verdict Permit(const sdk::Attempt& attempt, const sdk::NodeView&,
                 sdk::PermitAnswer* answer) override {
    gate_->epochs.push_back(attempt.leader_epoch());
    NoteState("permit", attempt);
    gate_->permit_at = attempt.now();
    answer->timeout = gate_->timeout;
    answer->decisions = gate_->decisions;
    answer->decisions.push_back({4, "default/other", true, ""});
    return gate_->permit;
  }
  Verdict PreBind(const sdk::Attempt& attempt, absl::string_view node,
                  const sdk::PreBindProgress& progress) override {
    gate_->epochs.push_back(attempt.leader_epoch());
    for (size_t i = 0; i < progress.effects.size(); ++i) {
      gate_->calls.push_back(name_ + " asked about " + progress.effects[i]->key() + " at " +
                             progress.results[i]->resource_version());
    }
    if (progress.effects.empty()) gate_->calls.push_back(name_ + " asked without effects");
    *progress.further = gate_->further;
    return gate_->pre_bind;
  }
  Verdict Bind(const sdk::Attempt& attempt, absl::string_view node,
               sdk::BindAnswer* answer) override {
    gate_->epochs.push_back(attempt.leader_epoch());
    NoteState("bind", attempt);
    gate_->calls.push_back(name_ + " bind " + std::string(node));
    *answer = gate_->bind_answer;
    return gate_->bind;
  }
  void PostBind(const sdk::Attempt& attempt, absl::string_view node) override {
    gate_->epochs.push_back(attempt.leader_epoch());
    gate_->calls.push_back(name_ + " bound " + std::string(attempt.pod().name()) + " to " +
                           std::string(node));
  }
  Verdict PreEnqueue(const sdk::PodView& pod, const sdk::ClusterView&, absl::Time) const override {
    if (pod.name() == "long") return gate_->pre_enqueue;
    return pod.name() == "gated" ? Verdict::Unresolvable("gated") : Verdict::Success();
  }
  std::string SortKey(const sdk::PodView& pod, const sdk::ClusterView&) const override {
    return pod.name() == "long" ? std::string(65, 'x') : std::string(pod.name());
  }
  std::string SortKeyOfQueued(const sdk::PodView& pod, const v1beta1::QueuedPodInfo& queued,
                              const sdk::ClusterView& cluster) const override {
    const std::string key = SortKey(pod, cluster);
    return queued.attempts() == 0 ? key : absl::StrCat(key, " after ", queued.attempts());
  }

 private:
  void NoteState(const std::string& point, const sdk::Attempt& attempt) {
    if (const auto state = attempt.pod().record().StateOf(name_); !state.empty())
      gate_->states.push_back(absl::StrCat(point, ": ", state));
  }

  const std::string name_;
  Gate* gate_;
};

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string name : {"A", "B"}) {
      Gate* gate = name == "A" ? &a_ : &b_;
      sdk::PluginDescriptor descriptor;
      descriptor.name = name;
      descriptor.extension_points = {
          v1beta1::EXTENSION_POINT_RESERVE,   v1beta1::EXTENSION_POINT_PERMIT,
          v1beta1::EXTENSION_POINT_PRE_BIND,  v1beta1::EXTENSION_POINT_PRE_ENQUEUE,
          v1beta1::EXTENSION_POINT_BIND,      v1beta1::EXTENSION_POINT_POST_BIND,
          v1beta1::EXTENSION_POINT_QUEUE_SORT};
      if (name == "B") descriptor.interests = {sdk::InterestInEveryPodAtPreBind()};
      descriptor.create =
          [name, gate](
              const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
        gate->pushes = context.pushes;
        if (context.args->root().Has("old")) context.args->root().Warning("old", "ignored");
        return std::make_unique<GatePlugin>(name, gate);
      };
      ASSERT_TRUE(registry_.Add(std::move(descriptor)).ok());
    }
    session_ = std::make_unique<Session>("s", &registry_);
    v1beta1::ConfigureResponse response;
    session_->Configure(Config(), &response);
    ASSERT_TRUE(response.problems().empty()) << response.DebugString();
    v1beta1::SyncRequest request;
    request.set_version(1);
    request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
    *request.add_changes()->mutable_node_upsert()->mutable_node() = NodeBuilder("n0").Build();
    for (const char* name : {"p", "gated", "long"}) {
      *request.add_changes()->mutable_pod_upsert()->mutable_pod() = PodBuilder(name).Build();
    }
    ASSERT_TRUE(session_->Apply(request, now_).ok());
    request.Clear();
    request.set_version(1);
    request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
    ASSERT_TRUE(session_->Apply(request, now_).ok());
  }
  static v1beta1::ConfigureRequest Config() {
    v1beta1::ConfigureRequest request;
    request.set_instance(kInstance);
    request.set_session_id("s");
    auto* profile = request.add_profiles();
    profile->set_name("default");
    for (auto point : {v1beta1::EXTENSION_POINT_RESERVE, v1beta1::EXTENSION_POINT_PERMIT,
                       v1beta1::EXTENSION_POINT_PRE_BIND, v1beta1::EXTENSION_POINT_PRE_ENQUEUE,
                       v1beta1::EXTENSION_POINT_BIND, v1beta1::EXTENSION_POINT_POST_BIND}) {
      auto* out = profile->add_points();
      out->set_extension_point(point);
      out->add_plugins("A");
      out->add_plugins("B");
    }
    auto* sort = profile->add_points();
    sort->set_extension_point(v1beta1::EXTENSION_POINT_QUEUE_SORT);
    sort->add_plugins("A");
    return request;
  }
  template <typename Request>
  Request Call(uint64_t attempt) {
    Request request;
    request.mutable_header()->set_attempt_id(attempt);
    request.mutable_header()->set_profile("default");
    request.set_pod_uid("default/p");
    request.set_node_name("n0");
    return request;
  }

  const absl::Time now_ = absl::UnixEpoch();
  Gate a_, b_;
  sdk::PluginRegistry registry_;
  std::unique_ptr<Session> session_;
};

v1beta1::Effect EffectNamed(const std::string& key, const std::string& plugin = "") {
  v1beta1::Effect effect;
  effect.set_key(key);
  effect.set_plugin(plugin);
  return effect;
}

TEST_F(SessionTest, ReserveNamesTheEffectsOfAllPlugins) {
  a_.effects = {EffectNamed("x")};
  b_.effects = {EffectNamed("y"), EffectNamed("z")};
  v1beta1::ReserveResponse response;
  ASSERT_TRUE(session_->Reserve(Call<v1beta1::ReserveRequest>(1), now_, &response).ok());
  ASSERT_EQ(response.effects_size(), 3);
  EXPECT_EQ(response.effects(0).plugin(), "A");
  EXPECT_EQ(response.effects(2).plugin(), "B");
  EXPECT_EQ(response.effects(2).key(), "z");
  b_.reserve = Verdict::Unschedulable("taken");
  response.Clear();
  ASSERT_TRUE(session_->Reserve(Call<v1beta1::ReserveRequest>(1), now_, &response).ok());
  EXPECT_EQ(response.effects_size(), 0);
}

TEST_F(SessionTest, ReserveReturnsWhatPluginsKeep) {
  b_.state = "seat 7";
  v1beta1::ReserveResponse response;
  ASSERT_TRUE(session_->Reserve(Call<v1beta1::ReserveRequest>(1), now_, &response).ok());
  ASSERT_EQ(response.states_size(), 1) << "A keeps nothing";
  EXPECT_EQ(response.states(0).plugin(), "B");
  EXPECT_EQ(response.states(0).state(), "seat 7");
  a_.state = "disk 3";
  b_.reserve = Verdict::Unschedulable("taken");
  response.Clear();
  ASSERT_TRUE(session_->Reserve(Call<v1beta1::ReserveRequest>(1), now_, &response).ok());
  EXPECT_EQ(response.states_size(), 0);
}

TEST_F(SessionTest, APluginThatKeepsTooMuchFails) {
  a_.state = std::string(4 << 10, 'a');
  b_.state = std::string((4 << 10) + 1, 'b');
  v1beta1::ReserveResponse response;
  ASSERT_TRUE(session_->Reserve(Call<v1beta1::ReserveRequest>(1), now_, &response).ok());
  EXPECT_EQ(response.rejection().plugin(), "B");
  EXPECT_EQ(response.rejection().code(), v1beta1::CODE_ERROR);
  EXPECT_EQ(response.rejection().reasons(0),
            "running Reserve plugin \"B\": a state of 4097 bytes; the limit is 4 KiB");
  EXPECT_EQ(response.states_size(), 0);
  EXPECT_THAT(b_.calls, ElementsAre("B reserve n0", "B unreserve n0"));
}

// The attempt began in another host, which is gone.
TEST_F(SessionTest, AHostThatStartsLaterGetsWhatItsPluginsKept) {
  Session next("s", &registry_);
  v1beta1::ConfigureResponse configured;
  ASSERT_TRUE(next.Configure(Config(), &configured));
  v1beta1::SyncRequest snapshot;
  snapshot.set_version(1);
  snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
  *snapshot.add_changes()->mutable_node_upsert()->mutable_node() = NodeBuilder("n0").Build();
  *snapshot.add_changes()->mutable_pod_upsert()->mutable_pod() = PodBuilder("p").Build();
  v1beta1::PodPlacement* const placement = snapshot.add_changes()->mutable_pod_placement();
  placement->set_uid("default/p");
  placement->set_state(v1beta1::PLACEMENT_STATE_WAITING);
  placement->set_attempt_id(77);
  placement->add_states()->set_plugin("B");
  placement->mutable_states(0)->set_state("seat 7");
  ASSERT_TRUE(next.Apply(snapshot, now_).ok());
  snapshot.Clear();
  snapshot.set_version(1);
  snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
  ASSERT_TRUE(next.Apply(snapshot, now_).ok());
  auto permit = Call<v1beta1::PermitRequest>(77);
  permit.set_resumed(true);
  v1beta1::PermitResponse permitted;
  ASSERT_TRUE(next.Permit(permit, now_, &permitted).ok());
  auto bind = Call<v1beta1::BindRequest>(77);
  bind.set_plugin("B");
  v1beta1::BindResponse bound;
  ASSERT_TRUE(next.Bind(bind, now_, &bound).ok());
  EXPECT_THAT(a_.states, ElementsAre());
  EXPECT_THAT(b_.states, ElementsAre("permit: seat 7", "bind: seat 7"));
}

// The host may have started after Reserve, so no attempt is known.
TEST_F(SessionTest, PreBindAsksEachPluginAboutItsOwnEffects) {
  auto request = Call<v1beta1::PreBindRequest>(77);
  v1beta1::PreBindResponse response;
  for (const char* plugin : {"B", "A"}) {
    *request.add_effects() = EffectNamed(std::string("of ") + plugin, plugin);
    request.add_results()->set_resource_version(plugin);
  }
  ASSERT_TRUE(session_->PreBind(request, now_, &response).ok());
  EXPECT_FALSE(response.wait());
  EXPECT_FALSE(response.has_rejection());
  EXPECT_THAT(a_.calls, ElementsAre("A asked about of A at A"));
  EXPECT_THAT(b_.calls, ElementsAre("B asked about of B at B"));
  a_.pre_bind = Verdict(sdk::kWait, "not yet");
  ASSERT_TRUE(session_->PreBind(request, now_, &response).ok());
  EXPECT_TRUE(response.wait());
  b_.pre_bind = Verdict::Error("lost");
  ASSERT_TRUE(session_->PreBind(request, now_, &response).ok());
  EXPECT_FALSE(response.wait());
  EXPECT_EQ(response.rejection().reasons(0), "running PreBind plugin \"B\": lost");
  request.add_effects();
  EXPECT_EQ(session_->PreBind(request, now_, &response).reason(), CallError::REASON_INVALID);
  request.mutable_effects()->RemoveLast();
  request.set_pod_uid("default/unknown");
  EXPECT_EQ(session_->PreBind(request, now_, &response).reason(), CallError::REASON_OBJECT_UNKNOWN);
  EXPECT_EQ(session_->attempts_in_flight(), 0u);
}

TEST_F(SessionTest, PreBindWithoutEffectsAsksOnlyPluginsWithAnInterest) {
  b_.further = {EffectNamed("more", "")};
  v1beta1::PreBindResponse response;
  ASSERT_TRUE(session_->PreBind(Call<v1beta1::PreBindRequest>(77), now_, &response).ok());
  EXPECT_THAT(a_.calls, ElementsAre());
  EXPECT_THAT(b_.calls, ElementsAre("B asked without effects"));
  ASSERT_EQ(response.effects_size(), 1);
  EXPECT_EQ(response.effects(0).key(), "more");
  EXPECT_EQ(response.effects(0).plugin(), "B");
  b_.pre_bind = Verdict::Unschedulable("no");
  ASSERT_TRUE(session_->PreBind(Call<v1beta1::PreBindRequest>(77), now_, &response).ok());
  EXPECT_EQ(response.effects_size(), 0);
  EXPECT_EQ(response.rejection().plugin(), "B");
}

TEST_F(SessionTest, BindAsksTheNamedPlugin) {
  auto request = Call<v1beta1::BindRequest>(77);
  request.set_plugin("B");
  v1beta1::BindResponse response;
  ASSERT_TRUE(session_->Bind(request, now_, &response).ok());
  EXPECT_TRUE(response.has_skip());
  EXPECT_THAT(a_.calls, ElementsAre());
  EXPECT_THAT(b_.calls, ElementsAre("B bind n0"));
  b_.bind_answer = {sdk::BindAnswer::By::kShim, {{"example.com/rank", "1"}}};
  ASSERT_TRUE(session_->Bind(request, now_, &response).ok());
  EXPECT_EQ(response.shim_binds().annotations().at("example.com/rank"), "1");
  b_.bind_answer = {sdk::BindAnswer::By::kPlugin, {}};
  ASSERT_TRUE(session_->Bind(request, now_, &response).ok());
  EXPECT_TRUE(response.has_bound());
  b_.bind = Verdict::Error("lost");
  ASSERT_TRUE(session_->Bind(request, now_, &response).ok());
  EXPECT_EQ(response.rejection().reasons(0), "running Bind plugin \"B\": lost");
  request.set_plugin("C");
  EXPECT_EQ(session_->Bind(request, now_, &response).reason(), CallError::REASON_INVALID);
  EXPECT_EQ(session_->attempts_in_flight(), 0u);
}

TEST_F(SessionTest, PostBindNotifiesEveryPlugin) {
  auto request = Call<v1beta1::PostBindRequest>(77);
  ASSERT_TRUE(session_->PostBind(request, now_).ok());
  EXPECT_THAT(a_.calls, ElementsAre("A bound p to n0"));
  EXPECT_THAT(b_.calls, ElementsAre("B bound p to n0"));
  request.set_pod_uid("default/unknown");
  EXPECT_EQ(session_->PostBind(request, now_).reason(), CallError::REASON_OBJECT_UNKNOWN);
}

TEST_F(SessionTest, PluginsSeeTheEpochOfEachCallsLeader) {
  const auto of = [](auto request, int64_t epoch) {
    request.mutable_header()->set_leader_epoch(epoch);
    return request;
  };
  v1beta1::ReserveResponse reserved;
  v1beta1::PermitResponse permitted;
  v1beta1::PreBindResponse pre_bound;
  v1beta1::BindResponse bound;
  v1beta1::UnreserveResponse unreserved;
  ASSERT_TRUE(session_->Reserve(of(Call<v1beta1::ReserveRequest>(1), 11), now_, &reserved).ok());
  ASSERT_TRUE(session_->Permit(of(Call<v1beta1::PermitRequest>(1), 12), now_, &permitted).ok());
  ASSERT_TRUE(session_->PreBind(of(Call<v1beta1::PreBindRequest>(1), 13), now_, &pre_bound).ok());
  auto bind = Call<v1beta1::BindRequest>(1);
  bind.set_plugin("B");
  ASSERT_TRUE(session_->Bind(of(bind, 14), now_, &bound).ok());
  ASSERT_TRUE(session_->PostBind(of(Call<v1beta1::PostBindRequest>(1), 15), now_).ok());
  // Of attempts that began elsewhere, too.
  ASSERT_TRUE(session_->PostBind(of(Call<v1beta1::PostBindRequest>(77), 16), now_).ok());
  ASSERT_TRUE(
      session_->Unreserve(of(Call<v1beta1::UnreserveRequest>(78), 17), now_, &unreserved).ok());
  EXPECT_THAT(b_.epochs, ElementsAre(11, 12, 13, 14, 15, 16, 17));
}

TEST_F(SessionTest, ReserveIsAllOrNothing) {
  b_.reserve = Verdict::Unschedulable("taken");
  v1beta1::ReserveResponse response;
  ASSERT_TRUE(session_->Reserve(Call<v1beta1::ReserveRequest>(1), now_, &response).ok());
  EXPECT_EQ(response.rejection().plugin(), "B");
  EXPECT_THAT(a_.calls, ElementsAre("A reserve n0", "A unreserve n0"));
  b_.reserve = Verdict::Error("broken");
  response.Clear();
  ASSERT_TRUE(session_->Reserve(Call<v1beta1::ReserveRequest>(1), now_, &response).ok());
  EXPECT_EQ(response.rejection().reasons(0), "running Reserve plugin \"B\": broken");
}

TEST_F(SessionTest, UnreserveOfAnUnknownAttemptSucceedsAndCallsPlugins) {
  v1beta1::UnreserveResponse response;
  ASSERT_TRUE(session_->Unreserve(Call<v1beta1::UnreserveRequest>(99), now_, &response).ok());
  EXPECT_THAT(a_.calls, ElementsAre("A unreserve n0"));
  ASSERT_EQ(response.decisions_size(), 2);
  EXPECT_EQ(response.decisions(0).plugin(), "B");  // In reverse order.
  EXPECT_EQ(response.decisions(0).attempt_id(), 100u);
  EXPECT_EQ(session_->attempts_in_flight(), 0u);
}

TEST_F(SessionTest, PermitWaitsAtMostAQuarterOfAnHour) {
  a_.permit = Verdict(sdk::kWait, std::string("for more"));
  v1beta1::PermitResponse response;
  ASSERT_TRUE(session_->Permit(Call<v1beta1::PermitRequest>(1), now_, &response).ok());
  EXPECT_FALSE(response.has_rejection());
  ASSERT_EQ(response.waits_size(), 1);
  EXPECT_EQ(response.waits(0).plugin(), "A");
  EXPECT_EQ(response.waits(0).timeout_micros(), 15 * 60 * 1'000'000);
  EXPECT_EQ(response.decisions_size(), 2);
  EXPECT_EQ(session_->attempts_in_flight(), 1u);
  b_.permit = Verdict::Unschedulable("no");
  response.Clear();
  ASSERT_TRUE(session_->Permit(Call<v1beta1::PermitRequest>(1), now_, &response).ok());
  EXPECT_EQ(response.rejection().plugin(), "B");
  EXPECT_TRUE(response.waits().empty());
}

// The shim refuses these answers as a whole, and after some of them no longer calls the host.
TEST_F(SessionTest, PermitAnswersOnlyWhatTheContractAllows) {
  a_.permit = Verdict(sdk::kWait, std::string("for more"));
  a_.timeout = absl::ZeroDuration();
  v1beta1::PermitResponse response;
  ASSERT_TRUE(session_->Permit(Call<v1beta1::PermitRequest>(1), now_, &response).ok());
  EXPECT_TRUE(response.waits().empty());
  EXPECT_EQ(response.rejection().code(), v1beta1::CODE_ERROR);
  EXPECT_THAT(response.rejection().reasons(),
              ElementsAre("running Permit plugin \"A\": WAIT without a timeout"));
  a_.timeout = absl::Seconds(1);
  a_.decisions = {{0, "default/other", true, ""}, {4, "", true, ""}};
  a_.decisions.resize(2 + 4100, {4, "default/other", false, "b\xff"});
  size_t pushed = 0;
  session_->SetPush([&](const v1beta1::SyncResponse&) { ++pushed; });
  response.Clear();
  ASSERT_TRUE(session_->Permit(Call<v1beta1::PermitRequest>(1), now_, &response).ok());
  ASSERT_EQ(response.decisions_size(), 4096);
  EXPECT_EQ(response.decisions(0).pod_uid(), "default/other") << "those about no wait are dropped";
  EXPECT_EQ(response.decisions(0).message(), "b?");
  // Each plugin makes one more.
  EXPECT_EQ(pushed, 4100u + 2 - 4096) << "the host pushes the others";
}

TEST_F(SessionTest, APluginThatFailsAtPreEnqueueHoldsThePod) {
  v1beta1::PreEnqueueRequest gate;
  gate.mutable_header()->set_profile("default");
  gate.add_pod_uids("default/long");
  for (const auto code : {sdk::kSkip, sdk::kWait, v1beta1::CODE_UNSPECIFIED}) {
    a_.pre_enqueue = Verdict(code, std::string("odd"));
    v1beta1::PreEnqueueResponse gates;
    ASSERT_TRUE(session_->PreEnqueue(gate, now_, &gates).ok());
    EXPECT_EQ(gates.verdicts(0).code(), v1beta1::CODE_ERROR);
    EXPECT_THAT(gates.verdicts(0).reasons(), ElementsAre("running PreEnqueue plugin \"A\": odd"));
  }
}

TEST_F(SessionTest, UsesTheTimeThatTheShimSends) {
  v1beta1::PermitResponse response;
  ASSERT_TRUE(session_->Permit(Call<v1beta1::PermitRequest>(1), now_, &response).ok());
  EXPECT_EQ(a_.permit_at, now_);
  session_->Tick(now_);
  EXPECT_THAT(a_.ticks, ElementsAre(now_));

  const absl::Time told = absl::FromUnixSeconds(1'700'000'000);
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  request.set_version(1);
  request.set_time_unix_micros(absl::ToUnixMicros(told));
  ASSERT_TRUE(session_->Apply(request, now_).ok());
  EXPECT_THAT(a_.ticks, ElementsAre(now_, told))
      << "the session's time advances when the shim sets it";
  session_->Tick(now_);
  EXPECT_THAT(a_.ticks, ElementsAre(now_, told)) << "and not with the machine's clock";
  response.Clear();
  ASSERT_TRUE(session_->Permit(Call<v1beta1::PermitRequest>(2), now_, &response).ok());
  EXPECT_EQ(a_.permit_at, told);
  // Another message does not change it; another stream does.
  request.Clear();
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  request.set_version(1);
  ASSERT_TRUE(session_->Apply(request, now_).ok());
  EXPECT_EQ(session_->clock_advanced_to(), told);
  session_->BeginSync();
  EXPECT_FALSE(session_->clock_advanced_to().has_value());
}

TEST_F(SessionTest, PreEnqueueAndSortKeysAnswerInOrder) {
  v1beta1::PreEnqueueRequest gate;
  gate.mutable_header()->set_profile("default");
  gate.add_pod_uids("default/gated");
  gate.add_pod_uids("default/p");
  v1beta1::PreEnqueueResponse gates;
  ASSERT_TRUE(session_->PreEnqueue(gate, now_, &gates).ok());
  EXPECT_EQ(gates.verdicts(0).plugin(), "A");
  EXPECT_EQ(gates.verdicts(1).code(), v1beta1::CODE_SUCCESS);
  v1beta1::SortKeysRequest sort;
  sort.mutable_header()->set_profile("default");
  sort.add_pod_uids("default/p");
  v1beta1::SortKeysResponse keys;
  ASSERT_TRUE(session_->SortKeys(sort, &keys).ok());
  EXPECT_THAT(keys.keys(), ElementsAre("p"));
  sort.add_queued()->set_attempts(3);
  keys.Clear();
  ASSERT_TRUE(session_->SortKeys(sort, &keys).ok());
  EXPECT_THAT(keys.keys(), ElementsAre("p after 3"));
  sort.add_queued();
  EXPECT_EQ(session_->SortKeys(sort, &keys).reason(), CallError::REASON_INVALID)
      << "more than pods";
  sort.clear_queued();
  sort.add_pod_uids("default/long");
  keys.Clear();
  ASSERT_TRUE(session_->SortKeys(sort, &keys).ok());
  EXPECT_THAT(keys.keys(), ElementsAre("p", std::string(64, 'x'))) << "the contract's limit";
  sort.set_pod_uids(1, "unknown");
  EXPECT_EQ(session_->SortKeys(sort, &keys).reason(), CallError::REASON_OBJECT_UNKNOWN);
}

TEST_F(SessionTest, PushesCarryThePluginsName) {
  std::vector<v1beta1::SyncResponse> pushed;
  a_.pushes->Decide({1, "default/p", true, ""});  // No stream: dropped.
  session_->SetPush([&](const v1beta1::SyncResponse& push) { pushed.push_back(push); });
  b_.pushes->Decide({7, "default/p", false, "gang broke"});
  b_.pushes->GateChanged({});
  ASSERT_EQ(pushed.size(), 2u);
  EXPECT_EQ(pushed[0].wait_decision().plugin(), "B");
  EXPECT_EQ(pushed[0].wait_decision().message(), "gang broke");
  EXPECT_TRUE(pushed[1].gate_changed().all_pods());
}

TEST_F(SessionTest, WritesHaveNumbersAndTheirResultsMayCome) {
  std::vector<v1beta1::SyncResponse> pushed;
  session_->SetPush([&](const v1beta1::SyncResponse& push) { pushed.push_back(push); });
  a_.pushes->Write(EffectNamed("w"));
  a_.pushes->Write(EffectNamed("w"));
  a_.pushes->GateChanged({});
  ASSERT_EQ(pushed.size(), 3u);
  EXPECT_EQ(pushed[0].effect().plugin(), "A");
  EXPECT_NE(pushed[0].push_id(), 0u);
  EXPECT_NE(pushed[1].push_id(), 0u);
  EXPECT_NE(pushed[0].push_id(), pushed[1].push_id());
  EXPECT_EQ(pushed[2].push_id(), 0u) << "the host needs no answer";
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  request.set_version(1);
  for (const uint64_t id : {pushed[1].push_id(), uint64_t{12345}})
    request.add_push_results()->set_push_id(id);
  EXPECT_TRUE(session_->Apply(request, now_).ok());
  EXPECT_EQ(session_->version(), 1);
}

TEST_F(SessionTest, AttemptsEndWithTheStreamOfChanges) {
  v1beta1::ReserveResponse response;
  ASSERT_TRUE(session_->Reserve(Call<v1beta1::ReserveRequest>(1), now_, &response).ok());
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  request.set_version(2);
  request.add_ended_attempts(1);
  request.add_ended_attempts(55);
  ASSERT_TRUE(session_->Apply(request, now_).ok());
  EXPECT_EQ(session_->attempts_in_flight(), 0u);
}

TEST_F(SessionTest, DistinguishesAPastVersionFromAFutureOne) {
  v1beta1::CallHeader header;
  header.set_exact_version(1);
  EXPECT_EQ(session_->Reached(header), Session::Readiness::kReady);
  header.set_exact_version(2);
  EXPECT_EQ(session_->Reached(header), Session::Readiness::kNotYet);
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  request.set_version(5);
  ASSERT_TRUE(session_->Apply(request, now_).ok());
  EXPECT_EQ(session_->Reached(header), Session::Readiness::kPast);
}

TEST_F(SessionTest, ConfigurationFaultsAreNamed) {
  v1beta1::ConfigureRequest request = Config();
  request.mutable_profiles(0)->mutable_points(0)->add_plugins("Unknown");
  auto* wrong = request.mutable_profiles(0)->add_points();
  wrong->set_extension_point(v1beta1::EXTENSION_POINT_FILTER);
  wrong->add_plugins("A");
  v1beta1::ConfigureResponse response;
  session_->Configure(request, &response);
  ASSERT_EQ(response.problems_size(), 2);
  EXPECT_EQ(response.problems(0).message(), "this host has no such plugin");
  EXPECT_EQ(response.problems(1).message(), "plugin does not implement extension point FILTER");
  for (const v1beta1::ConfigProblem& problem : response.problems())
    EXPECT_EQ(problem.severity(), v1beta1::ConfigProblem::SEVERITY_ERROR);
}

v1beta1::ConfigureRequest WithArgs(v1beta1::ConfigureRequest request, const std::string& json) {
  v1beta1::PluginArgs* args = request.mutable_profiles(0)->add_args();
  args->set_plugin("A");
  args->set_args_json(json);
  return request;
}

TEST_F(SessionTest, AConfigurationWithWarningsIsInForce) {
  v1beta1::ConfigureRequest request = WithArgs(Config(), R"({"old": true})");
  request.mutable_profiles(0)->set_name("another");
  request.mutable_shim();  // A shim that can do nothing: one warning for each point of a plugin.
  v1beta1::ConfigureResponse response;
  EXPECT_TRUE(session_->Configure(request, &response));
  ASSERT_EQ(response.problems_size(), 1 + 7 + 6) << response.DebugString();
  EXPECT_EQ(response.problems(0).field(), "old");
  for (const v1beta1::ConfigProblem& problem : response.problems())
    EXPECT_EQ(problem.severity(), v1beta1::ConfigProblem::SEVERITY_WARNING);
  auto reserve = Call<v1beta1::ReserveRequest>(1);
  v1beta1::ReserveResponse reserved;
  EXPECT_EQ(session_->Reserve(reserve, now_, &reserved).reason(), CallError::REASON_NOT_CONFIGURED);
  reserve.mutable_header()->set_profile("another");
  EXPECT_TRUE(session_->Reserve(reserve, now_, &reserved).ok());
}

TEST_F(SessionTest, ACheckChangesNothing) {
  Host host({kInstance, "1", ""}, &registry_);
  v1beta1::ConfigureRequest check = Config();
  check.set_validate_only(true);
  v1beta1::ConfigureResponse response;
  ASSERT_TRUE(host.Configure(check, now_, &response).ok());
  EXPECT_TRUE(response.problems().empty());
  EXPECT_EQ(host.FindSession("s"), nullptr);
  // None is forgotten for it, either.
  v1beta1::ConfigureRequest other = Config();
  for (size_t i = 0; i < Host::kMaxSessions; ++i) {
    other.set_session_id(absl::StrCat("other-", i));
    ASSERT_TRUE(host.Configure(other, now_, &response).ok());
  }
  ASSERT_TRUE(host.Configure(check, now_, &response).ok());
  for (size_t i = 0; i < Host::kMaxSessions; ++i)
    EXPECT_NE(host.FindSession(absl::StrCat("other-", i)), nullptr) << i;
  // Of a known session, too.
  check.set_session_id("other-0");
  check.mutable_profiles(0)->set_name("another");
  ASSERT_TRUE(host.Configure(check, now_, &response).ok());
  EXPECT_TRUE(response.problems().empty());
  auto reserve = Call<v1beta1::ReserveRequest>(1);
  reserve.mutable_header()->set_profile("another");
  v1beta1::ReserveResponse reserved;
  EXPECT_EQ(host.FindSession("other-0")->Reserve(reserve, now_, &reserved).reason(),
            CallError::REASON_NOT_CONFIGURED);
  check = WithArgs(check, R"({"unknown": true})");
  ASSERT_TRUE(host.Configure(check, now_, &response).ok());
  EXPECT_EQ(response.problems_size(), 1);
}

TEST_F(SessionTest, OneSessionEndsWithoutTheOthers) {
  Host host({kInstance, "1", ""}, &registry_);
  v1beta1::ConfigureRequest request = Config();
  v1beta1::ConfigureResponse response;
  ASSERT_TRUE(host.Configure(request, now_, &response).ok());
  request.set_session_id("other");
  ASSERT_TRUE(host.Configure(request, now_, &response).ok());
  v1beta1::EndSessionRequest end;
  v1beta1::EndSessionResponse ended;
  end.set_session_id("unknown");
  host.EndSession(end, &ended);
  end.set_session_id("s");
  host.EndSession(end, &ended);
  EXPECT_EQ(ended.attempts_in_flight(), 0u);
  const auto state = [&](const std::string& session) {
    v1beta1::ProbeRequest probe;
    probe.set_session_id(session);
    v1beta1::ProbeResponse probed;
    host.Probe(probe, &probed);
    return probed.state();
  };
  EXPECT_EQ(state("s"), v1beta1::ProbeResponse::STATE_DRAINING);
  EXPECT_EQ(state("other"), v1beta1::ProbeResponse::STATE_INITIALIZING);  // no snapshot
  EXPECT_EQ(state(""), v1beta1::ProbeResponse::STATE_READY);
  EXPECT_FALSE(host.draining());
  EXPECT_TRUE(host.Configure(request, now_, &response).ok());
  request.set_session_id("s");
  EXPECT_EQ(host.Configure(request, now_, &response).reason(), CallError::REASON_DRAINING);
}

TEST_F(SessionTest, AConfigurationForAnotherInstanceChangesNothing) {
  Host host({kInstance, "1", ""}, &registry_);
  v1beta1::ConfigureRequest request = Config();
  v1beta1::ConfigureResponse response;
  for (const std::string& other : {std::string("host-b"), std::string()}) {
    request.set_instance(other);
    EXPECT_EQ(host.Configure(request, now_, &response).reason(), CallError::REASON_WRONG_INSTANCE);
    EXPECT_EQ(host.FindSession("s"), nullptr) << other;
  }
  ASSERT_TRUE(host.Configure(Config(), now_, &response).ok());
  request = Config();
  request.set_instance("host-b");
  request.mutable_profiles(0)->set_name("another");
  EXPECT_EQ(host.Configure(request, now_, &response).reason(), CallError::REASON_WRONG_INSTANCE);
  Session* session = nullptr;
  v1beta1::CallHeader header;
  header.set_session_id("s");
  ASSERT_TRUE(host.FindSession(header, &session).ok());
  auto reserve = Call<v1beta1::ReserveRequest>(1);
  reserve.mutable_header()->set_profile("another");
  v1beta1::ReserveResponse reserved;
  EXPECT_EQ(session->Reserve(reserve, now_, &reserved).reason(), CallError::REASON_NOT_CONFIGURED);
  // A host that leaves says so, too.
  host.DrainAll();
  EXPECT_EQ(host.Configure(request, now_, &response).reason(), CallError::REASON_WRONG_INSTANCE);
}

TEST_F(SessionTest, AHostForgetsUnusedSessions) {
  Host host({kInstance, "1", ""}, &registry_);
  v1beta1::ConfigureResponse response;
  ASSERT_TRUE(host.Configure(Config(), now_, &response).ok());
  host.Connected("s");
  host.Tick(now_ + absl::Hours(1));
  EXPECT_NE(host.FindSession("s"), nullptr);
  host.Disconnected("s", now_ + absl::Hours(1));
  host.Tick(now_ + absl::Hours(1) + Host::kAbandonedAfter + absl::Seconds(1));
  EXPECT_EQ(host.FindSession("s"), nullptr);
  v1beta1::ConfigureRequest bad = Config();
  bad.set_session_id("Not Valid");
  EXPECT_EQ(host.Configure(bad, now_, &response).reason(), CallError::REASON_INVALID);
  host.DrainAll();
  EXPECT_EQ(host.Configure(Config(), now_, &response).reason(), CallError::REASON_DRAINING);
}

}  // namespace
}  // namespace outboard::runtime
