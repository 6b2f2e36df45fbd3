// Filter: which nodes the pod fits on.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/runtime/evaluator.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::runtime {
namespace {

using sdk::PodRecord;
using sdk::Slot;
using sdk::Verdict;

constexpr uint32_t kNoReason = 0xffffffff;
constexpr uint32_t kMinFeasibleNodes = 100;
// A verdict gets a bitmap, which is faster to read than a list, from a share of 1/32 of the
// examined nodes on, but not for fewer than 64 nodes.
constexpr uint32_t kBitmapShare = 32;
constexpr uint32_t kFewNodes = 64;
constexpr char kAddPod[] = "running AddPod on PreFilter plugin ";
constexpr char kRemovePod[] = "running RemovePod on PreFilter plugin ";

// The lowest n of 64 bits.
uint64_t LowBits(int n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

// std::popcount is a function call if the processor's instruction cannot be assumed.
int CountBits(uint64_t bits) {
  bits -= (bits >> 1) & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333);
  bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<int>((bits * 0x0101010101010101) >> 56);
}

// Position of the k-th set bit, counted from 0; more than k bits must be set.
int PositionOfBit(uint64_t mask, uint32_t k) {
  for (; k > 0; --k) mask &= mask - 1;
  return std::countr_zero(mask);
}

// The nodes of a strip that no plugin has rejected. While they are many, in the strip's blocks;
// then compacted into fewer blocks, so that plugins are not called for one or two nodes each.
struct Candidates {
  std::array<Slot, Evaluator::kStripNodes> slots;
  std::array<uint16_t, Evaluator::kStripNodes> at;  // their positions in the strip
  std::array<uint64_t, Evaluator::kStripBlocks> mask;
  int blocks = 0;
  bool packed = false;

  int Count() const {
    int count = 0;
    for (int b = 0; b < blocks; ++b) count += CountBits(mask[b]);
    return count;
  }
  // `from`: the current slots, which may be this object's own.
  void Pack(const Slot* from) {
    int n = 0;
    for (int b = 0; b < blocks; ++b) {
      for (uint64_t rest = mask[b]; rest != 0; rest &= rest - 1) {
        const int i = b * 64 + std::countr_zero(rest);
        slots[n] = from[i];
        at[n] = packed ? at[i] : static_cast<uint16_t>(i);
        ++n;
      }
    }
    packed = true;
    blocks = (n + 63) / 64;
    for (int b = 0; b < blocks; ++b) mask[b] = LowBits(n - b * 64);
  }
};

}  // namespace

uint32_t FeasibleNodesToFind(uint32_t n, const SearchOptions& options) {
  if (options.num_to_find > 0) return std::min(n, options.num_to_find);
  if (n < kMinFeasibleNodes) return n;
  uint64_t percentage = options.percentage_of_nodes_to_score;
  if (percentage == 0) {
    const int64_t adaptive = int64_t{50} - n / 125;
    percentage = static_cast<uint64_t>(std::max<int64_t>(adaptive, 5));
  }
  const uint64_t wanted = n * percentage / 100;
  return static_cast<uint32_t>(std::max<uint64_t>(wanted, kMinFeasibleNodes));
}

// Writes verdicts on nodes, in order, into a response.
class Evaluator::FilterWriter {
 public:
  FilterWriter(const AttemptRecord& attempt, Evaluator& evaluator, uint32_t wanted,
               v1beta1::FilterResponse* response, std::vector<Slot>* feasible)
      : attempt_(attempt),
        evaluator_(evaluator),
        wanted_(wanted),
        response_(*response),
        feasible_bits_(*response->mutable_feasible()),
        feasible_(*feasible),
        rejected_(evaluator.rejected_) {
    rejected_.clear();
  }

  // Adds the next nodes, up to 64 of a strip; all earlier calls had 64. False: the search ends
  // here.
  bool Take(const Strip& strip, int block);
  // Ends the response.
  void Finish();

 private:
  const AttemptRecord& attempt_;
  const Evaluator& evaluator_;
  const uint32_t wanted_;
  v1beta1::FilterResponse& response_;
  std::string& feasible_bits_;  // of the response
  std::vector<Slot>& feasible_;
  std::vector<Rejected>& rejected_;  // of the evaluator, by block
  uint32_t processed_ = 0;
};

