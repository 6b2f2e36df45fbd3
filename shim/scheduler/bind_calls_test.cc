// Bind and PostBind by plugins, and PreBind for pods without effects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::scheduler::bind_calls_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kProfile[] = "outboard";
constexpr char kHost[] = "default";
constexpr char kWidgets[] = "widgets.v1.example.com";

// Records the orders.
class RecordedActions final : public ClusterActions {
 public:
  void Bind(const BindOrder& order, absl::Time) override { binds.push_back(order); }
  void Write(const EffectOrder& order, absl::Time) override { writes.push_back(order); }
  void Evict(const EvictOrder&, absl::Time) override {}
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {
    ++scheduled;
  }
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
  int scheduled = 0;
};

class Counts final : public Observer {
 public:
  void OnProtocolError(const std::string&, const std::string&, const absl::Status&) override {
    ++errors;
  }
  void OnFailurePolicy(const std::string&, v1beta1::ExtensionPoint point,
                       absl::string_view) override {
    policies.push_back(point);
  }
  int errors = 0;
  std::vector<v1beta1::ExtensionPoint> policies;
};

v1beta1::BindResponse ShimBinds(const std::string& key = "", const std::string& value = "") {
  v1beta1::BindResponse response;
  response.mutable_shim_binds();
  if (!key.empty()) (*response.mutable_shim_binds()->mutable_annotations())[key] = value;
  return response;
}

v1beta1::BindResponse Bound() {
  v1beta1::BindResponse response;
  response.mutable_bound();
  return response;
}

v1beta1::BindResponse Rejects(const std::string& plugin, const std::string& reason) {
  v1beta1::BindResponse response;
  response.mutable_rejection()->set_plugin(plugin);
  response.mutable_rejection()->set_code(v1beta1::CODE_UNSCHEDULABLE);
  response.mutable_rejection()->add_reasons(reason);
  return response;
}

