#include "shim/framework/answer_check.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "shim/framework/profile_plan.h"

namespace outboard::framework {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1beta1::FilterResponse ThreeNodesSecondRejected() {
  v1beta1::FilterResponse response;
  response.set_processed(3);
  response.set_feasible(std::string("\x05", 1));
  response.add_rejected(0);
  v1beta1::PluginStatus* status = response.add_reasons();
  status->set_plugin("NodeName");
  status->set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  status->add_reasons("no");
  return response;
}

std::string FilterFault(const v1beta1::FilterResponse& response, uint32_t nodes = 3,
                        uint32_t find = 3) {
  std::vector<uint32_t> feasible;
  return std::string(CheckFilter(response, nodes, find, &feasible).message());
}

TEST(CheckFilter, TakesAGoodAnswer) {
  std::vector<uint32_t> feasible;
  ASSERT_TRUE(CheckFilter(ThreeNodesSecondRejected(), 3, 3, &feasible).ok());
  EXPECT_THAT(feasible, ElementsAre(0, 2));
}

TEST(CheckFilter, TakesAnAnswerThatStoppedAtTheSample) {
  std::vector<uint32_t> feasible;
  EXPECT_TRUE(CheckFilter(ThreeNodesSecondRejected(), 50, 2, &feasible).ok());
}

TEST(ExpandVerdicts, GivesTheSameAnswerAsBitmaps) {
  v1beta1::FilterResponse simple;
  const v1beta1::FilterResponse bitmaps = ThreeNodesSecondRejected();
  *simple.mutable_reasons() = bitmaps.reasons();
  for (const uint32_t verdict : {0, 1, 0}) simple.add_verdicts(verdict);
  ASSERT_EQ(ExpandVerdicts(&simple), absl::OkStatus());
  EXPECT_EQ(simple.SerializeAsString(), bitmaps.SerializeAsString());
}

TEST(ExpandVerdicts, RefusesTwoFormsAndUnknownReasons) {
  v1beta1::FilterResponse both = ThreeNodesSecondRejected();
  both.add_verdicts(0);
  EXPECT_EQ(ExpandVerdicts(&both).message(), "Filter has verdicts in two forms");
  // In a Cycle answer, which is not expanded.
  EXPECT_EQ(FilterFault(both), "Filter's verdicts in a Cycle answer");
  v1beta1::FilterResponse unknown;
  unknown.add_verdicts(1);
  ASSERT_EQ(ExpandVerdicts(&unknown), absl::OkStatus());
  EXPECT_EQ(FilterFault(unknown, 1, 1), "Filter refers to reason 0 of 0");
}

TEST(CheckFilter, RefusesEachKindOfNonsense) {
  EXPECT_THAT(FilterFault(ThreeNodesSecondRejected(), 2), HasSubstr("evaluated 3 of 2"));
  EXPECT_THAT(FilterFault(ThreeNodesSecondRejected(), 50, 3), HasSubstr("stopped after 3 of 50"));
  EXPECT_THAT(FilterFault(ThreeNodesSecondRejected(), 3, 1), HasSubstr("found 2 nodes where 1"));

  auto long_bitmap = ThreeNodesSecondRejected();
  long_bitmap.set_feasible(std::string("\x05\x00", 2));
  EXPECT_THAT(FilterFault(long_bitmap), HasSubstr("bitmap has 2 bytes"));

  auto stray_bit = ThreeNodesSecondRejected();
  stray_bit.set_feasible(std::string("\x0d", 1));
  EXPECT_THAT(FilterFault(stray_bit), HasSubstr("beyond its nodes"));

  auto missing_reason = ThreeNodesSecondRejected();
  missing_reason.clear_rejected();
  EXPECT_THAT(FilterFault(missing_reason), HasSubstr("0 reasons for 1 rejected"));

  auto wild_index = ThreeNodesSecondRejected();
  wild_index.set_rejected(0, 7);
  EXPECT_THAT(FilterFault(wild_index), HasSubstr("reason 7 of 1"));
  wild_index.set_rejected(0, 1);  // The first one beyond.
  EXPECT_THAT(FilterFault(wild_index), HasSubstr("reason 1 of 1"));

  const auto bitmap = [](const std::string& bits) {
    auto response = ThreeNodesSecondRejected();
    response.clear_rejected();
    response.add_rejected_for(bits);
    return response;
  };
  EXPECT_EQ(FilterFault(bitmap("\x02")), "");
  EXPECT_THAT(FilterFault(bitmap("")), HasSubstr("bitmap of rejected nodes has 0 bytes"));
  EXPECT_THAT(FilterFault(bitmap(std::string(2, '\2'))), HasSubstr("has 2 bytes for 3 nodes"));
  EXPECT_THAT(FilterFault(bitmap("\x03")), HasSubstr("two verdicts on a node"));
  EXPECT_THAT(FilterFault(bitmap("\x0a")), HasSubstr("beyond its nodes"));
  EXPECT_THAT(FilterFault(bitmap(std::string(1, '\0'))), HasSubstr("0 reasons for 1 rejected"));
  auto two_forms = bitmap("\x02");
  two_forms.add_rejected(0);
  EXPECT_THAT(FilterFault(two_forms), HasSubstr("2 reasons for 1 rejected"));
  auto no_reason = bitmap("\x02");
  no_reason.add_rejected_for(std::string(1, '\0'));
  EXPECT_THAT(FilterFault(no_reason), HasSubstr("node bitmaps for 2 reasons, and 1 reasons"));

  auto success = ThreeNodesSecondRejected();
  success.mutable_reasons(0)->set_code(v1beta1::CODE_SUCCESS);
  EXPECT_THAT(FilterFault(success), HasSubstr("rejects with code SUCCESS"));

  auto nameless = ThreeNodesSecondRejected();
  nameless.mutable_reasons(0)->clear_plugin();
  EXPECT_THAT(FilterFault(nameless), HasSubstr("names no plugin"));

  auto wordy = ThreeNodesSecondRejected();
  wordy.mutable_reasons(0)->set_reasons(0, std::string(2000, 'x'));
  EXPECT_THAT(FilterFault(wordy), HasSubstr("reason of 2000 bytes"));
}

TEST(CheckScores, SumsWithWeights) {
  v1beta1::ScoreResponse response;
  for (const char* name : {"A", "B"}) {
    v1beta1::PluginScores* scores = response.add_plugins();
    scores->set_plugin(name);
    scores->set_scores(std::string("\x0a\x64", 2));
  }
  std::vector<int64_t> totals;
  ASSERT_TRUE(CheckScores(response, 2, {{"A", 1}, {"Skipped", 9}, {"B", 3}}, &totals).ok());
  EXPECT_THAT(totals, ElementsAre(40, 400));
}

TEST(CheckScores, SumsOfManyNodesWhateverTheWeight) {
  for (const int64_t weight : {int64_t{1}, int64_t{32767}, int64_t{32768}, int64_t{1} << 31}) {
    for (const uint32_t nodes : {1u, 511u, 512u, 513u, 1500u}) {
      v1beta1::ScoreResponse response;
      std::vector<int64_t> wanted(nodes);
      for (const char* name : {"A", "B"}) {
        v1beta1::PluginScores* scores = response.add_plugins();
        scores->set_plugin(name);
        for (uint32_t i = 0; i < nodes; ++i) {
          const auto score = static_cast<uint8_t>((i * 7 + scores->plugin()[0]) % 101);
          scores->mutable_scores()->push_back(static_cast<char>(score));
          wanted[i] += (scores->plugin() == "A" ? weight : 100) * score;
        }
      }
      std::vector<int64_t> totals;
      ASSERT_TRUE(CheckScores(response, nodes, {{"A", weight}, {"B", 100}}, &totals).ok());
      EXPECT_EQ(totals, wanted) << "weight " << weight << ", nodes " << nodes;
    }
  }
}

TEST(CheckScores, RefusesEachKindOfNonsense) {
  std::vector<int64_t> totals;
  v1beta1::ScoreResponse response;
  v1beta1::PluginScores* scores = response.add_plugins();
  scores->set_plugin("A");
  scores->set_scores(std::string("\x65", 1));
  EXPECT_THAT(std::string(CheckScores(response, 1, {{"A", 1}}, &totals).message()),
              HasSubstr("score of 101"));
  EXPECT_THAT(std::string(CheckScores(response, 2, {{"A", 1}}, &totals).message()),
              HasSubstr("scored 1 of 2"));
  EXPECT_THAT(std::string(CheckScores(response, 1, {{"B", 1}}, &totals).message()),
              HasSubstr("does not have there"));
  scores->set_scores(std::string("\x01", 1));
  *response.add_plugins() = response.plugins(0);
  EXPECT_THAT(std::string(CheckScores(response, 1, {{"A", 1}}, &totals).message()),
              HasSubstr("does not have there"));
}

TEST(CheckPreFilter, TakesARejectionThatNoSinglePluginGave) {
  v1beta1::PreFilterResponse response;
  response.mutable_rejection()->set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  response.mutable_rejection()->add_reasons(
      "node(s) didn't satisfy plugin(s) [A B] simultaneously");
  EXPECT_FALSE(CheckPreFilter(response).ok());
  response.add_rejected_by("A");
  response.add_rejected_by("B");
  EXPECT_TRUE(CheckPreFilter(response).ok());
}

TEST(CheckPreFilter, RefusesCodesThatItMayNotGive) {
  v1beta1::PreFilterResponse response;
  EXPECT_TRUE(CheckPreFilter(response).ok());
  response.mutable_rejection()->set_plugin("A");
  response.mutable_rejection()->set_code(v1beta1::CODE_UNSPECIFIED);
  EXPECT_FALSE(CheckPreFilter(response).ok());
  response.mutable_rejection()->set_code(v1beta1::CODE_ERROR);
  EXPECT_TRUE(CheckPreFilter(response).ok());
}

v1beta1::Effect BindEffect() {
  v1beta1::Effect effect;
  effect.set_key("e1");
  effect.set_plugin("VolumeBinding");
  v1beta1::BindVolume* bind = effect.mutable_bind_volume();
  bind->set_name("pv");
  bind->set_uid("u");
  bind->set_resource_version("1");
  bind->mutable_claim()->set_namespace_("ns");
  bind->mutable_claim()->set_name("data");
  bind->mutable_claim()->set_uid("c");
  return effect;
}

bool TakesEffects(const std::vector<v1beta1::Effect>& effects) {
  v1beta1::Pod pod;
  pod.set_namespace_("ns");
  pod.set_name("p");
  for (v1beta1::Container* container : {pod.add_containers(), pod.add_init_containers()})
    (*container->mutable_requests()->mutable_scalar())["r"] = 1;
  pod.mutable_containers(0)->set_name("main");
  pod.mutable_init_containers(0)->set_name("first");
  pod.set_extended_resource_claim("own");
  v1beta1::Volume* claim = pod.add_volumes();
  claim->set_source("persistentVolumeClaim");
  claim->set_claim_name("data");
  v1beta1::Volume* ephemeral = pod.add_volumes();
  ephemeral->set_source("ephemeral");
  ephemeral->set_name("tmp");
  google::protobuf::RepeatedPtrField<v1beta1::Effect> list(effects.begin(), effects.end());
  return CheckEffects(list, "Reserve", pod, "n1").ok();
}

TEST(CheckEffects, TakesThoseOnThePodsOwnClaims) {
  EXPECT_TRUE(TakesEffects({}));
  EXPECT_TRUE(TakesEffects({BindEffect()}));
  v1beta1::Effect select;
  select.set_key("e2");
  select.set_plugin("VolumeBinding");
  select.mutable_select_node()->set_namespace_("ns");
  select.mutable_select_node()->set_name("p-tmp");
  select.mutable_select_node()->set_uid("u");
  select.mutable_select_node()->set_resource_version("1");
  select.mutable_select_node()->set_node_name("n1");
  EXPECT_TRUE(TakesEffects({BindEffect(), select}));
  select.mutable_select_node()->set_node_name("n2");
  EXPECT_FALSE(TakesEffects({select})) << "not the pod's node";
  select.mutable_select_node()->set_node_name("n1");
  select.mutable_select_node()->set_namespace_("other");
  EXPECT_FALSE(TakesEffects({select}));
  select.mutable_select_node()->set_namespace_("ns");
  select.mutable_select_node()->clear_uid();
  EXPECT_FALSE(TakesEffects({select}));
}

TEST(CheckEffects, BoundsTheirNumberAndTheirNames) {
  std::vector<v1beta1::Effect> many;
  for (int i = 0; i < 257; ++i) {
    v1beta1::Effect& effect = many.emplace_back();
    effect.set_key(std::to_string(i));
    effect.set_plugin("P");
    effect.mutable_put_object()->set_name("o");
  }
  EXPECT_FALSE(TakesEffects(many));
  many.pop_back();
  EXPECT_TRUE(TakesEffects(many));
  many[0].mutable_put_object()->set_json(std::string(100 << 10, ' '));
  EXPECT_TRUE(TakesEffects(many)) << "the body has its own bound";
  many[0].mutable_put_object()->set_uid(std::string(10 << 10, 'u'));
  EXPECT_FALSE(TakesEffects(many));
}

TEST(CheckEffects, RefusesOthers) {
  EXPECT_FALSE(TakesEffects({BindEffect(), BindEffect()})) << "one key twice";
  v1beta1::Effect effect = BindEffect();
  effect.mutable_bind_volume()->mutable_claim()->set_name("another");
  EXPECT_FALSE(TakesEffects({effect}));
  effect = BindEffect();
  effect.mutable_bind_volume()->clear_resource_version();
  EXPECT_FALSE(TakesEffects({effect}));
  for (const char* name : {"", ".", "..", "a/b", "pv/../../nodes/n1"}) {
    effect = BindEffect();
    effect.mutable_bind_volume()->set_name(name);
    EXPECT_FALSE(TakesEffects({effect})) << name;
  }
  effect = BindEffect();
  effect.clear_plugin();
  EXPECT_FALSE(TakesEffects({effect}));
  effect = BindEffect();
  effect.clear_action();
  EXPECT_FALSE(TakesEffects({effect})) << "an unknown kind";
  v1beta1::Effect unknown = effect;
  unknown.set_key("x");
  EXPECT_FALSE(TakesEffects({unknown, effect})) << "two of unknown kinds";
}

TEST(CheckEffects, OneAnswerWritesNoMoreThanItsShare) {
  std::vector<v1beta1::Effect> effects(256);
  for (size_t i = 0; i < effects.size(); ++i) {
    effects[i].set_key(absl::StrCat("k", i));
    effects[i].set_plugin("P");
    effects[i].mutable_put_object()->set_name("o");
  }
  EXPECT_TRUE(TakesEffects(effects));
  effects.push_back(effects.back());
  effects.back().set_key("one-more");
  EXPECT_FALSE(TakesEffects(effects));
}

v1beta1::Effect Parsed(const char* text) {
  v1beta1::Effect effect;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &effect)) << text;
  return effect;
}

