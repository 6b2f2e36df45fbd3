// Network distance between nodes by their labels, and which nodes hold which data.
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

// Label prefix, followed by the name of the data; the value is `true`.
inline constexpr char kDataPrefix[] = "data.outboard/";

// A set of nodes, counted by the domains they are in.
struct Targets {
  // By level, then by domain; level 0 by slot.
  std::vector<std::vector<int64_t>> counts;
  int64_t total = 0;
  // By slot: the nearest level shared with one of the nodes. Only for holders; valid at `version`
  // of Places.
  std::vector<uint8_t> nearest;
  uint64_t version = 0;
};
// The nodes that hold some data. A snapshot that a caller keeps never changes.
using Holders = std::shared_ptr<const Targets>;

// Level 0 is the node itself. Levels 1 and up are labels from the nearest to the farthest. Two
// nodes share a level if its label and the labels of all farther levels have equal values; a rack
// `r1` in each of two zones is two racks. All other nodes are beyond the last level.
//
// Threading: thread-compatible.
// Lifetime:  a value.
// Errors:    none; an invalid label is reported to `malformed`.
class Places {
 public:
  explicit Places(std::vector<std::string> levels);

  const std::vector<std::string>& levels() const { return levels_; }
  void Reset();
  void Set(sdk::Slot slot, const sdk::StringMap& labels, const std::string& object,
           sdk::MalformedValues* malformed);
  void Clear(sdk::Slot slot);

  // Never null; empty if no node holds the data.
  Holders HoldersOf(const std::string& data) const;
  void Add(sdk::Slot slot, Targets* targets) const { Count(slot, 1, targets); }
  // `slot` must have been added with its current labels.
  void Remove(sdk::Slot slot, Targets* targets) const { Count(slot, -1, targets); }
  // Closeness to the nearest target, or on average to all targets: 1 on the node itself, 0 beyond
  // the last level.
  double NearestCloseness(const Targets& targets, sdk::Slot slot) const {
    return closeness_[NearestLevel(targets, slot)];
  }
  double MeanCloseness(const Targets& targets, sdk::Slot slot) const;
  // Whether a target shares `level` or a nearer level.
  bool IsWithin(const Targets& targets, sdk::Slot slot, size_t level) const {
    return NearestLevel(targets, slot) <= level;
  }

 private:
  void Count(sdk::Slot slot, int64_t sign, Targets* targets) const;
  bool IsAt(sdk::Slot slot, const std::vector<uint32_t>& domains) const;
  // Returns holders to modify; makes a copy if a caller still keeps them.
  Targets* HoldersToChange(const std::string& data);
  int64_t CountAt(const Targets& targets, size_t level, sdk::Slot slot) const;
  // Number of levels + 1 if no level is shared.
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
  uint64_t version_ = 1;  // Increases when a node's levels or data change.
};

}  // namespace outboard::objectives

#endif  // OUTBOARD_PLUGINS_OBJECTIVES_PLACES_H_
