// Verdicts on nodes: well formed, reproducible, and the same for every form of request.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"
#include "proto/short_names.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr int kManyNodes = 260;  // enough for an early end of the search
constexpr int kMaxHypotheses = 65536;

NodeSearch About(const std::vector<uint32_t>& slots) {
  NodeSearch search;
  search.mutable_nodes()->mutable_slots()->Add(slots.begin(), slots.end());
  return search;
}

// Runs `check(pod, attempt, round)` for each pending pod with Filter verdicts.
template <typename Check>
absl::Status ForEachEvaluated(Session& session, Check check) {
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    Round round;
    CONFORMANCE_TRY(RunRound(session, ++attempt, pod.uid(), &round, Until::kFilter));
    if (round.filtered && !round.filter.has_error()) CONFORMANCE_TRY(check(pod, attempt, round));
  }
  return absl::OkStatus();
}

absl::Status WellFormed(const Kit& kit) {
  for (const int nodes : {1, 7, 8, 9, 23, 64, 65}) {
    Session session(kit);
    CONFORMANCE_TRY(session.Open(MakeCluster(nodes)));
    CONFORMANCE_TRY(ForEachEvaluated(
        session, [](const Pod&, uint64_t, const Round&) { return absl::OkStatus(); }));
  }
  return absl::OkStatus();
}

absl::Status Again(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  return ForEachEvaluated(
      session, [&](const Pod& pod, uint64_t attempt, const Round& round) -> absl::Status {
        const auto again = session.Filter(
            attempt, round.pre_filter.has_node_names() ? About(round.list) : NodeSearch());
        CONFORMANCE_TRY(ExpectOk(again));
        if (again.message.SerializeAsString() == round.filter.SerializeAsString())
          return absl::OkStatus();
        return Wrong(kFilterReadOnly,
                     absl::StrCat("pod ", pod.name(), ": the second answer differs"));
      });
}

// Filters `list` in the attempt of `round`; the verdicts must be the same.
absl::Status ExpectVerdicts(const Session& session, uint64_t attempt, const Pod& pod,
                            const Round& round, NodeSearch search,
                            const std::vector<uint32_t>& list, const Rule& rule) {
  const auto filter = session.Filter(attempt, std::move(search));
  CONFORMANCE_TRY(ExpectOk(filter));
  Verdicts verdicts;
  std::vector<uint32_t> feasible;
  CONFORMANCE_TRY(
      CheckFilter(session.kit(), filter.message, list, list.size(), &verdicts, &feasible));
  for (const auto& [slot, verdict] : verdicts) {
    if (round.verdicts.at(slot) != verdict)
      return Wrong(rule, absl::StrCat("pod ", pod.name(), ": a different verdict on slot ", slot));
  }
  return absl::OkStatus();
}

absl::Status GivenNodes(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  return ForEachEvaluated(
      session, [&](const Pod& pod, uint64_t attempt, const Round& round) -> absl::Status {
        std::vector<uint32_t> some;
        for (size_t i = 0; i < round.list.size(); i += 2) some.insert(some.begin(), round.list[i]);
        CONFORMANCE_TRY(
            ExpectVerdicts(session, attempt, pod, round, About(some), some, kFilterNodes));
        return ExpectVerdicts(session, attempt, pod, round, About({}), {}, kFilterNodes);
      });
}

absl::Status StartOffset(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  return ForEachEvaluated(
      session, [&](const Pod& pod, uint64_t attempt, const Round& round) -> absl::Status {
        for (const uint32_t offset : {5u, 22u, 23u, 4000000000u}) {
          std::vector<uint32_t> list = round.list;
          if (list.empty()) continue;
          std::rotate(list.begin(), list.begin() + offset % list.size(), list.end());
          NodeSearch search = About(round.list);
          search.set_start_offset(offset);
          CONFORMANCE_TRY(
              ExpectVerdicts(session, attempt, pod, round, search, list, kFilterOffset));
        }
        return absl::OkStatus();
      });
}