TEST(CheckEffects, APatchComesAfterTheEffectThatMakesTheObject) {
  const v1beta1::Effect put =
      Parsed("key: 'put' plugin: 'P' put_object { resource: 'r' namespace: 'ns' name: 'c' }");
  const v1beta1::Effect patch = Parsed(
      "key: 'patch' plugin: 'P' patch_object { resource: 'r' namespace: 'ns' name: 'c' after: "
      "'put' }");
  EXPECT_TRUE(TakesEffects({put, patch}));
  EXPECT_FALSE(TakesEffects({patch, put}));
  EXPECT_FALSE(TakesEffects({patch}));
  v1beta1::Effect other = put;
  other.mutable_put_object()->set_name("d");
  EXPECT_FALSE(TakesEffects({other, patch})) << "creates another object";
  other = put;
  other.mutable_put_object()->set_uid("u");
  EXPECT_FALSE(TakesEffects({other, patch})) << "creates no object";
}

TEST(CheckEffects, AReportedClaimIsThePods) {
  const v1beta1::Effect put = Parsed(
      "key: 'put' plugin: 'P' put_object { resource: 'resourceclaims.v1.resource.k8s.io' "
      "namespace: 'ns' name: 'c' }");
  v1beta1::Effect report = Parsed(
      "key: 'k' plugin: 'P' report_extended_resource_claim { claim_name: 'c' "
      "request_mappings { container_name: 'main' resource_name: 'r' request_name: 'q' } }");
  EXPECT_TRUE(TakesEffects({put, report}));
  EXPECT_FALSE(TakesEffects({report})) << "it may be another pod's";
  EXPECT_FALSE(TakesEffects({report, put}));
  v1beta1::Effect other = put;
  other.mutable_put_object()->set_namespace_("other");
  EXPECT_FALSE(TakesEffects({other, report}));
  other = put;
  other.mutable_put_object()->set_uid("u");
  EXPECT_FALSE(TakesEffects({other, report})) << "creates no object";
  other = put;
  other.mutable_put_object()->set_resource("widgets.v1.example.com");
  EXPECT_FALSE(TakesEffects({other, report}));
  report.mutable_report_extended_resource_claim()->set_claim_name("own");
  EXPECT_TRUE(TakesEffects({report}));
}

