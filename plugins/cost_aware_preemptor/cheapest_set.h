// The cheapest of all sets of victims that make enough room on a node. Knows neither pods nor
// nodes.
#ifndef OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_CHEAPEST_SET_H_
#define OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_CHEAPEST_SET_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace outboard::cost_aware_preemptor {

// What a set of victims is judged by, the first difference decides; smaller is better.
struct Price {
  int budget_violations = 0;  // Evictions beyond what PodDisruptionBudgets allow.
  // One of them is not inference; always false where inference does not come first.
  bool beyond_inference = false;
  int64_t cost = 0;  // Milli-GPU-seconds.
  size_t victims = 0;
  friend auto operator<=>(const Price&, const Price&) = default;
};

// A pod on the node.
struct UnitPrice {
  bool beyond_inference = false;
  int64_t cost = 0;
  size_t victims = 1;
  // Its leaving would break a budget if all units left: it is spared first.
  bool protected_by_budget = false;
  // Units of one kind are interchangeable to budgets and to whoever says whether a set is enough:
  // of them the cheapest leave. Units of kind -1 are like no other.
  int kind = -1;
  int gang = -1;  // Position in the list of gangs; -1: it goes for itself.
};

// Units that are members of one gang, and those of its members that are elsewhere.
struct GangPrice {
  // So many units may leave without the others. If more do, all of the gang do.
  size_t surplus = 0;
  // All may leave; otherwise no more than `surplus`.
  bool whole = false;
  // What the members elsewhere add to the price of the whole.
  bool beyond_inference = false;
  int64_t cost = 0;
  size_t victims = 0;
};

struct Prices {
  std::vector<UnitPrice> units;
  std::vector<GangPrice> gangs;
};

// True at the positions of units that leave.
using UnitSet = std::vector<bool>;

// By gang: whether it leaves as a whole, elsewhere too, if these units leave.
std::vector<bool> WholeGangs(const Prices& prices, const UnitSet& set);

struct SearchLimits {
  size_t exact_units = 16;   // At most 63. With more units the set is a greedy one.
  int64_t max_trials = 512;  // Then the best set so far is taken.
};

struct CheapestSet {
  UnitSet set;
  Price price;
  int64_t trials = 0;
  bool exact = false;  // There is no cheaper one, if units that leave never make room smaller.
};

// `fits`: whether these leaving is enough; it is asked once about the set of all first, and if that
// is not enough the answer is none. It is also none where the only sets that are would leave a part
// of a gang behind. `violations`: of budgets, by these and by the members elsewhere of gangs that
// leave as a whole; units that leave beside others never make it smaller. `stop`: looked at after
// each trial; true gives up, and the answer is none.
//
// The greedy set: all leave. Then gangs come back but for their surplus, those that may not leave
// first, then the costliest. Then one unit after the other comes back if there is room for it
// beside the pod: those that a budget protects first, then those that are not inference, then the
// costliest. The search goes on from there, and leaves out what cannot be cheaper than the best so
// far.
//
// It asks the same things in the same order whenever it gets the same answers.
std::optional<CheapestSet> FindCheapestSet(
    const Prices& prices, const SearchLimits& limits,
    const std::function<bool(const UnitSet&)>& fits,
    const std::function<int(const UnitSet&)>& violations,
    const std::function<bool()>& stop = [] { return false; });

// Of a set, with members elsewhere.
Price PriceOf(const Prices& prices, const UnitSet& set, int budget_violations);

}  // namespace outboard::cost_aware_preemptor

#endif  // OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_CHEAPEST_SET_H_
