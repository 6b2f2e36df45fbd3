// How one instance of a host replaces another.
#include "shim/hosts/testing/replacement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/http/testing/flood.h"

namespace outboard::hosts::replacement_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;
using v1beta1::CallError;
using v1beta1::ConfigureResponse;
using v1beta1::EndSessionRequest;
using v1beta1::ReserveRequest;
using v1beta1::ReserveResponse;

TEST_F(ReplacementTest, TheNewestServesAndItsPredecessorStaysReadyForAWhile) {
  Comes("a", 1);
  WaitFor({"a serving"});
  Schedule("one");
  Comes("b", 2);
  EXPECT_THAT(States(), ElementsAre("a serving", "b syncing"));
  Schedule("two");  // The old one continues while the new one is prepared.
  WaitFor({"a standby", "b serving"});
  Schedule("three");
  EXPECT_THAT(effects_.failed, IsEmpty());
  EXPECT_THAT(effects_.bound, SizeIs(3));
  EXPECT_EQ(fakes_["a"]->Count<CycleRequest>(), 2);
  EXPECT_EQ(fakes_["b"]->Count<CycleRequest>(), 1);
  EXPECT_EQ(ViewOf("b").why, "it is newer than a");
  now_ += absl::Minutes(1);
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("b serving"));
  EXPECT_THAT(retired_, ElementsAre(fakes_["a"]->address()));
  const absl::Time limit = SteadyNow() + absl::Seconds(30);
  while (fakes_["a"]->Count<EndSessionRequest>() == 0 && SteadyNow() < limit)
    loop_.Wait(SteadyNow() + absl::Milliseconds(5));
  EXPECT_EQ(fakes_["a"]->Count<EndSessionRequest>(), 1);
}

TEST_F(ReplacementTest, ASuccessorGetsWhatPluginsKeepForPodsThatAreNotBound) {
  reserves_ = true;
  Comes("a", 1);
  fakes_["a"]->Answer<ReserveRequest, ReserveResponse>(
      [](const ReserveRequest&, ReserveResponse* response) {
        response->add_states()->set_plugin("Fake");
        response->mutable_states(0)->set_state("device 3");
        return grpc::Status::OK;
      });
  WaitFor({"a serving"});
  Schedule("one");
  EXPECT_THAT(effects_.bound, SizeIs(1)) << "ordered, and never confirmed";
  Comes("b", 2);
  WaitFor({"a standby", "b serving"});
  std::vector<std::string> kept;
  for (const auto& request : fakes_["b"]->Requests<v1beta1::SyncRequest>()) {
    for (const v1beta1::Change& change : request.changes()) {
      for (const v1beta1::PluginState& its : change.pod_placement().states())
        kept.push_back(absl::StrCat(its.plugin(), "=", its.state()));
    }
  }
  EXPECT_THAT(kept, ElementsAre("Fake=device 3"));
}

// For example if its successor was started by hand, for a trial: without this, all pods would wait
// beside a host that works.
TEST_F(ReplacementTest, AReplacedInstanceIsCalledAgainOnceNoOtherIsLeft) {
  BReplacesA();
  now_ += absl::Minutes(1);
  RunOnce();
  Comes("c", 3);
  WaitFor({"b standby", "c serving"});
  fakes_["c"]->Kill();
  WaitFor({"b serving"});
  EXPECT_THAT(lost_, ElementsAre(fakes_["c"]->address())) << "another one is left";
  fakes_["b"]->Kill();
  WaitFor({});
  EXPECT_THAT(lost_,
              ElementsAre(fakes_["c"]->address(), fakes_["b"]->address(), fakes_["a"]->address()));
  Answers("a", 1);
  WaitFor({"a serving"});
  Schedule("one");
  EXPECT_THAT(effects_.failed, IsEmpty());
  EXPECT_THAT(effects_.bound, SizeIs(1));
  // The first session has ended for ever.
  const std::vector<std::string> sessions = SessionsOf("a");
  ASSERT_THAT(sessions, SizeIs(2));
  EXPECT_EQ(sessions[1], absl::StrCat(sessions[0], "-1"));
}

