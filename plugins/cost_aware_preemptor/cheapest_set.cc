#include "plugins/cost_aware_preemptor/cheapest_set.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <tuple>

namespace outboard::cost_aware_preemptor {
namespace {

// Positions in `Search::order_` as bits.
using Mask = uint64_t;
constexpr Mask Bit(size_t i) { return Mask{1} << i; }
// The bits from i on, of n.
constexpr Mask From(size_t i, size_t n) { return (Bit(n) - 1) & ~(Bit(i) - 1); }

// The order in which units return: see FindCheapestSet.
std::vector<size_t> OrderOf(const std::vector<UnitPrice>& units) {
  std::vector<size_t> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](size_t i) {
    const UnitPrice& unit = units[i];
    return std::tuple(!unit.protected_by_budget, !unit.beyond_inference, -unit.cost);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  return order;
}

// The order in which gangs return: first those that may not leave, then the costliest.
std::vector<size_t> OrderOf(const std::vector<GangPrice>& gangs) {
  std::vector<size_t> order(gangs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(gangs[a].whole, -gangs[a].cost) < std::tuple(gangs[b].whole, -gangs[b].cost);
  });
  return order;
}

size_t LeavingOf(const Prices& prices, const UnitSet& set, size_t gang) {
  size_t leaving = 0;
  for (size_t i = 0; i < set.size(); ++i)
    leaving += set[i] && prices.units[i].gang == static_cast<int>(gang) ? 1 : 0;
  return leaving;
}

// Returns all units of the gang except the cheapest, as many as its surplus, to the node.
UnitSet WithSurplusOnly(const Prices& prices, const std::vector<size_t>& order, UnitSet set,
                        size_t gang) {
  std::vector<size_t> members;
  for (const size_t i : order) {
    if (prices.units[i].gang == static_cast<int>(gang)) members.push_back(i);
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](size_t a, size_t b) { return prices.units[a].cost > prices.units[b].cost; });
  for (size_t k = prices.gangs[gang].surplus; k < members.size(); ++k) set[members[k]] = false;
  return set;
}

// Branch and bound over the units in that order: each returns or leaves.
class Search {
 public:
  // `best->set` is enough, whether or not gangs allow it; `has_best`: they do.
  Search(const Prices& prices, const std::vector<size_t>& order, const SearchLimits& limits,
         const std::function<bool(const UnitSet&)>& fits,
         const std::function<int(const UnitSet&)>& violations, const std::function<bool()>& stop,
         CheapestSet* best, bool has_best)
      : prices_(prices),
        order_(order),
        n_(order.size()),
        limits_(limits),
        fits_(fits),
        violations_(violations),
        stop_(stop),
        best_(best),
        has_best_(has_best),
        gangs_(prices.gangs.size(), 0) {
    // The least that any unit from i on adds to a price.
    rest_.resize(n_ + 1);
    rest_[n_] = {true, std::numeric_limits<int64_t>::max(), std::numeric_limits<size_t>::max()};
    for (size_t i = n_; i-- > 0;) {
      const UnitPrice& unit = prices_.units[order_[i]];
      rest_[i] = {rest_[i + 1].beyond_inference && unit.beyond_inference,
                  std::min(rest_[i + 1].cost, unit.cost),
                  std::min(rest_[i + 1].victims, unit.victims)};
      if (unit.gang >= 0) gangs_[static_cast<size_t>(unit.gang)] |= Bit(i);
    }
    // The empty set is not enough: otherwise the pod would need no preemption.
    too_small_.push_back(0);
    enough_.push_back(MaskOf(best->set));
  }
  void IsTooSmall(const UnitSet& set) { too_small_.push_back(MaskOf(set)); }

  // Returns true unless the limit of trials cut the search.
  bool Run() {
    Visit(0, 0);
    return !out_of_trials_;
  }
  bool stopped() const { return stopped_; }
  bool has_best() const { return has_best_; }

 private:
  struct Rest {
    bool beyond_inference;
    int64_t cost;
    size_t victims;
  };

  // `gone` leaves. Units from i on that are not in it are undecided; if all of them leave as well,
  // the set is enough.
  void Visit(size_t i, Mask gone) {
    if (stopped_ || out_of_trials_ || !TakeWholeGangs(&gone)) return;
    const Price price = PriceOf(gone);
    if (has_best_ && !(price < best_->price)) return;
    if (Fits(gone) && WasTried(gone)) {
      best_->set = SetOf(gone);
      best_->price = price;
      has_best_ = true;
      return;
    }
    while (i < n_ && (gone & Bit(i)) != 0) ++i;
    if (i == n_ || stopped_ || out_of_trials_) return;
    const Price at_least = {price.budget_violations,
                            price.beyond_inference || rest_[i].beyond_inference,
                            price.cost + rest_[i].cost, price.victims + rest_[i].victims};
    if (has_best_ && !(at_least < best_->price)) return;
    if (Fits(gone | From(i + 1, n_))) Visit(i + 1, gone);
    // If it leaves, the cheaper units of its kind leave as well.
    const int kind = prices_.units[order_[i]].kind;
    Mask leaving = Bit(i);
    for (size_t j = i + 1; kind >= 0 && j < n_; ++j) {
      if (prices_.units[order_[j]].kind == kind) leaving |= Bit(j);
    }
    Visit(i + 1, gone | leaving);
  }

