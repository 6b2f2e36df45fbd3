#include "shim/hosts/adapter/translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "outboard/handshake/v1/handshake.pb.h"
#include "outboard/v1alpha1/cluster_state.pb.h"
#include "outboard/v1alpha1/cycle.pb.h"
#include "outboard/v1alpha1/filter.pb.h"
#include "outboard/v1alpha1/permit.pb.h"
#include "outboard/v1alpha1/plugin_host.pb.h"
#include "outboard/v1alpha1/post_filter.pb.h"
#include "outboard/v1alpha1/pre_bind.pb.h"
#include "outboard/v1alpha1/pre_enqueue.pb.h"
#include "outboard/v1alpha1/reserve.pb.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/permit.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/post_filter.pb.h"
#include "outboard/v1beta1/pre_bind.pb.h"
#include "outboard/v1beta1/pre_enqueue.pb.h"
#include "outboard/v1beta1/reserve.pb.h"
#include "proto/call_errors/call_errors.h"
#include "proto/call_errors/rpc_status.pb.h"

namespace outboard::hosts::adapter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kHandshake[] = "/outboard.handshake.v1.HandshakeService/Handshake";
constexpr char kGetHostInfo[] = "/outboard.v1beta1.PluginHostService/GetHostInfo";

std::string Path(const std::string& service, const std::string& method) {
  return "/outboard.v1beta1." + service + "/" + method;
}

template <typename Old, typename New>
Old ToOld(const std::string& method, const New& request) {
  const absl::StatusOr<std::string> bytes = RequestToOld(method, request.SerializeAsString(), 0);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  Old old;
  EXPECT_TRUE(old.ParseFromString(bytes.value_or("")));
  return old;
}

template <typename New, typename Old>
New FromOld(const std::string& method, const Old& answer) {
  const absl::StatusOr<std::string> bytes = ResponseFromOld(method, answer.SerializeAsString());
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  New out;
  EXPECT_TRUE(out.ParseFromString(bytes.value_or("")));
  return out;
}

TEST(Translation, NamesTheOldMethod) {
  EXPECT_EQ(OldMethod(Path("FilterService", "Filter")), "/outboard.v1alpha1.FilterService/Filter");
  EXPECT_EQ(OldMethod(kHandshake), "/outboard.v1alpha1.PluginHostService/GetHostInfo");
  EXPECT_EQ(OldMethod("/grpc.health.v1.Health/Check"), "");
  EXPECT_EQ(OldMethod(Path("PluginHostService", "EndSession")),
            "/outboard.v1alpha1.PluginHostService/Drain");
  EXPECT_EQ(OldMethod(Path("PluginHostService", "Drain")), "") << "of the whole host";
}

TEST(Translation, HandshakeAndHostInfoAreOneAnswer) {
  handshake::v1::HandshakeRequest request;
  request.add_contract_versions("v1beta1");
  request.set_build("1.2.3");
  const auto asked = ToOld<v1alpha1::GetHostInfoRequest>(kHandshake, request);
  EXPECT_THAT(asked.contract_versions(), ElementsAre("v1alpha1"));
  EXPECT_EQ(asked.shim_build(), "1.2.3");

  v1alpha1::GetHostInfoResponse old;
  old.add_contract_versions("v1alpha1");
  old.set_host_instance("a");
  old.set_build("0.1.0");
  old.set_build_digest("d");
  old.set_started_unix_micros(7);
  old.add_capabilities(v1alpha1::FUSED_CYCLE);
  old.add_capabilities(static_cast<v1alpha1::Capability>(v1beta1::CAPABILITY_NODE_COLUMNS));
  v1alpha1::PluginInfo* plugin = old.add_plugins();
  plugin->set_name("Fit");
  plugin->add_extension_points(v1alpha1::FILTER);
  plugin->add_extension_points(
      static_cast<v1alpha1::ExtensionPoint>(v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE));
  plugin->add_needed_fields("Pod.spec.unknown");
  plugin->add_interests()->set_extension_point(v1alpha1::PRE_ENQUEUE);
  plugin->add_interests()->add_any_field_set("spec.schedulingGates");
  const auto identity = FromOld<handshake::v1::HandshakeResponse>(kHandshake, old);
  EXPECT_THAT(identity.contract_versions(), ElementsAre("v1alpha1"));
  EXPECT_EQ(identity.instance(), "a");
  EXPECT_EQ(identity.build(), "0.1.0");
  EXPECT_EQ(identity.build_digest(), "d");
  EXPECT_EQ(identity.started_unix_micros(), 7);
  const auto info = FromOld<v1beta1::GetHostInfoResponse>(kGetHostInfo, old);
  EXPECT_THAT(info.capabilities(), ElementsAre(v1beta1::CAPABILITY_FUSED_CYCLE));
  ASSERT_EQ(info.plugins_size(), 1);
  EXPECT_EQ(info.plugins(0).name(), "Fit");
  EXPECT_THAT(info.plugins(0).extension_points(), ElementsAre(v1beta1::EXTENSION_POINT_FILTER));
  EXPECT_TRUE(info.plugins(0).needed_fields().empty());
  EXPECT_THAT(info.plugins(0).optional_fields(), ElementsAre("Pod.spec.unknown"))
      << "unknown paths were ignored";
  EXPECT_TRUE(info.plugins(0).interests(0).no_pod());
  EXPECT_FALSE(info.plugins(0).interests(1).no_pod());
}

