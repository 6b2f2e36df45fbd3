// Effects that Reserve returns, and PreBind.
#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/short_names.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/framework/testing/volumes.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::scheduler::scheduler_pre_bind_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kProfile[] = "outboard";
constexpr char kHost[] = "default";

// Records the orders.
class RecordedActions final : public ClusterActions {
 public:
  void Bind(const BindOrder& order, absl::Time) override { binds.push_back(order); }
  void Write(const EffectOrder& order, absl::Time) override { writes.push_back(order); }
  void Evict(const EvictOrder& order, absl::Time) override {
    ADD_FAILURE() << "evicts " << order.victim->key();
  }
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string& message,
                    absl::Time) override {
    failures.push_back(message);
  }
  void PatchStatus(const kube::PodObject&, const std::optional<PodScheduledFalse>&,
                   const std::optional<std::string>& nominated, absl::Time) override {
    if (nominated) nominations.push_back(*nominated);
  }

  std::vector<BindOrder> binds;
  std::vector<EffectOrder> writes;
  std::vector<std::string> failures;
  std::vector<std::string> nominations;
};

class ErrorCounter final : public Observer {
 public:
  void OnProtocolError(const std::string&, const std::string&, const absl::Status&) override {
    ++errors;
  }
  int errors = 0;
};

constexpr char kWidgets[] = "widgets.v1.example.com";

