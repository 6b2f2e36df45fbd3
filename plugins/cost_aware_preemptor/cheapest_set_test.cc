#include "plugins/cost_aware_preemptor/cheapest_set.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <tuple>

namespace outboard::cost_aware_preemptor {
namespace {

// Units that free two resources and count against at most one budget. Gang members on other nodes
// free nothing here, and may violate a budget.
struct Instance {
  struct Piece {
    int64_t gpus = 0, cpus = 0;
    int budget = -1;
    UnitPrice price;
  };
  std::vector<Piece> pieces;
  int64_t gpus_needed = 0, cpus_needed = 0;
  std::map<int, int> allowed;
  std::vector<GangPrice> gangs;
  std::vector<int> broken_elsewhere;  // By gang: violated budgets, if it leaves as a whole.

  Prices prices() const {
    Prices prices = {{}, gangs};
    for (const Piece& piece : pieces) prices.units.push_back(piece.price);
    return prices;
  }
  // nullopt: a part of a gang would stay. Otherwise by gang: whether it leaves as a whole.
  std::optional<std::vector<bool>> Allowed(const UnitSet& gone) const {
    std::vector<size_t> leave(gangs.size()), all(gangs.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      const int gang = pieces[i].price.gang;
      if (gang < 0) continue;
      ++all[static_cast<size_t>(gang)];
      leave[static_cast<size_t>(gang)] += gone[i] ? 1 : 0;
    }
    std::vector<bool> whole(gangs.size());
    for (size_t g = 0; g < gangs.size(); ++g) {
      if (leave[g] <= gangs[g].surplus) continue;
      if (!gangs[g].whole || leave[g] < all[g]) return std::nullopt;
      whole[g] = true;
    }
    return whole;
  }
  bool Fits(const UnitSet& gone) const {
    int64_t gpus = 0, cpus = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (!gone[i]) continue;
      gpus += pieces[i].gpus;
      cpus += pieces[i].cpus;
    }
    return gpus >= gpus_needed && cpus >= cpus_needed;
  }
  int Violations(const UnitSet& gone) const {
    std::map<int, int> left = allowed;
    int violations = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (gone[i] && pieces[i].budget >= 0 && --left[pieces[i].budget] < 0) ++violations;
    }
    // The search never tries a set that leaves a forbidden part of a gang.
    const auto whole = Allowed(gone);
    EXPECT_TRUE(whole.has_value());
    for (size_t g = 0; whole && g < gangs.size(); ++g)
      violations += (*whole)[g] ? broken_elsewhere[g] : 0;
    return violations;
  }
};

Instance Random(std::mt19937_64* random, size_t units, bool with_gangs = false) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>((*random)() % static_cast<uint64_t>(n));
  };
  Instance instance;
  for (int budget = 0; budget < 2; ++budget) instance.allowed[budget] = static_cast<int>(below(3));
  std::map<std::tuple<int64_t, int64_t, bool>, int> kinds;
  int64_t gpus = 0, cpus = 0;
  const bool alike = below(3) == 0;
  for (size_t i = 0; i < units; ++i) {
    Instance::Piece piece;
    piece.gpus = alike ? 1 : below(5);
    piece.cpus = alike ? 2 : below(4);
    if (below(3) == 0) piece.budget = static_cast<int>(below(2));
    piece.price.beyond_inference = below(2) == 0;
    piece.price.cost = below(alike ? 4 : 1000) + 1;
    piece.price.protected_by_budget = piece.budget >= 0 && instance.allowed[piece.budget] == 0;
    if (piece.budget < 0) {
      const int next = static_cast<int>(kinds.size());
      piece.price.kind =
          kinds.try_emplace({piece.gpus, piece.cpus, piece.price.beyond_inference}, next)
              .first->second;
    }
    gpus += piece.gpus;
    cpus += piece.cpus;
    instance.pieces.push_back(piece);
  }
  instance.gpus_needed = 1 + below(std::max<int64_t>(1, gpus));
  instance.cpus_needed = below(std::max<int64_t>(1, cpus));
  if (!with_gangs) return instance;
  for (int64_t g = 1 + below(3); g > 0; --g) {
    instance.gangs.push_back({.surplus = static_cast<size_t>(below(4)),
                              .whole = below(3) != 0,
                              .beyond_inference = below(2) == 0,
                              .cost = below(2) * below(500),
                              .victims = static_cast<size_t>(below(4))});
    instance.broken_elsewhere.push_back(below(4) == 0 ? 1 : 0);
  }
  for (Instance::Piece& piece : instance.pieces) {
    if (below(3) == 0) continue;
    piece.price.gang = static_cast<int>(below(static_cast<int64_t>(instance.gangs.size())));
    // Units of one kind belong to the same gang.
    if (piece.price.kind >= 0) piece.price.kind = piece.price.kind * 4 + 1 + piece.price.gang;
  }
  for (Instance::Piece& piece : instance.pieces) {
    if (piece.price.gang < 0 && piece.price.kind >= 0) piece.price.kind *= 4;
  }
  return instance;
}

