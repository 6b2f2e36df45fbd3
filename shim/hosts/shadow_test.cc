// An instance in the shadow of one that is asked point by point.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/hosts/host_registry.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::hosts::shadow_test {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeHost;
using testing::Fault;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using v1beta1::CycleRequest;
using v1beta1::FilterRequest;
using v1beta1::FilterResponse;
using v1beta1::GetHostInfoResponse;
using v1beta1::PreFilterRequest;
using v1beta1::PreFilterResponse;
using v1beta1::PreScoreRequest;
using v1beta1::ProbeRequest;
using v1beta1::ProbeResponse;
using v1beta1::ScoreRequest;
using v1beta1::ScoreResponse;

class CountedEffects final : public scheduler::NoClusterActions {
 public:
  void Bind(const scheduler::BindOrder& order, absl::Time) override {
    bound.push_back(order.node_name);
  }
  void RecordFailed(const kube::PodObject& pod, const std::string&, const std::string& message,
                    absl::Time) override {
    failed.push_back(absl::StrCat(pod.pod.name(), ": ", message));
  }
  std::vector<std::string> bound, failed;
};

constexpr char kConfiguration[] = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: p
  plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: Sort}, $PLUGINS, {name: DefaultBinder}]}
    preFilter: {disabled: [{name: NotServed}]}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:/main"}$OTHER]
deadlines: {cycle: $CYCLE}
replacement: {shadowCycles: 3, shadowTimeout: 1h, keepWarm: 1m, rollbackFailures: 2}
)";

enum class Kind { kFused, kPlain, kInline };

// An instance's answers about nodes, by slot: plugin `plugin` rejects some, and scores.
struct Opinion {
  std::string plugin = "Fake";
  std::map<uint32_t, std::string> rejects = {};
  std::map<uint32_t, int> scores = {};  // 50 by default
  std::vector<v1beta1::ExtensionPoint> points = {
      v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
      v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE};
};

template <typename Request>
std::vector<uint32_t> SlotsOf(const Request& request, uint32_t num_nodes) {
  std::vector<uint32_t> slots(request.search().nodes().slots().begin(),
                              request.search().nodes().slots().end());
  for (uint32_t slot = 0; !request.search().has_nodes() && slot < num_nodes; ++slot)
    slots.push_back(slot);
  return slots;
}