// So an instance that took another's place behind an address never answers for it.
TEST_F(ReplacementTest, EachInstanceHasASessionOfItsOwn) {
  Comes("a", 1);
  WaitFor({"a serving"});
  Schedule("one");
  Comes("b", 2);
  WaitFor({"a standby", "b serving"});
  Schedule("two");
  for (const char* id : {"a", "b"}) {
    ASSERT_THAT(SessionsOf(id), SizeIs(1));
    const std::string session = SessionsOf(id)[0];
    EXPECT_THAT(session, MatchesRegex("session-[0-9a-f]+"));
    EXPECT_EQ(fakes_[id]->Requests<ConfigureRequest>()[0].instance(), id);
    EXPECT_EQ(fakes_[id]->Requests<v1beta1::SyncRequest>()[0].session_id(), session);
    ASSERT_EQ(fakes_[id]->Count<CycleRequest>(), 1);
    EXPECT_EQ(fakes_[id]->Requests<CycleRequest>()[0].header().session_id(), session);
  }
  EXPECT_NE(SessionsOf("a"), SessionsOf("b"));
  // A host must not have to keep one session for each connection.
  Answers("a", 1);
  WaitFor({"b serving", "a standby"});
  ASSERT_THAT(SessionsOf("a"), SizeIs(2));
  EXPECT_EQ(SessionsOf("a")[0], SessionsOf("a")[1]);
}

TEST_F(ReplacementTest, AWrongInstanceAtConfigureNeedsAnotherHandshake) {
  Starts("a");
  fakes_["a"]->Answer<ConfigureRequest, ConfigureResponse>(
      [](const ConfigureRequest& request, ConfigureResponse*) {
        return testing::CallFailure(CallError::REASON_WRONG_INSTANCE,
                                    absl::StrCat("this is not ", request.instance()));
      });
  Answers("a", 1);
  WaitFor({});
  EXPECT_THAT(lost_, ElementsAre(fakes_["a"]->address()));
}

// A host that was asked to drain need not exit.
TEST_F(ReplacementTest, AReplacedInstanceIsCalledAgainOnceTheLastOneDrains) {
  BReplacesA();
  now_ += absl::Minutes(1);
  RunOnce();
  hosts_.OnDraining("main", "b", now_);
  EXPECT_THAT(lost_, ElementsAre(fakes_["a"]->address()));
  hosts_.OnDraining("main", "b", now_);
  EXPECT_THAT(lost_, SizeIs(1));
  Answers("a", 1);
  WaitFor({"b standby", "a serving"});
  Schedule("one");
  EXPECT_THAT(effects_.bound, SizeIs(1));
}

// No pod waits for an instance in the shadow.
TEST_F(ReplacementTest, CallsOfTheServingInstanceAreObserved) {
  struct Cycles final : public CallObserver {
    void OnCallEnded(Call call, absl::StatusCode, absl::Duration) override {
      count += call == Call::kCycle ? 1 : 0;
    }
    void OnEvaluated(Call, absl::Duration) override {}
    size_t count = 0;
  } cycles;
  HostRegistry::Callbacks callbacks;
  callbacks.call_observer = [&](const std::string& host) {
    EXPECT_EQ(host, "main");
    return &cycles;
  };
  hosts_.SetCallbacks(std::move(callbacks));
  ASSERT_TRUE(hosts_.Reload(Configuration(2), now_).ok());
  Comes("a", 1);
  WaitFor({"a serving"});
  Schedule("one");
  EXPECT_EQ(cycles.count, 1u);
  Comes("b", 2);
  ScheduleUntil([this] { return ViewOf("b").state == InstanceState::kServing; });
  EXPECT_GE(fakes_["b"]->Count<CycleRequest>(), 2);
  Schedule("last");
  EXPECT_THAT(effects_.failed, IsEmpty());
  EXPECT_EQ(cycles.count, effects_.bound.size());
}

TEST_F(ReplacementTest, TheNewestServesWhateverTheOrderOfArrival) {
  Comes("b", 2);
  WaitFor({"b serving"});
  Comes("a", 1);
  WaitFor({"b serving", "a standby"});
  EXPECT_EQ(ViewOf("a").why, "it is older than b");
}

TEST_F(ReplacementTest, WhereTheServingOneIsLostAnotherIsInItsPlaceAtOnce) {
  BReplacesA();
  fakes_["b"]->Kill();
  WaitFor({"a serving"});
  EXPECT_THAT(lost_, ElementsAre(fakes_["b"]->address()));
  Schedule("one");
  EXPECT_THAT(effects_.failed, IsEmpty());
  EXPECT_EQ(hosts_.switches().at({"main", "lost"}), 1);
}

TEST_F(ReplacementTest, AnInstanceThatIsLostDuringSyncChangesNothing) {
  Comes("a", 1);
  WaitFor({"a serving"});
  Comes("b", 2);
  fakes_["b"]->Kill();
  WaitFor({"a serving"});
  Schedule("one");
  EXPECT_THAT(effects_.failed, IsEmpty());
}

