// Plans: the same answers as Cycle's for a single pod, and placements of several pods that equal
// placing them one by one.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/fused.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

using PlanStream = FusedStream<PlanRpc>;

constexpr int kBatch = 6;
constexpr uint32_t kOffset = 5;
constexpr int kMaxGroup = 4096;

// The answer of Cycle that this is, if the host selected no node.
absl::Status ToCycle(const PlanResponse& response, CycleResponse* cycle) {
  if (response.has_plan())
    return Wrong(kPlanEqual, "the host selects a node that was not asked for");
  if (response.rejection().has_group())
    return Wrong(kPlanEqual, "the host rejects a group that was not asked for");
  cycle->Clear();
  cycle->set_attempt_id(response.attempt_id());
  if (response.has_error()) *cycle->mutable_error() = response.error();
  if (response.has_rejection())
    *cycle->mutable_rejection()->mutable_pre_filter() = response.rejection().pre_filter();
  if (response.has_evaluation()) *cycle->mutable_evaluation() = response.evaluation();
  return absl::OkStatus();
}

absl::Status ToRound(const Kit& kit, const PlanResponse& response, Round* round) {
  CycleResponse cycle;
  CONFORMANCE_TRY(ToCycle(response, &cycle));
  *round = Round();
  return ToRound(kit, cycle, /*score_single=*/false, round);
}

absl::Status WellFormed(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  PlanStream stream(session);
  uint64_t attempt = 100;
  for (const Pod& pod : session.cluster().pending) {
    PlanResponse response;
    Round round;
    CONFORMANCE_TRY(stream.Exchange(stream.MakeRequest(++attempt, pod.uid()), &response));
    CONFORMANCE_TRY(ToRound(kit, response, &round));
  }
  return absl::OkStatus();
}

// A shim opens one of the two streams in a session, so this compares two sessions.
absl::Status EqualsCycle(const Kit& kit) {
  Session plans(kit);
  Session cycles(kit);
  CONFORMANCE_TRY(plans.Open(MakeCluster()));
  CONFORMANCE_TRY(cycles.Open(MakeCluster()));
  PlanStream plan_stream(plans);
  FusedStream<CycleRpc> cycle_stream(cycles);
  uint64_t attempt = 0;
  for (const Pod& pod : plans.cluster().pending) {
    CycleRequest request = cycle_stream.MakeRequest(++attempt, pod.uid());
    request.mutable_search()->set_start_offset(kOffset);
    CycleResponse cycle;
    Round expected;
    CONFORMANCE_TRY(cycle_stream.Exchange(request, &cycle));
    CONFORMANCE_TRY(ToRound(kit, cycle, /*score_single=*/false, &expected));
    PlanRequest plan = plan_stream.MakeRequest(attempt, pod.uid());
    plan.mutable_cycle()->mutable_search()->set_start_offset(kOffset);
    PlanResponse response;
    Round actual;
    CONFORMANCE_TRY(plan_stream.Exchange(plan, &response));
    CONFORMANCE_TRY(ToRound(kit, response, &actual));
    CONFORMANCE_TRY(ExpectSame(expected, actual, kPlanEqual,
                               absl::StrCat("for pod ", pod.name(), " in the answer of Plan")));
  }
  return absl::OkStatus();
}

// The pods of a batch: all alike.
std::vector<Pod> BatchPods() {
  std::vector<Pod> pods;
  for (int i = 0; i < kBatch; ++i) pods.push_back(MakePod(absl::StrCat("batch-", i)));
  return pods;
}

TestCluster BatchCluster() {
  TestCluster cluster = MakeCluster();
  for (Pod& pod : BatchPods()) cluster.pending.push_back(std::move(pod));
  return cluster;
}

// Without Score plugins the shim takes the first feasible node.
void SetSearch(const Kit& kit, uint32_t start_offset, CycleRequest* request) {
  request->mutable_search()->set_start_offset(start_offset);
  if (!kit.Has(EXTENSION_POINT_SCORE)) request->mutable_search()->set_num_feasible_nodes_to_find(1);
}

