// Evaluating nodes 64 at a time.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_FILTER_BLOCK_H_
#define OUTBOARD_PLUGIN_HOST_SDK_FILTER_BLOCK_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/verdict.h"

namespace outboard::sdk {

// Up to 64 nodes. Bit i of `candidates` is set if node i must still be evaluated; earlier plugins
// rejected the others.
struct NodeBlock {
  static constexpr uint32_t kNoPlace = 0xffffffff;

  absl::Span<const Slot> slots;
  uint64_t candidates = 0;
  // Position of the first slot in NodeTable::order, if the slots are a contiguous part of it, which
  // may wrap around. kNoPlace: unknown.
  uint32_t place = kNoPlace;

  // Calls fn(i, slot) for every candidate.
  template <typename Fn>
  void ForEach(Fn&& fn) const {
    for (uint64_t rest = candidates; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      fn(i, slots[i]);
    }
  }
  // Calls fn(i, slot) for every candidate for which is(slot). Evaluates is() for all first, which
  // is faster when the result is hard to predict for the processor.
  template <typename Is, typename Fn>
  void ForEachThat(Is&& is, Fn&& fn) const {
    uint64_t those = 0;
    ForEach([&](int i, Slot slot) { those |= uint64_t{is(slot)} << i; });
    NodeBlock{slots, those}.ForEach(fn);
  }
};

// The distinct verdicts of one answer.
//
// Threading: thread-compatible.
// Lifetime: keeps copies of verdicts, and addresses until Clear.
// Errors: none.
class VerdictTable {
 public:
  struct Entry {
    uint32_t plugin;
    Verdict verdict;
  };
  void Clear();
  // The verdict's number. `InternStable` recognises the same object by its address; it must not
  // change until Clear.
  uint32_t Intern(uint32_t plugin, const Verdict& verdict);
  uint32_t InternStable(uint32_t plugin, const Verdict& verdict);
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  std::deque<Entry> entries_;
  std::vector<std::pair<const Verdict*, uint32_t>> by_address_;
  std::vector<std::pair<size_t, uint32_t>> by_hash_;
};

// Which nodes of a block were rejected or failed, and with which verdict. Grouped by verdict,
// because there are few distinct ones.
//
// Threading: thread-compatible.
// Lifetime: independent.
// Errors: none.
class BlockVerdicts {
 public:
  void Clear() { size_ = 0; }
  // Gives the nodes of `mask`, which have no verdict, this one.
  void Add(uint64_t mask, uint32_t verdict) {
    for (int k = size_; k-- > 0;) {
      if (parts_[k].verdict != verdict) continue;
      parts_[k].nodes |= mask;
      return;
    }
    parts_[size_++] = {mask, verdict};
  }
  // Replaces node i's verdict, if any.
  void Replace(int i, uint32_t verdict) {
    const uint64_t bit = uint64_t{1} << i;
    for (int k = size_; k-- > 0;) {
      if ((parts_[k].nodes &= ~bit) == 0) parts_[k] = parts_[--size_];
    }
    Add(bit, verdict);
  }
  // The verdict of node i, which must have one.
  uint32_t operator[](int i) const {
    const auto has = [bit = uint64_t{1} << i](const Part& part) { return (part.nodes & bit) != 0; };
    return std::find_if(parts_.begin(), parts_.begin() + size_, has)->verdict;
  }
  // By verdict; no node is in two.
  struct Part {
    uint64_t nodes;
    uint32_t verdict;
  };
  absl::Span<const Part> parts() const { return absl::MakeSpan(parts_.data(), size_); }

 private:
  std::array<Part, 64> parts_;
  int size_ = 0;
};

// Receives a plugin's rejections of nodes of a block. Other nodes pass.
//
// Threading: as the call.
// Lifetime: within one Filter call.
// Errors: none; ignores nodes that are not candidates.
class FilterSink {
 public:
  // `stable`: verdicts passed by reference keep their address until the table is cleared.
  FilterSink(VerdictTable* table, uint32_t plugin, uint64_t candidates, BlockVerdicts* verdicts,
             bool stable = true)
      : table_(table),
        plugin_(plugin),
        candidates_(candidates),
        verdicts_(verdicts),
        stable_(stable) {}

  // Rejects node i. `verdict` is a member of the plugin, or of the attempt's state, and does not
  // change while nodes are filtered.
  void Reject(int i, const Verdict& verdict) { RejectAll(uint64_t{1} << i, verdict); }
  // Rejects all nodes of `mask`.
  void RejectAll(uint64_t mask, const Verdict& verdict) {
    mask &= candidates_ & ~done();
    if (mask == 0) return;
    Set(mask, stable_ ? table_->InternStable(plugin_, verdict) : table_->Intern(plugin_, verdict),
        verdict.code());
  }
  // Rejects node i with a temporary verdict; equal verdicts are sent once.
  void RejectWith(int i, const Verdict& verdict) {
    const uint64_t mask = (uint64_t{1} << i) & candidates_ & ~done();
    if (mask == 0) return;
    Set(mask, table_->Intern(plugin_, verdict), verdict.code());
  }
  // The plugin failed on node i: if the search reaches it, the attempt ends with this error.
  void Fail(int i, std::string message) { RejectWith(i, Verdict::Error(std::move(message))); }

  uint64_t rejected() const { return rejected_; }
  uint64_t failed() const { return failed_; }

 private:
  uint64_t done() const { return rejected_ | failed_; }
  void Set(uint64_t mask, uint32_t id, Code code);

  VerdictTable* table_;
  uint32_t plugin_;
  uint64_t candidates_;
  uint64_t rejected_ = 0;
  uint64_t failed_ = 0;
  BlockVerdicts* verdicts_;
  bool stable_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_FILTER_BLOCK_H_