TEST_F(ReplacementTest, FailuresSoonAfterAReplacementBringThePredecessorBack) {
  BReplacesA("good", "bad");
  Fails("b", -1, grpc::StatusCode::RESOURCE_EXHAUSTED, "out of breath");
  Schedule("one");
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a standby", "b serving")) << "once may be chance";
  Schedule("two");
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a serving", "b quarantined"));
  EXPECT_THAT(ViewOf("b").why, HasSubstr("calls without a usable answer within 0, the last: "));
  EXPECT_THAT(effects_.bound, IsEmpty());
  Schedule("three");
  EXPECT_THAT(effects_.bound, SizeIs(3));

  // Its build is not tried again, another one is.
  Comes("c", 3, "bad");
  EXPECT_THAT(States(), ElementsAre("a serving", "b quarantined", "c quarantined"));
  Comes("d", 4, "better");
  WaitFor({"a standby", "b quarantined", "c quarantined", "d serving"});
  // An administrator may allow it again.
  EXPECT_TRUE(hosts_.ClearQuarantine("main", now_).ok());
  WaitFor({"a standby", "b standby", "c standby", "d serving"});
}

// Two instances of a build are the rule where hosts have pods of their own. That one of them fails
// may be its machine's fault, and a quarantine of the build would leave none.
TEST_F(ReplacementTest, ABuildThatServesIsNotQuarantined) {
  BReplacesA("same", "same");
  Fails("b");
  Schedule("one");
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a serving"));
  EXPECT_THAT(lost_, ElementsAre(fakes_["b"]->address())) << "it is called again";
  Schedule("two");
  EXPECT_THAT(effects_.bound, SizeIs(2));
  // Also where it is all that is left.
  fakes_["a"]->Kill();
  WaitFor({});
  Comes("c", 3, "same");
  WaitFor({"c serving"});
}

// An exchange of two instances of a build costs a snapshot, and gains nothing where their machines
// are busy.
TEST_F(ReplacementTest, LateAnswersDoNotExchangeInstancesOfABuild) {
  BReplacesA("same", "same");
  Fails("b", 2, grpc::StatusCode::RESOURCE_EXHAUSTED, "out of breath");
  for (const char* name : {"one", "two", "three"}) {
    Schedule(name);
    RunOnce();
  }
  EXPECT_THAT(States(), ElementsAre("a standby", "b serving"));
  EXPECT_THAT(effects_.bound, Not(IsEmpty()));
  // An instance that does not answer at all is held back, and another one can be called.
  Fails("b", -1, grpc::StatusCode::RESOURCE_EXHAUSTED, "out of breath");
  for (const char* name : {"four", "five", "six"}) {
    Schedule(name);
    RunOnce();
  }
  EXPECT_THAT(States(), ElementsAre("a serving"));
  EXPECT_THAT(lost_, ElementsAre(fakes_["b"]->address())) << "it is called again";
}

TEST_F(ReplacementTest, AQuarantineIsForAllInstancesOfTheBuild) {
  BReplacesA("good", "bad");
  Comes("c", 3, "bad");
  WaitFor({"a standby", "b standby", "c serving"});
  EXPECT_TRUE(hosts_.Rollback("main", now_).ok());
  EXPECT_THAT(States(), ElementsAre("a serving", "b quarantined", "c quarantined"));
  Comes("d", 4, "good");
  WaitFor({"a standby", "b quarantined", "c quarantined", "d serving"});
  EXPECT_EQ(
      hosts_.Rollback("main", now_).message(),
      "no ready instance of host \"main\" has another build than d; the predecessor is kept 1m "
      "after a replacement (replacement.keepWarm)");
}

TEST_F(ReplacementTest, AnUnusableAnswerSoonAfterAReplacementCausesARollback) {
  BReplacesA("good", "bad");
  Fails("b");
  Schedule("one");
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a serving", "b quarantined"));
  EXPECT_EQ(ViewOf("b").why, "1 calls without a usable answer within 0, the last: out of ideas");
  Schedule("two");
  EXPECT_THAT(effects_.bound, SizeIs(2)) << "including the one without an answer";
}

