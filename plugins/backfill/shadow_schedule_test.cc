#include "plugins/backfill/shadow_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <random>
#include <vector>

namespace outboard::backfill {
namespace {

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1000 + seconds); }

struct Release {
  absl::Time when;
  size_t node = 0;
  const int64_t* amounts = nullptr;
};

struct Instance {
  Rooms free{0, 0};
  std::vector<Amounts> amounts;
  std::vector<Release> releases;
  std::vector<Demand> demands;
};

Instance MakeInstance(std::mt19937* random, size_t kinds) {
  const auto upto = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(*random);
  };
  Instance made;
  const size_t nodes = 1 + static_cast<size_t>(upto(3)),
               resources = 1 + static_cast<size_t>(upto(1));
  made.free = Rooms(nodes, resources);
  for (size_t node = 0; node < nodes; ++node) {
    for (size_t r = 0; r < resources; ++r) made.free.At(node)[r] = upto(5) - 1;
  }
  const size_t releases = static_cast<size_t>(upto(7));
  made.amounts.resize(releases);
  for (Amounts& amounts : made.amounts) {
    for (size_t r = 0; r < resources; ++r) amounts.push_back(upto(4));
    made.releases.push_back({At(upto(6) - 1),
                             static_cast<size_t>(upto(static_cast<int64_t>(nodes) - 1)),
                             amounts.data()});
  }
  std::stable_sort(made.releases.begin(), made.releases.end(),
                   [](const Release& a, const Release& b) { return a.when < b.when; });
  for (size_t k = 0; k < kinds; ++k) {
    Demand demand;
    for (size_t r = 0; r < resources; ++r) demand.each.push_back(upto(4));
    demand.count = 1 + upto(kinds == 1 ? 4 : 2);
    if (upto(3) == 0) {
      for (size_t node = 0; node < nodes; ++node)
        demand.may_use.push_back(static_cast<char>(upto(1)));
    }
    made.demands.push_back(std::move(demand));
  }
  std::sort(made.demands.begin(), made.demands.end(),
            [](const Demand& a, const Demand& b) { return a.each > b.each; });
  return made;
}

std::optional<ShadowSchedule> Find(const Rooms& free, const std::vector<Release>& releases,
                                   const std::vector<Demand>& demands, absl::Time now) {
  return FindShadow(
      free,
      [&](size_t node, VisitRelease visit) {
        for (const Release& release : releases)
          if (release.node == node && !visit(release.when, release.amounts)) return;
      },
      demands, now);
}

// Tries every placement of every member.
bool FitsSomehow(const std::vector<const Demand*>& members, size_t next,
                 std::vector<Amounts>* free) {
  if (next == members.size()) return true;
  const Demand& demand = *members[next];
  for (size_t node = 0; node < free->size(); ++node) {
    if (!demand.may_use.empty() && demand.may_use[node] == 0) continue;
    Amounts& room = (*free)[node];
    bool fits = true;
    for (size_t r = 0; r < room.size(); ++r)
      fits &= demand.each[r] == 0 || demand.each[r] <= room[r];
    if (!fits) continue;
    for (size_t r = 0; r < room.size(); ++r) room[r] -= demand.each[r];
    const bool all = FitsSomehow(members, next + 1, free);
    for (size_t r = 0; r < room.size(); ++r) room[r] += demand.each[r];
    if (all) return true;
  }
  return false;
}

std::vector<Amounts> RoomAt(const Instance& instance, absl::Time when) {
  std::vector<Amounts> free;
  for (size_t node = 0; node < instance.free.nodes(); ++node)
    free.emplace_back(instance.free.At(node), instance.free.At(node) + instance.free.resources());
  for (const Release& release : instance.releases) {
    for (size_t r = 0; release.when <= when && r < instance.free.resources(); ++r)
      free[release.node][r] += release.amounts[r];
  }
  return free;
}

std::optional<absl::Time> EarliestByTrying(const Instance& instance, absl::Time now) {
  std::vector<const Demand*> members;
  for (const Demand& demand : instance.demands)
    members.insert(members.end(), static_cast<size_t>(demand.count), &demand);
  std::vector<absl::Time> times = {now};
  for (const Release& release : instance.releases)
    if (release.when > now) times.push_back(release.when);
  for (const absl::Time when : times) {
    std::vector<Amounts> free = RoomAt(instance, when);
    if (FitsSomehow(members, 0, &free)) return when;
  }
  return std::nullopt;
}