TEST(CheckEffects, AReportedClaimStandsForContainersOfThePod) {
  v1beta1::Effect report = Parsed(
      "key: 'k' plugin: 'P' report_extended_resource_claim { claim_name: 'own' "
      "request_mappings { container_name: 'main' resource_name: 'r' request_name: 'q' } "
      "request_mappings { container_name: 'first' resource_name: 'r' request_name: 'q' } }");
  EXPECT_TRUE(TakesEffects({report}));
  auto* claim = report.mutable_report_extended_resource_claim();
  claim->mutable_request_mappings(1)->set_container_name("another");
  EXPECT_FALSE(TakesEffects({report}));
  claim->mutable_request_mappings(1)->set_container_name("first");
  claim->mutable_request_mappings(1)->set_resource_name("unrequested");
  EXPECT_FALSE(TakesEffects({report}));
  claim->clear_request_mappings();
  EXPECT_FALSE(TakesEffects({report}));
}

v1beta1::PluginStatus Rejection(const std::string& plugin, v1beta1::Code code) {
  v1beta1::PluginStatus status;
  status.set_plugin(plugin);
  status.set_code(code);
  status.add_reasons("no");
  return status;
}

HostExtensionPoint ShareOf(const std::string& plugin) {
  HostExtensionPoint share;
  share.plugins.push_back({plugin, {}, 0});
  return share;
}

