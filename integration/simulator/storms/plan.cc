#include "integration/simulator/storms/plan.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::simulate::storms {
namespace {

constexpr int64_t kCpuOfGpu = 4000;  // millis

class Maker {
 public:
  Maker(uint64_t seed, int gangs) : random_(seed * 1000003 + gangs) {
    storm_.seed = seed;
    storm_.kind = Chance(0.5) ? StormKind::kRoomForAll : StormKind::kComeAndGo;
  }

  Storm Make(int gangs) {
    storm_.kind == StormKind::kRoomForAll ? RoomForAll(gangs) : ComeAndGo(gangs);
    Disturb();
    return std::move(storm_);
  }

 private:
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  int Between(int low, int high) { return low + Below(high - low + 1); }
  bool Chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  // In whole microseconds, because hosts use nanoseconds.
  absl::Duration Within(absl::Duration longest) {
    return absl::Floor(longest * std::uniform_real_distribution<double>(0, 1)(random_),
                       absl::Microseconds(1));
  }
  // Mostly small ones, as in the published traces.
  int Size(int most) {
    const int kSizes[] = {1, 2, 2, 3, 4, 4, 4, 5, 7, 8, 8, 12, 16, 16, 24, 32, 48, 64};
    return std::min(most, kSizes[Below(std::size(kSizes))]);
  }

  Gang& AddGang() {
    Gang& gang = storm_.gangs.emplace_back();
    gang.name = absl::StrCat("g", storm_.gangs.size());
    gang.dialect = static_cast<Dialect>(Below(kDialects));
    gang.priority = Chance(0.3) ? 100 * Between(1, 3) : 0;
    gang.arrives = Within(arrivals_);
    gang.spread = Chance(0.3) ? Within(absl::Seconds(5)) : absl::ZeroDuration();
    gang.object_late = Chance(0.2) ? Within(absl::Seconds(5)) : absl::ZeroDuration();
    return gang;
  }
  // Sometimes a part of its members is enough.
  void SetMin(Gang* gang) {
    const int size = static_cast<int>(gang->members.size());
    gang->min = Chance(0.25) ? Between(std::max(1, size / 2), size) : size;
  }

  void RoomForAll(int gangs) {
    Amounts shape = {kCpuOfGpu * Between(1, 2), Below(3)};
    const int nodes = Between(4, 24);
    int places = 0;
    for (int i = 0; i < nodes; ++i) {
      const int fitting = Between(1, 16);
      places += fitting;
      // A small rest that no pod can use.
      storm_.nodes.push_back({shape.cpu_millis * fitting + Below(static_cast<int>(kCpuOfGpu)),
                              shape.gpus * fitting + (shape.gpus > 1 ? Below(2) : 0)});
    }
    int wanted = Chance(0.4) ? places : places * Between(60, 99) / 100;
    arrivals_ = absl::Seconds(Between(1, 120));
    for (int i = 0; i < gangs && wanted > 0; ++i) {
      Gang& gang = AddGang();
      gang.members.assign(Size(wanted), shape);
      wanted -= static_cast<int>(gang.members.size());
      SetMin(&gang);
    }
  }

  void ComeAndGo(int gangs) {
    const int nodes = Between(3, 16);
    for (int i = 0; i < nodes; ++i) {
      const int64_t gpus = Chance(0.8) ? 8 : 4;
      storm_.nodes.push_back({kCpuOfGpu * 2 * gpus, gpus});
    }
    const double mixed = Chance(0.5) ? 0 : 0.3;
    arrivals_ = absl::Seconds(Between(10, 600));
    for (int i = 0; i < gangs; ++i) {
      Gang& gang = AddGang();
      Plant(Chance(mixed), &gang);
      SetMin(&gang);
      gang.run = absl::Seconds(Between(1, 90));
    }
  }
  Amounts Shape() {
    if (Chance(0.15)) return {kCpuOfGpu << Below(3), 0};
    const int64_t gpus = int64_t{1} << Below(4);
    return {kCpuOfGpu * gpus, gpus};
  }
  // Adds members that fit on the empty cluster.
  void Plant(bool mixed, Gang* gang) {
    std::vector<Amounts> free = storm_.nodes;
    const int size = Size(64);
    Amounts shape = Shape();
    while (gang->members.empty()) {
      for (int i = 0; i < size; ++i) {
        if (mixed && i % 3 == 0) shape = Shape();
        const size_t first = static_cast<size_t>(Below(static_cast<int>(free.size())));
        for (size_t k = 0; k < free.size(); ++k) {
          Amounts& node = free[(first + k) % free.size()];
          if (!node.Covers(shape)) continue;
          node.Take(shape, 1);
          gang->members.push_back(shape);
          break;
        }
      }
      if (gang->members.empty()) shape = Shape();
    }
    // The rest may not fit when the small ones have come first.
    if (mixed) gang->members.resize((gang->members.size() + 1) / 2);
  }

  void Disturb() {
    const absl::Duration until = arrivals_ + absl::Seconds(Between(10, 240));
    const int many = Between(0, 30);
    for (int i = 0; i < many; ++i) {
      const int kind = Below(100);
      using D = Disturbance;
      const D::Kind what = kind < 40   ? D::kDeleteMember
                           : kind < 55 ? D::kDeleteGang
                           : kind < 75 ? D::kFailNode
                           : kind < 85 ? D::kNewHost
                           : kind < 95 ? D::kKillHost
                                       : D::kSwapBack;
      storm_.disturbances.push_back({what, Within(until), static_cast<uint32_t>(random_())});
    }
    std::stable_sort(storm_.disturbances.begin(), storm_.disturbances.end(),
                     [](const auto& a, const auto& b) { return a.when < b.when; });
    storm_.calm = until;
  }

  std::mt19937_64 random_;
  absl::Duration arrivals_;
  Storm storm_;
};

}  // namespace

absl::string_view DialectName(Dialect dialect) {
  switch (dialect) {
    case Dialect::kJob:
      return "job";
    case Dialect::kKoordinator:
      return "koordinator";
    case Dialect::kLegacy:
      return "legacy";
    case Dialect::kSchedulerPlugins:
      return "scheduler-plugins";
    case Dialect::kVolcano:
      return "volcano";
    case Dialect::kKai:
      return "kai";
    case Dialect::kKubernetes:
      return "kubernetes";
  }
  return "";
}

std::string Storm::Summary() const {
  size_t pods = 0;
  for (const Gang& gang : gangs) pods += gang.members.size();
  return absl::StrCat("storm ", seed,
                      kind == StormKind::kRoomForAll ? " (room for all)" : " (come and go)", ": ",
                      nodes.size(), " nodes, ", gangs.size(), " gangs, ", pods, " pods, ",
                      disturbances.size(), " disturbances");
}

Storm MakeStorm(uint64_t seed, int gangs) { return Maker(seed, gangs).Make(gangs); }

}  // namespace outboard::simulate::storms