bool Evaluator::FilterWriter::Take(const Strip& strip, int block) {
  const Slot* const slots = strip.slots.data() + block * 64;
  const uint64_t feasible = strip.feasible[block];
  const uint64_t failed = strip.failed[block];
  const int size = std::min(64, strip.size - block * 64);
  // The search ends at the first node on which a plugin fails, or at one feasible node too many.
  int end = size;
  const uint32_t room = wanted_ - static_cast<uint32_t>(feasible_.size());
  if (room < 64 && static_cast<uint32_t>(CountBits(feasible)) > room)
    end = PositionOfBit(feasible, room);
  bool fails = false;
  if (failed != 0 && std::countr_zero(failed) < end) {
    fails = true;
    end = std::countr_zero(failed);
  }
  const uint64_t taken = LowBits(end);
  const uint64_t word = feasible & taken;
  std::array<char, 8> bytes;
  for (int byte = 0; byte < 8; ++byte) bytes[byte] = static_cast<char>(word >> (byte * 8));
  feasible_bits_.append(bytes.data(), static_cast<size_t>(end + 7) / 8);
  const uint32_t rejected_before = processed_ - static_cast<uint32_t>(feasible_.size());
  for (uint64_t rest = word; rest != 0; rest &= rest - 1)
    feasible_.push_back(slots[std::countr_zero(rest)]);
  const uint64_t rejected = ~feasible & taken;
  const auto mark = [&](uint64_t bit) {
    response_.add_only_without_nominated(rejected_before +
                                         static_cast<uint32_t>(CountBits(rejected & (bit - 1))));
  };
  const uint64_t only = strip.only_without_nominated[block];
  for (uint64_t rest = only & rejected; rest != 0; rest &= rest - 1) mark(rest & -rest);
  if (fails) {
    if ((only >> end) & 1) mark(uint64_t{1} << end);
    const uint32_t verdict = strip.verdicts[block][end];
    const sdk::VerdictTable::Entry& entry = evaluator_.verdicts_.entries()[verdict];
    FillErrorStatus(attempt_.profile->plugins()[entry.plugin].name,
                    evaluator_.FailureText(attempt_, verdict), response_.mutable_error());
  }
  for (const sdk::BlockVerdicts::Part& part : strip.verdicts[block].parts()) {
    if (const uint64_t nodes = part.nodes & rejected; nodes != 0)
      rejected_.push_back({processed_ / 64, part.verdict, nodes});
  }
  processed_ += static_cast<uint32_t>(end);
  return end == size;
}

void Evaluator::FilterWriter::Finish() {
  response_.set_processed(processed_);
  if (rejected_.empty()) return;
  const auto& entries = evaluator_.verdicts_.entries();
  std::vector<uint32_t> nodes_of(entries.size(), 0);  // by verdict
  for (const Rejected& some : rejected_)
    nodes_of[some.verdict] += static_cast<uint32_t>(CountBits(some.nodes));
  std::vector<uint32_t> reason_of(entries.size(), kNoReason);
  const auto add_reason = [&](uint32_t verdict) {
    FillStatus(attempt_.profile->plugins()[entries[verdict].plugin].name, entries[verdict].verdict,
               response_.add_reasons());
    return reason_of[verdict] = static_cast<uint32_t>(response_.reasons_size()) - 1;
  };
  // Verdicts on enough nodes for a bitmap to pay off, at most 31.
  for (uint32_t verdict = 0; verdict < entries.size(); ++verdict) {
    if (nodes_of[verdict] <= std::max(kFewNodes, processed_ / kBitmapShare)) continue;
    add_reason(verdict);
    response_.add_rejected_for()->assign(response_.feasible().size(), '\0');
  }
  const uint32_t num_bitmaps = static_cast<uint32_t>(response_.rejected_for_size());
  const size_t bytes = response_.feasible().size();
  std::vector<char*> bitmaps;
  for (std::string& bitmap : *response_.mutable_rejected_for()) bitmaps.push_back(bitmap.data());
  std::array<uint32_t, 64> verdict_of;  // of a block's nodes in no bitmap
  for (size_t k = 0; k < rejected_.size();) {
    const uint32_t block = rejected_[k].block;
    uint64_t rest = 0;
    for (; k < rejected_.size() && rejected_[k].block == block; ++k) {
      const Rejected& some = rejected_[k];
      const uint32_t reason = reason_of[some.verdict];
      if (reason >= num_bitmaps) {
        rest |= some.nodes;
        for (uint64_t nodes = some.nodes; nodes != 0; nodes &= nodes - 1)
          verdict_of[std::countr_zero(nodes)] = some.verdict;
        continue;
      }
      std::memcpy(bitmaps[reason] + block * 8, &some.nodes, std::min<size_t>(8, bytes - block * 8));
    }
    for (; rest != 0; rest &= rest - 1) {
      const uint32_t verdict = verdict_of[std::countr_zero(rest)];
      const uint32_t reason = reason_of[verdict];
      response_.add_rejected(reason != kNoReason ? reason : add_reason(verdict));
    }
  }
}

