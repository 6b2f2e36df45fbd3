// Which nodes changed last.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_CHANGES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_CHANGES_H_

#include <cstdint>
#include <vector>

namespace outboard::sdk {

// Between two pods only a few of thousands of nodes change. Caches with an entry per node update
// these, instead of checking every node for a change. (Comparing a number per node would double the
// memory to read, which bounds loops over nodes.)
//
// Threading: thread-compatible.
// Lifetime: a value.
// Errors: none.
class NodeChanges {
 public:
  // How many changes it keeps.
  static constexpr uint64_t kKept = 4096;

  // The slot's node changed.
  void Add(uint32_t slot) { slots_[total_++ % kKept] = slot; }
  // Unknown which nodes changed.
  void AddAll() { total_ += kKept + 1; }
  // The number of changes so far.
  uint64_t total() const { return total_; }
  // Calls fn(slot) for each change after the first `seen`. False if they are no longer known: any
  // node may have changed.
  template <typename Fn>
  bool ForEachSince(uint64_t seen, const Fn& fn) const {
    if (seen > total_ || total_ - seen > kKept) return false;
    for (; seen < total_; ++seen) fn(slots_[seen % kKept]);
    return true;
  }

 private:
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(kKept);  // a ring of the last changes
  uint64_t total_ = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_CHANGES_H_
