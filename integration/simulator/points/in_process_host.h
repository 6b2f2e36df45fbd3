// A plugin host without a process: the shim's calls go straight to the host's session.
#ifndef OUTBOARD_INTEGRATION_SIMULATOR_POINTS_IN_PROCESS_HOST_H_
#define OUTBOARD_INTEGRATION_SIMULATOR_POINTS_IN_PROCESS_HOST_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plugin_host/runtime/session.h"
#include "plugin_host/sdk/plugin_registry.h"
#include "shim/framework/host_client.h"

namespace outboard::points {

// Every answer is serialized and parsed, as on the way between two processes.
//
// Threading: one thread.
// Lifetime: the registry outlives it.
// Errors: as HostClient. Changes that the host cannot apply: see `sync_error`.
class InProcessHost final : public framework::HostClient {
 public:
  explicit InProcessHost(const sdk::PluginRegistry* registry);

  v1beta1::ConfigureResponse Configure(const v1beta1::ConfigureRequest& request);
  // The time of later calls; plugins get their tick.
  void SetTime(absl::Time now);
  // The first error of the Sync stream.
  const absl::Status& sync_error() const { return sync_error_; }

  const std::string& instance() const override { return instance_; }
  const v1beta1::GetHostInfoResponse& info() const override { return info_; }
  bool usable() const override { return true; }
  void SendChanges(const v1beta1::SyncRequest& request) override;
  std::vector<v1beta1::SyncResponse> TakePushes() override { return std::exchange(pushes_, {}); }
  absl::Status Cycle(const v1beta1::PlanRequest& request, absl::Time deadline,
                     v1beta1::PlanResponse* response) override;
  absl::StatusOr<v1beta1::PreFilterResponse> PreFilter(v1beta1::PreFilterRequest request,
                                                       absl::Time deadline) override;
  absl::StatusOr<v1beta1::FilterResponse> Filter(v1beta1::FilterRequest request,
                                                 absl::Time deadline) override;
  absl::StatusOr<v1beta1::PostFilterResponse> PostFilter(v1beta1::PostFilterRequest request,
                                                         absl::Time deadline) override;
  absl::StatusOr<v1beta1::PreScoreResponse> PreScore(v1beta1::PreScoreRequest request,
                                                     absl::Time deadline) override;
  absl::StatusOr<v1beta1::ScoreResponse> Score(v1beta1::ScoreRequest request,
                                               absl::Time deadline) override;
  absl::StatusOr<v1beta1::SortKeysResponse> SortKeys(v1beta1::SortKeysRequest request,
                                                     absl::Time deadline) override;
  absl::StatusOr<v1beta1::PreEnqueueResponse> PreEnqueue(v1beta1::PreEnqueueRequest request,
                                                         absl::Time deadline) override;
  absl::StatusOr<v1beta1::ReserveResponse> Reserve(v1beta1::ReserveRequest request,
                                                   absl::Time deadline) override;
  absl::StatusOr<v1beta1::UnreserveResponse> Unreserve(v1beta1::UnreserveRequest request,
                                                       absl::Time deadline) override;
  absl::StatusOr<v1beta1::PermitResponse> Permit(v1beta1::PermitRequest request,
                                                 absl::Time deadline) override;
  absl::StatusOr<v1beta1::PreBindResponse> PreBind(v1beta1::PreBindRequest request,
                                                   absl::Time deadline) override;
  absl::StatusOr<v1beta1::BindResponse> Bind(v1beta1::BindRequest request,
                                             absl::Time deadline) override;
  bool SendPostBind(v1beta1::PostBindRequest request, absl::Time deadline) override;

 private:
  const std::string instance_ = "in-process";
  v1beta1::GetHostInfoResponse info_;
  runtime::Session session_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<v1beta1::SyncResponse> pushes_;
  absl::Status sync_error_;
};

}  // namespace outboard::points

#endif  // OUTBOARD_INTEGRATION_SIMULATOR_POINTS_IN_PROCESS_HOST_H_
