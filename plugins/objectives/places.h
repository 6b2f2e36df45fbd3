// How far nodes are from each other by their labels, and which of them hold which data.
#ifndef OUTBOARD_PLUGINS_OBJECTIVES_PLACES_H_
#define OUTBOARD_PLUGINS_OBJECTIVES_PLACES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/string_table.h"

namespace outboard::objectives {

// Followed by the name of the data; `true`.
inline constexpr char kDataPrefix[] = "data.outboard/";

// Some nodes, counted by what they share with others.
struct Targets {
  // By level, then by domain; level 0 by slot.
  std::vector<std::vector<int64_t>> counts;
  int64_t total = 0;
  // By slot: the nearest level that is shared with one of them. Of holders only, as of `version` of
  // the places.
  std::vector<uint8_t> nearest;
  uint64_t version = 0;
};
// Those that hold some data; what somebody keeps does not change any more.
using Holders = std::shared_ptr<const Targets>;

// Level 0 is the node itself, levels 1 and up are labels from the nearest to the farthest. Two
// nodes share a level if its label and those of all farther levels have equal values, so that a
// rack `r1` in each of two zones is two racks. Beyond the last level is everything else.
//
// Threading: thread-compatible. Lifetime: a value. Errors: none; labels that cannot be read are
//            complained of.
class Places {
 public:
  explicit Places(std::vector<std::string> levels);

  const std::vector<std::string>& levels() const { return levels_; }
  void Reset();
  void Set(sdk::Slot slot, const sdk::StringMap& labels, const std::string& object,
           sdk::MalformedValues* malformed);
  void Clear(sdk::Slot slot);

  // Never null; empty if no node holds it.
  Holders HoldersOf(const std::string& data) const;
  void Add(sdk::Slot slot, Targets* targets) const { Count(slot, 1, targets); }
  // One that was added, by the same labels.
  void Remove(sdk::Slot slot, Targets* targets) const { Count(slot, -1, targets); }
  // 1 on the node itself, 0 beyond the last level: of the nearest target; of all of them on
  // average.
  double NearestCloseness(const Targets& targets, sdk::Slot slot) const {
    return closeness_[NearestLevel(targets, slot)];
  }
  double MeanCloseness(const Targets& targets, sdk::Slot slot) const;
  // Whether a target shares this level or a nearer one.
  bool IsWithin(const Targets& targets, sdk::Slot slot, size_t level) const {
    return NearestLevel(targets, slot) <= level;
  }

 private:
  void Count(sdk::Slot slot, int64_t sign, Targets* targets) const;
  bool IsAt(sdk::Slot slot, const std::vector<uint32_t>& domains) const;
  // To be changed: a copy if somebody keeps it.
  Targets* HoldersToChange(const std::string& data);
  int64_t CountAt(const Targets& targets, size_t level, sdk::Slot slot) const;
  // The number of levels and one more where none is shared.
  size_t NearestLevel(const Targets& targets, sdk::Slot slot) const {
    return targets.version == version_ ? targets.nearest[slot] : FindNearestLevel(targets, slot);
  }
  size_t FindNearestLevel(const Targets& targets, sdk::Slot slot) const;

  const std::vector<std::string> levels_;
  std::vector<double> closeness_;  // By level, and beyond the last.
  sdk::StringTable domains_;
  // By label of levels_, then by slot: the domain, StringTable::kNone without the label.
  std::vector<std::vector<uint32_t>> domain_;
  std::vector<std::vector<std::string>> data_;  // By slot.
  absl::flat_hash_map<std::string, std::shared_ptr<Targets>> holders_;
  uint64_t version_ = 1;  // Rises when a node changes its place or its data.
};

}  // namespace outboard::objectives

#endif  // OUTBOARD_PLUGINS_OBJECTIVES_PLACES_H_