class BindCallsTest : public ::testing::Test {
 protected:
  BindCallsTest()
      : scheduler_(Options(), queue::QueueOptions(), &actions_, &counts_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    auto* const widgets = host_.AddPlugin("Keeper")->add_declared_resources();
    widgets->set_resource(kWidgets);
    widgets->add_verbs(v1beta1::DeclaredResource::VERB_CREATE);
    host_.pre_bind = [this](const v1beta1::PreBindRequest& request) {
      pre_bind_questions_.push_back(request);
      return pre_bind_answer_;
    };
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid("n1");
    node->node.set_name("n1");
    node->node.mutable_allocatable()->set_pods(10);
    node->resource_version = "1";
    plan_.algorithm.name = kProfile;
    plan_.host_names = {kHost};
    plan_.guard.resources = false;
    // Reserve, so that a failed attempt is seen to call Unreserve.
    plan_.reserve = {{kHost, {{"Keeper", {}}}}};
    scheduler_.SetHost(kHost, &host_, scheduler_.cluster()->AddHost({}), now_);
    scheduler_.events()->OnNodeUpsert(node, now_);
  }

  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.custom_resources = {{kWidgets, {v1beta1::DeclaredResource::VERB_CREATE}, {}}};
    return options;
  }
  static framework::HostExtensionPoint Asks(const std::string& plugin,
                                            std::vector<framework::PodField> fields = {}) {
    framework::HostExtensionPoint point;
    point.host_name = kHost;
    point.plugins.push_back({plugin, std::move(fields)});
    return point;
  }
  void SchedulePod() {
    scheduler_.SetPlan(plan_);
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid("p");
    pod->pod.set_namespace_("ns");
    pod->pod.set_name("p");
    pod->pod.set_scheduler_name(kProfile);
    pod->pod.add_containers();
    (*pod->pod.mutable_labels())["queue"] = "a";
    pod->resource_version = "2";
    scheduler_.events()->OnPodUpsert(pod, now_);
    ASSERT_TRUE(scheduler_.ScheduleOne(now_));
    scheduler_.Tick(now_);
  }
  void EndBind(BindEnd end, const std::string& message = "") {
    ASSERT_THAT(actions_.binds, SizeIs(1));
    actions_.binds[0].ordered_by->OnBindEnded(actions_.binds[0].attempt_id, end, message, now_);
  }
  std::vector<std::string> PluginsAsked() const {
    std::vector<std::string> plugins;
    for (const v1beta1::BindRequest& request : host_.bind_questions)
      plugins.push_back(request.plugin());
    return plugins;
  }
  void ExpectPlaceReleased() {
    EXPECT_FALSE(scheduler_.cluster()->IsAssumed("p"));
    EXPECT_THAT(host_.unreserved, SizeIs(1));
    EXPECT_THAT(host_.post_binds, IsEmpty());
    EXPECT_EQ(actions_.scheduled, 0);
  }
  v1beta1::Effect* AddWidget(const std::string& name) {
    v1beta1::Effect* effect = pre_bind_answer_->add_effects();
    effect->set_key(name);
    effect->set_plugin("Keeper");
    effect->mutable_put_object()->set_resource(kWidgets);
    effect->mutable_put_object()->set_name(name);
    effect->mutable_put_object()->set_json("{}");
    return effect;
  }
  void EndWrite(size_t index) {
    ASSERT_GT(actions_.writes.size(), index);
    const EffectOrder order = actions_.writes[index];
    order.ordered_by->OnEffectEnded(order, {absl::OkStatus(), "1", "uid"}, now_);
    scheduler_.Tick(now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  RecordedActions actions_;
  Counts counts_;
  framework::ScriptedHost host_;
  Scheduler scheduler_;
  framework::ProfilePlan plan_;
  absl::StatusOr<v1beta1::PreBindResponse> pre_bind_answer_ = v1beta1::PreBindResponse();
  std::vector<v1beta1::PreBindRequest> pre_bind_questions_;
};

TEST_F(BindCallsTest, WithoutPluginsTheShimBindsWithoutACall) {
  SchedulePod();
  EXPECT_THAT(host_.bind_questions, IsEmpty());
  ASSERT_THAT(actions_.binds, SizeIs(1));
  EXPECT_FALSE(actions_.binds[0].bound_by_plugin);
  EndBind(BindEnd::kBound);
  EXPECT_THAT(host_.post_binds, IsEmpty());
  EXPECT_THAT(pre_bind_questions_, IsEmpty());
  EXPECT_EQ(actions_.scheduled, 1);
}

TEST_F(BindCallsTest, IfAllSkipTheShimBindsInDefaultBindersPlace) {
  plan_.bind = {Asks("First"), Asks("Second")};
  SchedulePod();
  EXPECT_THAT(PluginsAsked(), ElementsAre("First", "Second"));
  EXPECT_EQ(host_.bind_questions[0].node_name(), "n1");
  EXPECT_EQ(host_.bind_questions[0].pod_uid(), "p");
  ASSERT_THAT(actions_.binds, SizeIs(1));
  EndBind(BindEnd::kNotBound, "refused");
  EXPECT_THAT(actions_.failures,
              ElementsAre("binding rejected: running Bind plugin \"DefaultBinder\": refused"));
}

TEST_F(BindCallsTest, IfAllSkipWithoutDefaultBinderTheBindFails) {
  plan_.bind = {Asks("First")};
  plan_.shim_binds = false;
  SchedulePod();
  EXPECT_THAT(actions_.binds, IsEmpty());
  EXPECT_THAT(actions_.failures,
              ElementsAre("binding rejected: every Bind plugin of the profile skipped the pod"));
  ExpectPlaceReleased();
}

TEST_F(BindCallsTest, TheFirstThatDoesNotSkipDecides) {
  plan_.bind = {Asks("First"), Asks("Second"), Asks("Third")};
  host_.bind = [](const v1beta1::BindRequest& request) {
    v1beta1::BindResponse skips;
    skips.mutable_skip();
    return request.plugin() == "First" ? skips : ShimBinds("example.com/rank", "3");
  };
  SchedulePod();
  EXPECT_THAT(PluginsAsked(), ElementsAre("First", "Second"));
  ASSERT_THAT(actions_.binds, SizeIs(1));
  EXPECT_FALSE(actions_.binds[0].bound_by_plugin);
  EXPECT_EQ(actions_.binds[0].annotations.at("example.com/rank"), "3");
  EndBind(BindEnd::kNotBound, "refused");
  EXPECT_THAT(actions_.failures,
              ElementsAre("binding rejected: running Bind plugin \"Second\": refused"));
}

TEST_F(BindCallsTest, APluginIsNotAskedAboutPodsOutsideOfItsInterest) {
  plan_.bind = {Asks("First", {"metadata.labels['rank']"}),
                Asks("Second", {"metadata.labels['queue']"})};
  SchedulePod();
  EXPECT_THAT(PluginsAsked(), ElementsAre("Second"));
}

TEST_F(BindCallsTest, WhatAPluginSaysThatItBoundIsRead) {
  plan_.bind = {Asks("First")};
  host_.bind = [](const v1beta1::BindRequest&) { return Bound(); };
  SchedulePod();
  ASSERT_THAT(actions_.binds, SizeIs(1));
  EXPECT_TRUE(actions_.binds[0].bound_by_plugin);
  EXPECT_EQ(actions_.scheduled, 0) << "not before the API server has confirmed it";
  EndBind(BindEnd::kBound);
  EXPECT_EQ(actions_.scheduled, 1);
  EXPECT_EQ(counts_.errors, 0);
  EXPECT_THAT(host_.unreserved, IsEmpty());
}

TEST_F(BindCallsTest, ABindThatDidNotHappenIsAProtocolErrorAndFails) {
  plan_.bind = {Asks("First")};
  host_.bind = [](const v1beta1::BindRequest&) { return Bound(); };
  SchedulePod();
  EndBind(BindEnd::kNotBound);
  EXPECT_EQ(counts_.errors, 1);
  EXPECT_THAT(actions_.failures,
              ElementsAre("binding rejected: running Bind plugin \"First\": the plugin answered "
                          "that it bound the pod, but the pod is not on node n1"));
  ExpectPlaceReleased();
}

TEST_F(BindCallsTest, ABindToAnotherNodeIsAProtocolErrorAndFails) {
  plan_.bind = {Asks("First")};
  host_.bind = [](const v1beta1::BindRequest&) { return Bound(); };
  SchedulePod();
  EndBind(BindEnd::kNotBound, "pod p is already assigned to node \"n2\"");
  EXPECT_EQ(counts_.errors, 1);
  EXPECT_THAT(actions_.failures, ElementsAre(HasSubstr("is already assigned to node \"n2\"")));
  ExpectPlaceReleased();
}

TEST_F(BindCallsTest, ARejectionReleasesThePlaceAndThePodIsRetriedAfterABackoff) {
  plan_.bind = {Asks("First")};
  host_.bind = [](const v1beta1::BindRequest&) { return Rejects("First", "no tunnel"); };
  SchedulePod();
  EXPECT_THAT(actions_.binds, IsEmpty());
  EXPECT_THAT(actions_.failures,
              ElementsAre("binding rejected: running Bind plugin \"First\": no tunnel"));
  ExpectPlaceReleased();
  host_.bind = nullptr;
  now_ += absl::Seconds(2);
  scheduler_.Tick(now_);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_)) << "no event was needed";
  EXPECT_THAT(actions_.binds, SizeIs(1));
}

