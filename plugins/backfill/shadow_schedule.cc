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
// first, and the small ones first. Whether all fit; `kept` gets what the last trial took.
bool PlaceBest(const std::vector<Demand>& demands, const Rooms& free,
               const std::vector<size_t>& order, Rooms* kept) {
  const int64_t wanted = CountOf(demands);
  const auto place = [&](const std::vector<Demand>& in_turn, const std::vector<size_t>& nodes) {
    Rooms rooms = free;
    if (kept != nullptr) *kept = Rooms(free.nodes(), free.resources());
    return Place(in_turn, nodes, &rooms, kept) == wanted;
  };
  if (place(demands, order)) return true;
  if (demands.size() < 2) return false;
  std::vector<size_t> fullest = order;
  const size_t scarcest = free.resources() - 1;
  std::stable_sort(fullest.begin(), fullest.end(),
                   [&](size_t a, size_t b) { return free.At(a)[scarcest] < free.At(b)[scarcest]; });
  if (place(demands, fullest)) return true;
  const std::vector<Demand> reversed(demands.rbegin(), demands.rend());
  return place(reversed, order) || place(reversed, fullest);
}

// How many of each kind find room without the others, kept up to date as room grows.
class Bounds {
 public:
  Bounds(const std::vector<Demand>& demands, const Rooms& free)
      : demands_(demands), room_(demands.size(), 0) {
    for (size_t node = 0; node < free.nodes(); ++node) Add(node, free.At(node), 1);
  }
  // Before and after the node's amounts change.
  void Add(size_t node, const int64_t* amounts, int64_t sign) {
    for (size_t k = 0; k < demands_.size(); ++k) {
      if (!MayUse(demands_[k], node)) continue;
      room_[k] += sign * CountThatFit(amounts, demands_[k].each, demands_[k].count);
    }
  }
  bool EachFits() const {
    for (size_t k = 0; k < demands_.size(); ++k)
      if (room_[k] < demands_[k].count) return false;
    return true;
  }

 private:
  const std::vector<Demand>& demands_;
  std::vector<int64_t> room_;  // by kind
};

void Apply(const Release& release, Rooms* rooms) {
  int64_t* const amounts = rooms->At(release.node);
  for (size_t r = 0; r < rooms->resources(); ++r) amounts[r] += release.amounts[r];
}

// Releases in runs of one time; those up to `now` are one.
class Runs {
 public:
  Runs(NextRelease next, absl::Time now) : next_(next), when_(now) { Advance(); }
  bool more() const { return more_; }
  absl::Time when() const { return when_; }  // of the last run
  template <typename Fn>
  void Take(absl::Time until, Fn&& fn) {
    for (; more_ && release_.when <= until; Advance()) fn(release_);
    when_ = until;
  }
  template <typename Fn>
  void TakeNext(Fn&& fn) {
    Take(release_.when, std::forward<Fn>(fn));
  }

 private:
  void Advance() { more_ = next_(&release_); }
  NextRelease next_;
  Release release_;
  bool more_ = false;
  absl::Time when_;
};

// Of members that are not alike, each kind of which fits in `rooms`: goes on through the runs until
// all fit together, as far as the greedy search finds. What it takes is applied.
bool GoOnUntilAllFit(const std::vector<Demand>& demands, Runs* runs, Rooms* rooms,
                     std::vector<absl::Time>* last) {
  struct Stored {
    absl::Time when;
    size_t node;
    Amounts amounts;
  };
  std::vector<Stored> stored;
  std::vector<size_t> ends = {0};  // of runs, in `stored`
  const std::vector<size_t> order = InOrder(rooms->nodes());
  const auto rooms_after = [&](size_t end) {
    Rooms grown = *rooms;
    for (size_t i = 0; i < end; ++i)
      Apply({stored[i].when, stored[i].node, stored[i].amounts.data()}, &grown);
    return grown;
  };
  const auto fits = [&](size_t run) {
    return PlaceBest(demands, rooms_after(ends[run]), order, nullptr);
  };
  // In steps that grow, then a search between the last two, since room only grows.
  size_t low = 0, high = 0;
  for (size_t step = 1; !fits(high); step *= 2) {
    low = high + 1;
    while (ends.size() <= high + step && runs->more()) {
      runs->TakeNext([&](const Release& release) {
        stored.push_back({release.when, release.node,
                          Amounts(release.amounts, release.amounts + rooms->resources())});
      });
      ends.push_back(stored.size());
    }
    if (ends.size() == low) return false;
    high = std::min(high + step, ends.size() - 1);
  }
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (fits(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  *rooms = rooms_after(ends[high]);
  for (size_t i = 0; i < ends[high]; ++i) (*last)[stored[i].node] = stored[i].when;
  return true;
}

}  // namespace

int64_t CountThatFit(const int64_t* free, const Amounts& each, int64_t most) {
  int64_t count = std::max<int64_t>(0, most);
  // The scarcest first; most nodes have too little of it, and a division costs much.
  for (size_t r = each.size(); r-- > 0;) {
    if (each[r] <= 0) continue;
    if (free[r] < each[r]) return 0;
    if (count > 1) count = std::min(count, free[r] / each[r]);
  }
  return count;
}

bool EachFits(const std::vector<Demand>& demands, const Rooms& free) {
  return Bounds(demands, free).EachFits();
}

std::optional<ShadowSchedule> FindShadow(Rooms free, NextRelease next,
                                         const std::vector<Demand>& demands, absl::Time now) {
  Bounds bounds(demands, free);
  // When room came to a node.
  std::vector<absl::Time> last(free.nodes(), absl::InfinitePast());
  const auto apply = [&](const Release& release) {
    bounds.Add(release.node, free.At(release.node), -1);
    Apply(release, &free);
    bounds.Add(release.node, free.At(release.node), 1);
    last[release.node] = release.when;
  };
  Runs runs(next, now);
  runs.Take(now, apply);
  while (!bounds.EachFits()) {
    if (!runs.more()) return std::nullopt;
    runs.TakeNext(apply);
  }
  ShadowSchedule schedule;
  schedule.when = runs.when();
  if (demands.size() > 1) {
    const absl::Time each_fits = schedule.when;
    if (!GoOnUntilAllFit(demands, &runs, &free, &last)) return std::nullopt;
    schedule.when = std::max(each_fits, *std::max_element(last.begin(), last.end()));
  }

  std::vector<size_t> order = InOrder(free.nodes());
  std::erase_if(order, [&](size_t node) {
    return std::none_of(demands.begin(), demands.end(), [&](const Demand& demand) {
      return MayUse(demand, node) && CountThatFit(free.At(node), demand.each, 1) > 0;
    });
  });
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return last[a] > last[b]; });
  Rooms kept(free.nodes(), free.resources());
  // Of members that are not alike another order may place fewer.
  if (!PlaceBest(demands, free, order, &kept))
    PlaceBest(demands, free, InOrder(free.nodes()), &kept);
  for (size_t node = 0; node < free.nodes(); ++node) {
    const int64_t* const amounts = kept.At(node);
    if (std::all_of(amounts, amounts + free.resources(), [](int64_t a) { return a == 0; }))
      continue;
    schedule.nodes.push_back({node, Amounts(amounts, amounts + free.resources())});
  }
  return schedule;
}

}  // namespace outboard::backfill