TEST(CheckNames, RefusesStrangers) {
  EXPECT_TRUE(CheckNames(ThreeNodesSecondRejected(), {"NodePorts", "NodeName"}).ok());
  EXPECT_THAT(CheckNames(ThreeNodesSecondRejected(), {"NodePorts"}).message(),
              HasSubstr("answers for \"NodeName\""));
  v1beta1::PreFilterResponse response;
  response.add_restricted_by("NodeName");
  EXPECT_FALSE(CheckNames(response, {"NodePorts"}).ok());
  EXPECT_TRUE(CheckNames(response, {"NodeName"}).ok());
  *response.mutable_rejection() = Rejection("Stranger", v1beta1::CODE_UNSCHEDULABLE);
  EXPECT_FALSE(CheckNames(response, {"NodeName"}).ok());
  response.mutable_rejection()->clear_plugin();
  EXPECT_TRUE(CheckNames(response, {"NodeName"}).ok());
}

TEST(CheckPermit, RefusesEachKindOfNonsense) {
  const auto fault = [](const v1beta1::PermitResponse& response) {
    return std::string(CheckPermit(response, ShareOf("Gang")).message());
  };
  v1beta1::PermitResponse good;
  good.add_waits()->set_plugin("Gang");
  good.mutable_waits(0)->set_timeout_micros(1'000'000);
  EXPECT_EQ(fault(good), "");
  v1beta1::PermitResponse bad = good;
  *bad.add_waits() = good.waits(0);
  EXPECT_THAT(fault(bad), HasSubstr("twice"));
  bad = good;
  bad.mutable_waits(0)->set_timeout_micros(-5'000);
  EXPECT_THAT(fault(bad), HasSubstr("timeout of -5000 µs"));
  bad = good;
  bad.mutable_waits(0)->set_plugin("Stranger");
  EXPECT_THAT(fault(bad), HasSubstr("\"Stranger\""));
  bad = good;
  *bad.mutable_rejection() = Rejection("Gang", v1beta1::CODE_UNSPECIFIED);
  EXPECT_THAT(fault(bad), HasSubstr("rejects with code UNSPECIFIED"));
  bad.mutable_rejection()->set_code(v1beta1::CODE_UNSCHEDULABLE);
  EXPECT_EQ(fault(bad), "");
  bad.mutable_rejection()->set_reasons(0, std::string(1025, 'x'));
  EXPECT_THAT(fault(bad), HasSubstr("reason of 1025 bytes"));
  bad = good;
  bad.add_decisions()->set_attempt_id(1);
  EXPECT_THAT(fault(bad), HasSubstr("names no attempt, no pod or no plugin"));
}

TEST(CheckRejectedGroup, NoPodIsRejectedTwice) {
  const std::string pod_uid = "00000000-0000-4000-8000-000000000001";
  const auto fault = [&](const std::vector<std::string>& others) {
    v1beta1::PlannedGroup group;
    for (const std::string& uid : others) group.add_pod_uids(uid);
    return std::string(CheckRejectedGroup(group, pod_uid).message());
  };
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({"b", "c"}), "");
  EXPECT_THAT(fault({"b", "b"}), HasSubstr("rejects pod b twice"));
  EXPECT_THAT(fault({"b", pod_uid}), HasSubstr(pod_uid + " twice"));
}

