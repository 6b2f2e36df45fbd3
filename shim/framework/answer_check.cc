#include "shim/framework/answer_check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "proto/short_names.h"
#include "shim/cut_text.h"
#include "shim/framework/kept_states.h"
#include "shim/framework/pod_effects.h"
#include "shim/framework/profile_plan.h"

namespace outboard::framework {
namespace {

using v1beta1::PluginStatus;

constexpr int kMaxReasons = 16;
constexpr size_t kMaxReasonBytes = kMaxMessageBytes;
constexpr uint8_t kMaxNodeScore = 100;
// A reason of PostFilter sums up all nodes.
constexpr size_t kMaxSummaryBytes = 32 << 10;
constexpr int kMaxCandidates = 32;
constexpr int kMaxQuestions = 65536;
constexpr int kMaxPlacements = 4096;
constexpr int kMaxDecisions = 4096;

absl::Status CheckStatus(const PluginStatus& status, absl::string_view where,
                         size_t max_reason_bytes = kMaxReasonBytes) {
  if (status.plugin().empty()) return WrongAnswer(absl::StrCat(where, " names no plugin"));
  if (status.reasons_size() > kMaxReasons) {
    return WrongAnswer(absl::StrCat(where, " of ", CutText(status.plugin(), 100), " has ",
                                    status.reasons_size(), " reasons"));
  }
  for (const std::string& reason : status.reasons()) {
    if (reason.size() > max_reason_bytes) {
      return WrongAnswer(absl::StrCat(where, " of ", CutText(status.plugin(), 100),
                                      " has a reason of ", reason.size(), " bytes"));
    }
  }
  return absl::OkStatus();
}

bool IsRejection(v1beta1::Code code) {
  return code == v1beta1::CODE_UNSCHEDULABLE ||
         code == v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE || code == v1beta1::CODE_PENDING;
}

absl::Status CheckName(const std::string& plugin, const std::vector<std::string>& plugins,
                       absl::string_view where) {
  if (std::find(plugins.begin(), plugins.end(), plugin) != plugins.end()) return absl::OkStatus();
  return WrongAnswer(absl::StrCat(where, " answers for \"", CutText(plugin, 100),
                                  "\", which the profile does not have there"));
}

std::vector<std::string> NamesOf(const HostExtensionPoint& share) {
  std::vector<std::string> names;
  for (const InterestedPlugin& plugin : share.plugins) names.push_back(plugin.name);
  return names;
}

// Rejection of a placement: by a plugin of this host; neither success nor a wait.
absl::Status CheckRejection(const PluginStatus& rejection, absl::string_view where) {
  if (absl::Status status = CheckStatus(rejection, where); !status.ok()) return status;
  if (!IsRejection(rejection.code()) && rejection.code() != v1beta1::CODE_ERROR) {
    return WrongAnswer(absl::StrCat(where, " rejects with code ", ShortName(rejection.code())));
  }
  return absl::OkStatus();
}

// Eight bytes of a bitmap; zeros after its end.
uint64_t WordAt(absl::string_view bitmap, size_t base) {
  uint64_t word = 0;
  std::memcpy(&word, bitmap.data() + base, std::min<size_t>(8, bitmap.size() - base));
  return word;
}

// Positions of set bits among the first `bits`; false if a bit beyond them is set.
bool SetBits(const std::string& bitmap, uint32_t bits, std::vector<uint32_t>* positions) {
  for (size_t base = 0; base < bitmap.size(); base += 8) {
    uint64_t word = WordAt(bitmap, base);
    while (word != 0) {
      const uint32_t position = static_cast<uint32_t>(base * 8) + std::countr_zero(word);
      if (position >= bits) return false;
      positions->push_back(position);
      word &= word - 1;
    }
  }
  return true;
}

}  // namespace

std::string CutText(absl::string_view text, size_t max_bytes) {
  return std::string(CutAtCharacter(text, max_bytes));
}

absl::Status WrongAnswer(absl::string_view what) { return absl::InternalError(CutText(what)); }

absl::Status CheckNames(const v1beta1::PreFilterResponse& response,
                        const std::vector<std::string>& plugins) {
  for (const auto* names : {&response.restricted_by(), &response.rejected_by()}) {
    for (const std::string& name : *names) {
      if (absl::Status status = CheckName(name, plugins, "PreFilter"); !status.ok()) return status;
    }
  }
  if (response.rejection().plugin().empty()) return absl::OkStatus();
  return CheckName(response.rejection().plugin(), plugins, "PreFilter");
}

absl::Status CheckNames(const v1beta1::FilterResponse& response,
                        const std::vector<std::string>& plugins) {
  for (const PluginStatus& status : response.reasons()) {
    if (absl::Status checked = CheckName(status.plugin(), plugins, "Filter"); !checked.ok())
      return checked;
  }
  return response.has_error() ? CheckName(response.error().plugin(), plugins, "Filter")
                              : absl::OkStatus();
}

absl::Status CheckGate(const PluginStatus& verdict, const HostExtensionPoint& share) {
  if (verdict.code() == v1beta1::CODE_SUCCESS) return absl::OkStatus();
  if (absl::Status status = CheckRejection(verdict, "PreEnqueue"); !status.ok()) return status;
  return CheckName(verdict.plugin(), NamesOf(share), "PreEnqueue");
}

absl::Status CheckReserve(const v1beta1::ReserveResponse& response, const HostExtensionPoint& share,
                          const v1beta1::Pod& pod, const std::string& node_name) {
  const std::vector<std::string> names = NamesOf(share);
  if (response.has_rejection()) {
    if (absl::Status status = CheckRejection(response.rejection(), "Reserve"); !status.ok())
      return status;
    return CheckName(response.rejection().plugin(), names, "Reserve");
  }
  for (const v1beta1::Effect& effect : response.effects()) {
    if (absl::Status status = CheckName(effect.plugin(), names, "Reserve"); !status.ok())
      return status;
  }
  if (const std::string fault = FaultOfStates(response.states(), names); !fault.empty())
    return WrongAnswer(absl::StrCat("Reserve ", fault));
  return CheckEffects(response.effects(), "Reserve", pod, node_name);
}

absl::Status CheckPermit(const v1beta1::PermitResponse& response, const HostExtensionPoint& share) {
  const std::vector<std::string> names = NamesOf(share);
  if (response.decisions_size() > kMaxDecisions)
    return WrongAnswer(absl::StrCat("Permit makes ", response.decisions_size(), " decisions"));
  for (const v1beta1::WaitDecision& decision : response.decisions()) {
    if (absl::Status status = CheckDecision(decision); !status.ok()) return status;
  }
  if (response.has_rejection()) {
    if (absl::Status status = CheckRejection(response.rejection(), "Permit"); !status.ok())
      return status;
    return CheckName(response.rejection().plugin(), names, "Permit");
  }
  absl::flat_hash_set<absl::string_view> waiting;
  for (const v1beta1::PermitWait& wait : response.waits()) {
    if (absl::Status status = CheckName(wait.plugin(), names, "Permit"); !status.ok())
      return status;
    if (!waiting.insert(wait.plugin()).second)
      return WrongAnswer(absl::StrCat("Permit names ", wait.plugin(), " twice"));
    if (wait.timeout_micros() <= 0) {
      return WrongAnswer(absl::StrCat("Permit has a timeout of ", wait.timeout_micros(), " µs for ",
                                      wait.plugin()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPreBind(const v1beta1::PreBindResponse& response,
                          const absl::flat_hash_set<std::string>& plugins) {
  const std::vector<std::string> names(plugins.begin(), plugins.end());
  if (response.has_rejection()) {
    absl::Status bad = CheckRejection(response.rejection(), "PreBind");
    bad.Update(CheckName(response.rejection().plugin(), names, "PreBind"));
    return bad;
  }
  for (const v1beta1::Effect& effect : response.effects()) {
    if (absl::Status status = CheckName(effect.plugin(), names, "PreBind"); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status CheckBind(const v1beta1::BindResponse& response, const std::string& plugin,
                       const std::vector<std::string>& allowed_keys) {
  switch (response.outcome_case()) {
    case v1beta1::BindResponse::kSkip:
    case v1beta1::BindResponse::kBound:
      return absl::OkStatus();
    case v1beta1::BindResponse::kShimBinds: {
      const std::string fault =
          FaultOfAnnotations(response.shim_binds().annotations(), allowed_keys);
      if (fault.empty()) return absl::OkStatus();
      return WrongAnswer(absl::StrCat("Bind of ", plugin, ": ", fault));
    }
    case v1beta1::BindResponse::kRejection: {
      absl::Status bad = CheckRejection(response.rejection(), "Bind");
      bad.Update(CheckName(response.rejection().plugin(), {plugin}, "Bind"));
      return bad;
    }
    case v1beta1::BindResponse::OUTCOME_NOT_SET:
      break;
  }
  return WrongAnswer(absl::StrCat("Bind of ", plugin, " has no outcome"));
}

absl::Status CheckDecision(const v1beta1::WaitDecision& decision) {
  if (decision.attempt_id() == 0 || decision.pod_uid().empty() || decision.plugin().empty())
    return WrongAnswer("A decision on a waiting pod names no attempt, no pod or no plugin");
  if (decision.message().size() > kMaxMessageBytes) {
    return WrongAnswer(absl::StrCat("A decision on a waiting pod has a message of ",
                                    decision.message().size(), " bytes"));
  }
  return absl::OkStatus();
}

absl::Status CheckPreScore(const v1beta1::PreScoreResponse& response) {
  return response.has_error() ? CheckStatus(response.error(), "PreScore's error")
                              : absl::OkStatus();
}

const v1beta1::PreFilterResponse& PreFilterOf(const v1beta1::PlanResponse& response) {
  switch (response.outcome_case()) {
    case v1beta1::PlanResponse::kRejection:
      return response.rejection().pre_filter();
    case v1beta1::PlanResponse::kPlan:
      return response.plan().pre_filter();
    case v1beta1::PlanResponse::kGroup:
      return response.group().pre_filter();
    default:
      return response.evaluation().pre_filter();
  }
}

absl::Status CheckPreFilterOf(const v1beta1::PlanResponse& response,
                              const std::vector<std::string>& pre_filter_plugins,
                              const std::vector<std::string>& filter_plugins) {
  const v1beta1::PreFilterResponse& pre_filter = PreFilterOf(response);
  absl::Status checked = CheckPreFilter(pre_filter);
  std::vector<std::string> any;
  if (response.rejection().has_group()) {
    any = pre_filter_plugins;
    any.insert(any.end(), filter_plugins.begin(), filter_plugins.end());
  }
  checked.Update(CheckNames(pre_filter, any.empty() ? pre_filter_plugins : any));
  return checked;
}

v1beta1::CycleEvaluation AnswersOf(v1beta1::PlanResponse response) {
  if (response.has_evaluation()) return std::move(*response.mutable_evaluation());
  v1beta1::CycleEvaluation answers;
  *answers.mutable_pre_filter() = PreFilterOf(response);
  return answers;
}

absl::Status CheckCycle(const v1beta1::PlanResponse& response) {
  const bool is_rejected = PreFilterOf(response).has_rejection();
  switch (response.outcome_case()) {
    case v1beta1::PlanResponse::kRejection:
      return is_rejected ? absl::OkStatus()
                         : WrongAnswer("Cycle rejects a pod that PreFilter accepts");
    case v1beta1::PlanResponse::kEvaluation:
    case v1beta1::PlanResponse::kPlan:
    case v1beta1::PlanResponse::kGroup:
      return is_rejected ? WrongAnswer("Cycle goes on with a pod that PreFilter rejects")
                         : absl::OkStatus();
    case v1beta1::PlanResponse::kError:
    case v1beta1::PlanResponse::OUTCOME_NOT_SET:
      break;
  }
  return WrongAnswer("Cycle answers nothing");
}

absl::Status CheckPreFilter(const v1beta1::PreFilterResponse& response) {
  if (response.has_rejection()) {
    // If the node sets of several plugins have no common node, no single plugin rejects.
    if (!response.rejection().plugin().empty() || response.rejected_by().empty()) {
      if (absl::Status status = CheckStatus(response.rejection(), "PreFilter"); !status.ok())
        return status;
    }
    const v1beta1::Code code = response.rejection().code();
    if (!IsRejection(code) && code != v1beta1::CODE_ERROR) {
      return WrongAnswer(absl::StrCat("PreFilter rejects with code ", ShortName(code)));
    }
  }
  if (response.has_node_names() && response.restricted_by().empty() && !response.has_rejection()) {
    return WrongAnswer("PreFilter restricts the nodes without naming a plugin");
  }
  return absl::OkStatus();
}

uint32_t CountSetBits(absl::string_view bitmap) {
  uint32_t count = 0;
  for (size_t base = 0; base < bitmap.size(); base += 8)
    count += static_cast<uint32_t>(std::popcount(WordAt(bitmap, base)));
  return count;
}

namespace {

// Checks that each rejected node has one reason.
absl::Status CheckRejections(const v1beta1::FilterResponse& response, size_t num_feasible) {
  const int num_bitmaps = response.rejected_for_size();
  const int num_reasons = response.reasons_size();
  if (num_bitmaps > num_reasons) {
    return WrongAnswer(absl::StrCat("Filter has node bitmaps for ", num_bitmaps, " reasons, and ",
                                    num_reasons, " reasons"));
  }
  const std::string& feasible = response.feasible();
  for (const std::string& bitmap : response.rejected_for()) {
    if (bitmap.size() == feasible.size()) continue;
    return WrongAnswer(absl::StrCat("Filter's bitmap of rejected nodes has ", bitmap.size(),
                                    " bytes for ", response.processed(), " nodes"));
  }
  uint64_t rejected = static_cast<uint64_t>(response.rejected_size());
  for (size_t base = 0; base < feasible.size(); base += 8) {
    uint64_t taken = WordAt(feasible, base);
    for (const std::string& bitmap : response.rejected_for()) {
      const uint64_t word = WordAt(bitmap, base);
      if ((word & taken) != 0) return WrongAnswer("Filter has two verdicts on a node");
      taken |= word;
      rejected += static_cast<uint64_t>(std::popcount(word));
    }
    const uint64_t left = response.processed() - base * 8;
    if (left < 64 && (taken >> left) != 0)
      return WrongAnswer("Filter's bitmap of rejected nodes has bits beyond its nodes");
  }
  if (rejected != response.processed() - num_feasible) {
    return WrongAnswer(absl::StrCat("Filter gives ", rejected, " reasons for ",
                                    response.processed() - num_feasible, " rejected nodes"));
  }
  if (response.rejected().empty()) return absl::OkStatus();
  const uint32_t highest = *absl::c_max_element(response.rejected());
  if (highest < static_cast<uint32_t>(num_reasons)) return absl::OkStatus();
  return WrongAnswer(absl::StrCat("Filter refers to reason ", highest, " of ", num_reasons));
}

}  // namespace

absl::Status ExpandVerdicts(v1beta1::FilterResponse* response) {
  if (response->verdicts().empty()) return absl::OkStatus();
  if (response->processed() != 0 || !response->feasible().empty() ||
      !response->rejected().empty() || !response->rejected_for().empty())
    return WrongAnswer("Filter has verdicts in two forms");
  const auto processed = static_cast<uint32_t>(response->verdicts_size());
  std::string feasible((processed + 7) / 8, '\0');
  for (uint32_t i = 0; i < processed; ++i) {
    if (const uint32_t verdict = response->verdicts(static_cast<int>(i)); verdict != 0) {
      response->add_rejected(verdict - 1);
    } else {
      feasible[i / 8] = static_cast<char>(feasible[i / 8] | (1 << (i % 8)));
    }
  }
  response->set_processed(processed);
  response->set_feasible(std::move(feasible));
  response->clear_verdicts();
  return absl::OkStatus();
}

absl::Status CheckFilter(const v1beta1::FilterResponse& response, uint32_t num_nodes,
                         uint32_t num_to_find, std::vector<uint32_t>* feasible) {
  feasible->clear();
  if (!response.verdicts().empty()) return WrongAnswer("Filter's verdicts in a Cycle answer");
  if (response.processed() > num_nodes) {
    return WrongAnswer(
        absl::StrCat("Filter evaluated ", response.processed(), " of ", num_nodes, " nodes"));
  }
  if (response.feasible().size() != (response.processed() + 7) / 8) {
    return WrongAnswer(absl::StrCat("Filter's bitmap has ", response.feasible().size(),
                                    " bytes for ", response.processed(), " nodes"));
  }
  if (!SetBits(response.feasible(), response.processed(), feasible)) {
    return WrongAnswer("Filter's bitmap has bits beyond its nodes");
  }
  if (feasible->size() > num_to_find) {
    return WrongAnswer(absl::StrCat("Filter found ", feasible->size(), " nodes where ", num_to_find,
                                    " are enough"));
  }
  if (absl::Status checked = CheckRejections(response, feasible->size()); !checked.ok())
    return checked;
  for (const PluginStatus& status : response.reasons()) {
    if (absl::Status checked = CheckStatus(status, "Filter"); !checked.ok()) return checked;
    if (!IsRejection(status.code())) {
      return WrongAnswer(absl::StrCat("Filter rejects with code ", ShortName(status.code())));
    }
  }
  if (response.has_error()) return CheckStatus(response.error(), "Filter's error");
  if (response.processed() < num_nodes && feasible->size() < num_to_find) {
    return WrongAnswer(absl::StrCat("Filter stopped after ", response.processed(), " of ",
                                    num_nodes, " nodes with ", feasible->size(), " of ",
                                    num_to_find, " found"));
  }
  return absl::OkStatus();
}

namespace {

absl::Status CheckPreemptionRejection(const v1beta1::PreemptionRejection& rejection) {
  const PluginStatus& status = rejection.status();
  if (absl::Status checked = CheckStatus(status, "PostFilter", kMaxSummaryBytes); !checked.ok())
    return checked;
  if (status.code() != v1beta1::CODE_UNSCHEDULABLE &&
      status.code() != v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE &&
      status.code() != v1beta1::CODE_ERROR) {
    return WrongAnswer(absl::StrCat("PostFilter rejects with code ", ShortName(status.code())));
  }
  return absl::OkStatus();
}

absl::Status CheckCandidate(const v1beta1::PreemptionCandidate& candidate,
                            const std::vector<std::string>& plugins) {
  if (std::find(plugins.begin(), plugins.end(), candidate.plugin()) == plugins.end()) {
    return WrongAnswer(absl::StrCat("PostFilter answers for \"", candidate.plugin(),
                                    "\", which the profile does not have there"));
  }
  absl::flat_hash_set<absl::string_view> distinct(candidate.victim_uids().begin(),
                                                  candidate.victim_uids().end());
  if (distinct.empty()) return WrongAnswer("PostFilter names a candidate without victims");
  distinct.insert(candidate.companion_uids().begin(), candidate.companion_uids().end());
  if (distinct.size() !=
      static_cast<size_t>(candidate.victim_uids_size() + candidate.companion_uids_size())) {
    return WrongAnswer("PostFilter names a victim twice");
  }
  absl::flat_hash_set<absl::string_view> nominated;
  for (const v1beta1::Nomination& nomination : candidate.nominations()) {
    if (!nominated.insert(nomination.pod_uid()).second)
      return WrongAnswer("PostFilter names two nodes for a pod");
  }
  if (nominated.size() > static_cast<size_t>(kMaxPlacements))
    return WrongAnswer(absl::StrCat("PostFilter names nodes for ", nominated.size(), " pods"));
  if (candidate.budget_violations() > distinct.size()) {
    return WrongAnswer(absl::StrCat("PostFilter breaks ", candidate.budget_violations(),
                                    " budgets with ", distinct.size(), " victims"));
  }
  return absl::OkStatus();
}

absl::Status CheckQuestions(const v1beta1::PreemptionQuestions& questions) {
  if (questions.questions().empty()) return WrongAnswer("PostFilter asks no question");
  if (questions.questions_size() > kMaxQuestions) {
    return WrongAnswer(absl::StrCat("PostFilter asks ", questions.questions_size(), " questions"));
  }
  for (const v1beta1::PreemptionQuestion& question : questions.questions()) {
    if (!question.has_own()) continue;
    if (absl::Status checked = CheckStatus(question.own(), "PostFilter's question"); !checked.ok())
      return checked;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPostFilter(const v1beta1::PostFilterResponse& response,
                             const std::vector<std::string>& plugins, bool others_filter) {
  switch (response.outcome_case()) {
    case v1beta1::PostFilterResponse::kRejection:
      return CheckPreemptionRejection(response.rejection());
    case v1beta1::PostFilterResponse::kNone:
      return absl::OkStatus();
    case v1beta1::PostFilterResponse::kQuestions:
      if (!others_filter)
        return WrongAnswer("PostFilter asks questions, but no other host can answer");
      return CheckQuestions(response.questions());
    case v1beta1::PostFilterResponse::kCandidates:
      break;
    case v1beta1::PostFilterResponse::OUTCOME_NOT_SET:
      return WrongAnswer("PostFilter answers nothing");
  }
  const auto& candidates = response.candidates().candidates();
  if (candidates.empty()) return WrongAnswer("PostFilter names no candidate");
  if (candidates.size() > kMaxCandidates)
    return WrongAnswer(absl::StrCat("PostFilter names ", candidates.size(), " candidates"));
  for (const v1beta1::PreemptionCandidate& candidate : candidates) {
    if (absl::Status checked = CheckCandidate(candidate, plugins); !checked.ok()) return checked;
  }
  return absl::OkStatus();
}

absl::Status CheckPlacements(const v1beta1::CyclePlan& plan, const std::string& pod_uid,
                             absl::Span<const std::string> next, bool place_group) {
  if (plan.placements().empty()) return WrongAnswer("Cycle plans without a placement");
  if (plan.has_group() && !place_group)
    return WrongAnswer("Cycle places a group that was not requested");
  if (plan.placements_size() > kMaxPlacements)
    return WrongAnswer(absl::StrCat("Cycle places ", plan.placements_size(), " pods"));
  absl::flat_hash_set<absl::string_view> distinct;
  for (int i = 0; i < plan.placements_size(); ++i) {
    const v1beta1::PlannedPlacement& placement = plan.placements(i);
    const std::string& uid = placement.pod_uid();
    if (!distinct.insert(uid).second)
      return WrongAnswer(absl::StrCat("Cycle places pod ", uid, " twice"));
    if (placement.feasible() == 0 || placement.feasible() > placement.processed()) {
      return WrongAnswer(absl::StrCat("Cycle found ", placement.feasible(), " of ",
                                      placement.processed(), " nodes feasible"));
    }
    const bool is_next = i == 0 ? uid == pod_uid
                                : plan.has_group() || (static_cast<size_t>(i) <= next.size() &&
                                                       uid == next[static_cast<size_t>(i) - 1]);
    if (!is_next) return WrongAnswer(absl::StrCat("Cycle places pod ", uid, " out of turn"));
  }
  return absl::OkStatus();
}

absl::Status CheckRejectedGroup(const v1beta1::PlannedGroup& group, const std::string& pod_uid) {
  if (group.pod_uids_size() > kMaxPlacements)
    return WrongAnswer(absl::StrCat("Cycle rejects ", group.pod_uids_size(), " pods"));
  absl::flat_hash_set<absl::string_view> distinct;
  distinct.insert(pod_uid);  // As an initializer it would be copied.
  for (const std::string& uid : group.pod_uids()) {
    if (!distinct.insert(uid).second)
      return WrongAnswer(absl::StrCat("Cycle rejects pod ", uid, " twice"));
  }
  return absl::OkStatus();
}

namespace {

// One plugin's scores of all nodes.
struct ScoreRow {
  const uint8_t* scores = nullptr;
  int64_t weight = 0;
};

// The weighted sum of each node's scores.
void AddUp(const std::vector<ScoreRow>& rows, absl::Span<int64_t> totals) {
  // Processors multiply and add small numbers in parallel, and large ones one by one.
  constexpr size_t kMaxRows = 256, kAtOnce = 512;
  static_assert(int64_t{UINT8_MAX} * INT16_MAX * kMaxRows <= INT32_MAX);
  const bool small = rows.size() <= kMaxRows && absl::c_all_of(rows, [](const ScoreRow& row) {
                       return row.weight >= 0 && row.weight <= INT16_MAX;
                     });
  if (!small) {
    absl::c_fill(totals, 0);
    for (const ScoreRow& row : rows) {
      for (size_t i = 0; i < totals.size(); ++i) totals[i] += row.weight * row.scores[i];
    }
    return;
  }
  std::array<int32_t, kAtOnce> sums;
  for (size_t begin = 0; begin < totals.size(); begin += kAtOnce) {
    const size_t count = std::min(kAtOnce, totals.size() - begin);
    sums.fill(0);
    for (const ScoreRow& row : rows) {
      // Bytes may alias anything, but not an array that exists only on this stack.
      const uint8_t* const __restrict scores = row.scores + begin;
      const auto weight = static_cast<int16_t>(row.weight);
      for (size_t i = 0; i < count; ++i) sums[i] += weight * int16_t{scores[i]};
    }
    std::copy_n(sums.begin(), count, totals.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

}  // namespace

absl::Status CheckScores(const v1beta1::ScoreResponse& response, uint32_t num_nodes,
                         const std::vector<WeightedPlugin>& plugins, std::vector<int64_t>* totals) {
  totals->assign(num_nodes, 0);
  if (response.has_error()) return CheckStatus(response.error(), "Score's error");
  std::vector<ScoreRow> rows;
  rows.reserve(static_cast<size_t>(response.plugins_size()));
  auto next = plugins.begin();
  for (const v1beta1::PluginScores& scores : response.plugins()) {
    // In profile order, so that a plugin cannot appear twice.
    const auto plugin = std::find_if(
        next, plugins.end(), [&](const WeightedPlugin& p) { return p.name == scores.plugin(); });
    if (plugin == plugins.end()) {
      return WrongAnswer(absl::StrCat("Score answers for ", scores.plugin(),
                                      ", which the profile does not have there"));
    }
    next = plugin + 1;
    if (scores.scores().size() != num_nodes) {
      return WrongAnswer(absl::StrCat(scores.plugin(), " scored ", scores.scores().size(), " of ",
                                      num_nodes, " nodes"));
    }
    if (scores.tie_keys_size() != 0 && scores.tie_keys_size() != static_cast<int>(num_nodes)) {
      return WrongAnswer(absl::StrCat(scores.plugin(), " gave ", scores.tie_keys_size(),
                                      " tie keys for ", num_nodes, " nodes"));
    }
    if (scores.terms_size() != 0 && scores.terms_size() != static_cast<int>(num_nodes)) {
      return WrongAnswer(absl::StrCat(scores.plugin(), " gave terms of ", scores.terms_size(),
                                      " of ", num_nodes, " nodes"));
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(scores.scores().data());
    uint8_t highest = 0;
    for (uint32_t i = 0; i < num_nodes; ++i) highest = std::max(highest, bytes[i]);
    rows.push_back({bytes, plugin->weight});
    if (highest > kMaxNodeScore) {
      return WrongAnswer(
          absl::StrCat(scores.plugin(), " gave a score of ", highest, ", more than 100"));
    }
  }
  AddUp(rows, absl::MakeSpan(*totals));
  return absl::OkStatus();
}

}  // namespace outboard::framework