// Such hosts serve neither Bind nor PostBind: the shim binds in their plugins' names.
TEST(Translation, PluginsAtBindAreNeverAsked) {
  v1alpha1::GetHostInfoResponse old;
  v1alpha1::PluginInfo* plugin = old.add_plugins();
  plugin->set_name("Binder");
  for (const auto point : {v1alpha1::PRE_BIND, v1alpha1::BIND, v1alpha1::POST_BIND})
    plugin->add_extension_points(point);
  v1alpha1::Interest* ignored = plugin->add_interests();
  ignored->set_extension_point(v1alpha1::PRE_BIND);
  ignored->add_any_field_set("spec.resourceClaims");
  const auto info = FromOld<v1beta1::GetHostInfoResponse>(kGetHostInfo, old);
  ASSERT_EQ(info.plugins_size(), 1);
  ASSERT_EQ(info.plugins(0).interests_size(), 2);
  EXPECT_EQ(info.plugins(0).interests(0).extension_point(), v1beta1::EXTENSION_POINT_BIND);
  EXPECT_EQ(info.plugins(0).interests(1).extension_point(), v1beta1::EXTENSION_POINT_POST_BIND);
  for (const auto& interest : info.plugins(0).interests()) EXPECT_TRUE(interest.no_pod());
}

TEST(Translation, WhatPluginsKeepIsNotForOldHosts) {
  v1beta1::SyncRequest request;
  v1beta1::PodPlacement* const placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid("p");
  placement->set_state(v1beta1::PLACEMENT_STATE_ASSUMED);
  placement->add_states()->set_state("s");
  const auto old = ToOld<v1alpha1::SyncRequest>(Path("ClusterStateService", "Sync"), request);
  ASSERT_EQ(old.changes_size(), 1);
  EXPECT_EQ(old.changes(0).pod_placement().uid(), "p");
  EXPECT_EQ(old.changes(0).pod_placement().state(), v1alpha1::ASSUMED);
  const v1alpha1::PodPlacement& received = old.changes(0).pod_placement();
  EXPECT_TRUE(received.GetReflection()->GetUnknownFields(received).empty());
}