TEST_F(BindCallsTest, WithoutAnAnswerOnlyTheApiServerKnows) {
  plan_.bind = {Asks("First"), Asks("Second")};
  host_.bind = [](const v1beta1::BindRequest&) { return absl::UnavailableError("lost"); };
  SchedulePod();
  EXPECT_THAT(PluginsAsked(), ElementsAre("First")) << "the next one might bind elsewhere";
  ASSERT_THAT(actions_.binds, SizeIs(1));
  EXPECT_TRUE(actions_.binds[0].bound_by_plugin);
  EndBind(BindEnd::kBound);
  EXPECT_EQ(actions_.scheduled, 1);
}

TEST_F(BindCallsTest, WithoutAnAnswerAndWithoutABindThePodIsRetried) {
  plan_.bind = {Asks("First")};
  host_.bind = [](const v1beta1::BindRequest&) { return absl::UnavailableError("lost"); };
  SchedulePod();
  EndBind(BindEnd::kNotBound);
  EXPECT_EQ(counts_.errors, 0) << "the host did not lie";
  EXPECT_THAT(actions_.failures, ElementsAre("binding rejected: running Bind plugin \"First\": "
                                             "host \"default\" did not answer: lost"));
  ExpectPlaceReleased();
}

TEST_F(BindCallsTest, AHostWithoutTheServiceLeavesTheBindToTheShim) {
  plan_.bind = {Asks("First")};
  plan_.shim_binds = false;
  host_.bind = [](const v1beta1::BindRequest&) { return absl::UnimplementedError("no Bind"); };
  SchedulePod();
  ASSERT_THAT(actions_.binds, SizeIs(1));
  EXPECT_FALSE(actions_.binds[0].bound_by_plugin);
}