TEST_F(ReplacementTest, AnInstanceThatDoesNotAnswerIsHeldBackUntilItAnswersAProbe) {
  Comes("a", 1);
  WaitFor({"a serving"});
  Fails("a", -1, grpc::StatusCode::RESOURCE_EXHAUSTED, "out of breath");
  for (const char* name : {"one", "two"}) Schedule(name);
  EXPECT_FALSE(ViewOf("a").held_back);
  Schedule("three");
  EXPECT_TRUE(ViewOf("a").held_back);
  const int calls = fakes_["a"]->Count<CycleRequest>();
  // It is not called, and pods wait where they are; after a while they get the reason.
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_name("four");
  pod->pod.set_namespace_("ns");
  pod->pod.set_uid("uid-four");
  pod->pod.set_scheduler_name("p");
  scheduler_.events()->OnPodUpsert(pod, now_);
  RunOnce();
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
  now_ += absl::Seconds(10);
  RunOnce();
  EXPECT_TRUE(scheduler_.ScheduleOne(now_));
  RunOnce();
  EXPECT_THAT(effects_.failed, SizeIs(4));
  EXPECT_EQ(fakes_["a"]->Count<CycleRequest>(), calls);
  // One more failure after a probe opens the breaker again.
  v1beta1::ProbeResponse probe;
  probe.set_warning("a set of plugins was refused");
  hosts_.OnProbedReady("main", "a", probe, now_);
  EXPECT_EQ(ViewOf("a").warning, "a set of plugins was refused");
  EXPECT_FALSE(ViewOf("a").held_back);
  EXPECT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_EQ(fakes_["a"]->Count<CycleRequest>(), calls + 1);
  EXPECT_TRUE(ViewOf("a").held_back);
  // It is healthy again.
  fakes_["a"]->ClearFaults();
  now_ += absl::Seconds(10);
  hosts_.OnProbedReady("main", "a", v1beta1::ProbeResponse(), now_);
  EXPECT_EQ(ViewOf("a").warning, "");
  while (scheduler_.ScheduleOne(now_)) continue;
  EXPECT_FALSE(ViewOf("a").held_back);
  EXPECT_THAT(effects_.bound, SizeIs(4));
}

TEST_F(ReplacementTest, FailuresLongAfterAReplacementAreNotItsFault) {
  BReplacesA();
  now_ += absl::Seconds(61);
  RunOnce();
  Fails("b", -1);
  for (const char* name : {"one", "two"}) {
    Schedule(name);
    RunOnce();
  }
  EXPECT_THAT(States(), ElementsAre("b serving"));
}

TEST_F(ReplacementTest, APersonMayGoBackAndForth) {
  EXPECT_EQ(hosts_.Swap("main", "", now_).code(), absl::StatusCode::kNotFound);
  Comes("a", 1);
  WaitFor({"a serving"});
  EXPECT_EQ(hosts_.Swap("main", "", now_).message(), "no other instance of host \"main\" is ready");
  EXPECT_EQ(hosts_.Swap("main", "a", now_).message(), "instance a is already serving");
  EXPECT_EQ(hosts_.Swap("main", "x", now_).message(), "host \"main\" has no instance x");
  Comes("b", 2);
  WaitFor({"a standby", "b serving"});
  EXPECT_TRUE(hosts_.Swap("main", "a", now_).ok());
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a serving", "b standby"))
      << "newer, but it did not just arrive";
  EXPECT_TRUE(hosts_.Swap("main", "", now_).ok());
  EXPECT_THAT(States(), ElementsAre("a standby", "b serving"));
  EXPECT_TRUE(hosts_.Rollback("main", now_).ok());
  EXPECT_THAT(States(), ElementsAre("a serving", "b quarantined"));
  EXPECT_EQ(hosts_.Swap("main", "b", now_).message(),
            "instance b is quarantined: requested by an administrator");
  EXPECT_EQ(hosts_.switches().at({"main", "manual"}), 2);
}

TEST_F(ReplacementTest, ADrainingInstanceIsReplacedIfAnotherIsReady) {
  BReplacesA();
  hosts_.OnDraining("main", "b", now_);
  EXPECT_THAT(States(), ElementsAre("a serving", "b draining"));
}

