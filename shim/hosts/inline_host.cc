#include "shim/hosts/inline_host.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "proto/short_names.h"
#include "shim/framework/answer_check.h"

namespace outboard::hosts {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

// inline_node.proto's limit.
constexpr size_t kMaxRequestBytes = 64 << 20;

template <typename Request>
absl::Status CheckSize(const Request& request) {
  const size_t bytes = request.ByteSizeLong();
  if (bytes <= kMaxRequestBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the nodes of one call take ", bytes >> 20, " MiB, limit ", kMaxRequestBytes >> 20,
      " MiB: in a cluster of this size the host needs a cluster cache"));
}

template <typename Response>
framework::PendingAnswer<Response> Failed(absl::Status status) {
  return [status = std::move(status)]() -> absl::StatusOr<Response> { return status; };
}

absl::Status NotServed(absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("a host without a cluster cache does not serve ", what));
}

// Whether the plugins of a host that gets nodes in columns need only what has a form there.
absl::Status CheckColumnFields(const GetHostInfoResponse& info) {
  for (const PluginInfo& plugin : info.plugins()) {
    for (const std::string& path : plugin.needed_fields()) {
      if (ComesInColumns(path)) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "plugin ", plugin.name(), " needs field ", framework::CutText(path),
          ", which has no form in columns: its host cannot have the capability NODE_COLUMNS"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool KeepsNoCache(const GetHostInfoResponse& info) {
  return framework::HasCapability(info, CAPABILITY_INLINE_NODES);
}

absl::Status CheckInlineInfo(const GetHostInfoResponse& info) {
  const bool wants_columns = absl::c_linear_search(info.capabilities(), CAPABILITY_NODE_COLUMNS);
  if (!KeepsNoCache(info)) {
    if (!wants_columns) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "a host with the capability NODE_COLUMNS must have INLINE_NODES too");
  }
  const auto refused = [](auto... parts) {
    return absl::FailedPreconditionError(
        absl::StrCat("a host with the capability INLINE_NODES cannot have ", parts...));
  };
  for (const int capability : info.capabilities()) {
    for (const Capability other : {CAPABILITY_FUSED_CYCLE, CAPABILITY_BATCH, CAPABILITY_GROUP_PLAN,
                                   CAPABILITY_GROUP_PLACEMENTS, CAPABILITY_QUEUEING_HINTS}) {
      if (capability == other) return refused(ShortName(static_cast<v1beta1::Capability>(other)));
    }
  }
  for (const PluginInfo& plugin : info.plugins()) {
    for (const int point : plugin.extension_points()) {
      if (point == EXTENSION_POINT_POST_FILTER || point == EXTENSION_POINT_PRE_BIND ||
          point == EXTENSION_POINT_PLACEMENT_GENERATE || point == EXTENSION_POINT_PLACEMENT_SCORE ||
          point == EXTENSION_POINT_POD_GROUP_POST_FILTER)
        return refused("plugin ", plugin.name(), " at ",
                       ShortName(static_cast<v1beta1::ExtensionPoint>(point)));
    }
  }
  return wants_columns ? CheckColumnFields(info) : absl::OkStatus();
}

InlineHost::InlineHost(framework::HostClient* client, const cache::ClusterState* cluster,
                       InlineParts parts, const ConfigureRequest& configured)
    : client_(client),
      cluster_(*cluster),
      columns_(parts.columns ? std::make_optional<ColumnContent>(cluster, parts) : std::nullopt),
      content_(cluster, std::move(parts)) {
  for (const ProfileConfig& profile : configured.profiles()) {
    for (const PointConfig& point : profile.points()) {
      if (point.extension_point() == EXTENSION_POINT_PRE_FILTER)
        pre_filtered_.insert(profile.name());
    }
  }
}

absl::Status InlineHost::CheckAttempt(const CallHeader& header) const {
  if (header.attempt_id() == attempt_id_ && pod_ != nullptr) return absl::OkStatus();
  CallError error;
  error.set_reason(CallError::REASON_ATTEMPT_UNKNOWN);
  error.set_message(absl::StrCat("attempt ", header.attempt_id(), " did not begin on this host"));
  return framework::CallErrorStatus(error);
}

absl::Status InlineHost::Complete(PreFilterRequest* request) {
  pod_ = cluster_.FindPod(request->pod_uid());
  if (pod_ == nullptr) return absl::InternalError(absl::StrCat("unknown pod ", request->pod_uid()));
  attempt_id_ = request->header().attempt_id();
  sent_pod_ = content_.PodFor(*pod_);
  request->mutable_header()->set_exact_version(cluster_.version());
  *request->mutable_pod() = sent_pod_;
  return absl::OkStatus();
}

absl::Status InlineHost::Complete(FilterRequest* request) {
  if (absl::Status known = CheckAttempt(request->header()); !known.ok()) return known;
  request->mutable_header()->set_exact_version(cluster_.version());
  *request->mutable_pod() = sent_pod_;
  if (!request->has_simulation()) {
    // The whole list, starting where the search starts.
    const auto& order = cluster_.node_order();
    NodeSearch* const search = request->mutable_search();
    auto* slots = search->mutable_nodes()->mutable_slots();
    if (slots->empty()) slots->Add(order.begin(), order.end());
    const uint32_t count = static_cast<uint32_t>(slots->size());
    if (count > 0) {
      const uint32_t start = search->start_offset() % count;
      std::rotate(slots->begin(), slots->begin() + static_cast<int>(start), slots->end());
    }
    search->clear_start_offset();
    search->clear_nominated();  // the nodes have their nominated pods
    search->set_num_feasible_nodes_to_find(std::max(count, 1u));
  }
  absl::Status added = AddNodes(request);
  return added.ok() ? CheckSize(*request) : added;
}

absl::Status InlineHost::AddNodes(FilterRequest* request) {
  if (request->has_simulation()) {
    request->mutable_simulation()->clear_nominated();
    return columns_.has_value() ? columns_->AddSimulated(*pod_, request)
                                : content_.AppendHypotheses(*pod_, request);
  }
  return columns_.has_value() ? columns_->AddNodesFor(*pod_, request)
                              : content_.AppendNodesFor(*pod_, request);
}

template <typename Request>
absl::Status InlineHost::CompleteNodeSet(Request* request) {
  if (absl::Status known = CheckAttempt(request->header()); !known.ok()) return known;
  request->mutable_header()->set_exact_version(cluster_.version());
  *request->mutable_pod() = sent_pod_;
  const auto& slots = request->nodes().slots();
  absl::Status added = columns_.has_value()
                           ? columns_->AddNodes(slots, request->mutable_node_columns())
                           : content_.AppendNodes(slots, Request::kInlineNodesFieldNumber, request);
  return added.ok() ? CheckSize(*request) : added;
}

absl::Status InlineHost::Complete(PreScoreRequest* request) { return CompleteNodeSet(request); }

absl::Status InlineHost::Complete(ScoreRequest* request) { return CompleteNodeSet(request); }

template <typename Request>
void InlineHost::FillPlaced(Request* request) {
  request->mutable_header()->set_min_version(cluster_.version());
  if (const kube::PodPtr pod = cluster_.FindPod(request->pod_uid()); pod != nullptr)
    *request->mutable_pod() = content_.PodFor(*pod);
  // Absent if the node was deleted.
  google::protobuf::RepeatedField<uint32_t> slot;
  slot.Add(cluster_.SlotOf(request->node_name()));
  content_.AppendNodes(slot, Request::kInlineNodeFieldNumber, request).IgnoreError();
}

template <typename Request>
void InlineHost::FillPods(Request* request) {
  request->mutable_header()->set_min_version(cluster_.version());
  for (const std::string& uid : request->pod_uids()) {
    const kube::PodPtr pod = cluster_.FindPod(uid);
    *request->add_pods() = pod == nullptr ? Pod() : content_.PodFor(*pod);
  }
}

absl::Status InlineHost::Cycle(const PlanRequest&, absl::Time, PlanResponse*) {
  return NotServed("fused cycle");
}

absl::StatusOr<PreFilterResponse> InlineHost::PreFilter(PreFilterRequest request,
                                                        absl::Time deadline) {
  return Start(std::move(request), deadline)();
}

framework::PendingAnswer<PreFilterResponse> InlineHost::Start(PreFilterRequest request,
                                                              absl::Time deadline) {
  if (absl::Status filled = Complete(&request); !filled.ok())
    return Failed<PreFilterResponse>(filled);
  if (!HasPreFilter(request.header().profile())) return [] { return PreFilterResponse(); };
  return client_->Start(std::move(request), deadline);
}

absl::StatusOr<FilterResponse> InlineHost::Filter(FilterRequest request, absl::Time deadline) {
  return Start(std::move(request), deadline)();
}

framework::PendingAnswer<FilterResponse> InlineHost::Start(FilterRequest request,
                                                           absl::Time deadline) {
  if (absl::Status filled = Complete(&request); !filled.ok()) return Failed<FilterResponse>(filled);
  return client_->Start(std::move(request), deadline);
}

absl::StatusOr<PreScoreResponse> InlineHost::PreScore(PreScoreRequest request,
                                                      absl::Time deadline) {
  return Start(std::move(request), deadline)();
}

framework::PendingAnswer<PreScoreResponse> InlineHost::Start(PreScoreRequest request,
                                                             absl::Time deadline) {
  if (absl::Status filled = Complete(&request); !filled.ok())
    return Failed<PreScoreResponse>(filled);
  return client_->Start(std::move(request), deadline);
}

absl::StatusOr<ScoreResponse> InlineHost::Score(ScoreRequest request, absl::Time deadline) {
  return Start(std::move(request), deadline)();
}

framework::PendingAnswer<ScoreResponse> InlineHost::Start(ScoreRequest request,
                                                          absl::Time deadline) {
  if (absl::Status filled = Complete(&request); !filled.ok()) return Failed<ScoreResponse>(filled);
  return client_->Start(std::move(request), deadline);
}

absl::StatusOr<PostFilterResponse> InlineHost::PostFilter(PostFilterRequest, absl::Time) {
  return NotServed("postFilter");
}

absl::StatusOr<SortKeysResponse> InlineHost::SortKeys(SortKeysRequest request,
                                                      absl::Time deadline) {
  FillPods(&request);
  return client_->SortKeys(std::move(request), deadline);
}

absl::StatusOr<PreEnqueueResponse> InlineHost::PreEnqueue(PreEnqueueRequest request,
                                                          absl::Time deadline) {
  FillPods(&request);
  return client_->PreEnqueue(std::move(request), deadline);
}

absl::StatusOr<ReserveResponse> InlineHost::Reserve(ReserveRequest request, absl::Time deadline) {
  FillPlaced(&request);
  return client_->Reserve(std::move(request), deadline);
}

absl::StatusOr<UnreserveResponse> InlineHost::Unreserve(UnreserveRequest request,
                                                        absl::Time deadline) {
  FillPlaced(&request);
  return client_->Unreserve(std::move(request), deadline);
}

absl::StatusOr<PermitResponse> InlineHost::Permit(PermitRequest request, absl::Time deadline) {
  FillPlaced(&request);
  return client_->Permit(std::move(request), deadline);
}

absl::StatusOr<PreBindResponse> InlineHost::PreBind(PreBindRequest, absl::Time) {
  return NotServed("preBind");
}

absl::StatusOr<BindResponse> InlineHost::Bind(BindRequest request, absl::Time deadline) {
  FillPlaced(&request);
  return client_->Bind(std::move(request), deadline);
}

bool InlineHost::SendPostBind(PostBindRequest request, absl::Time deadline) {
  FillPlaced(&request);
  return client_->SendPostBind(std::move(request), deadline);
}

}  // namespace outboard::hosts