void Evaluator::Filter(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                       absl::Span<const Slot> nodes, const SearchOptions& options,
                       v1beta1::FilterResponse* response, std::vector<Slot>* feasible) {
  response->Clear();
  feasible->clear();
  verdicts_.Clear();
  const uint32_t n = static_cast<uint32_t>(nodes.size());
  if (n == 0) return;
  PluginTimes::Evaluation times(&attempt.profile->times(), v1beta1::EXTENSION_POINT_FILTER,
                                sdk::LogName(sdk::PodView(&pod)));
  filter_times_ = &times;
  const absl::Cleanup ended = [this] { filter_times_ = nullptr; };
  any_nominated_ = cache_->nominations() > 0;
  const uint32_t wanted = FeasibleNodesToFind(n, options);
  FilterWriter writer(attempt, *this, wanted, response, feasible);
  response->mutable_feasible()->reserve((n + 7) / 8);
  Strip& strip = strip_;
  uint32_t position = options.start_offset % n;
  const absl::Span<const Slot> order = cache_->view().node_order();
  const bool in_order = nodes.data() == order.data() && nodes.size() == order.size();
  bool goes_on = true;
  // The least number of further nodes, in blocks: the missing feasible ones, and one more, at which
  // the search ends.
  const auto least = [](uint32_t missing) { return (missing + 64) / 64 * 64; };
  uint32_t length = std::min<uint32_t>(least(wanted), kStripNodes);
  for (uint32_t done = 0; done < n && goes_on; done += static_cast<uint32_t>(strip.size)) {
    strip.size = static_cast<int>(std::min(length, n - done));
    strip.place = in_order ? position : sdk::NodeBlock::kNoPlace;
    const uint32_t before_end = std::min(static_cast<uint32_t>(strip.size), n - position);
    std::copy_n(nodes.begin() + position, before_end, strip.slots.begin());
    position += before_end;
    if (before_end < static_cast<uint32_t>(strip.size)) {
      position = static_cast<uint32_t>(strip.size) - before_end;
      std::copy_n(nodes.begin(), position, strip.slots.begin() + before_end);
    }
    if (position == n) position = 0;
    RunFilters(attempt, pod, now, /*stable=*/true, &strip);
    const size_t found_before = feasible->size();
    for (int block = 0; block * 64 < strip.size && goes_on; ++block)
      goes_on = writer.Take(strip, block);
    // If few nodes are feasible, the search is long, and larger strips are faster. Otherwise it
    // ends soon, and nodes after the end would be evaluated unnecessarily.
    const size_t found = feasible->size() - found_before;
    const bool few = found * 4 < static_cast<size_t>(strip.size);
    const uint32_t missing = wanted - static_cast<uint32_t>(feasible->size());
    length = std::min<uint32_t>(std::max(few ? length * 2 : 64, least(missing)), kStripNodes);
  }
  writer.Finish();
  if (feasible->empty()) NoteRejections(nodes, options.start_offset, *response, &attempt);
}

