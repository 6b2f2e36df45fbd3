// Which nodes changed last.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_CHANGES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_CHANGES_H_

#include <cstdint>
#include <vector>

namespace outboard::sdk {

// From one pod to the next a few nodes of thousands change: whoever keeps something of each node
// looks at these, and not at every node for whether it changed. (A number to be compared for each
// node is twice as much to read as what is kept, and memory is what loops over nodes wait for.)
//
// Threading: thread-compatible. Lifetime: a value. Errors: none.
class NodeChanges {
 public:
  // As many are told of.
  static constexpr uint64_t kKept = 4096;

  // Something of the slot's node changed.
  void Add(uint32_t slot) { slots_[total_++ % kKept] = slot; }
  // Nobody knows which.
  void AddAll() { total_ += kKept + 1; }
  // How many there have been.
  uint64_t total() const { return total_; }
  // Calls fn(slot) for each since there had been `seen` of them. False if that is no longer known:
  // then any node may have changed.
  template <typename Fn>
  bool ForEachSince(uint64_t seen, const Fn& fn) const {
    if (seen > total_ || total_ - seen > kKept) return false;
    for (; seen < total_; ++seen) fn(slots_[seen % kKept]);
    return true;
  }

 private:
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(kKept);  // the last ones, round and round
  uint64_t total_ = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_CHANGES_H_
