// The part of the evaluator after a search without a feasible node: PostFilter, its dry runs, and
// dry runs for other hosts.
#include "plugin_host/sdk/post_filter.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin_host/runtime/cut_text.h"
#include "plugin_host/runtime/evaluator.h"

namespace outboard::runtime {
namespace {

using sdk::PodRecord;
using sdk::Slot;
using sdk::Verdict;

constexpr size_t kMaxCandidates = 32;
// One reason contains the summary of all nodes.
constexpr size_t kMaxReasonBytes = 32 << 10;
constexpr int kMaxReasons = 16;

// The limit of a FilterRequest.
constexpr int kMaxQuestions = 65536;

// Dry runs on the cache itself: changes of one node, undone when the next begins. Copies no other
// nodes.
//
// If other hosts filter too, each dry run needs their verdicts. PostFilter assumes that unknown
// verdicts are success and collects the questions, which the shim asks all at once. The answer of a
// run with questions is discarded; PostFilter runs again with the verdicts. A plugin repeats its
// steps on a node up to the first unexpected verdict, so verdicts are matched by order.
class CacheDryRun final : public sdk::DryRun {
 public:
  // `questions` receives questions; null: no other hosts.
  CacheDryRun(Evaluator* evaluator, host_cache::ClusterCache* cache, AttemptRecord* attempt,
              const PodRecord* pod, absl::Time now, v1beta1::PreemptionQuestions* questions)
      : evaluator_(evaluator),
        cache_(cache),
        attempt_(attempt),
        pod_(pod),
        now_(now),
        questions_(questions) {
    codes_.assign(cache->view().nodes().occupied.size(), attempt->other_nodes);
    for (const auto& [slot, code] : attempt->rejected_nodes) {
      if (slot < codes_.size()) codes_[slot] = code;
    }
  }

  sdk::Code CodeOf(Slot slot) const override {
    return slot < codes_.size() ? codes_[slot] : attempt_->other_nodes;
  }
  void Begin(Slot slot) override {
    End();
    slot_ = slot;
    copies_.emplace(attempt_);
    hypothesis_.emplace(cache_, slot);
    removed_.clear();
    asked_.reset();
    filters_ = 0;
    answered_ = 0;
  }
  void End() override {
    hypothesis_.reset();
    copies_.reset();
  }
  Verdict RemovePod(PodRecord& pod) override {
    hypothesis_->RemovePod(&pod);
    removed_.push_back(&pod);
    return Tell(Evaluator::PodChange::kRemove, pod);
  }
  Verdict AddPod(PodRecord& pod) override {
    hypothesis_->AddPod(&pod);
    std::erase(removed_, &pod);
    return Tell(Evaluator::PodChange::kAdd, pod);
  }
  Verdict Filter() override {
    const Evaluator::NodeVerdict own = Evaluate();
    if (questions_ == nullptr || (!own.verdict.ok() && !own.verdict.rejected())) return own.verdict;
    // Any rejection suffices; only the first on a node is reported to people, and then its plugin
    // matters.
    if (filters_++ > 0 && !own.verdict.ok()) return own.verdict;
    const std::vector<Verdict>& answers = attempt_->answers[slot_];
    if (answered_ < answers.size()) return answers[answered_++];
    if (questions_->questions_size() < kMaxQuestions) Ask(own);
    return own.verdict;
  }
  Evaluator::NodeVerdict Evaluate() {
    return evaluator_->EvaluateNode(*attempt_, *pod_, now_, slot_);
  }

 private:
  Verdict Tell(Evaluator::PodChange change, const PodRecord& pod) {
    uint32_t plugin = 0;
    return evaluator_->UpdatePluginStates(*attempt_, *pod_, now_, change, pod, slot_, &plugin);
  }
  void Ask(const Evaluator::NodeVerdict& own) {
    v1beta1::PreemptionQuestion* question = questions_->add_questions();
    v1beta1::SimulatedNode* hypothesis = question->mutable_simulated_node();
    hypothesis->set_slot(slot_);
    hypothesis->set_continues(asked_.has_value());
    const std::vector<PodRecord*> before = asked_.value_or(std::vector<PodRecord*>());
    for (const PodRecord* pod : removed_) {
      if (!Contains(before, pod)) hypothesis->add_removed_pod_uids(pod->pod.uid());
    }
    for (const PodRecord* pod : before) {
      if (!Contains(removed_, pod)) hypothesis->add_added_pod_uids(pod->pod.uid());
    }
    asked_ = removed_;
    if (!own.verdict.ok()) {
      FillStatus(attempt_->profile->plugins()[own.plugin].name, own.verdict,
                 question->mutable_own());
    }
    attempt_->questions.push_back({slot_, own.verdict.ok()});
  }
  static bool Contains(const std::vector<PodRecord*>& pods, const PodRecord* pod) {
    return std::find(pods.begin(), pods.end(), pod) != pods.end();
  }