TEST(CheckReserve, RefusesEachKindOfNonsense) {
  v1beta1::Pod pod;
  pod.set_namespace_("ns");
  for (const char* name : {"one", "two"}) {
    v1beta1::Volume* volume = pod.add_volumes();
    volume->set_source("persistentVolumeClaim");
    volume->set_claim_name(name);
  }
  const auto fault = [&](const v1beta1::ReserveResponse& response) {
    return std::string(CheckReserve(response, ShareOf("Volumes"), pod, "n1").message());
  };
  v1beta1::ReserveResponse good;
  for (const char* name : {"one", "two"}) {
    v1beta1::Effect* effect = good.add_effects();
    effect->set_key(name);
    effect->set_plugin("Volumes");
    v1beta1::SelectNode* select = effect->mutable_select_node();
    select->set_namespace_("ns");
    select->set_name(name);
    select->set_uid("uid");
    select->set_resource_version("1");
    select->set_node_name("n1");
  }
  EXPECT_EQ(fault(good), "");
  v1beta1::ReserveResponse bad = good;
  bad.mutable_effects(1)->mutable_select_node()->set_name("one");
  EXPECT_THAT(fault(bad), HasSubstr("two effects on one claim"));
  bad = good;
  bad.mutable_effects(0)->mutable_select_node()->set_namespace_("kube-system");
  EXPECT_THAT(fault(bad), HasSubstr("not the pod's"));
  bad = good;
  bad.mutable_effects(0)->set_plugin("Stranger");
  EXPECT_THAT(fault(bad), HasSubstr("\"Stranger\""));
  bad = good;
  bad.mutable_effects(0)->set_key(std::string(64, 'k'));
  EXPECT_THAT(fault(bad), HasSubstr("a unique key"));
  bad = good;
  bad.mutable_effects(0)->clear_action();
  EXPECT_NE(fault(bad), "");
  bad.clear_effects();
  *bad.mutable_rejection() = Rejection("Volumes", v1beta1::CODE_SUCCESS);
  EXPECT_THAT(fault(bad), HasSubstr("rejects with code SUCCESS"));
}