void Evaluator::NoteRejections(absl::Span<const Slot> nodes, uint32_t start,
                               const v1beta1::FilterResponse& response,
                               AttemptRecord* attempt) const {
  if (attempt->profile->at(v1beta1::EXTENSION_POINT_POST_FILTER).empty()) return;
  size_t node = start % nodes.size();
  int listed = 0;
  for (uint32_t i = 0; i < response.processed(); ++i) {
    int reason = 0;
    for (; reason < response.rejected_for_size(); ++reason) {
      if ((response.rejected_for(reason)[i / 8] >> (i % 8)) & 1) break;
    }
    if (reason == response.rejected_for_size())
      reason = static_cast<int>(response.rejected(listed++));
    attempt->rejected_nodes.emplace_back(nodes[node], response.reasons(reason).code());
    if (++node == nodes.size()) node = 0;
  }
}

void Evaluator::RunFilters(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                           bool stable, Strip* strip) {
  const Profile& profile = *attempt.profile;
  const int blocks = (strip->size + 63) / 64;
  const auto num_nodes = static_cast<uint32_t>(cache_->view().node_order().size());
  std::array<uint32_t, kStripBlocks> places;
  Candidates left;
  left.blocks = blocks;
  for (int b = 0; b < blocks; ++b) {
    const uint32_t place = strip->place + static_cast<uint32_t>(b) * 64;
    places[b] = strip->place == sdk::NodeBlock::kNoPlace ? strip->place
                : place < num_nodes                      ? place
                                                         : place - num_nodes;
    left.mask[b] = LowBits(strip->size - b * 64);
    strip->failed[b] = 0;
    strip->verdicts[b].Clear();
  }
  sdk::BlockVerdicts verdicts;
  if (filter_times_ != nullptr) filter_times_->Continue();
  for (uint32_t index : profile.at(v1beta1::EXTENSION_POINT_FILTER)) {
    if (attempt.skip_filter[index]) continue;
    const Slot* const slots = left.packed ? left.slots.data() : strip->slots.data();
    const sdk::FilterPlugin& filter = *profile.plugins()[index].filter;
    const sdk::Attempt view = View(attempt, index, pod, now);
    uint64_t any_gone = 0;
    for (int b = 0; b < left.blocks; ++b) {
      if (left.mask[b] == 0) continue;
      verdicts.Clear();
      sdk::FilterSink sink(&verdicts_, index, left.mask[b],
                           left.packed ? &verdicts : &strip->verdicts[b], stable);
      const size_t size = static_cast<size_t>(64 - std::countl_zero(left.mask[b]));
      const sdk::NodeBlock block{absl::Span<const Slot>(slots + b * 64, size), left.mask[b],
                                 left.packed ? sdk::NodeBlock::kNoPlace : places[b]};
      filter.Filter(view, block, sink);
      const uint64_t gone = sink.rejected() | sink.failed();
      any_gone |= gone;
      left.mask[b] &= ~gone;
      if (!left.packed) {
        strip->failed[b] |= sink.failed();
        continue;
      }
      for (uint64_t rest = gone; rest != 0; rest &= rest - 1) {
        const int i = std::countr_zero(rest);
        const int at = left.at[b * 64 + i];
        strip->verdicts[at / 64].Add(uint64_t{1} << (at % 64), verdicts[i]);
        strip->failed[at / 64] |= ((sink.failed() >> i) & 1) << (at % 64);
      }
    }
    if (filter_times_ != nullptr) filter_times_->Ended(index);
    if (any_gone == 0) continue;
    const int count = left.Count();
    if (count == 0) break;
    if (left.blocks > 1 && count <= left.blocks * 32) left.Pack(slots);
  }
  if (left.packed) {
    std::fill_n(strip->feasible.begin(), blocks, 0);
    for (int b = 0; b < left.blocks; ++b) {
      for (uint64_t rest = left.mask[b]; rest != 0; rest &= rest - 1) {
        const int at = left.at[b * 64 + std::countr_zero(rest)];
        strip->feasible[at / 64] |= uint64_t{1} << (at % 64);
      }
    }
  } else {
    std::copy_n(left.mask.begin(), blocks, strip->feasible.begin());
  }
  std::fill_n(strip->only_without_nominated.begin(), blocks, 0);
  for (int i = 0; i < strip->size && any_nominated_; ++i) {
    if (!HasRelevantNominated(pod, strip->slots[i])) continue;
    const uint64_t bit = uint64_t{1} << (i % 64);
    if (!EvaluateWithNominated(attempt, pod, now, i, strip) && (strip->feasible[i / 64] & bit) == 0)
      strip->only_without_nominated[i / 64] |= bit;
  }
}