  Evaluator* const evaluator_;
  host_cache::ClusterCache* const cache_;
  AttemptRecord* const attempt_;
  const PodRecord* const pod_;
  const absl::Time now_;
  v1beta1::PreemptionQuestions* const questions_;
  std::vector<sdk::Code> codes_;  // By slot.
  Slot slot_ = sdk::kNoSlot;
  std::optional<StateCopies> copies_;
  std::optional<host_cache::ClusterCache::Hypothesis> hypothesis_;
  // Of the node: removed pods, now and at the last question; calls of Filter, and used answers.
  std::vector<PodRecord*> removed_;
  std::optional<std::vector<PodRecord*>> asked_;
  int filters_ = 0;
  size_t answered_ = 0;
};

// Stores answers for the next run. After an unexpected answer, later ones on that node are ignored.
void TakeAnswers(const google::protobuf::RepeatedPtrField<v1beta1::PluginStatus>& answers,
                 AttemptRecord* attempt) {
  std::vector<Slot> turned;
  for (int i = 0; i < answers.size(); ++i) {
    const OpenQuestion& question = attempt->questions[static_cast<size_t>(i)];
    if (std::find(turned.begin(), turned.end(), question.slot) != turned.end()) continue;
    const v1beta1::PluginStatus& answer = answers[i];
    attempt->answers[question.slot].emplace_back(
        answer.code(), std::vector<std::string>(answer.reasons().begin(), answer.reasons().end()));
    if (question.own_ok && answer.code() != v1beta1::CODE_SUCCESS) turned.push_back(question.slot);
  }
  attempt->questions.clear();
}

void TakeVerdictsOfAllHosts(const v1beta1::JudgedNodes& judged, AttemptRecord* attempt) {
  attempt->other_nodes = judged.others();
  attempt->rejected_nodes.clear();
  for (int i = 0; i < std::min(judged.slots_size(), judged.codes_size()); ++i) {
    attempt->rejected_nodes.emplace_back(judged.slots(i), judged.codes(i));
  }
}

void AddReasons(const Verdict& verdict, v1beta1::PluginStatus* status) {
  for (const std::string& reason : verdict.reasons()) {
    if (status->reasons_size() == kMaxReasons) break;
    status->add_reasons(TextForPeople(reason, kMaxReasonBytes));
  }
}

// What is wrong with a candidate; empty: nothing. The shim would refuse the whole answer.
absl::string_view CandidateFault(const v1beta1::PreemptionCandidate& candidate,
                                 const sdk::NodeTable& nodes) {
  if (candidate.slot() >= nodes.occupied.size() || !nodes.occupied[candidate.slot()])
    return "a candidate without a node";
  if (candidate.victim_uids().empty()) return "a candidate without victims";
  absl::flat_hash_set<absl::string_view> distinct;
  for (const auto* uids : {&candidate.victim_uids(), &candidate.companion_uids()}) {
    for (const std::string& uid : *uids) {
      if (!distinct.insert(uid).second) return "a victim twice";
    }
  }
  distinct.clear();
  for (const v1beta1::Nomination& nomination : candidate.nominations()) {
    if (!distinct.insert(nomination.pod_uid()).second) return "two nodes for a pod";
  }
  return "";
}

// Of a plugin's candidate; the slot and nominations are the caller's.
void FillCandidate(const std::string& plugin, absl::Span<const PodRecord* const> victims,
                   absl::Span<const PodRecord* const> companions, int budget_violations,
                   v1beta1::PreemptionCandidate* out) {
  out->set_plugin(plugin);
  for (const PodRecord* victim : victims) out->add_victim_uids(victim->pod.uid());
  for (const PodRecord* pod : companions) out->add_companion_uids(pod->pod.uid());
  const int most = static_cast<int>(victims.size() + companions.size());
  out->set_budget_violations(static_cast<uint32_t>(std::clamp(budget_violations, 0, most)));
}

// The verdict of a plugin that named candidates: a failure if one of them is wrong.
Verdict CheckCandidates(const std::string& plugin, const sdk::NodeTable& nodes,
                        v1beta1::PreemptionCandidates* candidates) {
  for (const v1beta1::PreemptionCandidate& candidate : candidates->candidates()) {
    const absl::string_view fault = CandidateFault(candidate, nodes);
    if (fault.empty()) continue;
    candidates->Clear();
    return Verdict::Error(absl::StrCat("PostFilter plugin ", plugin, " names ", fault));
  }
  return Verdict::Success();
}

}  // namespace

void Evaluator::FilterHypotheses(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                                 absl::Span<const NodeChange> hypotheses,
                                 v1beta1::FilterResponse* response) {
  response->Clear();
  CacheDryRun dry_run(this, cache_, &attempt, &pod, now, nullptr);
  std::string bits((hypotheses.size() + 7) / 8, '\0');
  std::map<std::string, uint32_t> reasons;  // verdicts, as bytes
  Verdict failed;                           // a failure of a plugin's AddPod or RemovePod
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const NodeChange& change = hypotheses[i];
    if (!change.continues) {
      dry_run.Begin(change.slot);
      failed = Verdict::Success();
    }
    for (PodRecord* other : change.removed) {
      if (Verdict result = dry_run.RemovePod(*other); !result.ok()) failed = std::move(result);
    }
    for (PodRecord* other : change.added) {
      if (Verdict result = dry_run.AddPod(*other); !result.ok()) failed = std::move(result);
    }
    NodeVerdict own = dry_run.Evaluate();
    if (own.verdict.ok() && failed.ok()) {
      bits[i / 8] |= static_cast<char>(1 << (i % 8));
      continue;
    }
    if (own.verdict.ok()) {
      own = {failed, attempt.profile->at(v1beta1::EXTENSION_POINT_FILTER)[0]};
    }
    v1beta1::PluginStatus status;
    FillStatus(attempt.profile->plugins()[own.plugin].name, own.verdict, &status);
    if (!own.verdict.rejected()) status.set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    const auto [known, is_new] = reasons.try_emplace(
        status.SerializeAsString(), static_cast<uint32_t>(response->reasons_size()));
    if (is_new) *response->add_reasons() = std::move(status);
    response->add_rejected(known->second);
  }
  response->set_processed(static_cast<uint32_t>(hypotheses.size()));
  response->set_feasible(std::move(bits));
}

