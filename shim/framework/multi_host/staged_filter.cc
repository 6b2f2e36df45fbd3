#include "shim/framework/multi_host/staged_filter.h"

#include <algorithm>
#include <deque>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "shim/framework/rejections.h"

namespace outboard::framework {
namespace {

using v1beta1::FilterResponse;
using v1beta1::PluginStatus;

// A call costs about as much as evaluating this many nodes, so fewer are not worth a call.
constexpr uint32_t kFewestAsked = 100;

struct Verdict {
  const PluginStatus* status = nullptr;  // null: feasible
  bool is_error = false;
  bool only_without_nominated = false;
  size_t position = 0;  // of the plugin in the profile

  // Whether this verdict is reported if another host says `other`.
  bool Precedes(const Verdict& other) const {
    if (status == nullptr || other.status == nullptr) return other.status == nullptr;
    return std::tie(only_without_nominated, position) <
           std::tie(other.only_without_nominated, other.position);
  }
};

// Adds the answer's verdicts, in order; the last is the failure, if any. They point into the
// answer.
void Append(const std::vector<std::string>& profile, const FilterResponse& answer,
            std::vector<Verdict>* verdicts) {
  const auto position_of = [&](const PluginStatus& status) {
    return static_cast<size_t>(std::find(profile.begin(), profile.end(), status.plugin()) -
                               profile.begin());
  };
  std::vector<Verdict> rejections;  // by reason
  for (const PluginStatus& reason : answer.reasons())
    rejections.push_back({&reason, false, false, position_of(reason)});
  RejectedNodes rejected;
  int marked = 0;
  const auto is_marked = [&] {
    const auto& marks = answer.only_without_nominated();
    if (marked == marks.size() || marks[marked] != rejected.taken()) return false;
    ++marked;
    return true;
  };
  verdicts->reserve(verdicts->size() + answer.processed() + 1);
  for (uint32_t i = 0; i < answer.processed(); ++i) {
    Verdict& verdict = verdicts->emplace_back();
    if ((answer.feasible()[i / 8] >> (i % 8)) & 1) continue;
    const bool only_without_nominated = is_marked();
    verdict = rejections[*rejected.NextReason(answer, i)];
    verdict.only_without_nominated = only_without_nominated;
  }
  if (answer.has_error())
    verdicts->push_back({&answer.error(), true, is_marked(), position_of(answer.error())});
}

class Merged {
 public:
  void Add(const Verdict& verdict) {
    if (verdict.only_without_nominated)
      response_.add_only_without_nominated(static_cast<uint32_t>(response_.rejected_size()));
    if (verdict.is_error) {
      *response_.mutable_error() = *verdict.status;
      return;
    }
    if (processed_ % 8 == 0) bits_.push_back('\0');
    if (verdict.status == nullptr) {
      bits_.back() = static_cast<char>(bits_.back() | (1 << (processed_ % 8)));
    } else {
      response_.add_rejected(NumberOf(verdict.status));
    }
    ++processed_;
  }
  FilterResponse Take() {
    response_.set_processed(processed_);
    response_.set_feasible(std::move(bits_));
    return std::move(response_);
  }

 private:
  uint32_t NumberOf(const PluginStatus* status) {
    const auto [known, is_new] = numbers_.try_emplace(status, 0);
    if (!is_new) return known->second;
    // Several answers may have the same status.
    std::string key = status->SerializeAsString();
    const auto same = std::find(keys_.begin(), keys_.end(), key);
    known->second = static_cast<uint32_t>(same - keys_.begin());
    if (same == keys_.end()) {
      keys_.push_back(std::move(key));
      *response_.add_reasons() = *status;
    }
    return known->second;
  }

  FilterResponse response_;
  std::string bits_;
  absl::flat_hash_map<const PluginStatus*, uint32_t> numbers_;  // by where an answer has it
  std::vector<std::string> keys_;
  uint32_t processed_ = 0;
};

}  // namespace

absl::StatusOr<FilterResponse> StagedFilter(const std::vector<std::string>& profile,
                                            size_t first_late, FilterResponse early,
                                            uint32_t num_nodes, uint32_t num_to_find,
                                            AskAbout early_again, AskAbout late) {
  std::deque<FilterResponse> answers;  // Verdicts point into them.
  std::vector<Verdict> before;         // by position
  std::vector<Verdict> behind;         // of the nodes in the last question to the late hosts
  size_t next = 0;                     // in `behind`
  answers.push_back(std::move(early));
  Append(profile, answers.back(), &before);
  // A search that ended had found one more feasible node.
  if (!answers.back().has_error() && before.size() < num_nodes) before.emplace_back();
  // Whether the early hosts' verdict on a node is not final.
  const auto fail_open = [first_late](const Verdict& verdict) {
    return verdict.status == nullptr || verdict.only_without_nominated ||
           verdict.position > first_late;
  };
  // The nodes to ask late hosts about: open ones from `i` on, as far as they are known, until
  // enough of them may be feasible.
  const auto open_from = [&](uint32_t i, size_t enough) {
    std::vector<uint32_t> open;
    for (size_t feasible = 0; i < before.size() && i < num_nodes && feasible < enough; ++i) {
      if (before[i].status == nullptr) ++feasible;
      if (fail_open(before[i])) open.push_back(i);
    }
    return open;
  };
  Merged merged;
  uint32_t found = 0;
  size_t at_least = kFewestAsked;
  for (uint32_t i = 0; i < num_nodes; ++i) {
    if (i == before.size()) {
      std::vector<uint32_t> positions;
      const uint32_t end = std::min(num_nodes, i + std::max(i, kFewestAsked));
      for (uint32_t position = i; position < end; ++position) positions.push_back(position);
      absl::StatusOr<FilterResponse> answer = early_again(positions);
      if (!answer.ok()) return answer.status();
      answers.push_back(*std::move(answer));
      Append(profile, answers.back(), &before);
    }
    Verdict verdict = before[i];
    if (fail_open(verdict)) {
      if (next == behind.size()) {
        absl::StatusOr<FilterResponse> answer =
            late(open_from(i, std::max<size_t>(num_to_find - found + 1, at_least)));
        if (!answer.ok()) return answer.status();
        // If nearly all nodes are rejected, each call covers more of them.
        at_least *= 2;
        answers.push_back(*std::move(answer));
        behind.clear();
        Append(profile, answers.back(), &behind);
        next = 0;
      }
      // A failure that the other's rejection hides is the last verdict of its answer, so its hosts
      // are called again about the rest.
      const Verdict& other = behind[next++];
      if (!verdict.Precedes(other)) verdict = other;
    }
    if (verdict.status == nullptr && found++ == num_to_find) break;
    merged.Add(verdict);
    if (verdict.is_error) break;
  }
  return merged.Take();
}

}  // namespace outboard::framework