class PreBindTest : public ::testing::Test {
 protected:
  PreBindTest()
      : scheduler_(Options(), queue::QueueOptions(), &effects_, &observer_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.host_names = {kHost};
    plan.reserve = {{kHost, {{"VolumeBinding", {"spec.volumes[*].persistentVolumeClaim"}}}}};
    plan.pre_bind_plugins = {"VolumeBinding"};
    plan.guard.resources = false;
    scheduler_.SetPlan(plan);
    scheduler_.SetHost(kHost, &host_, scheduler_.cluster()->AddHost({}), now_);
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid("n1");
    node->node.set_name("n1");
    node->node.mutable_allocatable()->set_pods(10);
    node->resource_version = "1";
    scheduler_.events()->OnNodeUpsert(node, now_);
    scheduler_.events()->OnObjectUpsert(framework::testing::DelayedClass(), now_);
    for (const char* claim : {"data", "more", "another"}) {
      scheduler_.events()->OnObjectUpsert(framework::testing::WaitingClaim("ns", claim, "u", "5"),
                                          now_);
    }
    host_.reserve = [this](const v1beta1::ReserveRequest&) { return reserved_; };
    host_.pre_bind = [this](const v1beta1::PreBindRequest& request) {
      questions_.push_back(request);
      return answer_;
    };
  }

  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.custom_resources = {
        {kWidgets,
         {v1beta1::DeclaredResource::VERB_CREATE, v1beta1::DeclaredResource::VERB_PATCH},
         {}}};
    return options;
  }
  v1beta1::DeclaredResource* UseKeeper(bool at_pre_bind = false) {
    v1beta1::DeclaredResource* resource = host_.AddPlugin("Keeper")->add_declared_resources();
    resource->set_resource(kWidgets);
    resource->add_verbs(v1beta1::DeclaredResource::VERB_CREATE);
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.host_names = {kHost};
    plan.host_of["Keeper"] = kHost;
    plan.reserve = {{kHost, {{"Keeper", {}}}}};
    if (at_pre_bind) plan.pre_bind_plugins = {"Keeper"};
    plan.object_writers = {kHost};
    plan.guard.resources = false;
    scheduler_.SetPlan(plan);
    scheduler_.SetHost(kHost, &host_, scheduler_.cluster()->AddHost({}), now_);
    return resource;
  }
  static v1beta1::Effect Widget(const std::string& name) {
    v1beta1::Effect effect;
    effect.set_key(name);
    effect.set_plugin("Keeper");
    v1beta1::PutObject* put = effect.mutable_put_object();
    put->set_resource(kWidgets);
    put->set_name(name);
    put->set_json("{}");
    return effect;
  }
  void Push(const v1beta1::Effect& effect, uint64_t push_id = 0) {
    v1beta1::SyncResponse& push = host_.pushes.emplace_back();
    *push.mutable_effect() = effect;
    push.set_push_id(push_id);
    scheduler_.Tick(now_);
  }
  // "ID OUTCOME" of the results that the host received since the last call.
  std::vector<std::string> TakeResults() {
    std::vector<std::string> results;
    for (const v1beta1::PushResult& result : std::exchange(host_.push_results, {})) {
      EXPECT_EQ(result.message().empty(), result.outcome() == v1beta1::PushResult::OUTCOME_APPLIED);
      results.push_back(absl::StrCat(result.push_id(), " ", ShortName(result.outcome())));
    }
    return results;
  }

  void AddPod(const std::string& source = "persistentVolumeClaim") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid("p");
    pod->pod.set_namespace_("ns");
    pod->pod.set_name("p");
    pod->pod.set_scheduler_name(kProfile);
    pod->pod.add_containers();
    v1beta1::Volume* volume = pod->pod.add_volumes();
    volume->set_name("v");
    volume->set_source(source);
    volume->set_claim_name("data");
    volume = pod->pod.add_volumes();
    volume->set_name("w");
    volume->set_source(source);
    volume->set_claim_name("more");
    pod->resource_version = "2";
    scheduler_.events()->OnPodUpsert(pod, now_);
  }
  v1beta1::Effect* AddEffect(const std::string& claim) {
    v1beta1::Effect* effect = reserved_.add_effects();
    effect->set_key(absl::StrCat("e", reserved_.effects_size()));
    effect->set_plugin("VolumeBinding");
    v1beta1::SelectNode* select = effect->mutable_select_node();
    select->set_namespace_("ns");
    select->set_name(claim);
    select->set_uid("u");
    select->set_resource_version("5");
    select->set_node_name("n1");
    return effect;
  }
  void EndWrite(size_t index, const absl::Status& status = absl::OkStatus()) {
    effects_.writes[index].ordered_by->OnEffectEnded(effects_.writes[index],
                                                     {status, absl::StrCat(index + 10)}, now_);
  }
  void Pass(absl::Duration duration) {
    now_ += duration;
    scheduler_.Tick(now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  RecordedActions effects_;
  ErrorCounter observer_;
  framework::ScriptedHost host_;
  Scheduler scheduler_;
  v1beta1::ReserveResponse reserved_;
  absl::StatusOr<v1beta1::PreBindResponse> answer_ = v1beta1::PreBindResponse();
  std::vector<v1beta1::PreBindRequest> questions_;
};

TEST_F(PreBindTest, BindsAtOnceWithoutEffects) {
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
  EXPECT_THAT(effects_.writes, IsEmpty());
  EXPECT_THAT(questions_, IsEmpty());
  EXPECT_THAT(effects_.nominations, IsEmpty());
}

TEST_F(PreBindTest, APodWithoutClaimsIsNotReserved) {
  bool reserved = false;
  host_.reserve = [&](const v1beta1::ReserveRequest&) {
    reserved = true;
    return v1beta1::ReserveResponse();
  };
  AddPod("emptyDir");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_FALSE(reserved);
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(PreBindTest, WritesInOrderThenAsksUntilTheAnswerIsYes) {
  AddEffect("data");
  AddEffect("more");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.nominations, ElementsAre("n1"));
  ASSERT_THAT(effects_.writes, SizeIs(1)) << "one after the other";
  EXPECT_EQ(effects_.writes[0].effect.key(), "e1");
  EndWrite(0);
  ASSERT_THAT(effects_.writes, SizeIs(2));
  EndWrite(1);
  EXPECT_THAT(questions_, IsEmpty()) << "not before a second has passed";
  Pass(absl::Milliseconds(250));
  EXPECT_EQ(scheduler_.NextWakeup(now_), now_ + absl::Milliseconds(750));
  answer_->set_wait(true);
  Pass(absl::Milliseconds(750));
  ASSERT_THAT(questions_, SizeIs(1));
  EXPECT_EQ(questions_[0].node_name(), "n1");
  EXPECT_EQ(questions_[0].effects_size(), 2);
  ASSERT_EQ(questions_[0].results_size(), 2);
  EXPECT_EQ(questions_[0].results(1).key(), "e2");
  EXPECT_EQ(questions_[0].results(1).resource_version(), "11");
  EXPECT_EQ(questions_[0].elapsed_micros(), 1'000'000);
  Pass(absl::Milliseconds(500));
  EXPECT_THAT(questions_, SizeIs(1));
  answer_->set_wait(false);
  Pass(absl::Milliseconds(500));
  EXPECT_THAT(questions_, SizeIs(2));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

// As of a host that is newer than the shim.
TEST_F(PreBindTest, AnEffectOfAnUnknownKindIsReportedAndThePodRetried) {
  AddEffect("data")->clear_action();
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.writes, IsEmpty());
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("p"));
  EXPECT_THAT(host_.unreserved, SizeIs(1));
  EXPECT_EQ(observer_.errors, 1);
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures,
              ElementsAre(HasSubstr("Reserve of VolumeBinding names effect \"e1\", of a kind that "
                                    "this shim does not know")));
  reserved_.Clear();
  Pass(absl::Seconds(1));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(PreBindTest, AnUnknownPushIsIgnoredAndLoggedOnce) {
  class Sink : public google::LogSink {
   public:
    Sink() { google::AddLogSink(this); }
    ~Sink() override { google::RemoveLogSink(this); }
    void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&,
              const char* message, size_t length) override {
      lines += absl::StrContains(absl::string_view(message, length), "does not know");
    }
    int lines = 0;
  } log;
  for (int i = 0; i < 3; ++i) {
    host_.pushes.emplace_back();
    scheduler_.Tick(now_);
  }
  EXPECT_EQ(log.lines, 1);
  EXPECT_EQ(observer_.errors, 0);
}