// The kept amounts are free at that time, cover the members' requests, and are on allowed nodes.
void CheckKept(const Instance& instance, const ShadowSchedule& schedule) {
  const std::vector<Amounts> free = RoomAt(instance, schedule.when);
  Amounts asked(instance.free.resources(), 0), kept(instance.free.resources(), 0);
  for (const Demand& demand : instance.demands) {
    for (size_t r = 0; r < asked.size(); ++r) asked[r] += demand.count * demand.each[r];
  }
  for (const KeptRoom& room : schedule.nodes) {
    for (size_t r = 0; r < kept.size(); ++r) {
      EXPECT_GE(room.kept[r], 0);
      kept[r] += room.kept[r];
      if (room.kept[r] > 0) {
        EXPECT_LE(room.kept[r], free[room.node][r]);
      }
    }
    EXPECT_TRUE(std::any_of(instance.demands.begin(), instance.demands.end(), [&](const Demand& d) {
      return d.may_use.empty() || d.may_use[room.node] != 0;
    }));
  }
  EXPECT_EQ(asked, kept);
}

TEST(ShadowScheduleTest, MembersThatAreAlikeGetTheEarliestTimeThereIs) {
  std::mt19937 random(1);
  int found = 0, later = 0;
  for (int i = 0; i < 20000; ++i) {
    const Instance instance = MakeInstance(&random, 1);
    const auto schedule = Find(instance.free, instance.releases, instance.demands, At(0));
    const std::optional<absl::Time> expected = EarliestByTrying(instance, At(0));
    ASSERT_EQ(schedule.has_value(), expected.has_value()) << "instance " << i;
    if (!expected) continue;
    ASSERT_EQ(schedule->when, *expected) << "instance " << i;
    CheckKept(instance, *schedule);
    ASSERT_FALSE(testing::Test::HasFailure()) << "instance " << i;
    ++found;
    later += *expected > At(0);
  }
  EXPECT_GT(found, 5000);
  EXPECT_GT(later, 2000);
}

TEST(ShadowScheduleTest, MixedMembersAreNeverPromisedWhatIsNotThereAndSeldomLess) {
  std::mt19937 random(2);
  int possible = 0, earliest = 0;
  for (int i = 0; i < 20000; ++i) {
    const Instance instance = MakeInstance(&random, 2);
    const auto schedule = Find(instance.free, instance.releases, instance.demands, At(0));
    const std::optional<absl::Time> expected = EarliestByTrying(instance, At(0));
    if (!expected) {
      ASSERT_FALSE(schedule.has_value()) << "instance " << i;
      continue;
    }
    ++possible;
    if (!schedule) continue;
    ASSERT_GE(schedule->when, *expected) << "instance " << i;
    CheckKept(instance, *schedule);
    ASSERT_FALSE(testing::Test::HasFailure()) << "instance " << i;
    earliest += schedule->when == *expected;
  }
  printf("mixed: the earliest time in %d of %d\n", earliest, possible);
  EXPECT_GE(earliest, possible * 99 / 100);
}

TEST(ShadowScheduleTest, OfMembersThatAreAlikeNoMoreReleasesAreAskedForThanItTakes) {
  const Amounts one = {1};
  int given = 0;
  const auto releases = [&](size_t node, VisitRelease visit) {
    for (int i = 1; i < 1000; ++i) {
      ++given;
      if (!visit(At(i + (node == 0 ? 0 : 10)), one.data())) return;
    }
  };
  // Two on the first node by 4; waiting for the others does not help.
  const auto schedule = FindShadow(Rooms(100, 1), releases, {{{2}, 2, {}}}, At(0));
  ASSERT_TRUE(schedule.has_value());
  EXPECT_EQ(schedule->when, At(4));
  EXPECT_LE(given, 2 * 5 + 99);
}

TEST(ShadowScheduleTest, RoomThatIsThereNowIsLeftToOthers) {
  Rooms free(3, 1);
  free.At(0)[0] = 4;
  free.At(1)[0] = 0;
  free.At(2)[0] = 0;
  const Amounts four = {4};
  const std::vector<Release> releases = {{At(10), 1, four.data()}, {At(20), 2, four.data()}};
  const auto schedule = Find(free, releases, {{{4}, 2, {}}}, At(0));
  ASSERT_TRUE(schedule.has_value());
  EXPECT_EQ(schedule->when, At(10));
  const auto later = Find(free, releases, {{{4}, 3, {}}}, At(0));
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(later->when, At(20));
  free.At(0)[0] = 8;
  const auto one_of_three = Find(free, releases, {{{8}, 1, {}}}, At(30));
  ASSERT_TRUE(one_of_three.has_value());
  EXPECT_EQ(one_of_three->when, At(30));
  ASSERT_EQ(one_of_three->nodes.size(), 1u);
  EXPECT_EQ(one_of_three->nodes[0].node, 0u);
  EXPECT_FALSE(Find(free, releases, {{{9}, 1, {}}}, At(0)).has_value());
}

}  // namespace
}  // namespace outboard::backfill
