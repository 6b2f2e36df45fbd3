#include "plugins/backfill/shadow_schedule.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace outboard::backfill {
namespace {

bool MayUse(const Demand& demand, size_t node) {
  return demand.may_use.empty() || demand.may_use[node] != 0;
}

// Places members on nodes in `order`; stores their amounts in `kept`, if given. Returns how many
// fit.
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

// Like Place, with `order` first. Different members are also tried on the fullest nodes first, and
// with the small ones first. Returns whether all fit; `kept` gets the last trial's amounts.
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

void Grow(int64_t* room, const int64_t* amounts, size_t resources) {
  for (size_t r = 0; r < resources; ++r) room[r] += amounts[r];
}

// The times at which the first `count` equal members find room, each on a node of its own.
class FirstTimes {
 public:
  explicit FirstTimes(int64_t count) : count_(static_cast<size_t>(count)) {}
  bool full() const { return times_.size() >= count_; }
  absl::Time latest() const { return times_.front(); }
  // No event from `when` on can make them earlier.
  bool TooLate(absl::Time when) const { return full() && when >= latest(); }
  void Add(absl::Time when) {
    if (TooLate(when)) return;
    if (full()) {
      std::pop_heap(times_.begin(), times_.end());
      times_.pop_back();
    }
    times_.push_back(when);
    std::push_heap(times_.begin(), times_.end());
  }

 private:
  const size_t count_;
  std::vector<absl::Time> times_;  // the latest first, then a heap
};

// When one kind fits without the others; nullopt: never. `first`, if given, gets the time at which
// each node has room for one; InfiniteFuture: later, or never.
std::optional<absl::Time> EarliestOf(const Demand& demand, const Rooms& free, ReleasesOf releases,
                                     absl::Time now, std::vector<absl::Time>* first) {
  FirstTimes times(demand.count);
  Amounts room(free.resources());
  for (size_t node = 0; node < free.nodes(); ++node) {
    if (!MayUse(demand, node)) continue;
    const int64_t* const amounts = free.At(node);
    int64_t fit = CountThatFit(amounts, demand.each, demand.count);
    for (int64_t i = 0; i < fit && !times.TooLate(now); ++i) times.Add(now);
    if (fit > 0 && first != nullptr) (*first)[node] = now;
    if (fit == demand.count || times.TooLate(now)) continue;
    std::copy(amounts, amounts + free.resources(), room.begin());
    releases(node, [&](absl::Time at, const int64_t* its) {
      const absl::Time when = std::max(at, now);
      if (times.TooLate(when)) return false;
      Grow(room.data(), its, room.size());
      const int64_t fits_now = CountThatFit(room.data(), demand.each, demand.count);
      if (fit == 0 && fits_now > 0 && first != nullptr) (*first)[node] = when;
      for (; fit < fits_now; ++fit) times.Add(when);
      return fit < demand.count;
    });
  }
  if (!times.full()) return std::nullopt;
  return times.latest();
}

// How far a node's releases are applied.
struct Progress {
  size_t taken = 0;
  absl::Time last = absl::InfinitePast(), next = absl::InfiniteFuture();
};

// Continues with the node's releases up to a time; `each` gets the amounts.
template <typename Fn>
void GoOn(size_t node, absl::Time until, ReleasesOf releases, Progress* progress, Fn&& each) {
  size_t seen = 0;
  const size_t before = progress->taken;
  progress->next = absl::InfiniteFuture();
  releases(node, [&](absl::Time when, const int64_t* amounts) {
    if (seen++ < before) return true;
    if (when > until) {
      progress->next = when;
      return false;
    }
    each(amounts);
    ++progress->taken;
    progress->last = when;
    return true;
  });
}

struct Release {
  size_t node = 0;
  Amounts amounts;
};

// The remaining releases, in runs of equal time.
class Runs {
 public:
  Runs(std::vector<Progress> nodes, size_t resources, ReleasesOf releases)
      : nodes_(std::move(nodes)), resources_(resources), releases_(releases) {
    for (size_t node = 0; node < nodes_.size(); ++node)
      if (nodes_[node].next != absl::InfiniteFuture()) next_.emplace_back(nodes_[node].next, node);
    std::make_heap(next_.begin(), next_.end(), std::greater<>());
  }
  bool more() const { return !next_.empty(); }
  // Appends the next run, and returns its time.
  absl::Time TakeNext(std::vector<Release>* taken) {
    const absl::Time when = next_.front().first;
    while (!next_.empty() && next_.front().first == when) {
      const size_t node = next_.front().second;
      std::pop_heap(next_.begin(), next_.end(), std::greater<>());
      next_.pop_back();
      GoOn(node, when, releases_, &nodes_[node], [&](const int64_t* amounts) {
        taken->push_back({node, Amounts(amounts, amounts + resources_)});
      });
      if (nodes_[node].next == absl::InfiniteFuture()) continue;
      next_.emplace_back(nodes_[node].next, node);
      std::push_heap(next_.begin(), next_.end(), std::greater<>());
    }
    return when;
  }