// The first best of the scores on a preorder walk of a binary heap, from its node `root`.
size_t FirstBest(const std::vector<int64_t>& totals, int64_t best, size_t root) {
  if (root >= totals.size() || totals[root] == best) return root;
  const size_t left = FirstBest(totals, best, 2 * root + 1);
  return left < totals.size() ? left : FirstBest(totals, best, 2 * root + 2);
}

// Places a pod alone, as the shim does. False: nowhere.
absl::StatusOr<bool> PlaceAlone(const Session& session, PlanStream* stream, uint64_t attempt,
                                const Pod& pod, uint32_t start_offset, PlannedPlacement* place) {
  const Kit& kit = session.kit();
  PlanRequest request = stream->MakeRequest(attempt, pod.uid());
  SetSearch(kit, start_offset, request.mutable_cycle());
  PlanResponse response;
  Round round;
  CONFORMANCE_TRY(stream->Exchange(request, &response));
  CONFORMANCE_TRY(ToRound(kit, response, &round));
  if (round.pre_filter.has_rejection() || round.filter.has_error()) return false;
  std::vector<uint32_t> list = FirstSlots(static_cast<int>(session.cluster().nodes.size()));
  if (round.pre_filter.has_node_names()) {
    const auto& names = round.pre_filter.node_names().names();
    std::erase_if(list, [&](uint32_t slot) {
      return std::find(names.begin(), names.end(), session.cluster().nodes[slot].name()) ==
             names.end();
    });
  }
  if (list.empty()) return false;
  std::rotate(list.begin(), list.begin() + start_offset % list.size(), list.end());
  const size_t wanted = kit.Has(EXTENSION_POINT_SCORE) ? list.size() : 1;
  CONFORMANCE_TRY(CheckFilter(kit, round.filter, list, wanted, &round.verdicts, &round.feasible));
  if (round.feasible.empty()) return false;
  size_t selected = 0;
  if (response.evaluation().has_score()) {
    CONFORMANCE_TRY(CheckScore(kit, round.pre_score, round.score, round.feasible.size()));
    if (round.pre_score.has_error() || round.score.has_error()) return false;
    // All weights are 1.
    std::vector<int64_t> totals(round.feasible.size(), 0);
    for (const PluginScores& scores : round.score.plugins()) {
      for (size_t i = 0; i < totals.size(); ++i)
        totals[i] += static_cast<uint8_t>(scores.scores()[i]);
    }
    selected = FirstBest(totals, *std::max_element(totals.begin(), totals.end()), 0);
  }
  place->set_pod_uid(pod.uid());
  place->set_slot(round.feasible[selected]);
  place->set_processed(round.filter.processed());
  place->set_feasible(static_cast<uint32_t>(round.feasible.size()));
  return true;
}

std::string Describe(const PlannedPlacement& place) {
  return absl::StrCat(place.pod_uid(), " on slot ", place.slot(), ", ", place.feasible(), " of ",
                      place.processed(), " nodes feasible");
}

// The form of each placement. `uids`: of the pods that may be placed.
absl::Status CheckPlan(const Session& session, const CyclePlan& plan, const std::string& first,
                       const std::set<std::string>& uids) {
  if (plan.placements().empty() || plan.placements(0).pod_uid() != first)
    return Wrong(kPlanFirst, absl::StrCat("not ", first));
  CONFORMANCE_TRY(CheckPreFilter(session.kit(), plan.pre_filter()));
  if (plan.pre_filter().has_rejection()) return Wrong(kPlanPreFilter, "PreFilter rejects");
  std::set<std::string> distinct;
  const size_t num_nodes = session.cluster().nodes.size();
  for (const PlannedPlacement& place : plan.placements()) {
    if (uids.count(place.pod_uid()) == 0 || !distinct.insert(place.pod_uid()).second)
      return Wrong(kPlanOthers,
                   absl::StrCat("pod ", place.pod_uid(), " is unknown, or placed twice"));
    if (place.slot() >= num_nodes)
      return Wrong(kPlanSlot, absl::StrCat(place.slot(), " of ", num_nodes, " nodes"));
    if (place.feasible() == 0 || place.feasible() > place.processed() ||
        place.processed() > num_nodes)
      return Wrong(kPlanFeasible, Describe(place));
  }
  return absl::OkStatus();
}