TEST_F(ReplacementTest, InTheShadowItIsComparedBeforeItServes) {
  EXPECT_TRUE(hosts_.Reload(Configuration(3), now_).ok());
  Comes("a", 1);
  WaitFor({"a serving"});
  Comes("b", 2);
  RejectsAll("b");
  WaitFor({"a serving", "b shadow"});
  ScheduleUntil([&] { return ViewOf("b").state == InstanceState::kServing; });
  EXPECT_THAT(effects_.failed, IsEmpty()) << "the shadow does not affect pods";
  const ShadowReport report = ViewOf("b").shadow;
  EXPECT_EQ(report.cycles, 3);
  EXPECT_EQ(report.placements, 3);
  EXPECT_EQ(report.plugins.at("Fake").verdicts, 6);
  ASSERT_THAT(report.examples, SizeIs(9));
  EXPECT_THAT(report.examples[0], HasSubstr("node n1: feasible → UNSCHEDULABLE by Fake (no)"));
  EXPECT_THAT(report.Summary(),
              HasSubstr("3 cycles, 3 pods would get another node; Fake: 6 verdicts"));
}

TEST_F(ReplacementTest, AnswersOfNoUseInTheShadowQuarantineTheBuild) {
  EXPECT_TRUE(hosts_.Reload(Configuration(3), now_).ok());
  Comes("a", 1);
  WaitFor({"a serving"});
  Comes("b", 2);
  fakes_["b"]->Answer<FilterRequest, FilterResponse>(
      [](const FilterRequest&, FilterResponse* response) {
        response->set_processed(7);
        response->set_feasible("?");
        return grpc::Status::OK;
      });
  WaitFor({"a serving", "b shadow"});
  ScheduleUntil([&] { return ViewOf("b").state != InstanceState::kShadow; });
  EXPECT_THAT(States(), ElementsAre("a serving", "b quarantined"));
  EXPECT_THAT(ViewOf("b").why, HasSubstr("in the shadow, pod ns/pod-"));
  EXPECT_THAT(effects_.failed, IsEmpty());
}

// Whichever plugin rejected a member: here it is at Filter only.
TEST_F(ReplacementTest, AGroupThatFitsNowhereIsComparedAsAnyPod) {
  plans_groups_ = true;
  const auto rejects_groups = [this](const std::string& id, const std::string& plugin) {
    fakes_[id]->Answer<v1beta1::PlanRequest, v1beta1::PlanResponse>(
        [plugin](const v1beta1::PlanRequest& request, v1beta1::PlanResponse* response) {
          response->set_attempt_id(request.cycle().header().attempt_id());
          auto* rejection = response->mutable_rejection();
          rejection->mutable_group()->set_name("g");
          rejection->mutable_group()->set_needed(2);
          auto* status = rejection->mutable_pre_filter()->mutable_rejection();
          status->set_plugin(plugin);
          status->set_code(v1beta1::CODE_UNSCHEDULABLE);
          status->add_reasons("0 of 2 members fit");
          return grpc::Status::OK;
        });
  };
  EXPECT_TRUE(hosts_.Reload(Configuration(3), now_).ok());
  Comes("a", 1);
  rejects_groups("a", "Fake");
  WaitFor({"a serving"});
  Comes("b", 2);
  rejects_groups("b", "Fake");
  WaitFor({"a serving", "b shadow"});
  ScheduleUntil([&] { return ViewOf("b").state != InstanceState::kShadow; });
  EXPECT_THAT(States(), ElementsAre("a standby", "b serving"));
  EXPECT_THAT(ViewOf("b").shadow.Summary(), HasSubstr("3 cycles, "));
  EXPECT_FALSE(ViewOf("b").shadow.differs());

  Comes("c", 3);
  rejects_groups("c", "Stranger");
  WaitFor({"a standby", "b serving", "c shadow"});
  ScheduleUntil([&] { return ViewOf("c").state != InstanceState::kShadow; });
  EXPECT_THAT(States(), ElementsAre("a standby", "b serving", "c quarantined"));
  EXPECT_THAT(ViewOf("c").why, HasSubstr("answers for \"Stranger\""));
}

TEST_F(ReplacementTest, SilenceInTheShadowQuarantinesTheBuildAndDelaysNoPod) {
  EXPECT_TRUE(hosts_.Reload(Configuration(3), now_).ok());
  Comes("a", 1);
  WaitFor({"a serving"});
  Comes("b", 2);
  WaitFor({"a serving", "b shadow"});
  HangsOnce("b");
  const absl::Time began = SteadyNow();
  ScheduleUntil([&] { return fakes_["b"]->Count<CycleRequest>() > 0; });
  now_ += absl::Milliseconds(200);
  RunOnce();
  EXPECT_LT(SteadyNow() - began, absl::Seconds(20));
  EXPECT_THAT(States(), ElementsAre("a serving", "b quarantined"));
  EXPECT_THAT(ViewOf("b").why, HasSubstr("it did not answer in time"));
  EXPECT_THAT(effects_.failed, IsEmpty());
}

