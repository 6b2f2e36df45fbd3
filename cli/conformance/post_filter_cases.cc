// Preemption: for a pod that fits on no node, and for a group that does not fit.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr char kService[] = "PostFilterService";
constexpr size_t kSummaryBytes = 32 << 10;
constexpr int kMaxCandidates = 32;
constexpr int kMembers = 3;

// What an answer is about. `group`: nullptr for a single pod.
struct Question {
  const Session& session;
  const Pod& pod;
  const PendingGroup* group;
  ExtensionPoint point;  // the plugins that answer
};

// A victim of lower priority, or nullptr.
const Pod* FindVictim(const Question& question, const std::string& uid) {
  const auto& running = question.session.cluster().running;
  const auto victim =
      std::find_if(running.begin(), running.end(), [&](const Pod& p) { return p.uid() == uid; });
  return victim != running.end() && victim->priority() < question.pod.priority() ? &*victim
                                                                                 : nullptr;
}

absl::Status CheckCompanions(const Question& question, const PreemptionCandidate& candidate,
                             std::set<std::string>* distinct) {
  for (const std::string& uid : candidate.companion_uids()) {
    if (FindVictim(question, uid) == nullptr)
      return Wrong(kVictimsKnown, absl::StrCat("\"", uid, "\" is not a companion"));
    if (!distinct->insert(uid).second)
      return Wrong(kCompanions, absl::StrCat(uid, " is named twice"));
  }
  return absl::OkStatus();
}

// `nodes`: names of the nodes that victims may be on.
absl::Status CheckNominations(const Question& question, const PreemptionCandidate& candidate,
                              std::set<std::string>* nodes) {
  const TestCluster& cluster = question.session.cluster();
  std::set<std::string> distinct;
  for (const Nomination& nomination : candidate.nominations()) {
    const std::string& uid = nomination.pod_uid();
    const bool is_member =
        question.group != nullptr && uid != question.pod.uid() &&
        std::count(question.group->pod_uids().begin(), question.group->pod_uids().end(), uid) > 0;
    if (!is_member || !distinct.insert(uid).second)
      return Wrong(
          kNominations,
          absl::StrCat("\"", uid, "\" is not another pod of the group, or is named twice"));
    if (nomination.slot() >= cluster.nodes.size())
      return Wrong(kNominationSlot, absl::StrCat("slot ", nomination.slot(), " has no node"));
    nodes->insert(cluster.nodes[nomination.slot()].name());
  }
  return absl::OkStatus();
}

absl::Status CheckCandidate(const Question& question, const PreemptionCandidate& candidate) {
  const TestCluster& cluster = question.session.cluster();
  const Plugins plugins = question.session.kit().At(question.point);
  if (std::find(plugins.begin(), plugins.end(), candidate.plugin()) == plugins.end())
    return Wrong(kCandidatePlugin,
                 absl::StrCat("\"", candidate.plugin(), "\" is not configured there"));
  if (candidate.slot() >= cluster.nodes.size())
    return Wrong(kCandidateSlot, absl::StrCat("slot ", candidate.slot(), " has no node"));
  std::set<std::string> nodes = {cluster.nodes[candidate.slot()].name()};
  CONFORMANCE_TRY(CheckNominations(question, candidate, &nodes));
  std::set<std::string> distinct;
  for (const std::string& uid : candidate.victim_uids()) {
    const Pod* const victim = FindVictim(question, uid);
    if (victim == nullptr || nodes.count(victim->node_name()) == 0)
      return Wrong(kVictimsKnown,
                   absl::StrCat("\"", uid, "\" is not a victim, on slot ", candidate.slot()));
    if (!distinct.insert(uid).second) return Wrong(kVictims, absl::StrCat(uid, " is named twice"));
  }
  if (distinct.empty())
    return Wrong(kVictims, absl::StrCat("slot ", candidate.slot(), " has none"));
  return CheckCompanions(question, candidate, &distinct);
}

