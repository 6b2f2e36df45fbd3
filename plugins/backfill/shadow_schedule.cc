#include "plugins/backfill/shadow_schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace outboard::backfill {
namespace {

bool MayUse(const Demand& demand, size_t node) {
  return demand.may_use.empty() || demand.may_use[node] != 0;
}

// Places members on nodes in `order`; `kept`, if given, gets what they take. How many found room.
int64_t Place(const std::vector<Demand>& demands, const std::vector<size_t>& order, Rooms* free,
              Rooms* kept) {
  int64_t placed = 0;
  for (const Demand& demand : demands) {
    int64_t left = demand.count;
    for (const size_t node : order) {
      if (left == 0) break;
      if (!MayUse(demand, node)) continue;
      int64_t* const amounts = free->At(node);
      const int64_t fit = CountThatFit(amounts, demand.each, left);
      if (fit == 0) continue;
      for (size_t r = 0; r < demand.each.size(); ++r) {
        amounts[r] -= fit * demand.each[r];
        if (kept != nullptr) kept->At(node)[r] += fit * demand.each[r];
      }
      left -= fit;
      placed += fit;
    }
  }
  return placed;
}

std::vector<size_t> InOrder(size_t nodes) {
  std::vector<size_t> order(nodes);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

int64_t CountOf(const std::vector<Demand>& demands) {
  int64_t count = 0;
  for (const Demand& demand : demands) count += demand.count;
  return count;
}

// As Place, with `order` first. Members that are not alike are also tried with the fullest nodes
// first, and the small ones first, until all fit. `kept` gets what the last trial took.
int64_t PlaceBest(const std::vector<Demand>& demands, const Rooms& free,
                  const std::vector<size_t>& order, Rooms* kept) {
  const int64_t wanted = CountOf(demands);
  int64_t most = 0;
  const auto place = [&](const std::vector<Demand>& in_turn, const std::vector<size_t>& nodes) {
    Rooms rooms = free;
    if (kept != nullptr) *kept = Rooms(free.nodes(), free.resources());
    most = std::max(most, Place(in_turn, nodes, &rooms, kept));
    return most == wanted;
  };
  if (place(demands, order) || demands.size() < 2) return most;
  std::vector<size_t> fullest = order;
  const size_t scarcest = free.resources() - 1;
  std::stable_sort(fullest.begin(), fullest.end(),
                   [&](size_t a, size_t b) { return free.At(a)[scarcest] < free.At(b)[scarcest]; });
  if (place(demands, fullest)) return most;
  const std::vector<Demand> reversed(demands.rbegin(), demands.rend());
  if (!place(reversed, order)) place(reversed, fullest);
  return most;
}

void Apply(const Release& release, Rooms* rooms) {
  int64_t* const amounts = rooms->At(release.node);
  for (size_t r = 0; r < rooms->resources(); ++r) amounts[r] += release.amounts[r];
}

}  // namespace

int64_t CountThatFit(const int64_t* free, const Amounts& each, int64_t most) {
  int64_t count = most;
  for (size_t r = 0; r < each.size() && count > 0; ++r) {
    if (each[r] > 0) count = std::min(count, std::max<int64_t>(0, free[r]) / each[r]);
  }
  return std::max<int64_t>(0, count);
}

int64_t PlaceAll(const std::vector<Demand>& demands, Rooms free) {
  return PlaceBest(demands, free, InOrder(free.nodes()), nullptr);
}

std::optional<ShadowSchedule> FindShadow(const Rooms& free, const std::vector<Release>& releases,
                                         const std::vector<Demand>& demands, absl::Time now) {
  const int64_t wanted = CountOf(demands);
  // Ends of runs of releases at one time: a search over them, since room only grows.
  std::vector<size_t> ends = {0};
  size_t first = 0;
  while (first < releases.size() && releases[first].when <= now) ++first;
  ends[0] = first;
  for (size_t i = first; i < releases.size(); ++i) {
    if (i + 1 == releases.size() || releases[i + 1].when != releases[i].when) ends.push_back(i + 1);
  }
  const auto rooms_after = [&](size_t end) {
    Rooms rooms = free;
    for (size_t i = 0; i < end; ++i) Apply(releases[i], &rooms);
    return rooms;
  };
  const auto fits = [&](size_t end) { return PlaceAll(demands, rooms_after(end)) == wanted; };
  if (!fits(ends.back())) return std::nullopt;
  size_t low = 0, high = ends.size() - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (fits(ends[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const size_t end = ends[high];

  ShadowSchedule schedule;
  schedule.when = end == first ? now : releases[end - 1].when;
  const Rooms rooms = rooms_after(end);
  Rooms released(free.nodes(), free.resources());
  std::vector<size_t> last(free.nodes(), 0);  // the number of its last release, from 1
  for (size_t i = 0; i < end; ++i) {
    Apply(releases[i], &released);
    last[releases[i].node] = i + 1;
  }
  std::vector<size_t> order = InOrder(free.nodes());
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return last[a] > last[b]; });
  Rooms kept(free.nodes(), free.resources());
  // Of members that are not alike another order may place fewer.
  if (PlaceBest(demands, rooms, order, &kept) != wanted)
    PlaceBest(demands, rooms, InOrder(free.nodes()), &kept);
  for (size_t node = 0; node < free.nodes(); ++node) {
    const int64_t* const amounts = kept.At(node);
    if (std::all_of(amounts, amounts + free.resources(), [](int64_t a) { return a == 0; }))
      continue;
    const int64_t* const gone = released.At(node);
    schedule.nodes.push_back({node, Amounts(amounts, amounts + free.resources()),
                              Amounts(gone, gone + free.resources())});
  }
  return schedule;
}

}  // namespace outboard::backfill