// The shim reserves each placement in an attempt of its own, which must be known.
absl::Status ReserveEach(const Session& session, uint64_t attempt, const CyclePlan& plan) {
  if (!session.kit().Has(EXTENSION_POINT_RESERVE)) return absl::OkStatus();
  for (const PlannedPlacement& place : plan.placements()) {
    ReserveRequest request;
    *request.mutable_header() = session.HeaderFrom(attempt++);
    request.set_pod_uid(place.pod_uid());
    request.set_node_name(session.cluster().nodes[place.slot()].name());
    const auto reserved = session.Call(request);
    if (!reserved.status.ok())
      return Wrong(kPlanAttempts,
                   absl::StrCat("Reserve of ", place.pod_uid(), " in its attempt returns ",
                                conformance::Describe(reserved.status)));
  }
  return absl::OkStatus();
}

absl::Status Batch(const Kit& kit) {
  if (!kit.Can(CAPABILITY_BATCH)) return Skipped("without the capability BATCH");
  const std::vector<Pod> pods = BatchPods();
  Session session(kit);
  CONFORMANCE_TRY(session.Open(BatchCluster()));
  PlanStream stream(session);
  constexpr uint64_t kAttempt = 100;
  PlanRequest request = stream.MakeRequest(kAttempt, pods[0].uid());
  SetSearch(kit, kOffset, request.mutable_cycle());
  for (int i = 1; i < kBatch; ++i) request.add_next_pod_uids(pods[i].uid());
  PlanResponse response;
  CONFORMANCE_TRY(stream.Exchange(request, &response));
  if (!response.has_plan()) {
    // It may place any number, also none.
    Round round;
    return ToRound(kit, response, &round);
  }
  const CyclePlan& plan = response.plan();
  if (plan.has_group()) return Wrong(kPlanEqual, "the host places a group that was not asked for");
  std::set<std::string> uids;
  for (const Pod& pod : pods) uids.insert(pod.uid());
  CONFORMANCE_TRY(CheckPlan(session, plan, pods[0].uid(), uids));

  Session singly(kit);
  CONFORMANCE_TRY(singly.Open(BatchCluster()));
  PlanStream single_stream(singly);
  uint32_t offset = kOffset;
  for (int i = 0; i < plan.placements_size(); ++i) {
    const PlannedPlacement& actual = plan.placements(i);
    if (actual.pod_uid() != pods[i].uid())
      return Wrong(kPlanOthers, absl::StrCat("placement ", i, " is of pod ", actual.pod_uid()));
    PlannedPlacement expected;
    const absl::StatusOr<bool> placed = PlaceAlone(
        singly, &single_stream, static_cast<uint64_t>(i) + 1, pods[i], offset, &expected);
    if (!placed.ok()) return placed.status();
    if (!*placed || expected.slot() != actual.slot() ||
        expected.processed() != actual.processed() || expected.feasible() != actual.feasible()) {
      return Wrong(kPlanNext, absl::StrCat(Describe(actual),
                                           "; alone: ", *placed ? Describe(expected) : "no node"));
    }
    offset = (offset + expected.processed()) % static_cast<uint32_t>(singly.cluster().nodes.size());
    singly.SendDelta({PlacePod(pods[i].uid(), PLACEMENT_STATE_ASSUMED, expected.slot())});
  }
  return ReserveEach(session, kAttempt, plan);
}

