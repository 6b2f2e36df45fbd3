// The part of the evaluator that comes after a search without a find: PostFilter and its dry runs.
#include "plugin_host/sdk/post_filter.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "plugin_host/runtime/evaluator.h"

namespace outboard::runtime {
namespace {

using sdk::PodRecord;
using sdk::Slot;
using sdk::Verdict;

constexpr size_t kMaxCandidates = 32;
// The summary over all nodes is one reason.
constexpr size_t kMaxReasonBytes = 32 << 10;

// Dry runs on the mirror itself: changes of one node, undone when the next begins. Nothing of the
// other nodes is copied.
class MirrorDryRun final : public sdk::DryRun {
 public:
  MirrorDryRun(Evaluator* evaluator, mirror::Mirror* mirror, AttemptRecord* attempt,
               const PodRecord* pod, absl::Time now)
      : evaluator_(evaluator), mirror_(mirror), attempt_(attempt), pod_(pod), now_(now) {
    codes_.assign(mirror->view().nodes().occupied.size(), attempt->other_nodes);
    for (const auto& [slot, code] : attempt->rejected_nodes) codes_[slot] = code;
  }

  sdk::Code CodeOf(Slot slot) const override {
    return slot < codes_.size() ? codes_[slot] : attempt_->other_nodes;
  }
  void Begin(Slot slot) override {
    End();
    slot_ = slot;
    copies_.emplace(attempt_);
    hypothesis_.emplace(mirror_, slot);
  }
  void End() override {
    hypothesis_.reset();
    copies_.reset();
  }
  Verdict RemovePod(PodRecord& pod) override {
    hypothesis_->RemovePod(&pod);
    return Tell(Evaluator::PodChange::kRemove, pod);
  }
  Verdict AddPod(PodRecord& pod) override {
    hypothesis_->AddPod(&pod);
    return Tell(Evaluator::PodChange::kAdd, pod);
  }
  Verdict Filter() override { return evaluator_->JudgeNode(*attempt_, *pod_, now_, slot_); }

 private:
  Verdict Tell(Evaluator::PodChange change, const PodRecord& pod) {
    uint32_t plugin = 0;
    return evaluator_->TellPlugins(*attempt_, *pod_, now_, change, pod, slot_, &plugin);
  }

  Evaluator* const evaluator_;
  mirror::Mirror* const mirror_;
  AttemptRecord* const attempt_;
  const PodRecord* const pod_;
  const absl::Time now_;
  std::vector<sdk::Code> codes_;  // By slot.
  Slot slot_ = sdk::kNoSlot;
  std::optional<StateCopies> copies_;
  std::optional<mirror::Mirror::Hypothesis> hypothesis_;
};

void AddReasons(const Verdict& verdict, v1alpha1::PluginStatus* status) {
  for (const std::string& reason : verdict.reasons()) {
    status->add_reasons(std::string(CutText(reason, kMaxReasonBytes)));
  }
}

void AddCandidate(const std::string& plugin, const sdk::PreemptionCandidate& candidate,
                  v1alpha1::PostFilterResponse* response) {
  v1alpha1::PreemptionCandidate* out = response->add_candidates();
  out->set_plugin(plugin);
  out->set_slot(candidate.slot);
  out->set_budget_violations(static_cast<uint32_t>(candidate.budget_violations));
  for (const PodRecord* victim : candidate.victims) out->add_victim_uids(victim->pod.uid());
}

}  // namespace

void Evaluator::PostFilter(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                           v1alpha1::PostFilterResponse* response) {
  response->Clear();
  const Profile& profile = *attempt.profile;
  MirrorDryRun dry_run(this, mirror_, &attempt, &pod, now);
  for (uint32_t index : profile.at(v1alpha1::POST_FILTER)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    sdk::PostFilterAnswer answer;
    const Verdict verdict =
        plugin.post_filter->PostFilter(View(attempt, index, pod, now), dry_run, &answer);
    dry_run.End();
    if (verdict.ok()) {
      response->Clear();
      const size_t count = std::min(answer.candidates.size(), kMaxCandidates);
      for (size_t i = 0; i < count; ++i) AddCandidate(plugin.name, answer.candidates[i], response);
      return;
    }
    const bool goes_on =
        verdict.code() == v1alpha1::UNSCHEDULABLE || verdict.code() == v1alpha1::PENDING;
    v1alpha1::PluginStatus* rejection = response->mutable_rejection();
    if (goes_on) {
      // The first to object is named, the reasons of all are told.
      if (rejection->plugin().empty()) rejection->set_plugin(plugin.name);
      rejection->set_code(v1alpha1::UNSCHEDULABLE);
      if (answer.clear_nomination) response->set_clear_nomination(true);
      AddReasons(verdict, rejection);
      continue;
    }
    const bool rejected = verdict.code() == v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE;
    response->Clear();
    rejection = response->mutable_rejection();
    rejection->set_plugin(plugin.name);
    rejection->set_code(rejected ? verdict.code() : v1alpha1::ERROR);
    response->set_clear_nomination(rejected && answer.clear_nomination);
    AddReasons(verdict, rejection);
    return;
  }
}

}  // namespace outboard::runtime