TEST(Translation, ConfigureNamesItsVersion) {
  v1beta1::ConfigureRequest request;
  request.set_session_id("s");
  request.set_cycle_deadline_micros(50'000);
  v1beta1::ProfileConfig* profile = request.add_profiles();
  profile->set_name("p");
  profile->add_points()->add_plugins("Fit");
  const auto old =
      ToOld<v1alpha1::ConfigureRequest>(Path("PluginHostService", "Configure"), request);
  EXPECT_EQ(old.session_id(), "s");
  EXPECT_EQ(old.contract_version(), "v1alpha1");
  EXPECT_EQ(old.cycle_deadline_millis(), 50u);
  ASSERT_EQ(old.profiles_size(), 1);
  EXPECT_EQ(old.profiles(0).points(0).plugins(0), "Fit");
}

TEST(Translation, OldHostsConfigureAtOnce) {
  const std::string configure = Path("PluginHostService", "Configure");
  v1beta1::ConfigureRequest request;
  request.set_session_id("s");
  request.mutable_shim()->add_effects("bind_volume");
  const auto old = ToOld<v1alpha1::ConfigureRequest>(configure, request);
  EXPECT_EQ(old.session_id(), "s");
  EXPECT_TRUE(old.GetReflection()->GetUnknownFields(old).empty());
  request.set_validate_only(true);
  EXPECT_TRUE(
      absl::IsUnimplemented(RequestToOld(configure, request.SerializeAsString(), 0).status()));

  v1alpha1::ConfigureResponse answer;
  answer.add_problems()->set_message("no");
  const auto out = FromOld<v1beta1::ConfigureResponse>(configure, answer);
  ASSERT_EQ(out.problems_size(), 1);
  EXPECT_EQ(out.problems(0).message(), "no");
  EXPECT_EQ(out.problems(0).severity(), v1beta1::ConfigProblem::SEVERITY_UNSPECIFIED) << "an error";
}

TEST(Translation, TheEndOfASessionWasADrain) {
  const std::string method = Path("PluginHostService", "EndSession");
  v1beta1::EndSessionRequest request;
  request.set_session_id("s");
  EXPECT_EQ(ToOld<v1alpha1::DrainRequest>(method, request).session_id(), "s");
  v1alpha1::DrainResponse old;
  old.set_attempts_in_flight(3);
  EXPECT_EQ(FromOld<v1beta1::EndSessionResponse>(method, old).attempts_in_flight(), 3u);
}

TEST(Translation, ExactAndLeastVersionsAreOneField) {
  v1beta1::FilterRequest filter;
  filter.mutable_header()->set_exact_version(4);
  EXPECT_EQ(ToOld<v1alpha1::FilterRequest>(Path("FilterService", "Filter"), filter)
                .header()
                .snapshot_version(),
            4);
  v1beta1::ReserveRequest reserve;
  reserve.mutable_header()->set_min_version(5);
  reserve.mutable_header()->set_profile("p");
  const auto old = ToOld<v1alpha1::ReserveRequest>(Path("ReserveService", "Reserve"), reserve);
  EXPECT_EQ(old.header().snapshot_version(), 5);
  EXPECT_EQ(old.header().profile(), "p");
}

TEST(Translation, TimesHaveOtherUnits) {
  const std::string permit = Path("PermitService", "Permit");
  v1alpha1::PermitResponse held;
  held.add_waits()->set_timeout_millis(1500);
  held.add_waits()->set_timeout_millis(std::numeric_limits<int64_t>::max());
  held.add_waits()->set_timeout_millis(-1);
  const auto answer = FromOld<v1beta1::PermitResponse>(permit, held);
  ASSERT_EQ(answer.waits_size(), 3);
  EXPECT_EQ(answer.waits(0).timeout_micros(), 1'500'000);
  EXPECT_GT(answer.waits(1).timeout_micros(), int64_t{1} << 62);
  EXPECT_EQ(answer.waits(2).timeout_micros(), -1000);

  v1beta1::PreBindRequest pre_bind;
  pre_bind.set_elapsed_micros(2'999'999);
  EXPECT_EQ(
      ToOld<v1alpha1::PreBindRequest>(Path("PreBindService", "PreBind"), pre_bind).elapsed_millis(),
      2999);

  v1beta1::SyncRequest sync;
  sync.set_time_unix_micros(1'700'000'000'000'007);
  sync.add_changes()->mutable_pod_placement()->add_waits()->set_remaining_micros(30'000'000);
  const auto told = ToOld<v1alpha1::SyncRequest>(Path("ClusterStateService", "Sync"), sync);
  EXPECT_EQ(told.time_unix_nanos(), 1'700'000'000'000'007'000);
  EXPECT_EQ(told.changes(0).pod_placement().waits(0).remaining_millis(), 30'000);
  v1alpha1::SyncResponse push;
  push.mutable_ack()->set_time_unix_nanos(told.time_unix_nanos());
  EXPECT_EQ(FromOld<v1beta1::SyncResponse>(Path("ClusterStateService", "Sync"), push)
                .ack()
                .time_unix_micros(),
            sync.time_unix_micros());
}

TEST(Translation, TheInstanceOfConfigureIsInEveryHeader) {
  v1beta1::ConfigureRequest configure;
  configure.set_instance("a");
  const std::string method = Path("PluginHostService", "Configure");
  EXPECT_EQ(InstanceAfter(method, configure.SerializeAsString()), "a");
  EXPECT_EQ(InstanceAfter(Path("FilterService", "Filter"), ""), std::nullopt);
  const auto old_configure = ToOld<v1alpha1::ConfigureRequest>(method, configure);
  EXPECT_TRUE(old_configure.GetReflection()->GetUnknownFields(old_configure).empty());

  v1beta1::ReserveRequest reserve;
  reserve.mutable_header()->set_session_id("s");
  reserve.mutable_header()->set_min_version(5);
  reserve.mutable_header()->set_leader_epoch(9);
  reserve.set_node_name("n");
  auto bytes = RequestToOld(Path("ReserveService", "Reserve"), reserve.SerializeAsString(), 0);
  ASSERT_TRUE(bytes.ok());
  AddInstance(Path("ReserveService", "Reserve"), "a", &*bytes);
  v1alpha1::ReserveRequest old;
  ASSERT_TRUE(old.ParseFromString(*bytes));
  EXPECT_EQ(old.header().host_instance(), "a");
  EXPECT_EQ(old.header().session_id(), "s");
  EXPECT_EQ(old.header().snapshot_version(), 5);
  EXPECT_TRUE(old.header().GetReflection()->GetUnknownFields(old.header()).empty());
  EXPECT_EQ(old.node_name(), "n");

  v1beta1::PlanRequest plan;
  plan.mutable_cycle()->mutable_header()->set_session_id("s");
  bytes = RequestToOld(Path("PlanService", "Plan"), plan.SerializeAsString(), 0);
  ASSERT_TRUE(bytes.ok());
  AddInstance(Path("PlanService", "Plan"), "a", &*bytes);
  v1alpha1::CycleRequest cycle;
  ASSERT_TRUE(cycle.ParseFromString(*bytes));
  EXPECT_EQ(cycle.header().host_instance(), "a");
  EXPECT_EQ(cycle.header().session_id(), "s");

  std::string probe = "unchanged";
  AddInstance(Path("PluginHostService", "Probe"), "a", &probe);
  AddInstance(Path("NoService", "No"), "a", &probe);
  EXPECT_EQ(probe, "unchanged");
}

// A request that misses it would be rejected by every old host.
TEST(Translation, TheHeaderIsTheFirstFieldOfEveryRequest) {
  for (const auto* file :
       {v1beta1::FilterRequest::descriptor()->file(), v1beta1::ReserveRequest::descriptor()->file(),
        v1beta1::PostFilterRequest::descriptor()->file(),
        v1beta1::PreEnqueueRequest::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i) {
      const auto* header = file->message_type(i)->FindFieldByName("header");
      if (header != nullptr) {
        EXPECT_EQ(header->number(), 1) << file->message_type(i)->name();
      }
    }
  }
}

TEST(Translation, CodesHaveOtherNumbers) {
  v1alpha1::PreEnqueueResponse old;
  old.add_verdicts();  // SUCCESS is 0 there
  old.add_verdicts()->set_code(v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE);
  old.add_verdicts()->set_code(v1alpha1::PENDING);
  old.add_verdicts()->set_code(v1alpha1::WAIT);
  const auto out =
      FromOld<v1beta1::PreEnqueueResponse>(Path("PreEnqueueService", "PreEnqueue"), old);
  ASSERT_EQ(out.verdicts_size(), 4);
  EXPECT_EQ(out.verdicts(0).code(), v1beta1::CODE_SUCCESS);
  EXPECT_EQ(out.verdicts(1).code(), v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  EXPECT_EQ(out.verdicts(2).code(), v1beta1::CODE_PENDING);
  EXPECT_EQ(out.verdicts(3).code(), v1beta1::CODE_UNSPECIFIED) << "rejected by the shim";

  v1beta1::PostFilterRequest request;
  request.mutable_judged()->set_others(v1beta1::CODE_UNSCHEDULABLE);
  request.mutable_judged()->add_slots(1);
  request.mutable_judged()->add_codes(v1beta1::CODE_SUCCESS);
  request.add_answers()->set_code(v1beta1::CODE_SUCCESS);
  request.add_answers()->set_code(v1beta1::CODE_ERROR);
  const auto asked =
      ToOld<v1alpha1::PostFilterRequest>(Path("PostFilterService", "PostFilter"), request);
  EXPECT_EQ(asked.judged().others(), v1alpha1::UNSCHEDULABLE);
  EXPECT_THAT(asked.judged().codes(), ElementsAre(v1alpha1::SUCCESS));
  EXPECT_EQ(asked.answers(0).code(), v1alpha1::SUCCESS);
  EXPECT_EQ(asked.answers(1).code(), v1alpha1::ERROR);

  // Inside an answer of a cycle, too.
  v1alpha1::CycleResponse cycle;
  cycle.mutable_filter()->add_reasons()->set_code(v1alpha1::UNSCHEDULABLE);
  EXPECT_EQ(FromOld<v1beta1::CycleResponse>(Path("CycleService", "Cycle"), cycle)
                .evaluation()
                .filter()
                .reasons(0)
                .code(),
            v1beta1::CODE_UNSCHEDULABLE);
}

TEST(Translation, ASearchHasAPercentage) {
  const std::string method = Path("FilterService", "Filter");
  const auto old = [&](uint32_t number, uint32_t num_nodes, std::vector<uint32_t> slots) {
    v1beta1::FilterRequest request;
    v1beta1::NodeSearch* search = request.mutable_search();
    search->set_start_offset(3);
    search->set_num_feasible_nodes_to_find(number);
    if (!slots.empty()) search->mutable_nodes()->mutable_slots()->Add(slots.begin(), slots.end());
    const absl::StatusOr<std::string> bytes =
        RequestToOld(method, request.SerializeAsString(), num_nodes);
    v1alpha1::FilterRequest out;
    EXPECT_TRUE(bytes.ok() && out.ParseFromString(*bytes)) << bytes.status();
    return out;
  };
  // v1alpha1's rule, as its hosts compute it.
  for (const uint32_t num_nodes : {100u, 1000u, 5000u, 15000u}) {
    for (const uint32_t percentage : {1u, 5u, 10u, 42u, 99u, 100u}) {
      const uint32_t number = std::max(num_nodes * percentage / 100, 100u);
      const uint32_t given = old(number, num_nodes, {}).percentage_of_nodes_to_score();
      EXPECT_EQ(std::max(num_nodes * given / 100, 100u), number) << num_nodes << " " << percentage;
    }
  }
  EXPECT_EQ(old(3, 5000, {7, 8, 9}).percentage_of_nodes_to_score(), 1u) << "all of few nodes";
  EXPECT_THAT(old(3, 5000, {7, 8, 9}).nodes().slots(), ElementsAre(7, 8, 9));
  EXPECT_EQ(old(3, 5000, {7, 8, 9}).start_offset(), 3u);
  EXPECT_TRUE(old(1, 5000, {}).first_feasible_only());

  v1beta1::SyncRequest sync;
  const std::string sync_method = Path("ClusterStateService", "Sync");
  EXPECT_EQ(NumNodesAfter(sync_method, sync.SerializeAsString()), std::nullopt);
  sync.mutable_node_order()->add_slots(7);
  EXPECT_EQ(NumNodesAfter(sync_method, sync.SerializeAsString()), 1u);
  EXPECT_EQ(NumNodesAfter(method, ""), std::nullopt);
}

TEST(Translation, SimulatedAndInlineNodes) {
  v1beta1::FilterRequest request;
  request.mutable_pod()->set_name("p");
  request.mutable_simulation()->add_nodes()->set_slot(6);
  request.mutable_simulation()->add_nodes()->add_removed_pod_uids("u");
  request.add_inline_nodes()->mutable_node()->set_name("n");
  const auto old = ToOld<v1alpha1::FilterRequest>(Path("FilterService", "Filter"), request);
  EXPECT_EQ(old.pod().name(), "p");
  ASSERT_EQ(old.hypotheses_size(), 2);
  EXPECT_EQ(old.hypotheses(0).slot(), 6u);
  EXPECT_THAT(old.hypotheses(1).removed_pod_uids(), ElementsAre("u"));
  EXPECT_EQ(old.inline_nodes(0).node().name(), "n");
}

v1beta1::CycleRequest ACycle() {
  v1beta1::CycleRequest request;
  request.mutable_header()->set_exact_version(9);
  request.set_deadline_micros(50);
  request.set_pod_uid("u");
  request.mutable_search()->set_start_offset(4);
  request.mutable_search()->set_num_feasible_nodes_to_find(6);
  request.mutable_search()->mutable_nodes()->add_slots(2);
  request.set_percentage_of_nodes_to_score(30);
  return request;
}

void ExpectACycle(const v1alpha1::CycleRequest& asked) {
  EXPECT_EQ(asked.header().snapshot_version(), 9);
  EXPECT_EQ(asked.deadline_micros(), 50u);
  EXPECT_EQ(asked.pre_filter().pod_uid(), "u");
  EXPECT_EQ(asked.filter().start_offset(), 4u);
  EXPECT_EQ(asked.filter().enough_nodes(), 6u);
  EXPECT_EQ(asked.filter().percentage_of_nodes_to_score(), 30u);
  EXPECT_THAT(asked.filter().nodes().slots(), ElementsAre(2));
}

// An evaluation, a rejection and an error are the same in both answers.
template <typename Response>
void ExpectOutcomes(const std::string& method) {
  v1alpha1::CycleResponse old;
  old.set_attempt_id(8);
  old.set_evaluation_micros(77);
  old.mutable_pre_filter();
  old.mutable_filter()->set_processed(2);
  old.mutable_score()->add_plugins()->set_plugin("Fit");
  auto out = FromOld<Response>(method, old);
  EXPECT_EQ(out.attempt_id(), 8u);
  EXPECT_EQ(out.evaluation_micros(), 77);
  EXPECT_EQ(out.evaluation().filter().processed(), 2u);
  EXPECT_EQ(out.evaluation().score().plugins(0).plugin(), "Fit");
  EXPECT_FALSE(out.evaluation().has_pre_score());

  old.Clear();
  old.mutable_pre_filter()->mutable_rejection()->set_code(v1alpha1::UNSCHEDULABLE);
  out = FromOld<Response>(method, old);
  EXPECT_EQ(out.rejection().pre_filter().rejection().code(), v1beta1::CODE_UNSCHEDULABLE);

  old.mutable_error()->set_message("gone");
  EXPECT_EQ(FromOld<Response>(method, old).error().message(), "gone");
}

TEST(Translation, ACycleInBothDirections) {
  const std::string method = Path("CycleService", "Cycle");
  const auto asked = ToOld<v1alpha1::CycleRequest>(method, ACycle());
  ExpectACycle(asked);
  EXPECT_THAT(asked.next_pod_uids(), IsEmpty());
  EXPECT_FALSE(asked.place_group());
  ExpectOutcomes<v1beta1::CycleResponse>(method);
}

// v1alpha1 plans in Cycle.
TEST(Translation, APlanInBothDirections) {
  const std::string method = Path("PlanService", "Plan");
  EXPECT_EQ(OldMethod(method), "/outboard.v1alpha1.CycleService/Cycle");
  v1beta1::PlanRequest request;
  *request.mutable_cycle() = ACycle();
  request.add_next_pod_uids("v");
  request.set_place_group(true);
  const auto asked = ToOld<v1alpha1::CycleRequest>(method, request);
  ExpectACycle(asked);
  EXPECT_THAT(asked.next_pod_uids(), ElementsAre("v"));
  EXPECT_TRUE(asked.place_group());
  ExpectOutcomes<v1beta1::PlanResponse>(method);

  v1alpha1::CycleResponse old;
  old.mutable_group()->set_name("gang");
  old.add_placements()->set_pod_uid("v");
  auto out = FromOld<v1beta1::PlanResponse>(method, old);
  EXPECT_EQ(out.plan().group().name(), "gang");
  EXPECT_EQ(out.plan().placements(0).pod_uid(), "v");

  old.clear_placements();
  old.mutable_pre_filter()->mutable_rejection()->set_code(v1alpha1::UNSCHEDULABLE);
  out = FromOld<v1beta1::PlanResponse>(method, old);
  EXPECT_EQ(out.rejection().group().name(), "gang");
}

TEST(Translation, PostFilterHasOneOutcome) {
  const std::string method = Path("PostFilterService", "PostFilter");
  v1alpha1::PostFilterResponse old;
  EXPECT_TRUE(FromOld<v1beta1::PostFilterResponse>(method, old).has_none());
  old.add_candidates()->add_victim_uids("u");
  EXPECT_THAT(
      FromOld<v1beta1::PostFilterResponse>(method, old).candidates().candidates(0).victim_uids(),
      ElementsAre("u"));
  old.add_questions()->mutable_own()->set_code(v1alpha1::UNSCHEDULABLE);
  EXPECT_EQ(FromOld<v1beta1::PostFilterResponse>(method, old).questions().questions(0).own().code(),
            v1beta1::CODE_UNSCHEDULABLE);
  old.mutable_rejection()->set_code(v1alpha1::ERROR);
  old.set_clear_nomination(true);
  const auto out = FromOld<v1beta1::PostFilterResponse>(method, old);
  EXPECT_EQ(out.rejection().status().code(), v1beta1::CODE_ERROR);
  EXPECT_TRUE(out.rejection().clear_nomination());
}

TEST(Translation, ChangesOfTheCluster) {
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  request.set_version(3);
  request.add_changes()->mutable_node_upsert()->mutable_node()->set_name("n");
  v1beta1::PodPlacement* placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid("u");
  placement->set_state(v1beta1::PLACEMENT_STATE_UNPLACED);
  request.add_changes()->mutable_pod_placement()->set_state(v1beta1::PLACEMENT_STATE_BOUND);
  const auto old = ToOld<v1alpha1::SyncRequest>(Path("ClusterStateService", "Sync"), request);
  EXPECT_EQ(old.phase(), v1alpha1::SyncRequest::DELTA);
  EXPECT_EQ(old.changes(0).node_upsert().node().name(), "n");
  EXPECT_EQ(old.changes(1).pod_placement().state(), v1alpha1::UNPLACED);
  EXPECT_EQ(old.changes(2).pod_placement().state(), v1alpha1::BOUND);
  request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
  EXPECT_EQ(ToOld<v1alpha1::SyncRequest>(Path("ClusterStateService", "Sync"), request).phase(),
            v1alpha1::SyncRequest::SNAPSHOT_END);
}

TEST(Translation, AReferenceIsAnObjectWithOnlyItsName) {
  struct Row {
    const char* kind;
    const char* ns;
    const char* old;
  };
  const Row rows[] = {
      {"Service", "ns", "service { namespace: \"ns\" name: \"x\" }"},
      {"ReplicationController", "ns",
       "workload { kind: \"ReplicationController\" namespace: \"ns\" name: \"x\" }"},
      {"ReplicaSet", "ns", "workload { kind: \"ReplicaSet\" namespace: \"ns\" name: \"x\" }"},
      {"StatefulSet", "ns", "workload { kind: \"StatefulSet\" namespace: \"ns\" name: \"x\" }"},
      {"PodDisruptionBudget", "ns", "pod_disruption_budget { namespace: \"ns\" name: \"x\" }"},
      {"PersistentVolume", "", "persistent_volume { name: \"x\" }"},
      {"PersistentVolumeClaim", "ns", "persistent_volume_claim { namespace: \"ns\" name: \"x\" }"},
      {"StorageClass", "", "storage_class { name: \"x\" }"},
      {"CSINode", "", "csi_node { name: \"x\" }"},
      {"CSIDriver", "", "csi_driver { name: \"x\" }"},
      {"CSIStorageCapacity", "ns", "csi_storage_capacity { namespace: \"ns\" name: \"x\" }"},
      {"VolumeAttachment", "", "volume_attachment { name: \"x\" }"},
      {"DeviceClass", "", "device_class { name: \"x\" }"},
      {"widgets.v1.example.com", "ns",
       "custom_object { resource: \"widgets.v1.example.com\" namespace: \"ns\" name: \"x\" }"},
      {"KindOfALaterContract", "",
       "custom_object { resource: \"KindOfALaterContract\" name: \"x\" }"}};
  v1beta1::SyncRequest request;
  for (const Row& row : rows) {
    v1beta1::ObjectReference* reference = request.add_changes()->mutable_object_remove();
    reference->set_kind(row.kind);
    reference->set_namespace_(row.ns);
    reference->set_name("x");
    reference->set_uid("u");
    v1beta1::QueueEvent* event = request.add_events();
    event->set_number(7);
    event->set_max_priority(-1);
    *event->mutable_object() = *reference;
  }
  request.add_changes()->mutable_pod_placement()->set_state(v1beta1::PLACEMENT_STATE_BOUND);
  request.add_changes()->mutable_object_upsert()->mutable_csi_node()->set_name("whole");
  request.add_events()->set_node_name("n");
  const auto old = ToOld<v1alpha1::SyncRequest>(Path("ClusterStateService", "Sync"), request);
  const int count = static_cast<int>(std::size(rows));
  ASSERT_EQ(old.changes_size(), count + 2);
  ASSERT_EQ(old.events_size(), count + 1);
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(old.changes(i).object_remove().ShortDebugString(), rows[i].old);
    EXPECT_EQ(old.events(i).object().ShortDebugString(), rows[i].old);
    EXPECT_EQ(old.events(i).number(), 7u);
    EXPECT_EQ(old.events(i).max_priority(), -1);
  }
  EXPECT_EQ(old.changes(count).pod_placement().state(), v1alpha1::BOUND);
  EXPECT_EQ(old.changes(count + 1).object_upsert().csi_node().name(), "whole");
  EXPECT_EQ(old.events(count).node_name(), "n");
}

TEST(Translation, PushesAboutAllPods) {
  v1alpha1::SyncResponse old;
  old.mutable_gate_changed();
  const std::string sync = Path("ClusterStateService", "Sync");
  EXPECT_TRUE(FromOld<v1beta1::SyncResponse>(sync, old).gate_changed().all_pods());
  old.mutable_gate_changed()->add_pod_uids("u");
  EXPECT_FALSE(FromOld<v1beta1::SyncResponse>(sync, old).gate_changed().all_pods());
  old.mutable_sort_keys_changed();
  EXPECT_TRUE(FromOld<v1beta1::SyncResponse>(sync, old).sort_keys_changed().all_pods());
}

TEST(Translation, ErrorsInBothFormsOfOldHosts) {
  v1beta1::CallError error;
  error.set_reason(v1beta1::CallError::REASON_STALE);
  error.set_message("behind");
  error.set_have_version(3);
  const auto reason = [](const grpc::Status& old) {
    const auto found = call_errors::CallErrorOf(StatusFromOld(old));
    return found.has_value() ? found->ShortDebugString() : "none";
  };
  const auto code = grpc::StatusCode::FAILED_PRECONDITION;
  EXPECT_EQ(reason(grpc::Status(code, "behind", error.SerializeAsString())),
            error.ShortDebugString());
  call_errors::RpcStatus details;
  details.set_code(code);
  details.set_message("behind");
  details.add_details()->set_type_url("type.googleapis.com/outboard.v1alpha1.CallError");
  details.mutable_details(0)->set_value(error.SerializeAsString());
  EXPECT_EQ(reason(grpc::Status(code, "behind", details.SerializeAsString())),
            error.ShortDebugString());
  const grpc::Status other = StatusFromOld(grpc::Status(code, "why", "not a message"));
  EXPECT_EQ(other.error_message(), "why");
  EXPECT_EQ(other.error_details(), "");
  EXPECT_TRUE(StatusFromOld(grpc::Status::OK).ok());
}

TEST(Translation, RefusesBytesThatAreNoMessage) {
  for (const std::string& method :
       {std::string(kHandshake), std::string(kGetHostInfo), Path("PluginHostService", "Configure"),
        Path("FilterService", "Filter")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ResponseFromOld(method, "\xff").status())) << method;
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(RequestToOld(Path("FilterService", "Filter"), "\xff", 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(RequestToOld(Path("NoService", "No"), "", 0).status()));
}

}  // namespace
}  // namespace outboard::hosts::adapter