TEST_F(PreBindTest, APatchOfWhatAnEffectMadeNamesItsUid) {
  UseKeeper(/*at_pre_bind=*/true)->add_verbs(v1beta1::DeclaredResource::VERB_PATCH);
  *reserved_.add_effects() = Widget("w");
  v1beta1::Effect* patch = reserved_.add_effects();
  patch->set_key("patch");
  patch->set_plugin("Keeper");
  patch->mutable_patch_object()->set_resource(kWidgets);
  patch->mutable_patch_object()->set_name("w");
  patch->mutable_patch_object()->set_json("{}");
  patch->mutable_patch_object()->set_after("w");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(effects_.writes, SizeIs(1));
  ASSERT_NE(effects_.writes[0].pod, nullptr);
  effects_.writes[0].ordered_by->OnEffectEnded(effects_.writes[0],
                                               {absl::OkStatus(), "1", "made-uid"}, now_);
  ASSERT_THAT(effects_.writes, SizeIs(2));
  EXPECT_EQ(effects_.writes[1].effect.patch_object().uid(), "made-uid");
  // With volumes PreBind is asked after a second; here it is asked at once.
  EndWrite(1);
  scheduler_.Tick(now_);
  EXPECT_THAT(questions_, SizeIs(1));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(PreBindTest, TheEffectsStandInThePlacement) {
  AddEffect("data");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  // A host that starts now receives it with its snapshot.
  const auto cursor = scheduler_.cluster()->AddHost({});
  int told = 0;
  for (const auto& request : scheduler_.cluster()->TakeChanges(cursor, now_)) {
    for (const auto& change : request.changes()) told += change.pod_placement().effects_size();
  }
  EXPECT_EQ(told, 1);
  EndWrite(0, absl::AbortedError("conflict"));
  for (const auto& request : scheduler_.cluster()->TakeChanges(cursor, now_)) {
    for (const auto& change : request.changes()) {
      EXPECT_EQ(change.pod_placement().effects_size(), 0);
    }
  }
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("p"));
}