TEST_F(BindCallsTest, AnAnswerWithoutOutcomeIsAProtocolError) {
  plan_.bind = {Asks("First")};
  host_.bind = [](const v1beta1::BindRequest&) { return v1beta1::BindResponse(); };
  SchedulePod();
  EXPECT_EQ(counts_.errors, 1);
  ASSERT_THAT(actions_.binds, SizeIs(1));
  EXPECT_TRUE(actions_.binds[0].bound_by_plugin) << "it may have bound the pod all the same";
}

TEST_F(BindCallsTest, AnnotationsOfAnInvalidKeyAreAProtocolError) {
  plan_.bind = {Asks("First")};
  host_.bind = [](const v1beta1::BindRequest&) { return ShimBinds("not a key", "x"); };
  SchedulePod();
  EXPECT_EQ(counts_.errors, 1);
}

TEST_F(BindCallsTest, AnAnnotationOfKubernetesIsAProtocolErrorUnlessItIsAllowed) {
  plan_.bind = {Asks("First")};
  const std::string key = "cluster-autoscaler.kubernetes.io/safe-to-evict";
  host_.bind = [&](const v1beta1::BindRequest&) { return ShimBinds(key, "false"); };
  SchedulerOptions options = Options();
  options.allowed_pod_keys = {"app.kubernetes.io/name"};
  scheduler_.SetOptions(options);
  SchedulePod();
  EXPECT_EQ(counts_.errors, 1);
  ASSERT_THAT(actions_.binds, SizeIs(1));
  EXPECT_TRUE(actions_.binds[0].bound_by_plugin) << "no Binding is sent, the pod is only read";
  EXPECT_THAT(actions_.binds[0].annotations, IsEmpty());
}

TEST_F(BindCallsTest, AnAllowedAnnotationOfKubernetesIsSet) {
  plan_.bind = {Asks("First")};
  const std::string key = "cluster-autoscaler.kubernetes.io/safe-to-evict";
  host_.bind = [&](const v1beta1::BindRequest&) { return ShimBinds(key, "false"); };
  SchedulerOptions options = Options();
  options.allowed_pod_keys = {key};
  scheduler_.SetOptions(options);
  SchedulePod();
  EXPECT_EQ(counts_.errors, 0);
  ASSERT_THAT(actions_.binds, SizeIs(1));
  EXPECT_EQ(actions_.binds[0].annotations.at(key), "false");
}