absl::Status CheckAnswer(const Question& question, const PostFilterResponse& answer) {
  switch (answer.outcome_case()) {
    case PostFilterResponse::OUTCOME_NOT_SET:
      return Wrong(kPostFilterOutcome, "there is none");
    case PostFilterResponse::kQuestions:
      return Wrong(kQuestionsAllowed, "the request has none");
    case PostFilterResponse::kRejection:
      return CheckStatus(answer.rejection().status(), "PreemptionRejection.status",
                         question.session.kit().At(question.point),
                         {CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, CODE_ERROR},
                         kPostFilterRejection, kSummaryBytes);
    case PostFilterResponse::kNone:
      return absl::OkStatus();
    case PostFilterResponse::kCandidates:
      break;
  }
  const int count = answer.candidates().candidates_size();
  if (count == 0 || count > kMaxCandidates)
    return Wrong(kCandidates, absl::StrCat(count, " candidates"));
  for (const PreemptionCandidate& candidate : answer.candidates().candidates())
    CONFORMANCE_TRY(CheckCandidate(question, candidate));
  return absl::OkStatus();
}

absl::Status PostFilter(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  bool any = false;
  uint64_t attempt = 0;
  for (const Pod& pod : session.cluster().pending) {
    Round round;
    ++attempt;
    CONFORMANCE_TRY(ExpectAlive(session, 1000 + attempt));
    CONFORMANCE_TRY(RunRound(session, attempt, pod.uid(), &round));
    if (!round.feasible.empty() || round.filter.has_error()) continue;
    any = true;
    PostFilterRequest request;
    *request.mutable_header() = session.Header(attempt);
    const auto answer = session.Call(request);
    CONFORMANCE_TRY(ExpectOk(answer));
    CONFORMANCE_TRY(
        CheckAnswer({session, pod, nullptr, EXTENSION_POINT_POST_FILTER}, answer.message));
  }
  return any ? absl::OkStatus() : Skipped("the host rejects none of the kit's pods on all nodes");
}

// A group of pending pods, of which the host may know nothing else; the most important one first.
absl::Status GroupPostFilter(const Kit& kit) {
  Session session(kit);
  CONFORMANCE_TRY(session.Open(MakeCluster()));
  std::vector<const Pod*> pods;
  for (const Pod& pod : session.cluster().pending) pods.push_back(&pod);
  std::stable_sort(pods.begin(), pods.end(),
                   [](const Pod* a, const Pod* b) { return a->priority() > b->priority(); });
  PostFilterRequest request;
  *request.mutable_header() = session.Header(1);
  request.mutable_group()->set_name("conformance default/group");
  request.mutable_group()->set_namespace_(pods[0]->namespace_());
  for (int i = 0; i < kMembers; ++i) request.mutable_group()->add_pod_uids(pods[i]->uid());
  request.mutable_group()->set_needed(kMembers);
  if (kit.HasAlgorithm()) {
    Round round;
    CONFORMANCE_TRY(RunRound(session, 1, pods[0]->uid(), &round));
  }
  const auto answer = session.Call(request);
  CONFORMANCE_TRY(ExpectOk(answer));
  CONFORMANCE_TRY(
      CheckAnswer({session, *pods[0], &request.group(), EXTENSION_POINT_POD_GROUP_POST_FILTER},
                  answer.message));
  // Read-only: the same question has the same answer.
  const auto again = session.Call(request);
  CONFORMANCE_TRY(ExpectOk(again));
  return again.message.SerializeAsString() == answer.message.SerializeAsString()
             ? absl::OkStatus()
             : Wrong(kPostFilterReadOnly, "the same question has two answers");
}

}  // namespace

std::vector<Case> PostFilterCases() {
  return {{kService, "post-filter", "victims are known, on the node, and of lower priority",
           PostFilter},
          {kService, "group-post-filter",
           "the same for a group, whose other pods may be nominated, too", GroupPostFilter}};
}

}  // namespace outboard::conformance