// Three nodes, n0 in slot 0. Host "main" has plugin Fake, host "other", if any, has One. The test
// controls the time.
class ShadowTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kNodes = 3;

  // `cycle`: the deadline of real time. Only a host that never answers reaches it.
  void Begin(bool two_hosts, const std::string& cycle = "1m") {
    std::string text = kConfiguration;
    text.replace(text.find("$CYCLE"), 6, cycle);
    text.replace(text.find("$PLUGINS"), 8,
                 two_hosts ? "{name: Fake}, {name: One}" : "{name: Fake}");
    text.replace(text.find("$OTHER"), 6,
                 two_hosts ? ", {name: other, address: \"unix:/other\"}" : "");
    auto config = config::ParseConfig(text, "f.yaml");
    ASSERT_TRUE(config.ok()) << config.status();
    hosts_ = std::make_unique<HostRegistry>(std::make_shared<config::Config>(*config), "session",
                                            &loop_, &scheduler_);
    scheduler_.SetShadowObserver(hosts_.get());
    scheduler_.SetProfileNames({"p"});
    for (uint32_t i = 0; i < kNodes; ++i) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_name(absl::StrCat("n", i));
      node->node.set_uid(absl::StrCat("uid-n", i));
      node->node.mutable_allocatable()->set_pods(1000);
      scheduler_.events()->OnNodeUpsert(node, now_);
    }
  }
  ~ShadowTest() override { scheduler_.SetShadowObserver(nullptr); }

  void Comes(const std::string& host, const std::string& id, int started, Kind kind,
             Opinion opinion) {
    auto& fake = fakes_[id] = FakeHost::Start(
        absl::StrCat("unix:", ::testing::TempDir(), "outboard-shadow-", getpid(), "-", id), id);
    HostConnection connection;
    connection.channel = NewHostChannel(fake->address());
    connection.identity.set_instance(id);
    connection.identity.set_build_digest("digest-" + id);
    connection.identity.set_started_unix_micros(started * 1000000);
    GetHostInfoResponse& info = connection.info;
    if (kind == Kind::kFused) info.add_capabilities(v1beta1::CAPABILITY_FUSED_CYCLE);
    if (kind == Kind::kInline) info.add_capabilities(v1beta1::CAPABILITY_INLINE_NODES);
    const auto add = [&](const std::string& name, std::vector<v1beta1::ExtensionPoint> points) {
      auto* plugin = info.add_plugins();
      plugin->set_name(name);
      plugin->mutable_extension_points()->Assign(points.begin(), points.end());
    };
    if (host == "main") add("Sort", {v1beta1::EXTENSION_POINT_QUEUE_SORT});
    if (host == "main") add("DefaultBinder", {v1beta1::EXTENSION_POINT_BIND});
    add(opinion.plugin, opinion.points);
    Says(id, opinion);
    fake->Answer<ProbeRequest, ProbeResponse>([id](const ProbeRequest&, ProbeResponse* answer) {
      answer->set_instance(id);
      answer->set_state(ProbeResponse::STATE_READY);
      return grpc::Status::OK;
    });
    const absl::Status taken =
        hosts_->OnHandshake({host, fake->address(), std::nullopt, 0}, connection, now_);
    EXPECT_TRUE(taken.ok()) << taken;
  }
  void Says(const std::string& id, const Opinion& opinion) {
    fakes_[id]->Answer<FilterRequest, FilterResponse>(
        [opinion](const FilterRequest& request, FilterResponse* answer) {
          std::string bits(1, '\0');
          uint32_t i = 0;
          for (const uint32_t slot : SlotsOf(request, kNodes)) {
            const auto rejected = opinion.rejects.find(slot);
            if (rejected == opinion.rejects.end()) {
              bits[0] = static_cast<char>(bits[0] | (1 << i));
            } else {
              answer->add_rejected(static_cast<uint32_t>(answer->reasons_size()));
              auto* reason = answer->add_reasons();
              reason->set_plugin(opinion.plugin);
              reason->set_code(v1beta1::CODE_UNSCHEDULABLE);
              reason->add_reasons(rejected->second);
            }
            ++i;
          }
          answer->set_processed(i);
          answer->set_feasible(i == 0 ? "" : bits);
          return grpc::Status::OK;
        });
    fakes_[id]->Answer<ScoreRequest, ScoreResponse>(
        [opinion](const ScoreRequest& request, ScoreResponse* answer) {
          auto* scores = answer->add_plugins();
          scores->set_plugin(opinion.plugin);
          for (const uint32_t slot : request.nodes().slots()) {
            const auto score = opinion.scores.find(slot);
            scores->mutable_scores()->push_back(
                static_cast<char>(score == opinion.scores.end() ? 50 : score->second));
          }
          return grpc::Status::OK;
        });
  }
  HostRegistry::View ViewOf(const std::string& id) const {
    for (const HostRegistry::View& view : hosts_->Describe()) {
      if (view.instance == id) return view;
    }
    ADD_FAILURE() << "no instance " << id;
    return {};
  }
  void RunOnce() {
    hosts_->Tick(now_);
    scheduler_.Tick(now_);
  }
  void WaitFor(const std::string& id, InstanceState state) {
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    while (ViewOf(id).state != state && SteadyNow() < limit) {
      RunOnce();
      if (ViewOf(id).state != state) loop_.Wait(SteadyNow() + absl::Milliseconds(5));
    }
    ASSERT_EQ(ViewOf(id).state, state) << ViewOf(id).why;
  }
  void Schedule() {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_name(absl::StrCat("pod-", ++pods_));
    pod->pod.set_namespace_("ns");
    pod->pod.set_uid("uid-" + pod->pod.name());
    pod->pod.set_scheduler_name("p");
    pod->pod.add_containers();
    scheduler_.events()->OnPodUpsert(pod, now_);
    EXPECT_TRUE(scheduler_.ScheduleOne(now_));
  }
  // Like a busy cluster, until the instance is out of the shadow.
  void ScheduleUntilCompared(const std::string& id) {
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    while (ViewOf(id).state == InstanceState::kShadow && SteadyNow() < limit) {
      Schedule();
      loop_.Wait(SteadyNow() + absl::Milliseconds(2));
      now_ += absl::Milliseconds(60);  // Long enough for changes to be sent.
      RunOnce();
    }
    EXPECT_THAT(effects_.failed, IsEmpty()) << "no pod notices";
  }
  // `a` serves host "main", `b` has come after it and been compared.
  void Compare(Kind kind_a, const Opinion& a, Kind kind_b, const Opinion& b) {
    Begin(/*two_hosts=*/false);
    Comes("main", "a", 1, kind_a, a);
    WaitFor("a", InstanceState::kServing);
    Comes("main", "b", 2, kind_b, b);
    WaitFor("b", InstanceState::kShadow);
    ScheduleUntilCompared("b");
  }

  absl::Time now_ = absl::FromUnixSeconds(100000);
  HostLoop loop_;
  CountedEffects effects_;
  scheduler::Observer observer_;
  scheduler::Scheduler scheduler_{{}, queue::QueueOptions(), &effects_, &observer_, nullptr, now_};
  std::map<std::string, std::unique_ptr<FakeHost>> fakes_;
  std::unique_ptr<HostRegistry> hosts_;
  int pods_ = 0;
};

