#include "plugin_host/runtime/evaluator.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/runtime/cut_text.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::runtime {
namespace {

using sdk::PodRecord;
using sdk::Slot;
using sdk::Verdict;

constexpr uint32_t kNoReason = 0xffffffff;
constexpr int kMaxReasons = 16;
constexpr size_t kMaxReasonBytes = 1024;
constexpr uint32_t kMinFeasibleNodes = 100;
constexpr char kAddPod[] = "running AddPod on PreFilter plugin ";
constexpr char kRemovePod[] = "running RemovePod on PreFilter plugin ";

// Kubernetes prints a list of plugins as Go prints a slice.
std::string GoList(const std::vector<std::string>& sorted) {
  return absl::StrCat("[", absl::StrJoin(sorted, " "), "]");
}

}  // namespace

void FillStatus(const std::string& plugin, const Verdict& verdict, v1alpha1::PluginStatus* status) {
  status->set_plugin(plugin);
  status->set_code(verdict.code());
  for (const std::string& reason : verdict.reasons()) {
    if (status->reasons_size() == kMaxReasons) break;
    status->add_reasons(std::string(CutText(reason, kMaxReasonBytes)));
  }
}

void FillErrorStatus(const std::string& plugin, const std::string& message,
                     v1alpha1::PluginStatus* status) {
  status->set_plugin(plugin);
  status->set_code(v1alpha1::ERROR);
  status->add_reasons(std::string(CutText(message, kMaxReasonBytes)));
}

std::string ErrorText(const Verdict& verdict) { return absl::StrJoin(verdict.reasons(), ", "); }

void AttemptRecord::Begin(uint64_t attempt_id, absl::string_view uid,
                          std::shared_ptr<const Profile> p) {
  id = attempt_id;
  pod_uid = std::string(uid);
  profile = std::move(p);
  const size_t count = profile->plugins().size();
  for (sdk::PluginState& state : states) state = sdk::PluginState();
  states.resize(count);
  skip_filter.assign(count, 0);
  skip_score.assign(count, 0);
  rejected_nodes.clear();
  answers.clear();
  questions.clear();
  other_nodes = v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE;
}

StateCopies::StateCopies(AttemptRecord* attempt)
    : attempt_(attempt), saved_(attempt->states.size()) {
  for (size_t i = 0; i < saved_.size(); ++i) {
    std::unique_ptr<sdk::AttemptState>& state = attempt->states[i].filter;
    if (state == nullptr) continue;
    if (std::unique_ptr<sdk::AttemptState> clone = state->Clone()) {
      saved_[i] = std::exchange(state, std::move(clone));
    }
  }
}

StateCopies::~StateCopies() {
  for (size_t i = 0; i < saved_.size(); ++i) {
    if (saved_[i] != nullptr) attempt_->states[i].filter = std::move(saved_[i]);
  }
}

uint32_t FeasibleNodesToFind(uint32_t n, const SearchOptions& options) {
  if (options.enough_nodes > 0) return std::min(n, options.enough_nodes);
  if (options.first_feasible_only) return 1;
  if (n < kMinFeasibleNodes) return n;
  uint64_t percentage = options.percentage_of_nodes_to_score;
  if (percentage == 0) {
    const int64_t adaptive = int64_t{50} - n / 125;
    percentage = static_cast<uint64_t>(std::max<int64_t>(adaptive, 5));
  }
  const uint64_t wanted = n * percentage / 100;
  return static_cast<uint32_t>(std::max<uint64_t>(wanted, kMinFeasibleNodes));
}

sdk::Attempt Evaluator::View(AttemptRecord& attempt, uint32_t plugin, const PodRecord& pod,
                             absl::Time now) const {
  return sdk::Attempt(attempt.id, sdk::PodView(&pod), mirror_->view(), now,
                      &attempt.states[plugin]);
}

