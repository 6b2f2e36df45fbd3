// Computes when and where a group will have enough room if no other pod starts. Independent of pods
// and of the cluster cache.
#ifndef OUTBOARD_PLUGINS_BACKFILL_SHADOW_SCHEDULE_H_
#define OUTBOARD_PLUGINS_BACKFILL_SHADOW_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace outboard::backfill {

// Amounts of the relevant resources, always in the same order.
using Amounts = std::vector<int64_t>;

// Amounts of every node. Negative: overcommitted.
class Rooms {
 public:
  Rooms(size_t nodes, size_t resources)
      : resources_(resources), amounts_(nodes * resources), nodes_(nodes) {}
  size_t nodes() const { return nodes_; }
  size_t resources() const { return resources_; }
  int64_t* At(size_t node) { return amounts_.data() + node * resources_; }
  const int64_t* At(size_t node) const { return amounts_.data() + node * resources_; }

 private:
  size_t resources_;
  std::vector<int64_t> amounts_;
  size_t nodes_;
};

// One pod's end on a node; `amounts` is valid during the call. Returns false to stop the visit.
using VisitRelease = absl::FunctionRef<bool(absl::Time when, const int64_t* amounts)>;
// Visits the node's releases, ordered by time.
using ReleasesOf = absl::FunctionRef<void(size_t node, VisitRelease visit)>;

// Members with equal requests and allowed nodes.
struct Demand {
  Amounts each;       // not negative
  int64_t count = 1;  // at least 1
  // By node: whether they may run there; empty: on every node.
  std::vector<char> may_use;
};

// How many of `each` fit on a node, at most `most`.
int64_t CountThatFit(const int64_t* free, const Amounts& each, int64_t most);

// Returns true if each kind fits without the others. False: they do not fit together either.
bool EachFits(const std::vector<Demand>& demands, const Rooms& free);

// The amounts reserved on a node.
struct KeptRoom {
  size_t node = 0;
  Amounts kept;
};

struct ShadowSchedule {
  absl::Time when;
  std::vector<KeptRoom> nodes;  // ordered by number
};

// Returns the earliest time at which all members fit; nullopt: never.
// - Releases before `now` count as of `now`.
// - Nodes whose room comes last are used first: this leaves most of the free room to others.
// - Equal members: exact; no node is asked for more than happens before they fit on other nodes.
// - Different members (same resources, the scarcest last): greedy search, large ones first.
std::optional<ShadowSchedule> FindShadow(const Rooms& free, ReleasesOf releases,
                                         const std::vector<Demand>& demands, absl::Time now);

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_SHADOW_SCHEDULE_H_