TEST_F(ShadowTest, AloneWithoutTheFusedCycle) {
  Compare(Kind::kPlain, {.scores = {{1, 90}}}, Kind::kPlain, {.scores = {{1, 90}}});
  EXPECT_EQ(ViewOf("b").state, InstanceState::kServing) << ViewOf("b").why;
  EXPECT_EQ(ViewOf("b").shadow.Summary(), "3 cycles, no difference");
  EXPECT_EQ(ViewOf("b").shadow.compared_placements, 3);
  EXPECT_EQ(fakes_["b"]->Count<CycleRequest>(), 0);
  EXPECT_EQ(fakes_["b"]->Count<PreFilterRequest>(), 3);
  EXPECT_EQ(fakes_["b"]->Count<FilterRequest>(), 3);
  EXPECT_EQ(fakes_["b"]->Count<PreScoreRequest>(), 3);
  EXPECT_EQ(fakes_["b"]->Count<ScoreRequest>(), 3);
}

TEST_F(ShadowTest, AnotherScoreIsReportedWithWhereThePodWouldGo) {
  Compare(Kind::kPlain, {.scores = {{1, 90}}}, Kind::kPlain, {.scores = {{1, 20}, {2, 70}}});
  const ShadowReport report = ViewOf("b").shadow;
  EXPECT_EQ(report.placements, 3);
  EXPECT_EQ(report.plugins.at("Fake").scores, 6);
  EXPECT_EQ(report.plugins.at("Fake").verdicts, 0);
  EXPECT_THAT(report.examples, Contains("pod ns/pod-1, node n1: Fake scores 90 → 20"));
  EXPECT_THAT(report.examples, Contains("pod ns/pod-1, node n2: Fake scores 50 → 70"));
  EXPECT_THAT(report.examples, Contains("pod ns/pod-1, placement: n1 → n2"));
}

TEST_F(ShadowTest, AnotherVerdictIsReportedAndScoresAreComparedAllTheSame) {
  Compare(Kind::kPlain, {.rejects = {{2, "full"}}, .scores = {{1, 90}}}, Kind::kPlain,
          {.rejects = {{1, "no"}, {2, "full"}}, .scores = {{0, 60}, {1, 90}}});
  const ShadowReport report = ViewOf("b").shadow;
  EXPECT_EQ(report.cycles, 3);
  EXPECT_EQ(report.placements, 3);
  EXPECT_EQ(report.compared_placements, 3);
  EXPECT_EQ(report.plugins.at("Fake").verdicts, 3);
  EXPECT_EQ(report.plugins.at("Fake").scores, 3);
  EXPECT_THAT(report.examples,
              Contains("pod ns/pod-1, node n1: feasible → UNSCHEDULABLE by Fake (no)"));
  EXPECT_THAT(report.examples, Contains("pod ns/pod-1, node n0: Fake scores 50 → 60"));
  EXPECT_THAT(report.examples, Contains("pod ns/pod-1, placement: n1 → n0"));
}