TEST_F(PreBindTest, AFailedWriteEndsTheAttempt) {
  AddEffect("data");
  AddEffect("more");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EndWrite(0, absl::AbortedError("the object has been modified"));
  EXPECT_THAT(effects_.writes, SizeIs(1));
  EXPECT_THAT(effects_.failures,
              ElementsAre("running PreBind plugin \"VolumeBinding\": the object has been "
                          "modified"));
  EXPECT_THAT(host_.unreserved, SizeIs(1));
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
  // It is tried again after its backoff.
  reserved_.clear_effects();
  Pass(absl::Seconds(20));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(PreBindTest, ARejectionEndsTheAttempt) {
  AddEffect("data");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EndWrite(0);
  answer_->mutable_rejection()->set_plugin("VolumeBinding");
  answer_->mutable_rejection()->set_code(v1beta1::CODE_ERROR);
  answer_->mutable_rejection()->add_reasons("binding volumes: context deadline exceeded");
  Pass(absl::Seconds(1));
  EXPECT_THAT(effects_.failures, ElementsAre("binding volumes: context deadline exceeded"));
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
}

TEST_F(PreBindTest, AnUnavailableHostIsCalledLater) {
  AddEffect("data");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EndWrite(0);
  host_.is_usable = false;
  Pass(absl::Seconds(1));
  EXPECT_THAT(questions_, IsEmpty());
  host_.is_usable = true;
  answer_ = absl::DeadlineExceededError("slow");
  Pass(absl::Seconds(1));
  EXPECT_THAT(effects_.failures, IsEmpty());
  answer_ = v1beta1::PreBindResponse();
  Pass(absl::Seconds(1));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(PreBindTest, FailuresOpenTheBreaker) {
  AddEffect("data");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EndWrite(0);
  answer_ = absl::DeadlineExceededError("slow");
  Pass(absl::Seconds(1));
  Pass(absl::Seconds(1));
  EXPECT_FALSE(scheduler_.IsHeldBack(kHost));
  Pass(absl::Seconds(1));
  EXPECT_TRUE(scheduler_.IsHeldBack(kHost));
  EXPECT_THAT(questions_, SizeIs(3));
  Pass(absl::Seconds(1));
  EXPECT_THAT(questions_, SizeIs(3)) << "it is not called";
  EXPECT_THAT(effects_.failures, IsEmpty());
  answer_ = v1beta1::PreBindResponse();
  scheduler_.OnProbeAnswered(kHost, now_);
  Pass(absl::Seconds(1));
  EXPECT_FALSE(scheduler_.IsHeldBack(kHost));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(PreBindTest, APodThatGoesIsNotBound) {
  AddEffect("data");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EndWrite(0);
  scheduler_.events()->OnPodDelete("p", now_);
  Pass(absl::Seconds(1));
  EXPECT_THAT(questions_, IsEmpty());
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_THAT(effects_.failures, IsEmpty());
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
}

// During a write, hosts keep counting its effect: also a host that starts at this moment.
TEST_F(PreBindTest, APodThatGoesDuringAWriteIsKeptUntilItHasEnded) {
  AddEffect("data");
  AddEffect("more");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  scheduler_.events()->OnPodDelete("p", now_);
  EXPECT_TRUE(scheduler_.cluster()->IsAssumed("p"));
  EXPECT_THAT(host_.unreserved, IsEmpty());
  EndWrite(0);
  Pass(absl::Seconds(1));
  EXPECT_THAT(effects_.writes, SizeIs(1));
  EXPECT_THAT(host_.unreserved, SizeIs(1));
  EXPECT_EQ(scheduler_.cluster()->pod_count(), 0u);
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
  EXPECT_THAT(effects_.failures, IsEmpty());
  EXPECT_THAT(effects_.binds, IsEmpty());
}

TEST_F(PreBindTest, APodThatGoesDuringAWriteThatFailsIsForgotten) {
  AddEffect("data");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  scheduler_.events()->OnPodDelete("p", now_);
  EndWrite(0, absl::AbortedError("the object has been modified"));
  EXPECT_THAT(host_.unreserved, SizeIs(1));
  EXPECT_EQ(scheduler_.cluster()->pod_count(), 0u);
  EXPECT_THAT(effects_.failures, IsEmpty());
}

TEST_F(PreBindTest, AWrittenObjectIsSentBeforeThePlaceIsReleased) {
  UseKeeper();
  cache::ChangeEncoder::Fields fields;
  fields.custom_resources = {kWidgets};
  scheduler_.SetHost(kHost, &host_, scheduler_.cluster()->AddHost(fields), now_);
  *reserved_.add_effects() = Widget("w");
  *reserved_.add_effects() = Widget("x");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EffectEnd end = {absl::OkStatus(), "7", "u"};
  auto written = std::make_shared<kube::ClusterObject>();
  written->object.mutable_generic_object()->set_resource(kWidgets);
  written->object.mutable_generic_object()->set_name("w");
  written->object_uid = "u";
  written->resource_version = "7";
  end.object = written;
  effects_.writes[0].ordered_by->OnEffectEnded(effects_.writes[0], end, now_);
  EXPECT_NE(scheduler_.cluster()->FindObject(kube::ReferenceTo(written->object)), nullptr);
  host_.changes.clear();
  bool told = false;
  host_.unreserve = [&](const v1beta1::UnreserveRequest& request) {
    for (const v1beta1::SyncRequest& sent : host_.changes) {
      told = told || (sent.version() <= request.header().min_version() &&
                      absl::StrContains(sent.ShortDebugString(), "generic_object"));
    }
    return v1beta1::UnreserveResponse();
  };
  EndWrite(1, absl::AbortedError("exists"));
  EXPECT_TRUE(told);
}

TEST_F(PreBindTest, RefusesToTouchWhatIsNotThePods) {
  AddEffect("another");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.writes, IsEmpty());
  EXPECT_THAT(effects_.binds, IsEmpty());
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures, SizeIs(1));
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("p"));
}