void Evaluator::PreFilter(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                          v1alpha1::PreFilterResponse* response) {
  response->Clear();
  const Profile& profile = *attempt.profile;
  std::set<std::string> allowed;
  std::vector<std::string> restricting;
  bool restricted = false;
  for (uint32_t index : profile.at(v1alpha1::PRE_FILTER)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    sdk::PreFilterResult result;
    const Verdict verdict = plugin.pre_filter->PreFilter(View(attempt, index, pod, now), &result);
    if (verdict.skip()) {
      attempt.skip_filter[index] = 1;
      continue;
    }
    if (verdict.code() == v1alpha1::UNSCHEDULABLE ||
        verdict.code() == v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE) {
      response->mutable_rejection()->Clear();
      FillStatus(plugin.name, verdict, response->mutable_rejection());
      response->add_rejected_by(plugin.name);
      attempt.other_nodes = verdict.code();
      if (verdict.code() == v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE) return;
      continue;
    }
    if (!verdict.ok()) {
      response->Clear();
      FillErrorStatus(plugin.name,
                      absl::StrCat("running PreFilter plugin ", sdk::Quote(plugin.name), ": ",
                                   ErrorText(verdict)),
                      response->mutable_rejection());
      return;
    }
    if (!result.node_names) continue;
    restricting.push_back(plugin.name);
    if (!restricted) {
      allowed = *std::move(result.node_names);
      restricted = true;
    } else {
      std::erase_if(allowed, [&](const auto& name) { return !result.node_names->contains(name); });
    }
    if (allowed.empty()) {
      std::vector<std::string> sorted = restricting;
      std::sort(sorted.begin(), sorted.end());
      // As in kube-scheduler this rejection is no single plugin's, unless only one restricted the
      // nodes.
      attempt.other_nodes = v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE;
      response->mutable_rejection()->Clear();
      FillStatus(sorted.size() == 1 ? sorted[0] : "",
                 Verdict::Unresolvable(
                     sorted.size() == 1 ? absl::StrCat("node(s) didn't satisfy plugin ", sorted[0])
                                        : absl::StrCat("node(s) didn't satisfy plugin(s) ",
                                                       GoList(sorted), " simultaneously")),
                 response->mutable_rejection());
      for (const std::string& name : restricting) response->add_rejected_by(name);
      for (const std::string& name : restricting) response->add_restricted_by(name);
      response->mutable_node_names();
      return;
    }
  }
  if (!restricted) return;
  for (const std::string& name : allowed) response->mutable_node_names()->add_names(name);
  for (const std::string& name : restricting) response->add_restricted_by(name);
}

void Evaluator::Filter(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                       absl::Span<const Slot> nodes, const SearchOptions& options,
                       v1alpha1::FilterResponse* response, std::vector<Slot>* feasible) {
  response->Clear();
  feasible->clear();
  verdicts_.Clear();
  reason_of_verdict_.clear();
  const uint32_t n = static_cast<uint32_t>(nodes.size());
  if (n == 0) return;
  const uint32_t wanted = FeasibleNodesToFind(n, options);
  std::string& bits = *response->mutable_feasible();
  bits.assign((n + 7) / 8, '\0');
  const std::vector<uint32_t>& nominated = mirror_->view().nodes().nominated_count;
  any_nominated_ =
      std::any_of(nominated.begin(), nominated.end(), [](uint32_t k) { return k > 0; });
  google::protobuf::RepeatedField<uint32_t>& rejected = *response->mutable_rejected();
  rejected.Reserve(static_cast<int>(n));
  // Where the response has a verdict's reason, which gets there when the first node needs it.
  const auto add_reason = [&](uint32_t verdict) {
    const sdk::VerdictTable::Entry& entry = verdicts_.entries()[verdict];
    FillStatus(attempt.profile->plugins()[entry.plugin].name, entry.verdict,
               response->add_reasons());
    return reason_of_verdict_[verdict] = static_cast<uint32_t>(response->reasons_size()) - 1;
  };
  uint32_t position = options.start_offset % n;
  uint32_t processed = 0;
  bool ended = false;
  Block block;
  for (uint32_t done = 0; done < n && !ended;) {
    block.size = static_cast<int>(std::min<uint32_t>(64, n - done));
    for (int i = 0; i < block.size; ++i) {
      block.slots[i] = nodes[position];
      if (++position == n) position = 0;
    }
    done += block.size;
    RunFilters(attempt, pod, now, /*stable=*/true, &block);
    reason_of_verdict_.resize(verdicts_.entries().size(), kNoReason);
    const uint32_t* const reasons = reason_of_verdict_.data();
    uint32_t* next_rejected = rejected.AddNAlreadyReserved(block.size);
    const auto num_rejected = [&] { return static_cast<int>(next_rejected - rejected.data()); };
    for (int i = 0; i < block.size; ++i) {
      const uint64_t bit = uint64_t{1} << i;
      if (block.feasible & bit) {
        if (feasible->size() == wanted) {
          ended = true;
          break;
        }
        bits[processed / 8] |= static_cast<char>(1 << (processed % 8));
        feasible->push_back(block.slots[i]);
      } else if (block.failed & bit) {
        if (block.only_without_nominated & bit) {
          response->add_only_without_nominated(static_cast<uint32_t>(num_rejected()));
        }
        const uint32_t verdict = block.verdicts[i];
        FillErrorStatus(attempt.profile->plugins()[verdicts_.entries()[verdict].plugin].name,
                        FailureText(attempt, verdict), response->mutable_error());
        ended = true;
        break;
      } else {
        if (block.only_without_nominated & bit) {
          response->add_only_without_nominated(static_cast<uint32_t>(num_rejected()));
        }
        const uint32_t verdict = block.verdicts[i];
        const uint32_t reason = reasons[verdict];
        *next_rejected++ = reason != kNoReason ? reason : add_reason(verdict);
      }
      ++processed;
    }
    rejected.Truncate(num_rejected());
  }
  response->set_processed(processed);
  bits.resize((processed + 7) / 8);
  if (feasible->empty()) NoteRejections(nodes, options.start_offset, *response, &attempt);
}