void Evaluator::PostFilter(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                           const v1beta1::PostFilterRequest& request,
                           v1beta1::PostFilterResponse* response) {
  v1beta1::PreemptionQuestions questions;
  if (request.has_judged()) TakeVerdictsOfAllHosts(request.judged(), &attempt);
  if (request.answers().empty()) attempt.answers.clear();
  TakeAnswers(request.answers(), &attempt);
  CacheDryRun dry_run(this, cache_, &attempt, &pod, now,
                      request.others_filter() ? &questions : nullptr);
  const auto ask = [&](uint32_t index, bool* clear_nomination,
                       v1beta1::PreemptionCandidates* candidates) {
    const ProfilePlugin& plugin = attempt.profile->plugins()[index];
    sdk::PostFilterAnswer answer;
    const sdk::Attempt view = View(attempt, index, pod, now);
    Verdict verdict = attempt.profile->times().Measure(
        index, v1beta1::EXTENSION_POINT_POST_FILTER, sdk::LogName(view),
        [&] { return plugin.post_filter->PostFilter(view, dry_run, &answer); });
    dry_run.End();
    *clear_nomination = answer.clear_nomination;
    const size_t count = verdict.ok() ? std::min(answer.candidates.size(), kMaxCandidates) : 0;
    for (size_t i = 0; i < count; ++i) {
      const sdk::PreemptionCandidate& its = answer.candidates[i];
      v1beta1::PreemptionCandidate* const out = candidates->add_candidates();
      FillCandidate(plugin.name, its.victims, its.companions, its.budget_violations, out);
      out->set_slot(its.slot);
    }
    return verdict.ok() ? CheckCandidates(plugin.name, cache_->view().nodes(), candidates)
                        : verdict;
  };
  RunPostFilter(*attempt.profile, v1beta1::EXTENSION_POINT_POST_FILTER, ask, response);
  if (!questions.questions().empty()) *response->mutable_questions() = std::move(questions);
}