 private:
  std::vector<Progress> nodes_;
  const size_t resources_;
  ReleasesOf releases_;
  std::vector<std::pair<absl::Time, size_t>> next_;  // a heap, the earliest first
};

// For different members, each kind of which fits in `rooms` at `when`: continues through the runs
// until the greedy search places all of them together. Applies the releases used, and records them
// in `last`. nullopt: never.
std::optional<absl::Time> GoOnUntilAllFit(const std::vector<Demand>& demands, absl::Time when,
                                          Runs* runs, Rooms* rooms, std::vector<absl::Time>* last) {
  std::vector<Release> stored;
  struct Run {
    absl::Time when;
    size_t end;  // in `stored`
  };
  std::vector<Run> known = {{when, 0}};
  const std::vector<size_t> order = InOrder(rooms->nodes());
  const auto rooms_after = [&](size_t end) {
    Rooms grown = *rooms;
    for (size_t i = 0; i < end; ++i)
      Grow(grown.At(stored[i].node), stored[i].amounts.data(), grown.resources());
    return grown;
  };
  const auto fits = [&](size_t run) {
    return PlaceBest(demands, rooms_after(known[run].end), order, nullptr);
  };
  // Growing steps, then a binary search between the last two, since room only grows.
  size_t low = 0, high = 0;
  for (size_t step = 1; !fits(high); step *= 2) {
    low = high + 1;
    while (known.size() <= high + step && runs->more()) {
      const absl::Time its = runs->TakeNext(&stored);
      known.push_back({its, stored.size()});
    }
    if (known.size() == low) return std::nullopt;
    high = std::min(high + step, known.size() - 1);
  }
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (fits(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  *rooms = rooms_after(known[high].end);
  for (size_t run = 1; run <= high; ++run)
    for (size_t i = known[run - 1].end; i < known[run].end; ++i)
      (*last)[stored[i].node] = known[run].when;
  return known[high].when;
}

}  // namespace

int64_t CountThatFit(const int64_t* free, const Amounts& each, int64_t most) {
  int64_t count = std::max<int64_t>(0, most);
  // The scarcest first: most nodes have too little of it, and a division is slow.
  for (size_t r = each.size(); r-- > 0;) {
    if (each[r] <= 0) continue;
    if (free[r] < each[r]) return 0;
    if (count > 1) count = std::min(count, free[r] / each[r]);
  }
  return count;
}

bool EachFits(const std::vector<Demand>& demands, const Rooms& free) {
  return std::all_of(demands.begin(), demands.end(), [&](const Demand& demand) {
    int64_t left = demand.count;
    for (size_t node = 0; node < free.nodes() && left > 0; ++node)
      if (MayUse(demand, node)) left -= CountThatFit(free.At(node), demand.each, left);
    return left <= 0;
  });
}

std::optional<ShadowSchedule> FindShadow(const Rooms& free, ReleasesOf releases,
                                         const std::vector<Demand>& demands, absl::Time now) {
  ShadowSchedule schedule;
  schedule.when = now;
  // For equal members, only nodes that have room for one by then matter.
  const bool alike = demands.size() == 1;
  std::vector<absl::Time> first(alike ? free.nodes() : 0, absl::InfiniteFuture());
  for (const Demand& demand : demands) {
    const auto when = EarliestOf(demand, free, releases, now, alike ? &first : nullptr);
    if (!when) return std::nullopt;
    schedule.when = std::max(schedule.when, *when);
  }
  Rooms rooms = free;
  std::vector<Progress> progress(free.nodes());
  std::vector<absl::Time> last(free.nodes(), absl::InfinitePast());  // last release, by node
  for (size_t node = 0; node < free.nodes(); ++node) {
    if (alike && first[node] > schedule.when) continue;
    GoOn(node, schedule.when, releases, &progress[node],
         [&](const int64_t* amounts) { Grow(rooms.At(node), amounts, rooms.resources()); });
    last[node] = progress[node].last;
  }
  if (!alike) {
    Runs runs(std::move(progress), rooms.resources(), releases);
    const auto when = GoOnUntilAllFit(demands, schedule.when, &runs, &rooms, &last);
    if (!when) return std::nullopt;
    schedule.when = *when;
  }

  std::vector<size_t> order = InOrder(free.nodes());
  std::erase_if(order, [&](size_t node) {
    return std::none_of(demands.begin(), demands.end(), [&](const Demand& demand) {
      return MayUse(demand, node) && CountThatFit(rooms.At(node), demand.each, 1) > 0;
    });
  });
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return last[a] > last[b]; });
  Rooms kept(free.nodes(), free.resources());
  // For different members, another order may place fewer.
  if (!PlaceBest(demands, rooms, order, &kept))
    PlaceBest(demands, rooms, InOrder(free.nodes()), &kept);
  for (size_t node = 0; node < free.nodes(); ++node) {
    const int64_t* const amounts = kept.At(node);
    if (std::all_of(amounts, amounts + free.resources(), [](int64_t a) { return a == 0; }))
      continue;
    schedule.nodes.push_back({node, Amounts(amounts, amounts + free.resources())});
  }
  return schedule;
}

}  // namespace outboard::backfill
