// A host that keeps no mirror, made to look like any other.
#ifndef OUTBOARD_SHIM_CYCLE_INLINE_HOST_H_
#define OUTBOARD_SHIM_CYCLE_INLINE_HOST_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "shim/cycle/host_client.h"
#include "shim/cycle/inline_content.h"

namespace outboard::cycle {

bool KeepsNoMirror(const v1alpha1::GetHostInfoResponse& info);

// Whether the host is content with what one without a mirror can do. FAILED_PRECONDITION, naming
// what it offers beyond that; OK for hosts with a mirror.
absl::Status CheckInlineInfo(const v1alpha1::GetHostInfoResponse& info);

// Adds to each request what the host would otherwise have read in its mirror (inline_node.proto).
// Filter comes with every node that is to be judged, so the host's answer is about all of them: who
// wants a sample cuts it (late_filter.h).
//
// Threading: scheduling thread. Lifetime: `client` and `cluster` outlive it.
// Errors:    as HostClient; and INTERNAL or RESOURCE_EXHAUSTED for requests that cannot be made.
class InlineHost final : public HostClient {
 public:
  // `configured`: what the host was told of its profiles.
  InlineHost(HostClient* client, const ClusterState* cluster, InlineParts parts,
             const v1alpha1::ConfigureRequest& configured);

  // Make requests complete, or say why that is not possible; for who sends them himself. In the
  // order of an attempt, of which there is one at a time.
  absl::Status Complete(v1alpha1::PreFilterRequest* request);
  absl::Status Complete(v1alpha1::FilterRequest* request);
  absl::Status Complete(v1alpha1::PreScoreRequest* request);
  absl::Status Complete(v1alpha1::ScoreRequest* request);
  // Whether the host is asked at PreFilter: it keeps nothing under the attempt, so there is nothing
  // to begin.
  bool HasPreFilter(const std::string& profile) const { return pre_filtered_.contains(profile); }

  const v1alpha1::GetHostInfoResponse& info() const override { return client_->info(); }
  bool usable() const override { return client_->usable(); }
  // There is nothing to keep up to date, and nothing is pushed.
  void SendChanges(const v1alpha1::SyncRequest&) override {}
  std::vector<v1alpha1::SyncResponse> TakePushes() override { return {}; }
  absl::Status Cycle(const v1alpha1::CycleRequest&, absl::Time, v1alpha1::CycleResponse*) override;

  absl::StatusOr<v1alpha1::PreFilterResponse> PreFilter(v1alpha1::PreFilterRequest request,
                                                        absl::Time deadline) override;
  absl::StatusOr<v1alpha1::FilterResponse> Filter(v1alpha1::FilterRequest request,
                                                  absl::Time deadline) override;
  absl::StatusOr<v1alpha1::PostFilterResponse> PostFilter(v1alpha1::PostFilterRequest request,
                                                          absl::Time deadline) override;
  absl::StatusOr<v1alpha1::PreScoreResponse> PreScore(v1alpha1::PreScoreRequest request,
                                                      absl::Time deadline) override;
  absl::StatusOr<v1alpha1::ScoreResponse> Score(v1alpha1::ScoreRequest request,
                                                absl::Time deadline) override;
  absl::StatusOr<v1alpha1::SortKeysResponse> SortKeys(v1alpha1::SortKeysRequest request,
                                                      absl::Time deadline) override;
  absl::StatusOr<v1alpha1::PreEnqueueResponse> PreEnqueue(v1alpha1::PreEnqueueRequest request,
                                                          absl::Time deadline) override;
  absl::StatusOr<v1alpha1::ReserveResponse> Reserve(v1alpha1::ReserveRequest request,
                                                    absl::Time deadline) override;
  absl::StatusOr<v1alpha1::UnreserveResponse> Unreserve(v1alpha1::UnreserveRequest request,
                                                        absl::Time deadline) override;
  absl::StatusOr<v1alpha1::PermitResponse> Permit(v1alpha1::PermitRequest request,
                                                  absl::Time deadline) override;
  absl::StatusOr<v1alpha1::PreBindResponse> PreBind(v1alpha1::PreBindRequest request,
                                                    absl::Time deadline) override;
  PendingAnswer<v1alpha1::PreFilterResponse> Start(v1alpha1::PreFilterRequest request,
                                                   absl::Time deadline) override;
  PendingAnswer<v1alpha1::FilterResponse> Start(v1alpha1::FilterRequest request,
                                                absl::Time deadline) override;
  PendingAnswer<v1alpha1::PreScoreResponse> Start(v1alpha1::PreScoreRequest request,
                                                  absl::Time deadline) override;
  PendingAnswer<v1alpha1::ScoreResponse> Start(v1alpha1::ScoreRequest request,
                                               absl::Time deadline) override;

 private:
  template <typename Request>
  absl::Status CompleteNodeSet(Request* request);
  template <typename Request>
  void FillPlaced(Request* request);
  template <typename Request>
  void FillPods(Request* request);
  // The attempt is the one that began last.
  absl::Status CheckAttempt(const v1alpha1::CallHeader& header) const;

  HostClient* const client_;
  const ClusterState& cluster_;
  InlineContent content_;
  absl::flat_hash_set<std::string> pre_filtered_;  // profiles in which the host has a preFilter
  // Of the attempt under way: there is one at a time, until its node is found.
  uint64_t attempt_id_ = 0;
  kube::PodPtr pod_;
  v1alpha1::Pod sent_pod_;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_INLINE_HOST_H_