void Evaluator::NoteRejections(absl::Span<const Slot> nodes, uint32_t start,
                               const v1alpha1::FilterResponse& response,
                               AttemptRecord* attempt) const {
  if (attempt->profile->at(v1alpha1::POST_FILTER).empty()) return;
  for (int i = 0; i < response.rejected_size(); ++i) {
    const int reason = static_cast<int>(response.rejected(i));
    attempt->rejected_nodes.emplace_back(nodes[(start + i) % nodes.size()],
                                         response.reasons(reason).code());
  }
}

void Evaluator::RunFilters(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                           bool stable, Block* block) {
  const Profile& profile = *attempt.profile;
  uint64_t candidates = block->size == 64 ? ~uint64_t{0} : (uint64_t{1} << block->size) - 1;
  block->failed = 0;
  const absl::Span<const Slot> slots(block->slots.data(), block->size);
  uint64_t nominated = 0;
  for (int i = 0; i < block->size && any_nominated_; ++i) {
    if (HasRelevantNominated(pod, slots[i])) nominated |= uint64_t{1} << i;
  }
  for (uint32_t index : profile.at(v1alpha1::FILTER)) {
    if (attempt.skip_filter[index]) continue;
    if (candidates == 0) break;
    sdk::FilterSink sink(&verdicts_, index, candidates, &block->verdicts, stable);
    profile.plugins()[index].filter->Filter(View(attempt, index, pod, now),
                                            sdk::NodeBlock{slots, candidates}, sink);
    block->failed |= sink.failed();
    candidates &= ~(sink.rejected() | sink.failed());
  }
  block->feasible = candidates;
  block->only_without_nominated = 0;
  for (; nominated != 0; nominated &= nominated - 1) {
    const uint64_t bit = nominated & -nominated;
    if (!JudgeWithNominated(attempt, pod, now, std::countr_zero(nominated), block) &&
        (block->feasible & bit) == 0) {
      block->only_without_nominated |= bit;
    }
  }
}

bool Evaluator::HasRelevantNominated(const PodRecord& pod, Slot slot) const {
  const sdk::NodeTable& nodes = mirror_->view().nodes();
  if (nodes.nominated_count[slot] == 0) return false;
  return std::any_of(nodes.nominated[slot].begin(), nodes.nominated[slot].end(),
                     [&](const PodRecord* other) {
                       return other != &pod && other->pod.priority() >= pod.pod.priority();
                     });
}

