#include "plugins/cost_aware_preemptor/cheapest_set.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace outboard::cost_aware_preemptor {
namespace {

// Positions in `Search::order_` as bits.
using Mask = uint64_t;
constexpr Mask Bit(size_t i) { return Mask{1} << i; }
// All from i on, of n.
constexpr Mask From(size_t i, size_t n) { return (Bit(n) - 1) & ~(Bit(i) - 1); }

// The order in which units come back: see FindCheapestSet.
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

// Branch and bound over the units in that order: each comes back, or leaves.
class Search {
 public:
  Search(const std::vector<UnitPrice>& units, const std::vector<size_t>& order,
         const SearchLimits& limits, const std::function<bool(const UnitSet&)>& fits,
         const std::function<int(const UnitSet&)>& violations, const std::function<bool()>& stop,
         CheapestSet* best)
      : units_(units),
        order_(order),
        n_(order.size()),
        limits_(limits),
        fits_(fits),
        violations_(violations),
        stop_(stop),
        best_(best) {
    // Of the units from i on, what the cheapest adds to a price at least.
    rest_.resize(n_ + 1);
    rest_[n_] = {true, std::numeric_limits<int64_t>::max(), std::numeric_limits<size_t>::max()};
    for (size_t i = n_; i-- > 0;) {
      const UnitPrice& unit = units_[order_[i]];
      rest_[i] = {rest_[i + 1].beyond_inference && unit.beyond_inference,
                  std::min(rest_[i + 1].cost, unit.cost),
                  std::min(rest_[i + 1].victims, unit.victims)};
    }
    // Nobody's leaving is not enough, or the pod would not be here.
    too_small_.push_back(0);
    enough_.push_back(MaskOf(best->set));
  }
  void IsTooSmall(const UnitSet& set) { too_small_.push_back(MaskOf(set)); }

  // True if nothing was left out for want of trials.
  bool Run() {
    Visit(0, 0);
    return !out_of_trials_;
  }
  bool stopped() const { return stopped_; }

 private:
  struct Rest {
    bool beyond_inference;
    int64_t cost;
    size_t victims;
  };

  // `gone` leave, and of the units from i on those that are not in it are undecided; if they all
  // leave, too, it is enough.
  void Visit(size_t i, Mask gone) {
    if (stopped_ || out_of_trials_) return;
    const Price price = PriceOf(gone);
    if (!(price < best_->price)) return;
    if (Fits(gone)) {
      // It was tried itself: were it enough only for a smaller set that is, the best so far would
      // be that one, or a cheaper one.
      best_->set = SetOf(gone);
      best_->price = price;
      return;
    }
    while (i < n_ && (gone & Bit(i)) != 0) ++i;
    if (i == n_ || stopped_ || out_of_trials_) return;
    const Price at_least = {price.budget_violations,
                            price.beyond_inference || rest_[i].beyond_inference,
                            price.cost + rest_[i].cost, price.victims + rest_[i].victims};
    if (!(at_least < best_->price)) return;
    if (Fits(gone | From(i + 1, n_))) Visit(i + 1, gone);
    // If it leaves, so do the cheaper ones of its kind.
    const int kind = units_[order_[i]].kind;
    Mask leaving = Bit(i);
    for (size_t j = i + 1; kind >= 0 && j < n_; ++j) {
      if (units_[order_[j]].kind == kind) leaving |= Bit(j);
    }
    Visit(i + 1, gone | leaving);
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
    return cost_aware_preemptor::PriceOf(units_, set, violations_(set));
  }

  const std::vector<UnitPrice>& units_;
  const std::vector<size_t>& order_;
  const size_t n_;
  const SearchLimits& limits_;
  const std::function<bool(const UnitSet&)>& fits_;
  const std::function<int(const UnitSet&)>& violations_;
  const std::function<bool()>& stop_;
  CheapestSet* const best_;
  std::vector<Rest> rest_;
  // What is known: subsets of the first, and supersets of the second need not be tried.
  std::vector<Mask> too_small_, enough_;
  bool out_of_trials_ = false;
  bool stopped_ = false;
};

}  // namespace

Price PriceOf(const std::vector<UnitPrice>& units, const UnitSet& set, int budget_violations) {
  Price price;
  price.budget_violations = budget_violations;
  for (size_t i = 0; i < units.size(); ++i) {
    if (!set[i]) continue;
    price.beyond_inference |= units[i].beyond_inference;
    price.cost += units[i].cost;
    price.victims += units[i].victims;
  }
  return price;
}

std::optional<CheapestSet> FindCheapestSet(const std::vector<UnitPrice>& units,
                                           const SearchLimits& limits,
                                           const std::function<bool(const UnitSet&)>& fits,
                                           const std::function<int(const UnitSet&)>& violations,
                                           const std::function<bool()>& stop) {
  CheapestSet best;
  best.set.assign(units.size(), true);
  ++best.trials;
  if (units.empty() || !fits(best.set) || stop()) return std::nullopt;
  const std::vector<size_t> order = OrderOf(units);
  std::vector<UnitSet> too_small;
  for (const size_t i : order) {
    best.set[i] = false;
    ++best.trials;
    if (!fits(best.set)) {
      too_small.push_back(best.set);
      best.set[i] = true;
    }
    if (stop()) return std::nullopt;
  }
  best.price = PriceOf(units, best.set, violations(best.set));
  if (units.size() > std::min<size_t>(limits.exact_units, 63)) return best;
  Search search(units, order, limits, fits, violations, stop, &best);
  for (const UnitSet& set : too_small) search.IsTooSmall(set);
  best.exact = search.Run();
  if (search.stopped()) return std::nullopt;
  return best;
}

}  // namespace outboard::cost_aware_preemptor
