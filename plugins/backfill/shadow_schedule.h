// When, and where, a group will have enough room if nothing more starts. Knows neither pods nor the
// mirror.
#ifndef OUTBOARD_PLUGINS_BACKFILL_SHADOW_SCHEDULE_H_
#define OUTBOARD_PLUGINS_BACKFILL_SHADOW_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace outboard::backfill {

// Amounts of the resources that matter, in an order that all share.
using Amounts = std::vector<int64_t>;

// Amounts of every node. Below 0: more is in use than there is.
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

// Something that runs on a node ends; `amounts` are there during the call. False: no more are asked
// for.
using VisitRelease = absl::FunctionRef<bool(absl::Time when, const int64_t* amounts)>;
// Tells what ends on a node, in the order of time, as long as it is asked for more.
using ReleasesOf = absl::FunctionRef<void(size_t node, VisitRelease visit)>;

// Members that are alike.
struct Demand {
  Amounts each;       // none below 0
  int64_t count = 1;  // at least 1
  // Whether they may go to a node, by node; empty: to every one.
  std::vector<char> may_use;
};

// How many of `each` a node has room for, at most `most`.
int64_t CountThatFit(const int64_t* free, const Amounts& each, int64_t most);

// Whether each kind finds room, as if the others were not there. False: they do not fit together
// either.
bool EachFits(const std::vector<Demand>& demands, const Rooms& free);

// What is kept on a node.
struct KeptRoom {
  size_t node = 0;
  Amounts kept;
};

struct ShadowSchedule {
  absl::Time when;
  std::vector<KeptRoom> nodes;  // in the order of their numbers
};

// The earliest time at which all of them fit; of members that are not alike, whose resources are
// the same with the scarcest last, a greedy search decides what fits, large ones first. Releases
// before `now` count as of now. Nodes whose room comes last are taken first, which leaves most of
// what is there now to others. None: never. For members that are alike no node is asked for more
// than happens before they fit on others.
std::optional<ShadowSchedule> FindShadow(const Rooms& free, ReleasesOf releases,
                                         const std::vector<Demand>& demands, absl::Time now);

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_SHADOW_SCHEDULE_H_