TEST(CheckReserve, BoundsWhatPluginsKeep) {
  HostExtensionPoint share;
  for (const char* name : {"A", "B", "C", "D", "E"}) share.plugins.push_back({name, {}, 0});
  v1beta1::ReserveResponse response;
  const auto add = [&](const std::string& plugin, size_t bytes) {
    v1beta1::PluginState* const its = response.add_states();
    its->set_plugin(plugin);
    its->set_state(std::string(bytes, 's'));
  };
  const auto fault = [&] {
    return std::string(CheckReserve(response, share, v1beta1::Pod(), "n1").message());
  };
  for (const char* name : {"A", "B", "C", "D"}) add(name, 4 << 10);
  EXPECT_EQ(fault(), "");
  add("E", 1);
  EXPECT_EQ(fault(), "Reserve has states of 16385 bytes");
  response.clear_states();
  add("A", (4 << 10) + 1);
  EXPECT_EQ(fault(), "Reserve has a state of 4097 bytes of A");
  response.clear_states();
  add("A", 0);
  EXPECT_EQ(fault(), "Reserve has a state of 0 bytes of A");
  response.clear_states();
  add("A", 1);
  add("A", 1);
  EXPECT_EQ(fault(), "Reserve has two states of A");
  response.clear_states();
  add("Stranger", 1);
  EXPECT_THAT(fault(), HasSubstr("answers for \"Stranger\""));
  *response.mutable_rejection() = Rejection("A", v1beta1::CODE_UNSCHEDULABLE);
  EXPECT_EQ(fault(), "") << "ignored with a rejection";
}