TEST_F(ShadowTest, WhereItWouldScoreOtherNodesThePlaceIsNotTold) {
  Compare(Kind::kPlain, {.rejects = {{2, "full"}}, .scores = {{1, 90}}}, Kind::kPlain,
          {.scores = {{1, 90}}});
  const ShadowReport report = ViewOf("b").shadow;
  EXPECT_EQ(report.compared_placements, 0);
  EXPECT_EQ(report.plugins.at("Fake").verdicts, 3);
  EXPECT_THAT(report.Summary(), HasSubstr("3 cycles, in 0 of which placements could be compared; "
                                          "Fake: 3 verdicts, 0 scores; for example pod ns/pod-1, "
                                          "node n2: UNSCHEDULABLE by Fake (full) → feasible"));
}

TEST_F(ShadowTest, ARejectionAtPreFilterEndsTheQuestions) {
  Begin(/*two_hosts=*/false);
  Comes("main", "a", 1, Kind::kPlain, {});
  WaitFor("a", InstanceState::kServing);
  Comes("main", "b", 2, Kind::kPlain, {});
  fakes_["b"]->Answer<PreFilterRequest, PreFilterResponse>(
      [](const PreFilterRequest&, PreFilterResponse* answer) {
        answer->mutable_rejection()->set_plugin("Fake");
        answer->mutable_rejection()->set_code(v1beta1::CODE_UNSCHEDULABLE);
        answer->mutable_rejection()->add_reasons("not today");
        answer->add_rejected_by("Fake");
        return grpc::Status::OK;
      });
  WaitFor("b", InstanceState::kShadow);
  ScheduleUntilCompared("b");
  EXPECT_EQ(fakes_["b"]->Count<FilterRequest>(), 0);
  const ShadowReport report = ViewOf("b").shadow;
  EXPECT_EQ(report.placements, 3);
  EXPECT_EQ(report.plugins.at("Fake").verdicts, 3);
  EXPECT_THAT(report.examples,
              ElementsAre("pod ns/pod-1, PreFilter: success → UNSCHEDULABLE by Fake (not today)",
                          "pod ns/pod-1, placement: n0 → no node", ::testing::_, ::testing::_,
                          ::testing::_, ::testing::_));
}

TEST_F(ShadowTest, OneThatIsAskedPointByPointInTheShadowOfOneThatIsNot) {
  Compare(Kind::kFused, {}, Kind::kPlain, {.rejects = {{0, "no"}}});
  EXPECT_EQ(fakes_["b"]->Count<CycleRequest>(), 0);
  const ShadowReport report = ViewOf("b").shadow;
  EXPECT_EQ(report.cycles, 3);
  EXPECT_EQ(report.plugins.at("Fake").verdicts, 3);
  EXPECT_EQ(report.placements, 3) << "all went to n0";
}

TEST_F(ShadowTest, OneWithoutAMirrorInTheShadowOfOneThatHasOne) {
  Compare(Kind::kPlain, {}, Kind::kInline, {.scores = {{2, 60}}});
  const ShadowReport report = ViewOf("b").shadow;
  EXPECT_EQ(report.cycles, 3);
  EXPECT_EQ(report.plugins.at("Fake").scores, 3);
  EXPECT_EQ(report.placements, 3);
}