TEST_F(BindCallsTest, PostBindIsSentOnceAfterTheBindIsConfirmed) {
  plan_.post_bind = {Asks("Listener")};
  SchedulePod();
  EXPECT_THAT(host_.post_binds, IsEmpty());
  EndBind(BindEnd::kBound);
  scheduler_.Tick(now_ + absl::Seconds(5));
  ASSERT_THAT(host_.post_binds, SizeIs(1));
  EXPECT_EQ(host_.post_binds[0].pod_uid(), "p");
  EXPECT_EQ(host_.post_binds[0].node_name(), "n1");
  EXPECT_NE(host_.post_binds[0].header().attempt_id(), 0u);
}

// A plugin's store compares it with that of other leaders.
TEST_F(BindCallsTest, CallsFromReserveOnCarryTheEpochOfTheLeader) {
  int64_t epoch = 7;
  scheduler_.SetLeaderEpoch([&] { return epoch; });
  std::vector<int64_t> reserved;
  host_.reserve = [&](const v1beta1::ReserveRequest& request) {
    reserved.push_back(request.header().leader_epoch());
    return v1beta1::ReserveResponse();
  };
  plan_.pre_bind = {Asks("Keeper")};
  plan_.pre_bind_plugins = {"Keeper"};
  plan_.bind = {Asks("First")};
  plan_.post_bind = {Asks("Listener")};
  host_.bind = [&](const v1beta1::BindRequest&) {
    epoch = 8;  // read for each call
    return ShimBinds();
  };
  SchedulePod();
  EXPECT_THAT(reserved, ElementsAre(7));
  ASSERT_THAT(pre_bind_questions_, SizeIs(1));
  EXPECT_EQ(pre_bind_questions_[0].header().leader_epoch(), 7);
  ASSERT_THAT(host_.bind_questions, SizeIs(1));
  EXPECT_EQ(host_.bind_questions[0].header().leader_epoch(), 7);
  EndBind(BindEnd::kBound);
  ASSERT_THAT(host_.post_binds, SizeIs(1));
  EXPECT_EQ(host_.post_binds[0].header().leader_epoch(), 8);
}

TEST_F(BindCallsTest, APostBindThatCannotBeSentIsDropped) {
  plan_.post_bind = {Asks("Listener")};
  host_.takes_post_bind = false;
  SchedulePod();
  EndBind(BindEnd::kBound);
  EXPECT_EQ(actions_.scheduled, 1);
  EXPECT_THAT(counts_.policies, ElementsAre(v1beta1::EXTENSION_POINT_POST_BIND));
}

TEST_F(BindCallsTest, PreBindIsAskedWithoutEffectsIfAPluginWants) {
  plan_.pre_bind = {Asks("Keeper")};
  plan_.pre_bind_plugins = {"Keeper"};
  pre_bind_answer_->set_wait(true);
  SchedulePod();
  EXPECT_THAT(actions_.nominations, ElementsAre("n1"));
  ASSERT_THAT(pre_bind_questions_, SizeIs(1));
  EXPECT_EQ(pre_bind_questions_[0].effects_size(), 0);
  EXPECT_THAT(actions_.binds, IsEmpty());
  pre_bind_answer_->set_wait(false);
  now_ += absl::Seconds(1);
  scheduler_.Tick(now_);
  ASSERT_THAT(pre_bind_questions_, SizeIs(2));
  EXPECT_EQ(pre_bind_questions_[1].elapsed_micros(), 1'000'000);
  EXPECT_THAT(actions_.binds, SizeIs(1));
}

TEST_F(BindCallsTest, PreBindIsNotAskedAboutPodsOutsideOfItsInterest) {
  plan_.pre_bind = {Asks("Keeper", {"metadata.labels['rank']"})};
  plan_.pre_bind_plugins = {"Keeper"};
  SchedulePod();
  EXPECT_THAT(pre_bind_questions_, IsEmpty());
  EXPECT_THAT(actions_.nominations, IsEmpty());
  EXPECT_THAT(actions_.binds, SizeIs(1));
}

