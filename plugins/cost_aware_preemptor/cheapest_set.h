// The cheapest set of victims that makes enough room on a node. Independent of pods and nodes.
#ifndef OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_CHEAPEST_SET_H_
#define OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_CHEAPEST_SET_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace outboard::cost_aware_preemptor {

// Rank of a set of victims: the first difference decides; smaller is better.
struct Price {
  int budget_violations = 0;  // Evictions beyond what PodDisruptionBudgets allow.
  // The set has a victim other than inference; always false without `inferenceFirst`.
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
  // Evicting all units would violate a budget on this one: it is kept first.
  bool protected_by_budget = false;
  // Units of one kind are interchangeable for budgets and for `fits`: the cheapest of them leave.
  // A unit of kind -1 is interchangeable with no other.
  int kind = -1;
  int gang = -1;  // Index in the list of gangs; -1: no gang.
};

// The units of one gang, and its members on other nodes.
struct GangPrice {
  // This many units may leave alone. If more leave, the whole gang leaves.
  size_t surplus = 0;
  // The whole gang may leave; otherwise at most `surplus` units.
  bool whole = false;
  // What the members on other nodes add to the price of the whole gang.
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

// By gang: whether it leaves as a whole, including other nodes, if these units leave.
std::vector<bool> WholeGangs(const Prices& prices, const UnitSet& set);

struct SearchLimits {
  size_t exact_units = 16;   // At most 63. With more units the result is the greedy set.
  int64_t max_trials = 512;  // After that, the result is the best set so far.
};

struct CheapestSet {
  UnitSet set;
  Price price;
  int64_t trials = 0;
  bool exact = false;  // No set is cheaper, if a leaving unit never makes room smaller.
};

// Returns nullopt if even evicting all units is not enough, if every set that is enough would leave
// a part of a gang behind, or if `stop` returns true.
// - `fits`: whether a set is enough; called once with the set of all units first.
// - `violations`: of budgets, by a set and by the members on other nodes of gangs that leave as a
//   whole. Adding units never makes it smaller.
// - `stop`: called after each trial; true ends the search.
//
// The greedy set starts with all units. Then gangs return except for their surplus, first those
// that may not leave, then the costliest. Then each unit returns if there is room for it beside the
// pod: first those that a budget protects, then those other than inference, then the costliest. The
// exact search starts from this set, and skips sets that cannot be cheaper than the best so far.
//
// Equal answers lead to the same calls in the same order.
std::optional<CheapestSet> FindCheapestSet(
    const Prices& prices, const SearchLimits& limits,
    const std::function<bool(const UnitSet&)>& fits,
    const std::function<int(const UnitSet&)>& violations,
    const std::function<bool()>& stop = [] { return false; });

// The price of a set, including members on other nodes.
Price PriceOf(const Prices& prices, const UnitSet& set, int budget_violations);

}  // namespace outboard::cost_aware_preemptor

#endif  // OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_CHEAPEST_SET_H_
