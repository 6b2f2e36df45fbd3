#include "shim/cycle/late_filter.h"

#include <algorithm>
#include <string>
#include <utility>

namespace outboard::cycle {
namespace {

using v1alpha1::FilterResponse;

// A call costs about as much as judging this many nodes, so fewer are not worth one.
constexpr uint32_t kFewestAsked = 100;

bool IsFeasible(const FilterResponse& answer, uint32_t i) {
  return (answer.feasible()[i / 8] >> (i % 8)) & 1;
}

// Rejections of the early hosts, by position; those that hold only without nominated pods leave
// room for a late plugin that rejects the node with them, too.
class EarlyVerdicts {
 public:
  explicit EarlyVerdicts(const FilterResponse& answer)
      : answer_(answer), rejection_(answer.processed(), -1) {
    int next = 0;
    int marked = 0;
    for (uint32_t i = 0; i < answer.processed(); ++i) {
      if (IsFeasible(answer, i)) {
        open_.push_back(i);
        continue;
      }
      const auto& marks = answer.only_without_nominated();
      if (marked < marks.size() && marks[marked] == static_cast<uint32_t>(next)) {
        ++marked;
        open_.push_back(i);
      }
      rejection_[i] = static_cast<int>(answer.rejected(next++));
    }
  }

  bool IsOpen(uint32_t i) const { return std::binary_search(open_.begin(), open_.end(), i); }
  // -1: feasible.
  int RejectionOf(uint32_t i) const { return rejection_[i]; }
  // The next `count` open positions from i on.
  std::vector<uint32_t> OpenFrom(uint32_t i, size_t count) const {
    const auto first = std::lower_bound(open_.begin(), open_.end(), i);
    const size_t there = static_cast<size_t>(open_.end() - first);
    return {first, first + static_cast<std::ptrdiff_t>(std::min(count, there))};
  }

 private:
  const FilterResponse& answer_;
  std::vector<int> rejection_;  // index of the reason
  std::vector<uint32_t> open_;
};

// What late hosts said last, read in order.
class LateVerdicts {
 public:
  void Replace(FilterResponse answer, size_t asked) {
    answer_ = std::move(answer);
    asked_ = asked;
    next_ = 0;
    rejected_ = 0;
    marked_ = 0;
  }
  bool IsUsedUp() const { return next_ == asked_; }
  bool IsError() const { return next_ >= answer_.processed(); }
  const v1alpha1::PluginStatus& error() const { return answer_.error(); }
  // Null: feasible. `only_without_nominated`: as in the answer.
  const v1alpha1::PluginStatus* Next(bool* only_without_nominated) {
    const uint32_t i = next_++;
    *only_without_nominated = false;
    if (IsFeasible(answer_, i)) return nullptr;
    const auto& marks = answer_.only_without_nominated();
    if (marked_ < marks.size() && marks[marked_] == static_cast<uint32_t>(rejected_)) {
      ++marked_;
      *only_without_nominated = true;
    }
    return &answer_.reasons(static_cast<int>(answer_.rejected(rejected_++)));
  }

 private:
  FilterResponse answer_;
  size_t asked_ = 0;
  uint32_t next_ = 0;
  int rejected_ = 0;
  int marked_ = 0;
};

class Merged {
 public:
  void AddFeasible() {
    if (processed_ % 8 == 0) bits_.push_back('\0');
    bits_.back() = static_cast<char>(bits_.back() | (1 << (processed_ % 8)));
    ++processed_;
  }
  void AddRejected(const v1alpha1::PluginStatus& status) {
    if (processed_ % 8 == 0) bits_.push_back('\0');
    ++processed_;
    // Few are distinct, and most repeat the last.
    const std::string key = status.SerializeAsString();
    auto known = std::find(keys_.begin(), keys_.end(), key);
    if (known == keys_.end()) {
      known = keys_.insert(keys_.end(), key);
      *response_.add_reasons() = status;
    }
    response_.add_rejected(static_cast<uint32_t>(known - keys_.begin()));
  }
  void Fail(const v1alpha1::PluginStatus& error) { *response_.mutable_error() = error; }
  FilterResponse Take() {
    response_.set_processed(processed_);
    response_.set_feasible(std::move(bits_));
    return std::move(response_);
  }

 private:
  FilterResponse response_;
  std::string bits_;
  std::vector<std::string> keys_;
  uint32_t processed_ = 0;
};

}  // namespace

absl::StatusOr<FilterResponse> FilterLate(const FilterResponse& early, uint32_t num_nodes,
                                          uint32_t num_to_find, AskLate ask) {
  const EarlyVerdicts before(early);
  LateVerdicts late;
  Merged merged;
  uint32_t found = 0;
  size_t at_least = kFewestAsked;
  for (uint32_t i = 0; i < num_nodes; ++i) {
    if (i >= early.processed()) {
      merged.Fail(early.error());
      break;
    }
    const int rejection = before.RejectionOf(i);
    const v1alpha1::PluginStatus* status = rejection < 0 ? nullptr : &early.reasons(rejection);
    if (before.IsOpen(i)) {
      if (late.IsUsedUp()) {
        const std::vector<uint32_t> positions =
            before.OpenFrom(i, std::max<size_t>(num_to_find - found + 1, at_least));
        // Where nearly all are rejected, ever more are looked at in one call.
        at_least *= 2;
        absl::StatusOr<FilterResponse> answer = ask(positions);
        if (!answer.ok()) return answer.status();
        late.Replace(*std::move(answer), positions.size());
      }
      if (late.IsError()) {
        merged.Fail(late.error());
        break;
      }
      bool only_without = false;
      const v1alpha1::PluginStatus* objection = late.Next(&only_without);
      if (objection != nullptr && (status == nullptr || !only_without)) status = objection;
    }
    if (status != nullptr) {
      merged.AddRejected(*status);
      continue;
    }
    if (found == num_to_find) break;
    ++found;
    merged.AddFeasible();
  }
  return merged.Take();
}

}  // namespace outboard::cycle