absl::Status FirstOnly(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  return ForEachEvaluated(
      session, [&](const Pod& pod, uint64_t attempt, const Round& round) -> absl::Status {
        NodeSearch search = About(round.list);
        search.set_num_feasible_nodes_to_find(1);
        const auto filter = session.Filter(attempt, search);
        CONFORMANCE_TRY(ExpectOk(filter));
        Verdicts verdicts;
        std::vector<uint32_t> feasible;
        const size_t wanted = session.is_inline() ? round.list.size() : 1;
        CONFORMANCE_TRY(CheckFilter(kit, filter.message, round.list, wanted, &verdicts, &feasible));
        if (session.is_inline()) return absl::OkStatus();
        if (round.feasible.empty() ? feasible.empty()
                                   : (feasible.size() == 1 && feasible[0] == round.feasible[0]))
          return absl::OkStatus();
        return Wrong(kFilterEnough,
                     absl::StrCat("pod ", pod.name(), ": not the first feasible node of all"));
      });
}

absl::Status Enough(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(kManyNodes)));
  const std::vector<uint32_t> all = FirstSlots(kManyNodes);
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    Round full;
    CONFORMANCE_TRY(RunRound(session, ++attempt, pod.uid(), all, &full));
    for (const uint32_t number : {1u, 7u, 100u, static_cast<uint32_t>(kManyNodes), 4000000000u}) {
      Round part;
      NodeSearch search;
      search.set_num_feasible_nodes_to_find(number);
      search.set_start_offset(number);
      CONFORMANCE_TRY(RunRound(session, ++attempt, pod.uid(), all, &part, search));
      if (!part.filtered || !full.filtered || part.filter.has_error()) continue;
      const size_t processed =
          ProcessedNodes(full, part.list, session.is_inline() ? part.list.size() : number);
      if (part.filter.processed() != processed) {
        return Wrong(kFilterEnough,
                     absl::StrCat("pod ", pod.name(), ": ", part.filter.processed(),
                                  " nodes examined to find ", number, ", not ", processed));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status InlineErrors(const Session& session) {
  const FilterRequest complete = FilterOf(session, 1, {0, 1, 2});
  CONFORMANCE_TRY(ExpectOtherNodesRefused(session, complete));
  FilterRequest request = complete;
  request.mutable_simulation()->add_nodes()->set_slot(0);  // one node, and three come with it
  CONFORMANCE_TRY(ExpectError(session.Call(request), {CallError::REASON_INVALID}, kInlineComplete));
  request.clear_simulation();
  request.clear_inline_nodes();
  request.clear_node_columns();
  return ExpectError(session.Call(request), {CallError::REASON_INVALID}, kFilterWhat);
}

absl::Status Errors(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  CONFORMANCE_TRY(ExpectOk(session.PreFilter(1, session.cluster().pending[0].uid())));
  if (session.is_inline()) return InlineErrors(session);
  CONFORMANCE_TRY(ExpectError(session.Filter(1, About({1, 9})), {CallError::REASON_OBJECT_UNKNOWN},
                              kObjectUnknown));
  CONFORMANCE_TRY(ExpectError(session.Filter(1, About({4294967295u})),
                              {CallError::REASON_OBJECT_UNKNOWN}, kObjectUnknown));
  CONFORMANCE_TRY(ExpectError(session.Filter(1, About({1, 2, 1})), {CallError::REASON_INVALID},
                              kNodeSetDistinct));
  // Neither a search nor a simulation.
  FilterRequest request;
  *request.mutable_header() = session.Header(1);
  return ExpectError(session.Call(request), {CallError::REASON_INVALID}, kFilterWhat);
}

absl::Status Hypotheses(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  return ForEachEvaluated(
      session, [&](const Pod& pod, uint64_t attempt, const Round& round) -> absl::Status {
        // Unchanged; without its pods; with them again.
        NodeSimulation simulation;
        std::vector<uint32_t> list;
        for (const uint32_t slot : round.list) {
          simulation.add_nodes()->set_slot(slot);
          list.push_back(slot);
        }
        const auto plain = session.Simulate(attempt, simulation);
        CONFORMANCE_TRY(ExpectOk(plain));
        Verdicts verdicts;
        std::vector<uint32_t> feasible;
        CONFORMANCE_TRY(CheckFilter(kit, plain.message, list, list.size(), &verdicts, &feasible));
        if (plain.message.has_error())
          return Wrong(kSimulatedFailure,
                       absl::StrCat("pod ", pod.name(), ": Filter returns `error`"));
        if (verdicts != round.verdicts)
          return Wrong(
              kHypotheses,
              absl::StrCat("pod ", pod.name(),
                           ": unchanged simulated nodes have other verdicts than nodes of a list"));
        simulation.Clear();
        list.clear();
        for (const Pod& running : session.cluster().running) {
          const auto node =
              std::find_if(session.cluster().nodes.begin(), session.cluster().nodes.end(),
                           [&](const Node& n) { return n.name() == running.node_name(); });
          const auto slot = static_cast<uint32_t>(node - session.cluster().nodes.begin());
          if (round.verdicts.count(slot) == 0) continue;
          SimulatedNode* without = simulation.add_nodes();
          without->set_slot(slot);
          without->add_removed_pod_uids(running.uid());
          SimulatedNode* with = simulation.add_nodes();
          with->set_slot(slot);
          with->set_continues(true);
          with->add_added_pod_uids(running.uid());
          list.push_back(slot);
          list.push_back(slot);
        }
        const auto changed = session.Simulate(attempt, simulation);
        CONFORMANCE_TRY(ExpectOk(changed));
        // Positions are those of simulated nodes, two per slot.
        std::vector<uint32_t> positions = FirstSlots(static_cast<int>(list.size()));
        CONFORMANCE_TRY(
            CheckFilter(kit, changed.message, positions, list.size(), &verdicts, &feasible));
        if (changed.message.processed() != list.size())
          return Wrong(kHypotheses, absl::StrCat(changed.message.processed(), " of ", list.size(),
                                                 " have verdicts"));
        for (uint32_t i = 1; i < list.size(); i += 2) {
          if (verdicts.at(i) != round.verdicts.at(list[i])) {
            return Wrong(kHypothesisContinues,
                         absl::StrCat("pod ", pod.name(), ": slot ", list[i],
                                      " has another verdict after its pod was removed and added"));
          }
        }
        return absl::OkStatus();
      });
}

// The node that a search ends at because a plugin fails is rejected by that plugin in a simulation.
absl::Status SimulatedFailure(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  uint64_t attempt = 0;
  bool any = false;
  for (const Pod& pod : session.cluster().pending) {
    Round round;
    CONFORMANCE_TRY(RunRound(session, ++attempt, pod.uid(), &round, Until::kFilter));
    const uint32_t failed = round.filter.processed();
    if (!round.filter.has_error() || failed >= round.list.size()) continue;
    any = true;
    NodeSimulation simulation;
    simulation.add_nodes()->set_slot(round.list[failed]);
    const auto simulated = session.Simulate(attempt, simulation);
    CONFORMANCE_TRY(ExpectOk(simulated));
    Verdicts verdicts;
    std::vector<uint32_t> feasible;
    CONFORMANCE_TRY(CheckFilter(kit, simulated.message, {0}, 1, &verdicts, &feasible));
    PluginStatus verdict;
    if (!simulated.message.has_error() && verdicts.count(0) != 0 &&
        verdict.ParseFromString(verdicts.at(0)) &&
        verdict.plugin() == round.filter.error().plugin() &&
        verdict.code() == CODE_UNSCHEDULABLE_AND_UNRESOLVABLE)
      continue;
    return Wrong(kSimulatedFailure,
                 absl::StrCat("pod ", pod.name(), ": ", round.filter.error().plugin(),
                              " fails on slot ", round.list[failed], ", and simulated it has ",
                              verdict.plugin(), ": ", ShortName(verdict.code())));
  }
  return any ? absl::OkStatus() : Skipped("no plugin fails on a node of the kit");
}

absl::Status HypothesesErrors(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster(9)));
  CONFORMANCE_TRY(ExpectOk(session.PreFilter(1, session.cluster().pending[0].uid())));
  NodeSimulation simulation;
  simulation.add_nodes()->set_slot(9);
  CONFORMANCE_TRY(ExpectError(session.Simulate(1, simulation), {CallError::REASON_OBJECT_UNKNOWN},
                              kObjectUnknown));
  simulation.mutable_nodes(0)->set_slot(0);
  simulation.mutable_nodes(0)->add_removed_pod_uids(session.cluster().pending[0].uid());
  CONFORMANCE_TRY(ExpectError(session.Simulate(1, simulation),
                              {CallError::REASON_OBJECT_UNKNOWN, CallError::REASON_INVALID},
                              kHypothesisRemoved));
  simulation.mutable_nodes(0)->clear_removed_pod_uids();
  SimulatedNode* next = simulation.add_nodes();
  next->set_slot(1);
  next->set_continues(true);
  CONFORMANCE_TRY(ExpectError(session.Simulate(1, simulation), {CallError::REASON_INVALID},
                              kHypothesisContinues));
  simulation.clear_nodes();
  simulation.add_nodes()->set_continues(true);
  CONFORMANCE_TRY(ExpectError(session.Simulate(1, simulation), {CallError::REASON_INVALID},
                              kHypothesisContinues));
  simulation.clear_nodes();
  for (int i = 0; i <= kMaxHypotheses; ++i) simulation.add_nodes()->set_slot(0);
  return ExpectError(session.Simulate(1, simulation), {CallError::REASON_INVALID},
                     kHypothesesLimit);
}

