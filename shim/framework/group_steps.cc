#include "shim/framework/group_steps.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/clock.h"
#include "shim/framework/group_check.h"

namespace outboard::framework {
namespace {

using v1beta1::GroupNodeSets;
using v1beta1::PendingGroup;
using v1beta1::PluginStatus;

// What the plugins at placementScore said about a placement.
struct PlacementVerdict {
  int64_t total = 0;
  std::string excluded_by;  // empty: by none
  std::string reason;
};

class Steps {
 public:
  Steps(HostClient* client, GroupPoints* points, const cache::ClusterState& cluster,
        const kube::PodObject& pod, absl::Time deadline, v1beta1::PlanRequest* request,
        v1beta1::PlanResponse* response)
      : client_(*client),
        points_(*points),
        cluster_(cluster),
        pod_(pod),
        deadline_(deadline),
        request_(*request),
        response_(*response) {}

  GroupStepsOutcome Run() {
    request_.mutable_group_step()->mutable_describe();
    if (!Exchange() || !response_.has_group()) return outcome_;
    group_ = std::move(*response_.mutable_group()->mutable_group());
    pre_filter_ = std::move(*response_.mutable_group()->mutable_pre_filter());
    if (!Check(CheckPendingGroup(group_, pod_, cluster_))) return outcome_;
    auto generated = points_.Generate(group_, deadline_);
    if (!generated.ok()) return FailAtPoint(generated.status());
    if (!generated->has_value() || (*generated)->has_any()) {
      request_.clear_group_step();
      Exchange();
      return outcome_;
    }
    if ((*generated)->has_rejection())
      return Reject((*generated)->rejection(), {(*generated)->rejection().plugin()});
    placements_ = std::move(*(*generated)->mutable_placements());
    if (points_.score_plugins().empty()) return PlaceOnFirst();
    return PlaceOnBest();
  }

 private:
  // One message to the host that places groups; false after an error.
  bool Exchange() {
    const absl::Duration left = std::max(deadline_ - SteadyNow(), absl::Microseconds(1));
    request_.mutable_cycle()->set_deadline_micros(absl::ToInt64Microseconds(left));
    return Check(CallCycle(&client_, request_, deadline_, &response_));
  }
  bool Check(absl::Status status) {
    outcome_.status = std::move(status);
    return outcome_.status.ok();
  }
  GroupStepsOutcome FailAtPoint(absl::Status status) {
    outcome_.status = std::move(status);
    outcome_.failed_host = points_.failed_host();
    return outcome_;
  }

  // The group goes to the first placement that it fits into.
  GroupStepsOutcome PlaceOnFirst() {
    GroupNodeSets sets;
    for (v1beta1::GroupPlacement& placement : *placements_.mutable_placements())
      sets.add_placements()->Swap(placement.mutable_nodes());
    return PlaceOn(std::move(sets));
  }

  GroupStepsOutcome PlaceOnBest() {
    GroupNodeSets* const tried = request_.mutable_group_step()->mutable_try_placements();
    for (const v1beta1::GroupPlacement& placement : placements_.placements())
      *tried->add_placements() = placement.nodes();
    if (!Exchange() || response_.has_rejection()) return outcome_;
    // Nothing changes within an attempt: the pod that was in a group is in it now.
    if (!response_.has_group()) {
      Check(WrongAnswer("Plan does not answer a step of a group"));
      return outcome_;
    }
    if (!Check(CheckTriedPlacements(response_.group(), group_, *tried))) return outcome_;
    v1beta1::ScorePlacementsRequest question;
    *question.mutable_group() = group_;
    std::vector<int> candidates;  // indices of the placements in the question
    for (int i = 0; i < response_.group().tried_size(); ++i) {
      v1beta1::TriedPlacement& fit = *response_.mutable_group()->mutable_tried(i);
      if (!fit.has_assignments()) continue;
      candidates.push_back(i);
      v1beta1::PlacementCandidate* const candidate = question.add_placements();
      *candidate->mutable_placement() = placements_.placements(i);
      *candidate->mutable_assignments() = std::move(*fit.mutable_assignments());
    }
    auto answers = points_.Score(question, deadline_);
    if (!answers.ok()) return FailAtPoint(answers.status());
    for (const v1beta1::ScorePlacementsResponse& answer : *answers) {
      if (answer.has_error()) return Reject(answer.error(), {});
    }
    const std::vector<PlacementVerdict> verdicts = AddUp(*answers, candidates.size());
    size_t best = verdicts.size();
    for (size_t i = 0; i < verdicts.size(); ++i) {
      if (!verdicts[i].excluded_by.empty()) continue;
      if (best == verdicts.size() || verdicts[i].total > verdicts[best].total) best = i;
    }
    if (best == verdicts.size()) return RejectAllOf(verdicts);
    const v1beta1::GroupPlacement& chosen = placements_.placements(candidates[best]);
    VLOG(2) << "Group " << group_.name() << " goes to placement \"" << chosen.name() << "\": score "
            << verdicts[best].total << ", " << candidates.size() << " of "
            << placements_.placements_size() << " placements are large enough";
    GroupNodeSets sets;
    *sets.add_placements() = chosen.nodes();
    return PlaceOn(std::move(sets));
  }