bool Evaluator::JudgeWithNominated(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                                   int index, Block* block) {
  const Profile& profile = *attempt.profile;
  const Slot slot = block->slots[index];
  const uint64_t bit = uint64_t{1} << index;
  const StateCopies copies(&attempt);
  mirror::Mirror::Hypothesis hypothesis(mirror_, slot);
  const std::vector<PodRecord*> nominated = mirror_->view().nodes().nominated[slot];
  for (PodRecord* other : nominated) {
    if (other == &pod || other->pod.priority() < pod.pod.priority()) continue;
    hypothesis.AddPod(other);
    uint32_t plugin = 0;
    const Verdict told = TellPlugins(attempt, pod, now, PodChange::kAdd, *other, slot, &plugin);
    if (told.ok()) continue;
    block->verdicts[index] = verdicts_.Intern(plugin, told);
    block->feasible &= ~bit;
    block->failed |= bit;
    return true;
  }
  std::array<uint32_t, 64> verdicts;
  const absl::Span<const Slot> slots(block->slots.data(), block->size);
  for (uint32_t plugin : profile.at(v1alpha1::FILTER)) {
    if (attempt.skip_filter[plugin]) continue;
    sdk::FilterSink sink(&verdicts_, plugin, bit, &verdicts, /*stable=*/false);
    profile.plugins()[plugin].filter->Filter(View(attempt, plugin, pod, now),
                                             sdk::NodeBlock{slots, bit}, sink);
    if ((sink.rejected() | sink.failed()) == 0) continue;
    block->verdicts[index] = verdicts[index];
    block->feasible &= ~bit;
    block->failed = (block->failed & ~bit) | sink.failed();
    return true;
  }
  return false;
}

Verdict Evaluator::TellPlugins(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                               PodChange change, const PodRecord& other, Slot slot,
                               uint32_t* failed) {
  const bool add = change == PodChange::kAdd;
  const sdk::NodeView node = mirror_->view().node(slot);
  for (uint32_t index : attempt.profile->at(v1alpha1::PRE_FILTER)) {
    if (attempt.skip_filter[index]) continue;
    const ProfilePlugin& plugin = attempt.profile->plugins()[index];
    const sdk::Attempt view = View(attempt, index, pod, now);
    const Verdict verdict = add ? plugin.pre_filter->AddPod(view, sdk::PodView(&other), node)
                                : plugin.pre_filter->RemovePod(view, sdk::PodView(&other), node);
    if (verdict.ok()) continue;
    *failed = index;
    return Verdict::Error(absl::StrCat(add ? kAddPod : kRemovePod, sdk::Quote(plugin.name), ": ",
                                       ErrorText(verdict)));
  }
  return Verdict::Success();
}

Evaluator::NodeVerdict Evaluator::JudgeNode(AttemptRecord& attempt, const PodRecord& pod,
                                            absl::Time now, Slot slot) {
  verdicts_.Clear();
  Block block;
  block.size = 1;
  block.slots[0] = slot;
  any_nominated_ = true;
  // States are copies that come and go, and so are verdicts in them.
  RunFilters(attempt, pod, now, /*stable=*/false, &block);
  if (block.feasible != 0) return {};
  const uint32_t verdict = block.verdicts[0];
  const sdk::VerdictTable::Entry& entry = verdicts_.entries()[verdict];
  if (block.failed != 0) return {Verdict::Error(FailureText(attempt, verdict)), entry.plugin};
  return {entry.verdict, entry.plugin};
}

std::string Evaluator::FailureText(const AttemptRecord& attempt, uint32_t verdict) const {
  const sdk::VerdictTable::Entry& entry = verdicts_.entries()[verdict];
  const std::string text = ErrorText(entry.verdict);
  if (absl::StartsWith(text, kAddPod)) return text;
  return absl::StrCat("running ", sdk::Quote(attempt.profile->plugins()[entry.plugin].name),
                      " filter plugin: ", text);
}

void Evaluator::PreScore(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                         absl::Span<const Slot> nodes, v1alpha1::PreScoreResponse* response) {
  response->Clear();
  const Profile& profile = *attempt.profile;
  attempt.skip_score.assign(profile.plugins().size(), 0);
  for (uint32_t index : profile.at(v1alpha1::PRE_SCORE)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    const Verdict verdict = plugin.pre_score->PreScore(View(attempt, index, pod, now), nodes);
    if (verdict.skip()) {
      attempt.skip_score[index] = 1;
      response->add_skipped(plugin.name);
    } else if (!verdict.ok()) {
      FillErrorStatus(plugin.name,
                      absl::StrCat("running PreScore plugin ", sdk::Quote(plugin.name), ": ",
                                   ErrorText(verdict)),
                      response->mutable_error());
      return;
    }
  }
}