// Tries all sets.
std::optional<Price> Optimum(const Instance& instance) {
  std::optional<Price> best;
  for (uint32_t mask = 1; mask < (1u << instance.pieces.size()); ++mask) {
    UnitSet gone(instance.pieces.size());
    Price price;
    for (size_t i = 0; i < gone.size(); ++i) {
      gone[i] = (mask >> i & 1) != 0;
      if (!gone[i]) continue;
      price.cost += instance.pieces[i].price.cost;
      price.beyond_inference |= instance.pieces[i].price.beyond_inference;
      ++price.victims;
    }
    const auto whole = instance.Allowed(gone);
    if (!whole) continue;
    for (size_t g = 0; g < whole->size(); ++g) {
      if (!(*whole)[g]) continue;
      price.cost += instance.gangs[g].cost;
      price.beyond_inference |= instance.gangs[g].beyond_inference;
      price.victims += instance.gangs[g].victims;
    }
    price.budget_violations = instance.Violations(gone);
    if (instance.Fits(gone) && (!best || price < *best)) best = price;
  }
  return best;
}

std::optional<CheapestSet> Find(const Instance& instance, const SearchLimits& limits) {
  return FindCheapestSet(
      instance.prices(), limits, [&](const UnitSet& gone) { return instance.Fits(gone); },
      [&](const UnitSet& gone) { return instance.Violations(gone); });
}

TEST(CheapestSetTest, IsAsCheapAsTheBestOfAllSets) {
  std::mt19937_64 random(1);
  int64_t trials = 0, most = 0, found = 0, greedy_is_worse = 0;
  for (int i = 0; i < 6000; ++i) {
    const Instance instance = Random(&random, 1 + random() % 12);
    const std::optional<Price> optimum = Optimum(instance);
    const auto got = Find(instance, {.exact_units = 16, .max_trials = 1 << 20});
    ASSERT_EQ(got.has_value(), optimum.has_value()) << "instance " << i;
    if (!got) continue;
    ASSERT_TRUE(got->exact);
    ASSERT_TRUE(instance.Fits(got->set)) << "instance " << i;
    ASSERT_EQ(got->price, PriceOf(instance.prices(), got->set, instance.Violations(got->set)));
    ASSERT_TRUE(got->price == *optimum)
        << "instance " << i << ": " << got->price.cost << ", not " << optimum->cost;
    const auto greedy = Find(instance, {.exact_units = 0});
    ASSERT_TRUE(greedy && instance.Fits(greedy->set) && !(greedy->price < *optimum));
    greedy_is_worse += *optimum < greedy->price;
    trials += got->trials;
    most = std::max(most, got->trials);
    ++found;
  }
  std::printf(
      "%lld instances of up to 12 units: the optimum in all, %.1f trials on average, "
      "%lld at most; greedy sets cost more in %lld\n",
      static_cast<long long>(found), static_cast<double>(trials) / found,
      static_cast<long long>(most), static_cast<long long>(greedy_is_worse));
  EXPECT_GT(found, 3000);
  EXPECT_GT(greedy_is_worse, found / 50) << "the instances are too easy";
}

TEST(CheapestSetTest, GangsLeaveDownToTheirSurplusOrWhole) {
  std::mt19937_64 random(4);
  int64_t found = 0, trials = 0, wholes = 0, surplus = 0, only_parts = 0, greedy_finds_none = 0,
          greedy_is_worse = 0;
  for (int i = 0; i < 6000; ++i) {
    const Instance instance = Random(&random, 1 + random() % 12, /*with_gangs=*/true);
    const std::optional<Price> optimum = Optimum(instance);
    const auto got = Find(instance, {.exact_units = 16, .max_trials = 1 << 20});
    ASSERT_EQ(got.has_value(), optimum.has_value()) << "instance " << i;
    if (!got) {
      only_parts += instance.Fits(UnitSet(instance.pieces.size(), true));
      continue;
    }
    ASSERT_TRUE(got->exact);
    ASSERT_TRUE(instance.Fits(got->set) && instance.Allowed(got->set)) << "instance " << i;
    ASSERT_EQ(WholeGangs(instance.prices(), got->set), *instance.Allowed(got->set));
    ASSERT_EQ(got->price, PriceOf(instance.prices(), got->set, instance.Violations(got->set)));
    ASSERT_TRUE(got->price == *optimum)
        << "instance " << i << ": " << got->price.cost << ", not " << optimum->cost;
    const auto greedy = Find(instance, {.exact_units = 0});
    greedy_finds_none += !greedy;
    if (greedy) {
      ASSERT_TRUE(instance.Fits(greedy->set) && instance.Allowed(greedy->set));
      ASSERT_FALSE(greedy->price < *optimum);
      greedy_is_worse += *optimum < greedy->price;
    }
    const std::vector<bool> whole = *instance.Allowed(got->set);
    wholes += std::count(whole.begin(), whole.end(), true) > 0;
    for (size_t k = 0; k < got->set.size(); ++k) {
      const int gang = instance.pieces[k].price.gang;
      if (!got->set[k] || gang < 0 || whole[static_cast<size_t>(gang)]) continue;
      ++surplus;
      break;
    }
    trials += got->trials;
    ++found;
  }
  std::printf(
      "%lld instances with gangs: the optimum in all (%lld where a gang leaves whole, %lld where "
      "some of its surplus do), %.1f trials on average; in %lld only parts of gangs would be "
      "enough; greedy sets cost more in %lld and are none in %lld\n",
      static_cast<long long>(found), static_cast<long long>(wholes),
      static_cast<long long>(surplus), static_cast<double>(trials) / found,
      static_cast<long long>(only_parts), static_cast<long long>(greedy_is_worse),
      static_cast<long long>(greedy_finds_none));
  EXPECT_GT(found, 3000);
  EXPECT_GT(wholes, 500);
  EXPECT_GT(surplus, 500);
  EXPECT_GT(only_parts, 100);
  EXPECT_LT(greedy_finds_none, found / 20);
}