// Runs all pending pods as attempts from `first` on, and expects the verdicts of `rounds`.
absl::Status ExpectRounds(Session& session, uint64_t first, const std::vector<Round>& rounds,
                          const Rule& rule, const std::string& otherwise) {
  const auto& pending = session.cluster().pending;
  for (size_t i = 0; i < pending.size(); ++i) {
    Round now;
    CONFORMANCE_TRY(RunRound(session, first + i, pending[i].uid(), &now));
    if (now.verdicts != rounds[i].verdicts)
      return Wrong(rule, absl::StrCat("pod ", pending[i].name(), ": ", otherwise));
  }
  return absl::OkStatus();
}

// Assumed and bound pods count like running ones; removing them undoes that.
absl::Status Placements(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  const auto& pending = session.cluster().pending;
  std::vector<Round> before(pending.size());
  for (size_t i = 0; i < pending.size(); ++i)
    CONFORMANCE_TRY(RunRound(session, 1 + i, pending[i].uid(), &before[i]));
  Pod guest = MakePod("guest");
  session.SendDelta({UpsertPod(guest), PlacePod(guest.uid(), PLACEMENT_STATE_ASSUMED, 0)});
  CONFORMANCE_TRY(ExpectAlive(session, 50));
  session.SendDelta({PlacePod(guest.uid(), PLACEMENT_STATE_NOMINATED, 1)});
  CONFORMANCE_TRY(ExpectAlive(session, 51));
  session.SendDelta({PlacePod(guest.uid(), PLACEMENT_STATE_UNPLACED, 0), RemovePod(guest.uid())});
  CONFORMANCE_TRY(ExpectRounds(session, 100, before, kVersionExact,
                               "a removed pod still affects the verdicts"));
  // A bound pod is like a pod that arrived with a node name.
  Pod running = guest;
  running.set_node_name(session.cluster().nodes[0].name());
  session.SendDelta({UpsertPod(running)});
  std::vector<Round> beside(pending.size());
  for (size_t i = 0; i < pending.size(); ++i)
    CONFORMANCE_TRY(RunRound(session, 200 + i, pending[i].uid(), &beside[i]));
  session.SendDelta({RemovePod(guest.uid())});
  session.SendDelta({UpsertPod(guest), PlacePod(guest.uid(), PLACEMENT_STATE_ASSUMED, 0)});
  session.SendDelta({PlacePod(guest.uid(), PLACEMENT_STATE_BOUND, 0)});
  CONFORMANCE_TRY(ExpectRounds(session, 300, beside, kBound,
                               "other verdicts than beside a pod that arrived with the node name"));
  session.SendDelta({RemovePod(guest.uid())});
  return ExpectRounds(session, 400, before, kBound,
                      "a removed bound pod still affects the verdicts");
}