// Any plugin that evaluated the members may have rejected the group.
absl::Status CheckRejectedGroup(const Session& session, const PlanRejection& rejection,
                                const std::string& uid, const std::set<std::string>& uids) {
  const Kit& kit = session.kit();
  Plugins plugins = kit.At(EXTENSION_POINT_PRE_FILTER);
  for (const std::string& name : kit.At(EXTENSION_POINT_FILTER)) plugins.push_back(name);
  CONFORMANCE_TRY(CheckStatus(
      rejection.pre_filter().rejection(), "the rejection of a group", plugins,
      {CODE_ERROR, CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, CODE_PENDING},
      kPreFilterRejection));
  const auto& others = rejection.group().pod_uids();
  std::set<std::string> distinct{uid};
  for (const std::string& other : others) {
    if (others.size() > kMaxGroup || uids.count(other) == 0 || !distinct.insert(other).second)
      return Wrong(kPlanRejectedWith,
                   absl::StrCat("pod ", other, " is unknown or named twice, or one of too many"));
  }
  return absl::OkStatus();
}

// Whether pods are in a group is for the plugins to say, so this checks the form of any answer.
absl::Status Group(const Kit& kit) {
  if (!kit.Can(CAPABILITY_GROUP_PLAN)) return Skipped("without the capability GROUP_PLAN");
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  PlanStream stream(session);
  std::set<std::string> uids;
  for (const Pod& pod : session.cluster().pending) uids.insert(pod.uid());
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    PlanRequest request = stream.MakeRequest(attempt += 1000, pod.uid());
    request.set_place_group(true);
    PlanResponse response;
    CONFORMANCE_TRY(stream.Exchange(request, &response));
    if (response.has_plan()) {
      if (!response.plan().has_group()) return Wrong(kPlanGroup, "placements without a group");
      CONFORMANCE_TRY(CheckPlan(session, response.plan(), pod.uid(), uids));
    } else if (response.rejection().has_group()) {
      CONFORMANCE_TRY(CheckRejectedGroup(session, response.rejection(), pod.uid(), uids));
    } else {
      Round round;
      CONFORMANCE_TRY(ToRound(kit, response, &round));
    }
    // On given nodes the pod is alone.
    request = stream.MakeRequest(attempt += 1000, pod.uid());
    for (const uint32_t slot : {3, 8, 1}) {
      request.mutable_cycle()->mutable_search()->mutable_nodes()->add_slots(slot);
    }
    Round alone, ignored;
    CONFORMANCE_TRY(stream.Exchange(request, &response));
    CONFORMANCE_TRY(ToRound(kit, response, &alone));
    request.mutable_cycle()->mutable_header()->set_attempt_id(attempt += 1000);
    request.set_place_group(true);
    CONFORMANCE_TRY(stream.Exchange(request, &response));
    CONFORMANCE_TRY(ToRound(kit, response, &ignored));
    CONFORMANCE_TRY(ExpectSame(alone, ignored, kPlanGroupIgnored,
                               absl::StrCat("for pod ", pod.name(), " with place_group")));
  }
  return absl::OkStatus();
}

absl::Status Errors(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  PlanStream stream(session);
  PlanResponse response;
  CONFORMANCE_TRY(stream.Exchange(stream.MakeRequest(1, "unknown"), &response));
  CONFORMANCE_TRY(ExpectErrorMessage("Plan", response.error(), {CallError::REASON_OBJECT_UNKNOWN},
                                     kObjectUnknown));
  // The stream must stay usable.
  CONFORMANCE_TRY(
      stream.Exchange(stream.MakeRequest(2, session.cluster().pending[0].uid()), &response));
  Round round;
  return ToRound(kit, response, &round);
}

}  // namespace

std::vector<Case> PlanCases() {
  static constexpr char kService[] = "PlanService";
  return {
      {kService, "well-formed", "answers name their attempt, and have the required parts",
       WellFormed},
      {kService, "equals-cycle", "for a single pod the answers equal those of Cycle", EqualsCycle},
      {kService, "batch", "pods are placed as one by one, in attempts that have begun", Batch},
      {kService, "group", "groups are placed or rejected whole, and not on given nodes", Group},
      {kService, "errors", "errors are in the answer, and the stream stays usable", Errors},
  };
}

}  // namespace outboard::conformance