TEST_F(ShadowTest, NodesThatAreSentAlongAreThoseOfTheCycle) {
  Compare(Kind::kInline, {.scores = {{1, 90}}}, Kind::kInline, {.scores = {{1, 90}}});
  EXPECT_EQ(ViewOf("b").state, InstanceState::kServing) << ViewOf("b").why;
  EXPECT_EQ(ViewOf("b").shadow.Summary(), "3 cycles, no difference");
  const auto same = [&](const auto& asked) {
    int found = 0;
    for (const auto& request : asked("b")) {
      for (const auto& other : asked("a")) {
        if (other.header().attempt_id() != request.header().attempt_id()) continue;
        ++found;
        EXPECT_EQ(request.inline_nodes_size(), 3);
        auto expected = other;
        expected.mutable_header()->set_session_id(
            fakes_["b"]->Requests<v1beta1::ConfigureRequest>()[0].session_id());
        EXPECT_TRUE(MessageDifferencer::Equals(expected, request))
            << expected.DebugString() << request.DebugString();
      }
    }
    EXPECT_EQ(found, 3);
  };
  same([&](const char* id) { return fakes_[id]->Requests<FilterRequest>(); });
  same([&](const char* id) { return fakes_[id]->Requests<PreScoreRequest>(); });
  same([&](const char* id) { return fakes_[id]->Requests<ScoreRequest>(); });
  // The last question of an attempt is sent long after its pod was put on n1.
  const ScoreRequest last = fakes_["b"]->Requests<ScoreRequest>().back();
  EXPECT_GT(last.inline_nodes(1).requested().pods(), 0) << "those of the pods before";
}

TEST_F(ShadowTest, TwoHostsOfAProfileAreReplacedInTurn) {
  Begin(/*two_hosts=*/true);
  Comes("main", "a", 1, Kind::kFused, {.scores = {{1, 90}}});
  Comes("other", "x", 1, Kind::kPlain, {.plugin = "One", .rejects = {{2, "full"}}});
  WaitFor("a", InstanceState::kServing);
  WaitFor("x", InstanceState::kServing);
  Comes("other", "y", 2, Kind::kPlain,
        {.plugin = "One", .rejects = {{1, "no"}}, .scores = {{0, 51}}});
  WaitFor("y", InstanceState::kShadow);
  ScheduleUntilCompared("y");
  EXPECT_EQ(ViewOf("y").state, InstanceState::kServing) << ViewOf("y").why;
  ShadowReport report = ViewOf("y").shadow;
  EXPECT_EQ(report.cycles, 3);
  EXPECT_EQ(report.compared_placements, 0);
  EXPECT_EQ(report.plugins.at("One").verdicts, 6);
  EXPECT_EQ(report.plugins.at("One").scores, 3);
  EXPECT_EQ(report.plugins.count("Fake"), 0u);
  EXPECT_EQ(report.examples[0], "pod ns/pod-1, node n1: feasible → UNSCHEDULABLE by One (no)");
  EXPECT_EQ(report.examples[2], "pod ns/pod-1, node n0: One scores 50 → 51");
  EXPECT_THAT(report.Summary(),
              HasSubstr("3 cycles, in 0 of which placements could be compared; One: "));

  const size_t compared = effects_.bound.size();
  Comes("main", "b", 3, Kind::kFused, {.scores = {{0, 10}}});
  WaitFor("b", InstanceState::kShadow);
  ScheduleUntilCompared("b");
  EXPECT_EQ(ViewOf("b").state, InstanceState::kServing) << ViewOf("b").why;
  report = ViewOf("b").shadow;
  EXPECT_EQ(report.cycles, 3);
  EXPECT_EQ(report.compared_placements, 0);
  EXPECT_EQ(report.plugins.count("One"), 0u);
  EXPECT_EQ(report.plugins.at("Fake").verdicts, 0);
  EXPECT_GE(report.plugins.at("Fake").scores, 3) << "at least n0's, once a cycle";
  EXPECT_GT(effects_.bound.size(), compared);
}