// A node rejects a pod beside a nominated pod as if that pod were on it, else as if it were not.
absl::Status Nominated(const Kit& kit) {
  constexpr uint32_t kSlot = 20;  // has room for one pod
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  const auto& pending = session.cluster().pending;
  std::vector<Round> alone(pending.size()), beside(pending.size());
  for (size_t i = 0; i < pending.size(); ++i)
    CONFORMANCE_TRY(RunRound(session, 1 + i, pending[i].uid(), &alone[i]));
  Pod guest = MakePod("guest");
  guest.set_priority(std::numeric_limits<int32_t>::max());
  session.SendDelta({UpsertPod(guest), PlacePod(guest.uid(), PLACEMENT_STATE_ASSUMED, kSlot)});
  for (size_t i = 0; i < pending.size(); ++i)
    CONFORMANCE_TRY(RunRound(session, 100 + i, pending[i].uid(), &beside[i]));
  session.SendDelta({PlacePod(guest.uid(), PLACEMENT_STATE_NOMINATED, kSlot)});
  for (size_t i = 0; i < pending.size(); ++i) {
    const auto occupied = beside[i].verdicts.find(kSlot);
    if (occupied == beside[i].verdicts.end()) continue;
    Round now;
    CONFORMANCE_TRY(RunRound(session, 200 + i, pending[i].uid(), &now));
    // Of this node alone: a plugin may plan for the nominated pod on other nodes.
    const Verdicts& expected = (occupied->second.empty() ? alone[i] : beside[i]).verdicts;
    const auto wanted = expected.find(kSlot);
    const auto found = std::as_const(now.verdicts).find(kSlot);
    if (wanted == expected.end() || found == now.verdicts.cend()) continue;
    if (found->second != wanted->second)
      return Wrong(kFilterTwice, absl::StrCat("pod ", pending[i].name(),
                                              ": another verdict than with the nominated pod on "
                                              "the node, or without it"));
  }
  session.SendDelta({PlacePod(guest.uid(), PLACEMENT_STATE_UNPLACED, 0), RemovePod(guest.uid())});
  return ExpectRounds(session, 300, alone, kFilterTwice,
                      "a removed nominated pod still affects the verdicts");
}

}  // namespace

std::vector<Case> FilterCases() {
  static constexpr char kService[] = "FilterService";
  return {
      {kService, "well-formed",
       "bitmaps, counts, reasons and plugins are valid, in clusters of many sizes", WellFormed},
      {kService, "again", "the same request gets the same answer", Again},
      {kService, "given-nodes", "a subset of nodes in another order gets the same verdicts",
       GivenNodes},
      {kService, "start-offset", "another start offset gets the same verdicts", StartOffset},
      {kService, "first-only", "if one feasible node is enough, it is the first", FirstOnly},
      {kService, "enough", "the search ends exactly when enough nodes are feasible", Enough},
      {kService, "errors",
       "unknown and duplicate slots return an error, or other nodes than the call names", Errors},
      {kService, "hypotheses", "simulated nodes without some pods, and with them again",
       Hypotheses},
      {kService, "simulated-failure", "a plugin that fails on a simulated node rejects it",
       SimulatedFailure},
      {kService, "hypotheses-errors", "invalid simulated nodes return an error", HypothesesErrors},
      {kService, "placements", "removed placements have no effect", Placements},
      {kService, "nominated", "nodes with nominated pods are evaluated with and without them",
       Nominated},
  };
}

}  // namespace outboard::conformance