// The volume of another namespace's claim, which is Released, with its data.
TEST_F(PreBindTest, AnotherTenantsVolumeIsNotClaimed) {
  auto volume = framework::testing::FreeVolume("pv", "uid-pv", "7");
  v1beta1::PersistentVolume* const released = volume->object.mutable_persistent_volume();
  released->set_phase("Released");
  released->mutable_claim_ref()->set_namespace_("tenant");
  released->mutable_claim_ref()->set_name("secrets");
  released->mutable_claim_ref()->set_uid("uid-secrets");
  scheduler_.events()->OnObjectUpsert(volume, now_);
  v1beta1::Effect* const effect = reserved_.add_effects();
  effect->set_key("theft");
  effect->set_plugin("VolumeBinding");
  v1beta1::BindVolume* const bind = effect->mutable_bind_volume();
  bind->set_name("pv");
  bind->set_uid("uid-pv");
  bind->set_resource_version("7");
  bind->mutable_claim()->set_namespace_("ns");
  bind->mutable_claim()->set_name("data");
  bind->mutable_claim()->set_uid("u");
  bind->set_claim_resource_version("5");
  bind->set_bound_by_controller(true);
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.writes, IsEmpty());
  EXPECT_THAT(effects_.binds, IsEmpty());
  Pass(absl::Seconds(5));
  EXPECT_THAT(effects_.failures, ElementsAre(::testing::HasSubstr("reserved for claim tenant/")));
  EXPECT_EQ(observer_.errors, 1);
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("p"));
}

TEST_F(PreBindTest, AnObjectIsWrittenBeforeTheBindAndNothingElseDelaysIt) {
  UseKeeper();
  *reserved_.add_effects() = Widget("w1");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(effects_.writes, SizeIs(1));
  EXPECT_THAT(effects_.binds, IsEmpty());
  EndWrite(0);
  EXPECT_THAT(effects_.binds, SizeIs(1));
  EXPECT_THAT(questions_, IsEmpty());
}

TEST_F(PreBindTest, APodReleasesItsPlaceIfItsObjectExistsAlready) {
  UseKeeper();
  *reserved_.add_effects() = Widget("w1");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EndWrite(0, absl::AlreadyExistsError("widgets \"w1\" already exists"));
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_THAT(effects_.failures,
              ElementsAre(::testing::HasSubstr("widgets \"w1\" already exists")));
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("p"));
}

TEST_F(PreBindTest, AnObjectThatIsNotAllowedIsABadAnswer) {
  UseKeeper();
  *reserved_.add_effects() = Widget("w1");
  reserved_.mutable_effects(0)->mutable_put_object()->set_uid("u");
  reserved_.mutable_effects(0)->mutable_put_object()->set_resource_version("1");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.writes, IsEmpty());
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("p"));
}

TEST_F(PreBindTest, CarriesOutWhatAPluginWantsOfItsOwnAccordOnceAtATime) {
  UseKeeper();
  Push(Widget("w1"));
  Push(Widget("w1"));
  Push(Widget("w2"));
  ASSERT_THAT(effects_.writes, SizeIs(2)) << "the first is still under way";
  EXPECT_EQ(effects_.writes[0].attempt_id, 0u);
  EXPECT_EQ(effects_.writes[1].effect.put_object().name(), "w2");
  effects_.writes[0].ordered_by->OnEffectEnded(effects_.writes[0],
                                               {absl::AbortedError("conflict"), ""}, now_);
  Push(Widget("w1"));
  EXPECT_THAT(effects_.writes, SizeIs(3));
}

