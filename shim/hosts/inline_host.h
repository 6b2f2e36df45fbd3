// A host without a cluster cache, behind the interface of any other host.
#ifndef OUTBOARD_SHIM_HOSTS_INLINE_HOST_H_
#define OUTBOARD_SHIM_HOSTS_INLINE_HOST_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "shim/framework/host_client.h"
#include "shim/hosts/inline_content.h"
#include "shim/hosts/node_columns.h"

namespace outboard::hosts {

bool KeepsNoCache(const v1beta1::GetHostInfoResponse& info);

// Whether the host declares only what a host without a cluster cache can do, and needs in columns
// only what comes in them. FAILED_PRECONDITION with the excess; OK for hosts with a cache.
absl::Status CheckInlineInfo(const v1beta1::GetHostInfoResponse& info);

// Adds to each request what the host would otherwise read from its cluster cache
// (inline_node.proto, node_columns.proto). Filter carries every node to be evaluated, so the host's
// answer covers all of them; the caller cuts a sample (staged_filter.h).
//
// Threading: scheduling thread.
// Lifetime: `client` and `cluster` outlive it.
// Errors: as HostClient; and INTERNAL or RESOURCE_EXHAUSTED for requests that cannot be built.
class InlineHost final : public framework::HostClient {
 public:
  // `configured`: the profiles that were sent to the host.
  InlineHost(framework::HostClient* client, const cache::ClusterState* cluster, InlineParts parts,
             const v1beta1::ConfigureRequest& configured);

  // Completes requests, or returns why that is not possible; for callers that send them themselves.
  // In the order of an attempt, one attempt at a time.
  absl::Status Complete(v1beta1::PreFilterRequest* request);
  absl::Status Complete(v1beta1::FilterRequest* request);
  absl::Status Complete(v1beta1::PreScoreRequest* request);
  absl::Status Complete(v1beta1::ScoreRequest* request);
  // Whether the host is called at PreFilter. It keeps no state per attempt, so there is nothing to
  // begin.
  bool HasPreFilter(const std::string& profile) const { return pre_filtered_.contains(profile); }

  const std::string& instance() const override { return client_->instance(); }
  const v1beta1::GetHostInfoResponse& info() const override { return client_->info(); }
  bool usable() const override { return client_->usable(); }
  // No cache to update, and no pushes.
  void SendChanges(const v1beta1::SyncRequest&) override {}
  std::vector<v1beta1::SyncResponse> TakePushes() override { return {}; }
  absl::Status Cycle(const v1beta1::PlanRequest&, absl::Time, v1beta1::PlanResponse*) override;

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
  framework::PendingAnswer<v1beta1::PreFilterResponse> Start(v1beta1::PreFilterRequest request,
                                                             absl::Time deadline) override;
  framework::PendingAnswer<v1beta1::FilterResponse> Start(v1beta1::FilterRequest request,
                                                          absl::Time deadline) override;
  framework::PendingAnswer<v1beta1::PreScoreResponse> Start(v1beta1::PreScoreRequest request,
                                                            absl::Time deadline) override;
  framework::PendingAnswer<v1beta1::ScoreResponse> Start(v1beta1::ScoreRequest request,
                                                         absl::Time deadline) override;

 private:
  absl::Status AddNodes(v1beta1::FilterRequest* request);
  template <typename Request>
  absl::Status CompleteNodeSet(Request* request);
  template <typename Request>
  void FillPlaced(Request* request);
  template <typename Request>
  void FillPods(Request* request);
  // Checks that the attempt is the last begun.
  absl::Status CheckAttempt(const v1beta1::CallHeader& header) const;

  framework::HostClient* const client_;
  const cache::ClusterState& cluster_;
  std::optional<ColumnContent> columns_;  // if nodes come in columns
  InlineContent content_;
  absl::flat_hash_set<std::string> pre_filtered_;  // profiles in which the host has a PreFilter
  // Of the current attempt: there is one at a time, until its node is found.
  uint64_t attempt_id_ = 0;
  kube::PodPtr pod_;
  v1beta1::Pod sent_pod_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_INLINE_HOST_H_