namespace {

void FillTerms(const sdk::Attempt& attempt, const sdk::ScorePlugin& plugin,
               absl::Span<const Slot> nodes, v1alpha1::PluginScores* out) {
  const auto explained = plugin.Explain(attempt, nodes);
  if (explained.size() != nodes.size()) return;
  for (const std::vector<sdk::ScoreTerm>& node : explained) {
    v1alpha1::ScoreTerms* terms = out->add_terms();
    for (const sdk::ScoreTerm& term : node) {
      v1alpha1::ScoreTerm* sent = terms->add_terms();
      sent->set_name(term.name);
      sent->set_value(term.value);
    }
  }
}

}  // namespace

void Evaluator::Score(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                      absl::Span<const Slot> nodes, bool explain,
                      v1alpha1::ScoreResponse* response) {
  response->Clear();
  const Profile& profile = *attempt.profile;
  const size_t n = nodes.size();
  const std::vector<uint32_t>& enabled = profile.at(v1alpha1::SCORE);
  scores_.assign(enabled.size() * n, 0);
  auto row = [&](size_t i) { return absl::Span<int64_t>(scores_.data() + i * n, n); };
  auto fail = [&](const ProfilePlugin& plugin, absl::string_view stage, const Verdict& verdict) {
    response->Clear();
    FillErrorStatus(plugin.name,
                    absl::StrCat("running ", stage, " plugins: plugin ", sdk::Quote(plugin.name),
                                 " failed with: ", ErrorText(verdict)),
                    response->mutable_error());
  };
  // All score before any normalises: a failure to score is the one reported.
  for (size_t i = 0; i < enabled.size(); ++i) {
    if (attempt.skip_score[enabled[i]]) continue;
    const ProfilePlugin& plugin = profile.plugins()[enabled[i]];
    const Verdict verdict = plugin.score->Score(View(attempt, enabled[i], pod, now), nodes, row(i));
    if (!verdict.ok()) return fail(plugin, "Score", verdict);
  }
  for (size_t i = 0; i < enabled.size(); ++i) {
    if (attempt.skip_score[enabled[i]]) continue;
    const ProfilePlugin& plugin = profile.plugins()[enabled[i]];
    const Verdict verdict =
        plugin.score->Normalize(View(attempt, enabled[i], pod, now), nodes, row(i));
    if (!verdict.ok()) return fail(plugin, "Normalize on Score", verdict);
  }
  for (size_t i = 0; i < enabled.size(); ++i) {
    if (attempt.skip_score[enabled[i]]) continue;
    const ProfilePlugin& plugin = profile.plugins()[enabled[i]];
    v1alpha1::PluginScores* out = response->add_plugins();
    out->set_plugin(plugin.name);
    std::string& bytes = *out->mutable_scores();
    bytes.resize(n);
    const absl::Span<const int64_t> scores = row(i);
    for (size_t k = 0; k < n; ++k) {
      if (scores[k] < 0 || scores[k] > sdk::kMaxScore) {
        const std::string text =
            absl::StrCat("applying score defaultWeights on Score plugins: plugin ",
                         sdk::Quote(plugin.name), " returns an invalid score ", scores[k],
                         ", it should in the range of [0, ", sdk::kMaxScore, "] after normalizing");
        response->Clear();
        return FillErrorStatus(plugin.name, text, response->mutable_error());
      }
      bytes[k] = static_cast<char>(scores[k]);
    }
    tie_keys_.resize(n);
    if (plugin.score->TieKeys(View(attempt, enabled[i], pod, now), nodes,
                              absl::Span<int64_t>(tie_keys_))) {
      out->mutable_tie_keys()->Add(tie_keys_.begin(), tie_keys_.end());
    }
    if (explain) FillTerms(View(attempt, enabled[i], pod, now), *plugin.score, nodes, out);
  }
}

}  // namespace outboard::runtime