TEST(CheckGate, RefusesEachKindOfNonsense) {
  v1beta1::PluginStatus passes;
  passes.set_code(v1beta1::CODE_SUCCESS);
  EXPECT_TRUE(CheckGate(passes, ShareOf("Gates")).ok());
  EXPECT_FALSE(CheckGate(v1beta1::PluginStatus(), ShareOf("Gates")).ok()) << "unspecified";
  EXPECT_TRUE(CheckGate(Rejection("Gates", v1beta1::CODE_UNSCHEDULABLE), ShareOf("Gates")).ok());
  EXPECT_FALSE(
      CheckGate(Rejection("Stranger", v1beta1::CODE_UNSCHEDULABLE), ShareOf("Gates")).ok());
  EXPECT_FALSE(CheckGate(Rejection("Gates", v1beta1::CODE_UNSPECIFIED), ShareOf("Gates")).ok());
}

TEST(CheckPreBind, RefusesEachKindOfNonsense) {
  v1beta1::PreBindResponse response;
  EXPECT_TRUE(CheckPreBind(response, {}).ok());
  *response.mutable_rejection() = Rejection("Volumes", v1beta1::CODE_UNSCHEDULABLE);
  EXPECT_TRUE(CheckPreBind(response, {"Volumes"}).ok());
  EXPECT_THAT(std::string(CheckPreBind(response, {"Devices"}).message()),
              HasSubstr("answers for \"Volumes\""));
  response.mutable_rejection()->set_code(v1beta1::CODE_UNSPECIFIED);
  EXPECT_FALSE(CheckPreBind(response, {"Volumes"}).ok());
}