TEST_F(PreBindTest, OfItsOwnAccordAPluginMayOnlyWriteItsObjects) {
  UseKeeper();
  v1beta1::Effect effect = Widget("w1");
  effect.mutable_put_object()->set_resource("secrets.v1.example.com");
  Push(effect);
  effect = Widget("w1");
  effect.clear_key();
  Push(effect);
  effect = Widget("w1");
  effect.mutable_select_node()->set_node_name("n1");
  Push(effect);
  EXPECT_THAT(effects_.writes, IsEmpty());
}

TEST_F(PreBindTest, WhatAPluginCanDoWithoutIsRefusedWithoutHarmToItsHost) {
  v1beta1::DeclaredResource* resource = UseKeeper();
  resource->add_verbs(v1beta1::DeclaredResource::VERB_UPDATE_STATUS);
  v1beta1::Effect effect = Widget("w1");
  effect.mutable_put_object()->set_uid("u");
  effect.mutable_put_object()->set_resource_version("1");
  effect.mutable_put_object()->set_status(true);
  Push(effect);
  EXPECT_EQ(observer_.errors, 1);
  resource->set_optional(true);
  Push(effect);
  EXPECT_EQ(observer_.errors, 1);
  EXPECT_THAT(effects_.writes, IsEmpty());
}

TEST_F(PreBindTest, AHostThatMayLackObjectsWritesNothing) {
  UseKeeper();
  scheduler_.PauseBackgroundWrites(true);
  Push(Widget("w1"));
  EXPECT_THAT(effects_.writes, IsEmpty());
  // It has not acknowledged yet what was listed meanwhile.
  host_.acknowledged = scheduler_.cluster()->version() - 1;
  Push(Widget("w1"));
  scheduler_.PauseBackgroundWrites(false);
  Push(Widget("w1"));
  Push(Widget("w1"));
  EXPECT_THAT(effects_.writes, IsEmpty());
  host_.acknowledged = scheduler_.cluster()->version();
  Push(Widget("w1"));
  EXPECT_THAT(effects_.writes, IsEmpty()) << "it may be from before";
  Push(Widget("w1"));
  EXPECT_THAT(effects_.writes, SizeIs(1));
}

// The first call after a quiet time must not carry all that happened in it.
TEST_F(PreBindTest, AHostReceivesChangesWhileNoPodIsPlaced) {
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  const size_t before = host_.changes.size();
  scheduler_.events()->OnPodDelete("p", now_);
  EXPECT_EQ(scheduler_.NextWakeup(now_), now_ + absl::Milliseconds(250));
  Pass(absl::Milliseconds(250));
  ASSERT_THAT(host_.changes, SizeIs(before + 1));
  EXPECT_TRUE(host_.changes.back().changes(0).has_pod_remove());
  Pass(absl::Seconds(1));
  EXPECT_THAT(host_.changes, SizeIs(before + 1)) << "there is nothing to send";
}

TEST_F(PreBindTest, AHostThatHasNotReadYetReceivesNoFurtherChanges) {
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  const size_t before = host_.changes.size();
  host_.is_sending = true;
  scheduler_.events()->OnPodDelete("p", now_);
  Pass(absl::Seconds(1));
  EXPECT_THAT(host_.changes, SizeIs(before));
  host_.is_sending = false;
  scheduler_.Tick(now_);
  EXPECT_THAT(host_.changes, SizeIs(before + 1));
}

TEST_F(PreBindTest, AnObjectWriterReceivesBinds) {
  UseKeeper();
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_THAT(effects_.binds, SizeIs(1));
  auto bound = std::make_shared<kube::PodObject>(*effects_.binds[0].pod);
  bound->pod.set_node_name("n1");
  bound->resource_version = "3";
  effects_.binds[0].ordered_by->OnBindEnded(effects_.binds[0].attempt_id, BindEnd::kBound, "",
                                            now_);
  scheduler_.events()->OnPodUpsert(bound, now_);
  Pass(absl::Seconds(1));
  bool told = false;
  for (const v1beta1::Change& change : host_.changes.back().changes())
    told |= change.pod_placement().state() == v1beta1::PLACEMENT_STATE_BOUND;
  EXPECT_TRUE(told);
}