TEST_F(BindCallsTest, EffectsOfPreBindAreCarriedOutAndItIsAskedAgain) {
  plan_.pre_bind = {Asks("Keeper")};
  plan_.pre_bind_plugins = {"Keeper"};
  AddWidget("w");
  SchedulePod();
  ASSERT_THAT(actions_.writes, SizeIs(1));
  EXPECT_EQ(actions_.writes[0].effect.key(), "w");
  pre_bind_answer_->clear_effects();
  EndWrite(0);
  ASSERT_THAT(pre_bind_questions_, SizeIs(2));
  ASSERT_EQ(pre_bind_questions_[1].effects_size(), 1);
  EXPECT_EQ(pre_bind_questions_[1].results(0).uid(), "uid");
  EXPECT_THAT(actions_.binds, SizeIs(1));
}

TEST_F(BindCallsTest, AnEffectOfPreBindWithAKnownKeyIsAProtocolError) {
  plan_.pre_bind = {Asks("Keeper")};
  plan_.pre_bind_plugins = {"Keeper"};
  AddWidget("w");
  SchedulePod();
  EndWrite(0);
  EXPECT_THAT(pre_bind_questions_, SizeIs(2));
  EXPECT_EQ(counts_.errors, 1);
  EXPECT_THAT(actions_.writes, SizeIs(1));
  EXPECT_THAT(actions_.failures,
              ElementsAre(HasSubstr("host \"default\" gave an invalid answer to PreBind: ")));
  ExpectPlaceReleased();
}

TEST_F(BindCallsTest, EffectsOfPreBindNeedThePermissionsThatThoseOfReserveNeed) {
  plan_.pre_bind = {Asks("Keeper")};
  plan_.pre_bind_plugins = {"Keeper"};
  v1beta1::Effect* effect = pre_bind_answer_->add_effects();
  effect->set_key("label");
  effect->set_plugin("Keeper");
  (*effect->mutable_patch_pod()->mutable_set_labels())["app.kubernetes.io/name"] = "x";
  SchedulePod();
  EXPECT_EQ(counts_.errors, 1);
  EXPECT_THAT(actions_.writes, IsEmpty());
  EXPECT_THAT(actions_.failures,
              ElementsAre(HasSubstr("key app.kubernetes.io/name belongs to Kubernetes")));
  ExpectPlaceReleased();
}

TEST_F(BindCallsTest, TheRoundsOfPreBindAreBounded) {
  plan_.pre_bind = {Asks("Keeper")};
  plan_.pre_bind_plugins = {"Keeper"};
  AddWidget("w0");
  SchedulePod();
  for (size_t round = 0; round < 8; ++round) {
    pre_bind_answer_->clear_effects();
    AddWidget(absl::StrCat("w", round + 1));
    EndWrite(round);
  }
  EXPECT_THAT(actions_.writes, SizeIs(8));
  EXPECT_EQ(counts_.errors, 1);
  EXPECT_THAT(actions_.failures,
              ElementsAre("running PreBind plugin \"Keeper\": names further effects in more than 8 "
                          "answers"));
  ExpectPlaceReleased();
}

TEST_F(BindCallsTest, APodDeletedWhilePreBindWaitsIsForgotten) {
  plan_.pre_bind = {Asks("Keeper")};
  plan_.pre_bind_plugins = {"Keeper"};
  pre_bind_answer_->set_wait(true);
  SchedulePod();
  scheduler_.events()->OnPodDelete("p", now_);
  now_ += absl::Seconds(1);
  scheduler_.Tick(now_);
  EXPECT_THAT(actions_.binds, IsEmpty());
  EXPECT_THAT(actions_.failures, IsEmpty());
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("p"));
}

}  // namespace
}  // namespace outboard::scheduler::bind_calls_test