TEST_F(ReplacementTest, SilenceInTheShadowOfItsOwnBuildQuarantinesNothing) {
  EXPECT_TRUE(hosts_.Reload(Configuration(3), now_).ok());
  Comes("a", 1, "same");
  WaitFor({"a serving"});
  Comes("b", 2, "same");
  WaitFor({"a serving", "b shadow"});
  HangsOnce("b");
  ScheduleUntil([&] { return fakes_["b"]->Count<CycleRequest>() > 0; });
  now_ += absl::Milliseconds(200);
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a serving"));
  EXPECT_THAT(lost_, ElementsAre(fakes_["b"]->address())) << "it is called again";
  Comes("c", 3, "same");
  WaitFor({"a serving", "c shadow"});
  ScheduleUntil([&] { return ViewOf("c").state == InstanceState::kServing; });
  EXPECT_THAT(effects_.failed, IsEmpty());
}

TEST_F(ReplacementTest, WithoutCyclesToCompareItServesAfterAWhile) {
  EXPECT_TRUE(hosts_.Reload(Configuration(3), now_).ok());
  Comes("a", 1);
  WaitFor({"a serving"});
  Comes("b", 2);
  WaitFor({"a serving", "b shadow"});
  now_ += absl::Hours(1);
  WaitFor({"a standby", "b serving"});
}

TEST_F(ReplacementTest, AConfigurationThatCannotBeUsedChangesNothing) {
  Comes("a", 1);
  WaitFor({"a serving"});
  std::string text = kConfiguration;
  text.replace(text.find("{name: Fake}"), 12, "{name: Fakke}");
  const absl::Status refused = hosts_.Reload(Configuration(0, text), now_);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("f.yaml:6"));
  Schedule("one");
  EXPECT_THAT(effects_.bound, SizeIs(1));
  // Weights only concern the shim.
  text = kConfiguration;
  text.replace(text.find("{name: Fake}"), 12, "{name: Fake, weight: 3}");
  EXPECT_TRUE(hosts_.Reload(Configuration(0, text), now_).ok());
  EXPECT_TRUE(hosts_.AllReady());
  EXPECT_EQ(fakes_["a"]->Count<ConfigureRequest>(), 1);
  // A change of the host's own configuration restarts it.
  text = kConfiguration;
  text.replace(text.find("- schedulerName: p"), 18,
               "- schedulerName: p\n  pluginConfig: [{name: Fake, args: {a: 1}}]");
  EXPECT_TRUE(hosts_.Reload(Configuration(0, text), now_).ok());
  EXPECT_FALSE(hosts_.AllReady());
  WaitFor({"a serving"});
  EXPECT_EQ(fakes_["a"]->Count<ConfigureRequest>(), 2);
}

// Two instances of one build that are too slow do not take turns at a snapshot each.
TEST(PausesTest, EachInstanceHasItsOwn) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  Pauses pauses;
  const auto lost = [&](const char* id, absl::Duration lasted) {
    pauses.Add(id, lasted, absl::StrCat(id, " is too slow"), now);
    return pauses.Of(id).length;
  };
  EXPECT_EQ(pauses.Of("a").until, absl::InfinitePast());
  for (const int seconds : {0, 1, 2, 4, 8, 16, 32, 60, 60}) {
    EXPECT_EQ(lost("a", absl::Seconds(20)), absl::Seconds(seconds));
    EXPECT_EQ(lost("b", absl::Seconds(20)), absl::Seconds(seconds));
    EXPECT_EQ(pauses.Of("a").until, now + absl::Seconds(seconds));
  }
  EXPECT_EQ(pauses.Of("a").why_lost, "a is too slow");
  EXPECT_EQ(lost("a", Pauses::kLong), absl::ZeroDuration()) << "the session was a good one";
  EXPECT_EQ(pauses.Of("b").length, Pauses::kLongest);
  pauses.Add("a", absl::Seconds(20), "",
             now + Pauses::kLongest + Pauses::kRemembered + absl::Seconds(1));
  EXPECT_EQ(pauses.Of("b").length, absl::ZeroDuration()) << "it is forgotten";
}

// Pushes from an instance, without pause, until its stream ends.
class Pushing {
 public:
  Pushing(FakeHost* host, const v1beta1::SyncResponse& push) {
    thread_ = std::thread([this, host, push] {
      while (!over_ && host->Push(push)) ++pushed_;
    });
  }
  ~Pushing() {
    over_ = true;
    thread_.join();
  }
  int64_t pushed() const { return pushed_; }