void Evaluator::PostFilterGroup(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                                sdk::ExtensionPoint point, const sdk::GroupToPlace& group,
                                sdk::GroupDryRun* group_dry_run,
                                v1beta1::PostFilterResponse* response) {
  CacheDryRun dry_run(this, cache_, &attempt, &pod, now, nullptr);
  const auto ask = [&](uint32_t index, bool* clear_nomination,
                       v1beta1::PreemptionCandidates* candidates) {
    const ProfilePlugin& plugin = attempt.profile->plugins()[index];
    const sdk::Attempt view = View(attempt, index, pod, now);
    if (plugin.group_post_filter == nullptr) {
      // Preemption does not help: PreFilter rejected all nodes.
      sdk::PostFilterAnswer answer;
      return attempt.profile->times().Measure(index, point, sdk::LogName(view), [&] {
        return plugin.post_filter->PostFilter(view, dry_run, &answer);
      });
    }
    sdk::GroupPreemption preemption;
    Verdict verdict = attempt.profile->times().Measure(index, point, sdk::LogName(view), [&] {
      return plugin.group_post_filter->PostFilterGroup(view, group, *group_dry_run, &preemption);
    });
    if (!verdict.ok()) {
      *clear_nomination = preemption.clear_nomination;
      return verdict;
    }
    v1beta1::PreemptionCandidate* out = candidates->add_candidates();
    FillCandidate(plugin.name, preemption.victims, preemption.companions,
                  preemption.budget_violations, out);
    out->set_slot(preemption.places.empty() ? sdk::kNoSlot : preemption.places.front().second);
    for (size_t i = 1; i < preemption.places.size(); ++i) {
      v1beta1::Nomination* nomination = out->add_nominations();
      nomination->set_pod_uid(preemption.places[i].first->pod.uid());
      nomination->set_slot(preemption.places[i].second);
    }
    return CheckCandidates(plugin.name, cache_->view().nodes(), candidates);
  };
  RunPostFilter(*attempt.profile, point, ask, response);
}

void Evaluator::RunPostFilter(const Profile& profile, sdk::ExtensionPoint point, AskPostFilter ask,
                              v1beta1::PostFilterResponse* response) {
  response->Clear();
  for (uint32_t index : profile.at(point)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    v1beta1::PreemptionCandidates candidates;
    bool clear_nomination = false;
    const Verdict verdict = ask(index, &clear_nomination, &candidates);
    if (verdict.ok()) {
      response->Clear();
      if (candidates.candidates().empty()) {
        response->mutable_none();
      } else {
        *response->mutable_candidates() = std::move(candidates);
      }
      return;
    }
    const bool goes_on =
        verdict.code() == v1beta1::CODE_UNSCHEDULABLE || verdict.code() == v1beta1::CODE_PENDING;
    v1beta1::PluginStatus* rejection = response->mutable_rejection()->mutable_status();
    if (goes_on) {
      // The first plugin that rejects is named, with the reasons of all.
      if (rejection->plugin().empty()) rejection->set_plugin(plugin.name);
      rejection->set_code(v1beta1::CODE_UNSCHEDULABLE);
      if (clear_nomination) response->mutable_rejection()->set_clear_nomination(true);
      AddReasons(verdict, rejection);
      continue;
    }
    const bool rejected = verdict.code() == v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    response->Clear();
    rejection = response->mutable_rejection()->mutable_status();
    rejection->set_plugin(plugin.name);
    rejection->set_code(rejected ? verdict.code() : v1beta1::CODE_ERROR);
    response->mutable_rejection()->set_clear_nomination(rejected && clear_nomination);
    AddReasons(verdict, rejection);
    return;
  }
}

}  // namespace outboard::runtime