TEST_F(ShadowTest, SilenceAtFilterQuarantinesTheBuildAndHoldsNobodyUp) {
  Begin(/*two_hosts=*/true, "2s");
  Comes("main", "a", 1, Kind::kFused, {});
  Comes("other", "x", 1, Kind::kPlain, {.plugin = "One"});
  WaitFor("a", InstanceState::kServing);
  WaitFor("x", InstanceState::kServing);
  Comes("other", "y", 2, Kind::kPlain, {.plugin = "One"});
  WaitFor("y", InstanceState::kShadow);
  Fault slow;
  slow.delay = absl::Seconds(60);
  fakes_["y"]->Inject<FilterRequest>(slow);
  const absl::Time began = SteadyNow();
  while (ViewOf("y").state == InstanceState::kShadow && SteadyNow() - began < absl::Seconds(60)) {
    Schedule();
    RunOnce();
    loop_.Wait(SteadyNow() + absl::Milliseconds(10));
  }
  EXPECT_GT(pods_, 4) << "pods waited for it";
  EXPECT_EQ(ViewOf("y").state, InstanceState::kQuarantined);
  EXPECT_EQ(ViewOf("y").why, "in the shadow, pod ns/pod-1: Filter: it did not answer in time");
  EXPECT_GE(SteadyNow() - began, absl::Seconds(2));
  EXPECT_EQ(fakes_["y"]->Count<FilterRequest>(), 1);
  EXPECT_THAT(effects_.failed, IsEmpty());
  EXPECT_EQ(effects_.bound.size(), static_cast<size_t>(pods_));
}

TEST_F(ShadowTest, NonsenseAtScoreQuarantinesTheBuild) {
  Compare(Kind::kPlain, {}, Kind::kPlain, {.scores = {{0, 101}}});
  EXPECT_EQ(ViewOf("b").state, InstanceState::kQuarantined);
  EXPECT_THAT(ViewOf("b").why, HasSubstr("in the shadow, pod ns/pod-1: Fake gave a score of 101"));
}

TEST_F(ShadowTest, AVerdictInAnothersNameQuarantinesTheBuild) {
  Begin(/*two_hosts=*/true);
  Comes("main", "a", 1, Kind::kFused, {});
  Comes("other", "x", 1, Kind::kPlain, {.plugin = "One"});
  WaitFor("x", InstanceState::kServing);
  Comes("other", "y", 2, Kind::kPlain, {.plugin = "One"});
  Says("y", {.plugin = "Fake", .rejects = {{0, "mine"}}});
  WaitFor("y", InstanceState::kShadow);
  ScheduleUntilCompared("y");
  EXPECT_EQ(ViewOf("y").state, InstanceState::kQuarantined);
  EXPECT_THAT(ViewOf("y").why, HasSubstr("Fake"));
}

TEST_F(ShadowTest, ItsCacheStaysAtTheVersionOfTheCycle) {
  Begin(/*two_hosts=*/false);
  Comes("main", "a", 1, Kind::kPlain, {});
  WaitFor("a", InstanceState::kServing);
  Comes("main", "b", 2, Kind::kPlain, {});
  std::atomic<int> asked = 0, wrong = 0;
  FakeHost* const fake = fakes_["b"].get();
  fake->Answer<ScoreRequest, ScoreResponse>(
      [&](const ScoreRequest& request, ScoreResponse* answer) {
        // Calls and changes come on different streams.
        const absl::Time limit = SteadyNow() + absl::Seconds(20);
        while (fake->version() < request.header().exact_version() && SteadyNow() < limit)
          std::this_thread::yield();
        ++asked;
        if (fake->version() != request.header().exact_version()) ++wrong;
        answer->add_plugins()->set_plugin("Fake");
        answer->mutable_plugins(0)->set_scores(std::string(3, 50));
        return grpc::Status::OK;
      });
  WaitFor("b", InstanceState::kShadow);
  ScheduleUntilCompared("b");
  EXPECT_EQ(ViewOf("b").state, InstanceState::kServing) << ViewOf("b").why;
  EXPECT_GE(asked, 3);
  EXPECT_EQ(wrong, 0);
  // Each attempt is at one version, and each at a later one than the one before, with the pods
  // placed there.
  int64_t last = 0;
  for (const ScoreRequest& request : fake->Requests<ScoreRequest>()) {
    EXPECT_GT(request.header().exact_version(), last);
    last = request.header().exact_version();
  }
  // Its state of the attempts is released.
  const auto ended = [&] {
    size_t count = 0;
    for (const auto& sync : fake->Requests<v1beta1::SyncRequest>())
      count += static_cast<size_t>(sync.ended_attempts_size());
    return count;
  };
  const absl::Time limit = SteadyNow() + absl::Seconds(10);
  while (ended() < 3 && SteadyNow() < limit) {
    Schedule();
    RunOnce();
    loop_.Wait(SteadyNow() + absl::Milliseconds(5));
  }
  EXPECT_GE(ended(), 3u);
}