  // If more units than a gang's surplus leave, adds the whole gang; false if it may not leave.
  bool TakeWholeGangs(Mask* gone) const {
    for (size_t g = 0; g < gangs_.size(); ++g) {
      const GangPrice& gang = prices_.gangs[g];
      if (static_cast<size_t>(std::popcount(*gone & gangs_[g])) <= gang.surplus) continue;
      if (!gang.whole) return false;
      *gone |= gangs_[g];
    }
    return true;
  }

  bool Fits(Mask gone) {
    const auto within = [](Mask a, Mask b) { return (a & ~b) == 0; };
    for (const Mask small : too_small_) {
      if (within(gone, small)) return false;
    }
    for (const Mask enough : enough_) {
      if (within(enough, gone)) return true;
    }
    return Try(gone);
  }
  // A set that was only derived from a smaller one is tried itself: a plugin may need a leaving
  // pod.
  bool WasTried(Mask gone) {
    return std::find(enough_.begin(), enough_.end(), gone) != enough_.end() || Try(gone);
  }

  bool Try(Mask gone) {
    if (best_->trials >= limits_.max_trials) {
      out_of_trials_ = true;
      return false;
    }
    ++best_->trials;
    const bool fits = fits_(SetOf(gone));
    stopped_ |= stop_();
    (fits ? enough_ : too_small_).push_back(gone);
    return fits && !stopped_;
  }

  Mask MaskOf(const UnitSet& set) const {
    Mask mask = 0;
    for (size_t i = 0; i < n_; ++i) mask |= set[order_[i]] ? Bit(i) : 0;
    return mask;
  }
  UnitSet SetOf(Mask gone) const {
    UnitSet set(n_);
    for (size_t i = 0; i < n_; ++i) set[order_[i]] = (gone & Bit(i)) != 0;
    return set;
  }
  Price PriceOf(Mask gone) const {
    const UnitSet set = SetOf(gone);
    return cost_aware_preemptor::PriceOf(prices_, set, violations_(set));
  }

  const Prices& prices_;
  const std::vector<size_t>& order_;
  const size_t n_;
  const SearchLimits& limits_;
  const std::function<bool(const UnitSet&)>& fits_;
  const std::function<int(const UnitSet&)>& violations_;
  const std::function<bool()>& stop_;
  CheapestSet* const best_;
  bool has_best_;
  std::vector<Mask> gangs_;
  std::vector<Rest> rest_;
  // What is known: subsets of the first, and supersets of the second need not be tried.
  std::vector<Mask> too_small_, enough_;
  bool out_of_trials_ = false;
  bool stopped_ = false;
};

}  // namespace

std::vector<bool> WholeGangs(const Prices& prices, const UnitSet& set) {
  std::vector<bool> whole(prices.gangs.size());
  for (size_t g = 0; g < whole.size(); ++g)
    whole[g] = LeavingOf(prices, set, g) > prices.gangs[g].surplus;
  return whole;
}

Price PriceOf(const Prices& prices, const UnitSet& set, int budget_violations) {
  Price price;
  price.budget_violations = budget_violations;
  for (size_t i = 0; i < prices.units.size(); ++i) {
    if (!set[i]) continue;
    price.beyond_inference |= prices.units[i].beyond_inference;
    price.cost += prices.units[i].cost;
    price.victims += prices.units[i].victims;
  }
  const std::vector<bool> whole = WholeGangs(prices, set);
  for (size_t g = 0; g < whole.size(); ++g) {
    if (!whole[g]) continue;
    price.beyond_inference |= prices.gangs[g].beyond_inference;
    price.cost += prices.gangs[g].cost;
    price.victims += prices.gangs[g].victims;
  }
  return price;
}

std::optional<CheapestSet> FindCheapestSet(const Prices& prices, const SearchLimits& limits,
                                           const std::function<bool(const UnitSet&)>& fits,
                                           const std::function<int(const UnitSet&)>& violations,
                                           const std::function<bool()>& stop) {
  CheapestSet best;
  best.set.assign(prices.units.size(), true);
  ++best.trials;
  if (prices.units.empty() || !fits(best.set) || stop()) return std::nullopt;
  const std::vector<size_t> order = OrderOf(prices.units);
  std::vector<UnitSet> too_small;
  // Whether `set` is enough; then it is the best so far.
  const auto is_enough = [&](UnitSet set) {
    ++best.trials;
    if (!fits(set)) {
      too_small.push_back(std::move(set));
      return false;
    }
    best.set = std::move(set);
    return true;
  };
  bool allowed = true;
  for (const size_t g : OrderOf(prices.gangs)) {
    if (LeavingOf(prices, best.set, g) <= prices.gangs[g].surplus) continue;
    if (!is_enough(WithSurplusOnly(prices, order, best.set, g))) allowed &= prices.gangs[g].whole;
    if (stop()) return std::nullopt;
  }
  const std::vector<bool> whole = WholeGangs(prices, best.set);
  for (const size_t i : order) {
    const int gang = prices.units[i].gang;
    if (!best.set[i] || (gang >= 0 && whole[static_cast<size_t>(gang)])) continue;
    UnitSet set = best.set;
    set[i] = false;
    is_enough(std::move(set));
    if (stop()) return std::nullopt;
  }
  if (allowed) best.price = PriceOf(prices, best.set, violations(best.set));
  if (prices.units.size() > std::min<size_t>(limits.exact_units, 63))
    return allowed ? std::optional(best) : std::nullopt;
  Search search(prices, order, limits, fits, violations, stop, &best, allowed);
  for (const UnitSet& set : too_small) search.IsTooSmall(set);
  best.exact = search.Run();
  if (search.stopped() || !search.has_best()) return std::nullopt;
  return best;
}

}  // namespace outboard::cost_aware_preemptor
