#include "shim/hosts/adapter/translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/statusor.h"
#include "outboard/handshake/v1/handshake.pb.h"
#include "outboard/v1alpha1/cluster_state.pb.h"
#include "outboard/v1alpha1/cycle.pb.h"
#include "outboard/v1alpha1/filter.pb.h"
#include "outboard/v1alpha1/plugin_host.pb.h"
#include "outboard/v1alpha1/post_filter.pb.h"
#include "outboard/v1alpha1/pre_enqueue.pb.h"
#include "outboard/v1alpha1/reserve.pb.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/post_filter.pb.h"
#include "outboard/v1beta1/pre_enqueue.pb.h"
#include "outboard/v1beta1/reserve.pb.h"
#include "proto/call_errors/call_errors.h"
#include "proto/call_errors/rpc_status.pb.h"

namespace outboard::hosts::adapter {
namespace {

using ::testing::ElementsAre;

constexpr char kHandshake[] = "/outboard.handshake.v1.HandshakeService/Handshake";
constexpr char kGetHostInfo[] = "/outboard.v1beta1.PluginHostService/GetHostInfo";

std::string Path(const std::string& service, const std::string& method) {
  return "/outboard.v1beta1." + service + "/" + method;
}

template <typename Old, typename New>
Old ToOld(const std::string& method, const New& request) {
  const absl::StatusOr<std::string> bytes = RequestToOld(method, request.SerializeAsString());
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
  v1alpha1::PluginInfo* plugin = old.add_plugins();
  plugin->set_name("Fit");
  plugin->add_extension_points(v1alpha1::FILTER);
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
  EXPECT_TRUE(info.plugins(0).interests(0).no_pod());
  EXPECT_FALSE(info.plugins(0).interests(1).no_pod());
}

TEST(Translation, ConfigureNamesItsVersion) {
  v1beta1::ConfigureRequest request;
  request.set_session_id("s");
  request.set_cycle_deadline_millis(50);
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
                .filter()
                .reasons(0)
                .code(),
            v1beta1::CODE_UNSCHEDULABLE);
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
      absl::IsInvalidArgument(RequestToOld(Path("FilterService", "Filter"), "\xff").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(RequestToOld(Path("NoService", "No"), "").status()));
}

}  // namespace
}  // namespace outboard::hosts::adapter