// 16 units with the default limits: the limit of trials is rarely reached, and then the set is at
// least as good as the greedy one.
TEST(CheapestSetTest, WithTheLimitsThatItComesWith) {
  std::mt19937_64 random(2);
  int64_t found = 0, optimal = 0;
  double cost = 0, best_cost = 0;
  for (int i = 0; i < 60; ++i) {
    const Instance instance = Random(&random, 16);
    const auto got = Find(instance, {});
    if (!got) continue;
    const std::optional<Price> optimum = Optimum(instance);
    ++found;
    EXPECT_LE(got->trials, SearchLimits().max_trials);
    EXPECT_FALSE(Find(instance, {.exact_units = 0})->price < got->price);
    EXPECT_TRUE(!got->exact || got->price == *optimum);
    optimal += got->price == *optimum;
    cost += static_cast<double>(got->price.cost);
    best_cost += static_cast<double>(optimum->cost);
  }
  std::printf(
      "%lld instances of 16 units, at most %lld trials: %lld optimal, cost %.4f of the "
      "optimum's\n",
      static_cast<long long>(found), static_cast<long long>(SearchLimits().max_trials),
      static_cast<long long>(optimal), cost / best_cost);
  EXPECT_GE(optimal, found * 95 / 100);
}

TEST(CheapestSetTest, AlikeUnitsAreNotTriedInAllOrders) {
  Instance instance;
  for (int i = 0; i < 16; ++i)
    instance.pieces.push_back({1, 0, -1, {.beyond_inference = false, .cost = 100 + i, .kind = 0}});
  instance.gpus_needed = 8;
  const auto got = Find(instance, {});
  ASSERT_TRUE(got && got->exact);
  EXPECT_EQ(got->price.cost, 828);
  EXPECT_LT(got->trials, 40);
}

// Beyond exact_units: all leave, and the costliest return first.
TEST(CheapestSetTest, ManyUnitsAreTakenGreedily) {
  Instance instance;
  for (int i = 0; i < 100; ++i) instance.pieces.push_back({1, 0, -1, {.cost = (i * 37) % 100 + 1}});
  instance.gpus_needed = 10;
  const auto got = Find(instance, {});
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->exact);
  EXPECT_EQ(got->price.cost, 55);
  EXPECT_EQ(got->trials, 101);
}

// Every returned set was tried itself, also where leaving units can make room smaller.
TEST(CheapestSetTest, EveryAnswerWasTried) {
  std::mt19937_64 random(3);
  int found = 0;
  for (int i = 0; i < 2000; ++i) {
    const size_t units = 1 + random() % 8;
    const uint64_t enough = random() | random() | (uint64_t{1} << 63);
    const auto fits = [&](const UnitSet& gone) {
      uint64_t hash = 1;
      for (const bool one : gone) hash = hash * 2 + one;
      // The set of all is enough; of the other sets, any may be.
      return std::count(gone.begin(), gone.end(), true) == static_cast<int64_t>(gone.size()) ||
             (enough >> (hash * 0x9E3779B97F4A7C15 >> 58) & 1) != 0;
    };
    std::set<UnitSet> tried;
    Prices prices;
    prices.units.resize(units);
    for (UnitPrice& price : prices.units) price.cost = static_cast<int64_t>(random() % 50);
    const auto got = FindCheapestSet(
        prices, {},
        [&](const UnitSet& gone) {
          tried.insert(gone);
          return fits(gone);
        },
        [](const UnitSet&) { return 0; });
    ASSERT_TRUE(got);
    ASSERT_TRUE(tried.contains(got->set) && fits(got->set));
    ++found;
  }
  EXPECT_EQ(found, 2000);
}

TEST(CheapestSetTest, StopsWhenRequested) {
  Instance instance;
  for (int i = 0; i < 4; ++i) instance.pieces.push_back({1, 0, -1, {.cost = i}});
  instance.gpus_needed = 2;
  for (int after = 0; after < 6; ++after) {
    int calls = 0;
    const auto got = FindCheapestSet(
        instance.prices(), {}, [&](const UnitSet& gone) { return instance.Fits(gone); },
        [](const UnitSet&) { return 0; }, [&] { return calls++ >= after; });
    EXPECT_EQ(got.has_value(), calls <= after) << after;
  }
}

}  // namespace
}  // namespace outboard::cost_aware_preemptor