TEST_F(ShadowTest, AHostWithNothingToCompareServesOnceItIsReady) {
  Begin(/*two_hosts=*/true);
  Comes("main", "a", 1, Kind::kFused, {});
  Comes("other", "x", 1, Kind::kPlain,
        {.plugin = "One", .points = {v1beta1::EXTENSION_POINT_PERMIT}});
  WaitFor("x", InstanceState::kServing);
  Comes("other", "y", 2, Kind::kPlain,
        {.plugin = "One", .points = {v1beta1::EXTENSION_POINT_PERMIT}});
  WaitFor("y", InstanceState::kServing);
  EXPECT_EQ(ViewOf("y").shadow.cycles, 0);
}

// Late hosts are asked about a part of the list.
TEST(CompareCycleTest, WhereTheListIsNotWholeOnlyALossIsCertain) {
  ShadowCycle served;
  served.pod = "ns/pod";
  served.own.filter_plugins = {"Fake"};
  served.examined = {"n1", "n2"};
  served.num_nodes = served.num_to_find = 2;
  served.is_whole = false;
  served.sample = 3;
  served.asks_score = false;
  served.placed = "n2";
  served.answers.mutable_filter()->set_processed(2);
  served.answers.mutable_filter()->set_feasible("\x03");
  v1beta1::CycleEvaluation shadow = served.answers;
  ShadowReport report;
  ASSERT_TRUE(CompareCycle(served, shadow, &report).ok());
  EXPECT_EQ(report.compared_placements, 0) << "a third node may be the best";
  shadow.mutable_filter()->set_feasible("\x01");
  shadow.mutable_filter()->add_rejected(0);
  auto* reason = shadow.mutable_filter()->add_reasons();
  reason->set_plugin("Fake");
  reason->set_code(v1beta1::CODE_UNSCHEDULABLE);
  ASSERT_TRUE(CompareCycle(served, shadow, &report).ok());
  EXPECT_EQ(report.cycles, 2);
  EXPECT_EQ(report.compared_placements, 1);
  EXPECT_EQ(report.placements, 1);
  EXPECT_EQ(report.examples.back(), "pod ns/pod, placement: n2 → another node");
}

TEST(CompareCycleTest, APluginThatFailsIsADifference) {
  ShadowCycle served;
  served.pod = "ns/pod";
  served.own.filter_plugins = {"Fake"};
  served.own.pre_score_plugins = {"Fake"};
  served.own.score_plugins = {{"Fake", 1}};
  served.examined = served.scored = {"n1", "n2"};
  served.num_nodes = served.num_to_find = served.sample = 2;
  served.placed = "n2";
  served.answers.mutable_filter()->set_processed(2);
  served.answers.mutable_filter()->set_feasible("\x03");
  auto* scores = served.answers.mutable_score()->add_plugins();
  scores->set_plugin("Fake");
  scores->set_scores("\x01\x02");
  v1beta1::CycleEvaluation shadow = served.answers;
  shadow.clear_score();
  auto* error = shadow.mutable_pre_score()->mutable_error();
  error->set_plugin("Fake");
  error->set_code(v1beta1::CODE_ERROR);
  error->add_reasons("boom");
  ShadowReport report;
  ASSERT_TRUE(CompareCycle(served, shadow, &report).ok());
  EXPECT_EQ(report.plugins.at("Fake").verdicts, 1);
  EXPECT_THAT(report.examples, ElementsAre("pod ns/pod, PreScore: success → ERROR by Fake (boom)",
                                           "pod ns/pod, placement: n2 → no node"));
}

}  // namespace
}  // namespace outboard::hosts::shadow_test