bool Evaluator::HasRelevantNominated(const PodRecord& pod, Slot slot) const {
  const sdk::NodeTable& nodes = cache_->view().nodes();
  if (nodes.nominated_count[slot] == 0) return false;
  return std::any_of(nodes.nominated[slot].begin(), nodes.nominated[slot].end(),
                     [&](const PodRecord* other) {
                       return other != &pod && other->pod.priority() >= pod.pod.priority();
                     });
}

bool Evaluator::EvaluateWithNominated(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                                      int index, Strip* strip) {
  const Profile& profile = *attempt.profile;
  const Slot slot = strip->slots[index];
  const uint64_t bit = uint64_t{1} << (index % 64);
  const auto keep = [&](uint32_t verdict) {
    strip->verdicts[index / 64].Replace(index % 64, verdict);
  };
  uint64_t& feasible = strip->feasible[index / 64];
  uint64_t& failed = strip->failed[index / 64];
  const StateCopies copies(&attempt);
  host_cache::ClusterCache::Hypothesis hypothesis(cache_, slot);
  const std::vector<PodRecord*> nominated = cache_->view().nodes().nominated[slot];
  for (PodRecord* other : nominated) {
    if (other == &pod || other->pod.priority() < pod.pod.priority()) continue;
    hypothesis.AddPod(other);
    uint32_t plugin = 0;
    const Verdict told =
        UpdatePluginStates(attempt, pod, now, PodChange::kAdd, *other, slot, &plugin);
    if (told.ok()) continue;
    keep(verdicts_.Intern(plugin, told));
    feasible &= ~bit;
    failed |= bit;
    return true;
  }
  sdk::BlockVerdicts verdicts;
  for (uint32_t plugin : profile.at(v1beta1::EXTENSION_POINT_FILTER)) {
    if (attempt.skip_filter[plugin]) continue;
    sdk::FilterSink sink(&verdicts_, plugin, /*candidates=*/1, &verdicts, /*stable=*/false);
    profile.plugins()[plugin].filter->Filter(View(attempt, plugin, pod, now),
                                             sdk::NodeBlock{absl::MakeSpan(&slot, 1), 1}, sink);
    if ((sink.rejected() | sink.failed()) == 0) continue;
    keep(verdicts[0]);
    feasible &= ~bit;
    failed = sink.failed() != 0 ? failed | bit : failed & ~bit;
    return true;
  }
  return false;
}

Verdict Evaluator::UpdatePluginStates(AttemptRecord& attempt, const PodRecord& pod, absl::Time now,
                                      PodChange change, const PodRecord& other, Slot slot,
                                      uint32_t* failed) {
  const bool add = change == PodChange::kAdd;
  const sdk::NodeView node = cache_->view().node(slot);
  for (uint32_t index : attempt.profile->filters_with_state()) {
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

Evaluator::NodeVerdict Evaluator::EvaluateNode(AttemptRecord& attempt, const PodRecord& pod,
                                               absl::Time now, Slot slot) {
  verdicts_.Clear();
  strip_.size = 1;
  strip_.place = sdk::NodeBlock::kNoPlace;
  strip_.slots[0] = slot;
  any_nominated_ = true;
  // States are temporary copies, and so are verdicts in them.
  RunFilters(attempt, pod, now, /*stable=*/false, &strip_);
  if (strip_.feasible[0] != 0) return {};
  const uint32_t verdict = strip_.verdicts[0][0];
  const sdk::VerdictTable::Entry& entry = verdicts_.entries()[verdict];
  if (strip_.failed[0] != 0) return {Verdict::Error(FailureText(attempt, verdict)), entry.plugin};
  return {entry.verdict, entry.plugin};
}

std::string Evaluator::FailureText(const AttemptRecord& attempt, uint32_t verdict) const {
  const sdk::VerdictTable::Entry& entry = verdicts_.entries()[verdict];
  const std::string text = ErrorText(entry.verdict);
  if (absl::StartsWith(text, kAddPod)) return text;
  return absl::StrCat("running ", sdk::Quote(attempt.profile->plugins()[entry.plugin].name),
                      " filter plugin: ", text);
}

}  // namespace outboard::runtime