 private:
  std::atomic<bool> over_{false};
  std::atomic<int64_t> pushed_{0};
  std::thread thread_;
};

v1beta1::SyncResponse GateChanged(size_t bytes) {
  v1beta1::SyncResponse push;
  push.mutable_gate_changed()->add_pod_uids(std::string(bytes, 'x'));
  return push;
}

// With room for what a sanitizer keeps of each byte: 140 MiB were seen.
#ifdef OUTBOARD_SANITIZED
constexpr size_t kFloodMemory = size_t{256} << 20;
#else
constexpr size_t kFloodMemory = size_t{64} << 20;
#endif

TEST_F(ReplacementTest, AStandbyThatPushesWithoutEndIsQuarantined) {
  for (const size_t bytes : {size_t{10}, size_t{1000}, size_t{1} << 20}) {
    SCOPED_TRACE(bytes);
    const std::string id = absl::StrCat("flood-", bytes);
    if (bytes == 10) {
      Comes("a", 100);
      WaitFor({"a serving"});
    }
    Comes(id, 1, id);
    ScheduleUntil([&] { return ViewOf(id).state == InstanceState::kStandby; });
    const size_t before = http::testing::ResidentBytes();
    size_t most = 0;
    Pushing flood(fakes_[id].get(), GateChanged(bytes));
    ScheduleUntil([&] {
      most = std::max(most, http::testing::ResidentBytes());
      return ViewOf(id).state == InstanceState::kQuarantined;
    });
    EXPECT_LT(most, before + kFloodMemory) << flood.pushed() << " pushes";
    EXPECT_THAT(ViewOf(id).why, HasSubstr("more than the shim takes"));
    EXPECT_THAT(effects_.failed, IsEmpty());
  }
  EXPECT_EQ(effects_.bound.size(), static_cast<size_t>(pods_));
}

TEST_F(ReplacementTest, AServingInstanceThatPushesWithoutEndIsReplaced) {
  BReplacesA();
  Pushing flood(fakes_["b"].get(), GateChanged(1000));
  ScheduleUntil([&] { return ViewOf("b").state == InstanceState::kQuarantined; });
  EXPECT_EQ(ViewOf("a").state, InstanceState::kServing);
  EXPECT_THAT(ViewOf("b").why, HasSubstr("more than the shim takes"));
  EXPECT_THAT(effects_.failed, SizeIs(Le(1))) << "the attempt during which it was disconnected";
}

// Its build may be the only one there is: it gets a new session, and pods wait for no other.
TEST_F(ReplacementTest, TheOnlyInstanceThatPushesWithoutEndGetsNewSessionsWithGrowingPauses) {
  Comes("a", 1);
  WaitFor({"a serving"});
  for (const int pause : {0, 1, 2, 4}) {
    SCOPED_TRACE(pause);
    lost_.clear();
    {
      Pushing flood(fakes_["a"].get(), GateChanged(1000));
      const absl::Time limit = SteadyNow() + absl::Seconds(30);
      while (lost_.empty() && SteadyNow() < limit) {
        RunOnce();
        loop_.Wait(SteadyNow() + absl::Milliseconds(1));
      }
    }
    EXPECT_THAT(lost_, ElementsAre(fakes_["a"]->address()));
    Answers("a", 1);
    if (pause > 0) {
      WaitFor({"a waiting"});
      EXPECT_THAT(ViewOf("a").why,
                  HasSubstr(absl::StrCat("after a pause of ", pause,
                                         "s; its last one ended because it pushed more than")));
      EXPECT_EQ(hosts_.NextWakeup(), now_ + absl::Seconds(pause));
      now_ += absl::Seconds(pause);
    }
    WaitFor({"a serving"});
  }
  // A long session was a good one.
  now_ += absl::Minutes(1);
  lost_.clear();
  fakes_["a"]->CutStreams();
  WaitFor({});
  Answers("a", 1);
  WaitFor({"a serving"});
}

TEST_F(ReplacementTest, APauseEndsWithItsInstance) {
  Comes("a", 1, "build");
  for (int i = 0; i < 2; ++i) {
    WaitFor({"a serving"});
    fakes_["a"]->CutStreams();
    WaitFor({});
    Answers("a", 1, "build");
  }
  WaitFor({"a waiting"});
  Comes("b", 2, "build");
  WaitFor({"a waiting", "b serving"});
}

