#include "shim/framework/group_check.h"

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/short_names.h"

namespace outboard::framework {
namespace {

using v1beta1::PluginStatus;

// The contract's limits (group.proto).
constexpr int kMaxPods = 4096;
constexpr int kMaxPlacements = 256;
constexpr int kMaxSlots = 1'000'000;
constexpr size_t kMaxNameBytes = 253;
constexpr int kMaxReasons = 16;
constexpr uint8_t kMaxPlacementScore = 100;

absl::Status CheckText(const std::string& text, absl::string_view what) {
  if (text.empty()) return WrongAnswer(absl::StrCat(what, " is empty"));
  if (text.size() > kMaxMessageBytes)
    return WrongAnswer(absl::StrCat(what, " has ", text.size(), " bytes"));
  return absl::OkStatus();
}

absl::Status CheckPlugin(const PluginStatus& status, const std::vector<std::string>& plugins,
                         absl::string_view call) {
  if (std::find(plugins.begin(), plugins.end(), status.plugin()) == plugins.end()) {
    return WrongAnswer(absl::StrCat(call, " answers for \"", CutText(status.plugin(), 100),
                                    "\", which the profile does not have there"));
  }
  if (status.reasons_size() > kMaxReasons)
    return WrongAnswer(absl::StrCat(call, " gives ", status.reasons_size(), " reasons"));
  for (const std::string& reason : status.reasons()) {
    if (absl::Status checked = CheckText(reason, absl::StrCat("A reason of ", call)); !checked.ok())
      return checked;
  }
  return absl::OkStatus();
}

absl::Status CheckPlacement(const v1beta1::GroupPlacement& placement,
                            const cache::ClusterState& cluster) {
  const auto wrong = [&](auto... parts) {
    return WrongAnswer(
        absl::StrCat("Placement \"", CutText(placement.name(), 100), "\" ", parts...));
  };
  if (placement.name().empty() || placement.name().size() > kMaxNameBytes)
    return wrong("has a name of ", placement.name().size(), " bytes");
  if (placement.nodes().slots().empty()) return wrong("has no node");
  absl::flat_hash_set<uint32_t> distinct;
  for (const uint32_t slot : placement.nodes().slots()) {
    if (cluster.NodeAt(slot) == nullptr) return wrong("names slot ", slot, ", which has no node");
    if (!distinct.insert(slot).second) return wrong("names slot ", slot, " twice");
  }
  return absl::OkStatus();
}

absl::Status CheckAssignments(const v1beta1::GroupAssignments& assignments,
                              const v1beta1::PendingGroup& group, const v1beta1::NodeSet& nodes) {
  if (assignments.pods_size() != assignments.slots_size()) {
    return WrongAnswer(absl::StrCat("Plan assigns ", assignments.slots_size(), " nodes to ",
                                    assignments.pods_size(), " pods"));
  }
  if (static_cast<uint32_t>(assignments.pods_size()) < group.needed()) {
    return WrongAnswer(absl::StrCat("Plan assigns nodes to ", assignments.pods_size(), " of ",
                                    group.needed(), " needed pods"));
  }
  const absl::flat_hash_set<uint32_t> among(nodes.slots().begin(), nodes.slots().end());
  absl::flat_hash_set<uint32_t> distinct;
  for (int i = 0; i < assignments.pods_size(); ++i) {
    const uint32_t pod = assignments.pods(i);
    if (pod >= static_cast<uint32_t>(group.pod_uids_size()))
      return WrongAnswer(absl::StrCat("Plan refers to pod ", pod, " of ", group.pod_uids_size()));
    if (!distinct.insert(pod).second)
      return WrongAnswer(
          absl::StrCat("Plan assigns two nodes to pod ", group.pod_uids(static_cast<int>(pod))));
    if (!among.contains(assignments.slots(i))) {
      return WrongAnswer(absl::StrCat("Plan assigns slot ", assignments.slots(i),
                                      ", which is not in the placement"));
    }
  }
  // The attempt is its attempt.
  return distinct.contains(0) ? absl::OkStatus()
                              : WrongAnswer("Plan assigns no node to the attempt's pod");
}

absl::Status CheckScoresOf(const v1beta1::PlacementScores& scores, size_t num_placements) {
  if (scores.scores().size() != num_placements) {
    return WrongAnswer(absl::StrCat(scores.plugin(), " scored ", scores.scores().size(), " of ",
                                    num_placements, " placements"));
  }
  absl::flat_hash_set<uint32_t> excluded;
  for (const v1beta1::ExcludedPlacement& placement : scores.excluded()) {
    if (placement.placement() >= num_placements) {
      return WrongAnswer(absl::StrCat(scores.plugin(), " excludes placement ",
                                      placement.placement(), " of ", num_placements));
    }
    if (!excluded.insert(placement.placement()).second) {
      return WrongAnswer(
          absl::StrCat(scores.plugin(), " excludes placement ", placement.placement(), " twice"));
    }
    if (absl::Status checked = CheckText(
            placement.reason(), absl::StrCat("A reason of ", scores.plugin(), " to exclude"));
        !checked.ok())
      return checked;
  }
  for (size_t i = 0; i < num_placements; ++i) {
    const auto score = static_cast<uint8_t>(scores.scores()[i]);
    if (score > kMaxPlacementScore && !excluded.contains(static_cast<uint32_t>(i))) {
      return WrongAnswer(absl::StrCat(scores.plugin(), " gave placement ", i, " a score of ", score,
                                      ", more than 100"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPendingGroup(const v1beta1::PendingGroup& group, const kube::PodObject& pod,
                               const cache::ClusterState& cluster) {
  const auto wrong = [](auto... parts) {
    return WrongAnswer(absl::StrCat("Plan describes a group ", parts...));
  };
  if (absl::Status checked = CheckText(group.name(), "The name of a group"); !checked.ok())
    return checked;
  if (group.namespace_() != pod.pod.namespace_())
    return wrong("of namespace ", CutText(group.namespace_(), 100), " for pod ", pod.key());
  if (group.pod_uids().empty() || group.pod_uids(0) != pod.uid())
    return wrong("that does not begin with pod ", pod.key());
  if (group.pod_uids_size() > kMaxPods) return wrong("of ", group.pod_uids_size(), " pods");
  if (group.needed() == 0 || group.needed() > static_cast<uint32_t>(group.pod_uids_size()))
    return wrong("that needs ", group.needed(), " of ", group.pod_uids_size(), " pods");
  absl::flat_hash_set<absl::string_view> distinct;
  for (const std::string& uid : group.pod_uids()) {
    if (!distinct.insert(uid).second) return wrong("with pod ", CutText(uid, 100), " twice");
    const kube::PodPtr member = cluster.FindPod(uid);
    if (member == nullptr || !cluster.NodeOf(uid).empty() ||
        member->pod.namespace_() != pod.pod.namespace_()) {
      return wrong("with pod ", CutText(uid, 100),
                   ", which does not wait for a node in the pod's namespace");
    }
  }
  for (const uint32_t slot : group.placed_slots()) {
    if (cluster.NodeAt(slot) == nullptr) return wrong("with slot ", slot, ", which has no node");
  }
  return absl::OkStatus();
}

absl::Status CheckGeneratedPlacements(const v1beta1::GeneratePlacementsResponse& response,
                                      const std::string& plugin,
                                      const cache::ClusterState& cluster) {
  constexpr char kCall[] = "GeneratePlacements";
  switch (response.outcome_case()) {
    case v1beta1::GeneratePlacementsResponse::kAny:
      return absl::OkStatus();
    case v1beta1::GeneratePlacementsResponse::kRejection: {
      const v1beta1::Code code = response.rejection().code();
      if (code == v1beta1::CODE_SUCCESS || code == v1beta1::CODE_UNSPECIFIED)
        return WrongAnswer(absl::StrCat(kCall, " rejects with code ", ShortName(code)));
      return CheckPlugin(response.rejection(), {plugin}, kCall);
    }
    case v1beta1::GeneratePlacementsResponse::kPlacements:
      break;
    case v1beta1::GeneratePlacementsResponse::OUTCOME_NOT_SET:
      return WrongAnswer(absl::StrCat(kCall, " answers nothing"));
  }
  const auto& placements = response.placements().placements();
  if (placements.empty() || placements.size() > kMaxPlacements)
    return WrongAnswer(absl::StrCat(kCall, " names ", placements.size(), " placements"));
  absl::flat_hash_set<absl::string_view> names;
  int num_slots = 0;
  for (const v1beta1::GroupPlacement& placement : placements) {
    if (absl::Status checked = CheckPlacement(placement, cluster); !checked.ok()) return checked;
    if (!names.insert(placement.name()).second)
      return WrongAnswer(absl::StrCat(kCall, " names placement \"", placement.name(), "\" twice"));
    num_slots += placement.nodes().slots_size();
  }
  if (num_slots > kMaxSlots)
    return WrongAnswer(absl::StrCat(kCall, " names ", num_slots, " nodes"));
  return absl::OkStatus();
}

absl::Status CheckTriedPlacements(const v1beta1::GroupTrial& trial,
                                  const v1beta1::PendingGroup& group,
                                  const v1beta1::GroupNodeSets& node_sets) {
  if (trial.tried_size() != node_sets.placements_size()) {
    return WrongAnswer(absl::StrCat("Plan tried ", trial.tried_size(), " of ",
                                    node_sets.placements_size(), " placements"));
  }
  // The positions of pods are those in the group as it was described first.
  if (!std::equal(trial.group().pod_uids().begin(), trial.group().pod_uids().end(),
                  group.pod_uids().begin(), group.pod_uids().end()) ||
      trial.group().needed() != group.needed())
    return WrongAnswer("Plan tried another group than it described");
  bool any_fits = false;
  for (int i = 0; i < trial.tried_size(); ++i) {
    const v1beta1::TriedPlacement& tried = trial.tried(i);
    absl::Status checked;
    switch (tried.outcome_case()) {
      case v1beta1::TriedPlacement::kAssignments:
        any_fits = true;
        checked = CheckAssignments(tried.assignments(), group, node_sets.placements(i));
        break;
      case v1beta1::TriedPlacement::kMisfit:
        checked = CheckText(tried.misfit().reason(), "The reason of a misfit");
        break;
      case v1beta1::TriedPlacement::OUTCOME_NOT_SET:
        checked = WrongAnswer("Plan answers nothing about a placement");
        break;
    }
    if (!checked.ok()) return checked;
  }
  return any_fits ? absl::OkStatus() : WrongAnswer("Plan neither fits nor rejects a group");
}

absl::Status CheckPlacementScores(const v1beta1::ScorePlacementsResponse& response,
                                  const std::vector<std::string>& plugins, size_t num_placements) {
  constexpr char kCall[] = "ScorePlacements";
  if (response.has_error()) return CheckPlugin(response.error(), plugins, kCall);
  if (response.plugins_size() != static_cast<int>(plugins.size())) {
    return WrongAnswer(absl::StrCat(kCall, " answers for ", response.plugins_size(), " of ",
                                    plugins.size(), " plugins"));
  }
  for (int i = 0; i < response.plugins_size(); ++i) {
    const v1beta1::PlacementScores& scores = response.plugins(i);
    if (scores.plugin() != plugins[static_cast<size_t>(i)]) {
      return WrongAnswer(absl::StrCat(kCall, " answers for \"", CutText(scores.plugin(), 100),
                                      "\" in place of ", plugins[static_cast<size_t>(i)]));
    }
    if (absl::Status checked = CheckScoresOf(scores, num_placements); !checked.ok()) return checked;
  }
  return absl::OkStatus();
}

absl::Status CheckPlacedOn(const v1beta1::CyclePlan& plan, const v1beta1::PendingGroup& group,
                           const v1beta1::GroupNodeSets& node_sets) {
  if (!plan.has_group()) return WrongAnswer("Plan places no group on the placement");
  if (plan.node_set() >= static_cast<uint32_t>(node_sets.placements_size())) {
    return WrongAnswer(
        absl::StrCat("Plan uses placement ", plan.node_set(), " of ", node_sets.placements_size()));
  }
  if (static_cast<uint32_t>(plan.placements_size()) < group.needed()) {
    return WrongAnswer(absl::StrCat("Plan places ", plan.placements_size(), " of ", group.needed(),
                                    " needed pods"));
  }
  const auto& slots = node_sets.placements(static_cast<int>(plan.node_set())).slots();
  const absl::flat_hash_set<uint32_t> among(slots.begin(), slots.end());
  const absl::flat_hash_set<absl::string_view> members(group.pod_uids().begin(),
                                                       group.pod_uids().end());
  for (const v1beta1::PlannedPlacement& placement : plan.placements()) {
    if (!members.contains(placement.pod_uid())) {
      return WrongAnswer(absl::StrCat("Plan places pod ", CutText(placement.pod_uid(), 100),
                                      ", which is not in the group"));
    }
    if (!among.contains(placement.slot())) {
      return WrongAnswer(
          absl::StrCat("Plan uses slot ", placement.slot(), ", which is not in the placement"));
    }
  }
  return absl::OkStatus();
}

}  // namespace outboard::framework