TEST_F(PreBindTest, ABackgroundWriteIsAnsweredOnceItHasEnded) {
  UseKeeper();
  uint64_t id = 0;
  for (const auto& [status, outcome] :
       {std::pair(absl::OkStatus(), "APPLIED"), std::pair(absl::AbortedError("409"), "CONFLICT"),
        std::pair(absl::AlreadyExistsError("409"), "CONFLICT"),
        std::pair(absl::NotFoundError("404"), "CONFLICT"),
        std::pair(absl::PermissionDeniedError("403"), "FORBIDDEN"),
        std::pair(absl::UnavailableError("503"), "FAILED")}) {
    Push(Widget("w"), ++id);
    EXPECT_THAT(TakeResults(), IsEmpty());
    Push(Widget("w"), ++id);
    EXPECT_THAT(TakeResults(), ElementsAre(absl::StrCat(id, " SUPERSEDED")));
    EndWrite(effects_.writes.size() - 1, status);
    EXPECT_LE(scheduler_.NextWakeup(now_), now_) << "the result is sent at once";
    const size_t messages = host_.changes.size();
    scheduler_.Tick(now_);
    EXPECT_THAT(TakeResults(), ElementsAre(absl::StrCat(id - 1, " ", outcome)));
    ASSERT_THAT(host_.changes, SizeIs(messages + 1));
    EXPECT_EQ(host_.changes.back().phase(), v1beta1::SyncRequest::PHASE_DELTA);
    EXPECT_THAT(host_.changes.back().changes(), IsEmpty());
  }
  EXPECT_EQ(host_.changes.back().version(), host_.changes[host_.changes.size() - 2].version());
  // A push without an id gets none.
  Push(Widget("w"));
  EndWrite(effects_.writes.size() - 1);
  scheduler_.Tick(now_);
  EXPECT_THAT(TakeResults(), IsEmpty());
}

TEST_F(PreBindTest, ABackgroundWriteThatIsNotTriedIsAnsweredAtOnce) {
  v1beta1::DeclaredResource* const resource = UseKeeper();
  scheduler_.PauseBackgroundWrites(true);
  Push(Widget("w"), 1);
  EXPECT_THAT(TakeResults(), ElementsAre("1 FAILED"));
  scheduler_.PauseBackgroundWrites(false);
  scheduler_.Tick(now_);
  EXPECT_EQ(observer_.errors, 0);
  v1beta1::Effect effect = Widget("w");
  effect.set_plugin("Stranger");
  Push(effect, 2);
  EXPECT_EQ(observer_.errors, 1);
  EXPECT_THAT(TakeResults(), ElementsAre("2 FORBIDDEN"));
  // The plugin can do without it, so this is not a fault.
  resource->add_verbs(v1beta1::DeclaredResource::VERB_DELETE);
  resource->set_optional(true);
  effect = Widget("w");
  effect.mutable_delete_object()->set_resource(kWidgets);
  effect.mutable_delete_object()->set_name("w");
  effect.mutable_delete_object()->set_uid("u");
  effect.mutable_delete_object()->set_resource_version("1");
  Push(effect, 3);
  EXPECT_EQ(observer_.errors, 1);
  EXPECT_THAT(TakeResults(), ElementsAre("3 FORBIDDEN"));
  EXPECT_THAT(effects_.writes, IsEmpty());
}

TEST_F(PreBindTest, AnInstanceGetsNoResultsOfItsPredecessor) {
  UseKeeper();
  Push(Widget("w"), 1);
  framework::ScriptedHost next;
  scheduler_.SetHost(kHost, &next, scheduler_.cluster()->AddHost({}), now_);
  EndWrite(0);
  scheduler_.Tick(now_);
  EXPECT_THAT(next.push_results, IsEmpty());
  EXPECT_THAT(host_.push_results, IsEmpty());
  scheduler_.SetHost(kHost, nullptr, 0, now_);
}

TEST_F(PreBindTest, NoMoreThanAShareOfThemIsUnderWay) {
  UseKeeper();
  for (int i = 0; i < 300; ++i) Push(Widget(absl::StrCat("w", i)));
  EXPECT_THAT(effects_.writes, SizeIs(256));
}