TEST_F(ReplacementTest, WhatAnInstancePushedBeforeItServedDoesNotCount) {
  Comes("a", 1);
  WaitFor({"a serving"});
  ASSERT_TRUE(hosts_.Reload(Configuration(1), now_).ok());
  Comes("b", 2);
  WaitFor({"a serving", "b shadow"});
  v1beta1::SyncResponse push;
  push.mutable_wait_decision()->set_pod_uid("unknown");  // Invalid: it names no plugin.
  push.set_push_id(1);
  ASSERT_TRUE(fakes_["b"]->Push(push));
  ScheduleUntil([&] { return ViewOf("b").state == InstanceState::kServing; });
  RunOnce();
  EXPECT_EQ(ViewOf("b").failures, 0);
  // Pushes of the serving instance are answered.
  push = GateChanged(1);
  push.set_push_id(2);
  ASSERT_TRUE(fakes_["b"]->Push(push));
  ScheduleUntil([&] { return !fakes_["b"]->push_results().empty(); });
  ASSERT_THAT(fakes_["b"]->push_results(), SizeIs(1));
  EXPECT_EQ(fakes_["b"]->push_results()[0].push_id(), 2u);
  EXPECT_EQ(fakes_["b"]->push_results()[0].outcome(), v1beta1::PushResult::OUTCOME_UNKNOWN);
}

TEST_F(ReplacementTest, AStandbyThatAsksForASnapshotGetsANewSession) {
  Comes("a", 2);
  WaitFor({"a serving"});
  Comes("b", 1);
  WaitFor({"a serving", "b standby"});
  v1beta1::SyncResponse push;
  push.mutable_resync()->set_reason("lost count");
  ASSERT_TRUE(fakes_["b"]->Push(push));
  WaitFor({"a serving"});
  EXPECT_THAT(lost_, ElementsAre(fakes_["b"]->address()));
}

// A host that hangs with an open socket takes a few messages, which lie in buffers, and no more.
TEST_F(ReplacementTest, ChangesOfAnInstanceThatDoesNotReadStayInTheLog) {
  HostLimits limits;
  limits.unread = absl::Seconds(2);
  hosts_.SetLimits(limits);
  Comes("a", 2);
  WaitFor({"a serving"});
  Comes("b", 1);
  WaitFor({"a serving", "b standby"});
  Fault hangs;
  hangs.delay = absl::Hours(1);
  hangs.times = -1;
  fakes_["b"]->Inject<v1beta1::SyncRequest>(hangs);
  // Each change is larger than the buffers of a stream.
  int64_t sent = 0;
  int unread = 0;  // changes after the last message
  const auto change = [&] {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_name("n1");
    node->node.set_uid("uid-n1");
    node->node.mutable_allocatable()->set_pods(100);
    (*node->node.mutable_labels())["big"] =
        std::string(size_t{1} << 20, static_cast<char>('a' + ++pods_ % 26));
    scheduler_.events()->OnNodeUpsert(node, now_);
    now_ += absl::Milliseconds(100);
    RunOnce();
    loop_.Wait(SteadyNow() + absl::Milliseconds(1));
    unread = ViewOf("b").sent_version == sent ? unread + 1 : 0;
    sent = ViewOf("b").sent_version;
  };
  for (int i = 0; i < 300 && unread < 100; ++i) change();
  EXPECT_GE(unread, 100) << "the shim goes on queueing messages";
  const absl::Time limit = SteadyNow() + absl::Seconds(30);
  while (States().size() > 1 && SteadyNow() < limit) {
    RunOnce();
    loop_.Wait(SteadyNow() + absl::Milliseconds(5));
  }
  EXPECT_THAT(States(), ElementsAre("a serving"));
  EXPECT_THAT(lost_, ElementsAre(fakes_["b"]->address()));
  fakes_["b"]->ClearFaults();
}

TEST_F(ReplacementTest, AnInstanceThatNeverAcknowledgesItsSnapshotGetsANewSession) {
  HostLimits limits;
  limits.unacknowledged = absl::Milliseconds(200);
  hosts_.SetLimits(limits);
  Comes("a", 2);
  WaitFor({"a serving"});
  fakes_["b"] = FakeHost::Start(
      absl::StrCat("unix:", ::testing::TempDir(), "outboard-replace-", getpid(), "-b"), "b");
  fakes_["b"]->StopAcknowledging();
  Answers("b", 3);
  WaitFor({"a serving", "b syncing"});
  WaitFor({"a serving"});
  EXPECT_THAT(lost_, ElementsAre(fakes_["b"]->address()));
}

}  // namespace
}  // namespace outboard::hosts::replacement_test