TEST(CheckPreBind, RefusesEffectsOfOtherPlugins) {
  v1beta1::PreBindResponse response;
  response.add_effects()->set_plugin("Volumes");
  EXPECT_TRUE(CheckPreBind(response, {"Volumes"}).ok());
  EXPECT_FALSE(CheckPreBind(response, {"Devices"}).ok());
}

TEST(CheckBind, RefusesEachKindOfNonsense) {
  v1beta1::BindResponse response;
  EXPECT_THAT(std::string(CheckBind(response, "Binder", {}).message()),
              HasSubstr("has no outcome"));
  response.mutable_skip();
  EXPECT_TRUE(CheckBind(response, "Binder", {}).ok());
  response.mutable_bound();
  EXPECT_TRUE(CheckBind(response, "Binder", {}).ok());
  *response.mutable_rejection() = Rejection("Binder", v1beta1::CODE_UNSCHEDULABLE);
  EXPECT_TRUE(CheckBind(response, "Binder", {}).ok());
  EXPECT_FALSE(CheckBind(response, "Other", {}).ok());
}

TEST(CheckBind, RefusesAnnotationsThatNoEffectCouldSet) {
  v1beta1::BindResponse response;
  auto* annotations = response.mutable_shim_binds()->mutable_annotations();
  (*annotations)["Example.com/rank"] = "1";
  EXPECT_TRUE(CheckBind(response, "Binder", {}).ok()) << "prefixes are read in lower case";
  (*annotations)["example.com/more"] = std::string(256 << 10, 'x');
  EXPECT_THAT(std::string(CheckBind(response, "Binder", {}).message()), HasSubstr(" bytes"));
  annotations->clear();
  (*annotations)["a b"] = "";
  EXPECT_THAT(std::string(CheckBind(response, "Binder", {}).message()), HasSubstr("\"a b\""));
  annotations->clear();
  for (int i = 0; i < 256; ++i) (*annotations)[absl::StrCat("key-", i)] = "";
  EXPECT_TRUE(CheckBind(response, "Binder", {}).ok());
  (*annotations)["key-256"] = "";
  EXPECT_THAT(std::string(CheckBind(response, "Binder", {}).message()),
              HasSubstr("257 annotations"));
}

TEST(CheckBind, KeysOfKubernetesNeedTheAdministrator) {
  const std::string key = "cluster-autoscaler.kubernetes.io/safe-to-evict";
  v1beta1::BindResponse response;
  auto* annotations = response.mutable_shim_binds()->mutable_annotations();
  (*annotations)[key] = "false";
  EXPECT_THAT(std::string(CheckBind(response, "Binder", {}).message()),
              HasSubstr("belongs to Kubernetes"));
  EXPECT_TRUE(CheckBind(response, "Binder", {key}).ok());
  annotations->clear();
  (*annotations)["Kubernetes.io/x"] = "";
  EXPECT_FALSE(CheckBind(response, "Binder", {key}).ok());
}

TEST(CutText, CutsBetweenCharacters) {
  EXPECT_EQ(CutText("short"), "short");
  EXPECT_EQ(CutText(std::string(2000, 'x')), std::string(1024, 'x'));
  EXPECT_EQ(CutText("ab\xc3\xa9", 3), "ab");
  EXPECT_EQ(CutText("ab\xc3\xa9", 4), "ab\xc3\xa9");
}

}  // namespace
}  // namespace outboard::framework