v1beta1::Effect* AddTo(v1beta1::ReserveResponse* answer, const std::string& key) {
  v1beta1::Effect* const effect = answer->add_effects();
  effect->set_key(key);
  effect->set_plugin("VolumeBinding");
  return effect;
}

v1beta1::RecordEvent Note() {
  v1beta1::RecordEvent event;
  event.set_type(v1beta1::RecordEvent::TYPE_NORMAL);
  event.set_reason("Held");
  event.set_action("Holding");
  event.set_note("n");
  return event;
}

TEST_F(PreBindTest, AnnotationsConditionsAndEventsComeBeforeTheBind) {
  v1beta1::Effect* const patch = AddTo(&reserved_, "patch");
  (*patch->mutable_patch_pod()->mutable_set_annotations())["example.com/a"] = "1";
  v1beta1::SetPodCondition* const condition =
      AddTo(&reserved_, "condition")->mutable_set_pod_condition();
  condition->set_type("example.com/Held");
  condition->set_status(v1beta1::CONDITION_STATUS_TRUE);
  condition->set_reason("Held");
  *AddTo(&reserved_, "event")->mutable_record_event() = Note();
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_THAT(effects_.writes, SizeIs(i + 1));
    EXPECT_EQ(effects_.writes[i].pod->uid(), "p");
    EXPECT_THAT(effects_.binds, IsEmpty());
    EndWrite(i);
  }
  Pass(absl::Seconds(1));
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(PreBindTest, AKeyOfKubernetesIsABadAnswerUnlessItIsAllowed) {
  v1beta1::Effect* const patch = AddTo(&reserved_, "patch");
  (*patch->mutable_patch_pod()->mutable_set_labels())["app.kubernetes.io/name"] = "x";
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.writes, IsEmpty());
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_EQ(observer_.errors, 1);
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("p"));
  SchedulerOptions options = Options();
  options.allowed_pod_keys = {"app.kubernetes.io/name"};
  scheduler_.SetOptions(options);
  Pass(absl::Seconds(20));
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.writes, SizeIs(1));
}

TEST_F(PreBindTest, AConditionOfKubernetesIsABadAnswer) {
  v1beta1::SetPodCondition* const condition =
      AddTo(&reserved_, "condition")->mutable_set_pod_condition();
  condition->set_type("Ready");
  condition->set_status(v1beta1::CONDITION_STATUS_TRUE);
  condition->set_reason("Held");
  AddPod();
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.writes, IsEmpty());
  EXPECT_EQ(observer_.errors, 1);
}

TEST_F(PreBindTest, InTheBackgroundEventsAreOnlyAboutDeclaredObjects) {
  UseKeeper();
  v1beta1::Effect effect = Widget("w");
  *effect.mutable_record_event() = Note();
  Push(effect);
  EXPECT_EQ(observer_.errors, 1) << "about no pod";
  v1beta1::RecordEvent& event = *effect.mutable_record_event();
  event.set_resource(kWidgets);
  event.set_name("w");
  event.set_uid("u");
  event.set_kind("Widget");
  event.clear_note();
  Push(effect);
  EXPECT_EQ(observer_.errors, 2) << "without a note";
  event.set_note("n");
  event.set_resource("gadgets.v1.example.com");
  Push(effect);
  EXPECT_EQ(observer_.errors, 3) << "not declared";
  EXPECT_THAT(effects_.writes, IsEmpty());
  event.set_resource(kWidgets);
  Push(effect, 7);
  ASSERT_THAT(effects_.writes, SizeIs(1));
  EXPECT_EQ(effects_.writes[0].profile, kProfile);
  EndWrite(0);
  scheduler_.OnProbeAnswered(kHost, now_);  // After three faults it was not called.
  scheduler_.Tick(now_);
  EXPECT_THAT(TakeResults(), ElementsAre("7 APPLIED"));
}

TEST_F(PreBindTest, InTheBackgroundNoPodIsChanged) {
  UseKeeper();
  v1beta1::Effect effect = Widget("w");
  (*effect.mutable_patch_pod()->mutable_set_labels())["l"] = "x";
  Push(effect);
  effect.mutable_set_pod_condition()->set_type("example.com/Held");
  Push(effect);
  EXPECT_EQ(observer_.errors, 2);
  EXPECT_THAT(effects_.writes, IsEmpty());
}

}  // namespace
}  // namespace outboard::scheduler::scheduler_pre_bind_test