  std::vector<PlacementVerdict> AddUp(const std::vector<v1beta1::ScorePlacementsResponse>& answers,
                                      size_t num_placements) const {
    std::vector<PlacementVerdict> verdicts(num_placements);
    for (const v1beta1::ScorePlacementsResponse& answer : answers) {
      for (const v1beta1::PlacementScores& scores : answer.plugins()) {
        const auto plugin =
            std::find_if(points_.score_plugins().begin(), points_.score_plugins().end(),
                         [&](const WeightedPlugin& its) { return its.name == scores.plugin(); });
        const int64_t weight = plugin == points_.score_plugins().end() ? 0 : plugin->weight;
        for (size_t i = 0; i < num_placements; ++i)
          verdicts[i].total += weight * static_cast<uint8_t>(scores.scores()[i]);
        for (const v1beta1::ExcludedPlacement& excluded : scores.excluded()) {
          PlacementVerdict& verdict = verdicts[excluded.placement()];
          if (!verdict.excluded_by.empty()) continue;
          verdict.excluded_by = scores.plugin();
          verdict.reason = excluded.reason();
        }
      }
    }
    return verdicts;
  }

  GroupStepsOutcome PlaceOn(GroupNodeSets sets) {
    GroupNodeSets* const named = request_.mutable_group_step()->mutable_place_on();
    *named = std::move(sets);
    if (!Exchange() || response_.has_rejection()) return outcome_;
    if (!response_.has_plan()) {
      Check(WrongAnswer("Plan neither places nor rejects a group"));
    } else {
      Check(CheckPlacedOn(response_.plan(), group_, *named));
    }
    return outcome_;
  }

  GroupStepsOutcome RejectAllOf(const std::vector<PlacementVerdict>& verdicts) {
    PluginStatus status;
    status.set_plugin(verdicts.front().excluded_by);
    status.set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    status.add_reasons(absl::StrCat(
        "0/", placements_.placements_size(),
        " placements are available, first placement status: ", verdicts.front().reason));
    std::vector<std::string> plugins;
    for (const PlacementVerdict& verdict : verdicts) {
      if (std::find(plugins.begin(), plugins.end(), verdict.excluded_by) == plugins.end())
        plugins.push_back(verdict.excluded_by);
    }
    return Reject(status, plugins);
  }

  // The answer that a host gives if one of its plugins rejects the group.
  GroupStepsOutcome Reject(const PluginStatus& status,
                           const std::vector<std::string>& rejected_by) {
    response_.Clear();
    response_.set_attempt_id(request_.cycle().header().attempt_id());
    v1beta1::PlanRejection* const rejection = response_.mutable_rejection();
    v1beta1::PreFilterResponse* const pre_filter = rejection->mutable_pre_filter();
    *pre_filter = std::move(pre_filter_);
    pre_filter->mutable_rejection()->set_plugin(status.plugin());
    pre_filter->mutable_rejection()->set_code(status.code());
    std::string reasons = absl::StrJoin(status.reasons(), ", ");
    // A failure's text is that of the plugin alone, as at other points.
    if (status.code() != v1beta1::CODE_ERROR)
      reasons = absl::StrCat(group_.name(), reasons.empty() ? "" : ": ", reasons);
    pre_filter->mutable_rejection()->add_reasons(CutText(reasons));
    pre_filter->mutable_rejected_by()->Assign(rejected_by.begin(), rejected_by.end());
    v1beta1::PlannedGroup* const group = rejection->mutable_group();
    group->set_name(group_.name());
    group->set_needed(group_.needed());
    group->mutable_pod_uids()->Assign(group_.pod_uids().begin() + 1, group_.pod_uids().end());
    outcome_.rejected_at_point = true;
    return outcome_;
  }

  HostClient& client_;
  GroupPoints& points_;
  const cache::ClusterState& cluster_;
  const kube::PodObject& pod_;
  const absl::Time deadline_;
  v1beta1::PlanRequest& request_;
  v1beta1::PlanResponse& response_;
  GroupStepsOutcome outcome_;
  PendingGroup group_;
  v1beta1::PreFilterResponse pre_filter_;
  v1beta1::GeneratedPlacements placements_;
};

}  // namespace

GroupStepsOutcome RunGroupSteps(HostClient* client, GroupPoints* points,
                                const cache::ClusterState& cluster, const kube::PodObject& pod,
                                absl::Time deadline, v1beta1::PlanRequest* request,
                                v1beta1::PlanResponse* response) {
  return Steps(client, points, cluster, pod, deadline, request, response).Run();
}

}  // namespace outboard::framework
