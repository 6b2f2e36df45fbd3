#include "plugins/backfill/endings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::backfill::endings_test {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1767614400);
constexpr uint32_t kGpus = 3, kOthers = 5;

struct Known {
  std::unique_ptr<sdk::PodRecord> record;
  RunTime run_time;
};

class Pods {
 public:
  explicit Pods(uint32_t seed) : random_(seed) {}
  int Upto(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }

  // Adds, changes or removes a pod; on one of three nodes, or without a node.
  void Change() {
    const std::string uid = absl::StrCat("pod-", Upto(19));
    if (Upto(3) == 0) {
      endings.Drop(uid);
      known.erase(uid);
      return;
    }
    auto record = std::make_unique<sdk::PodRecord>();
    record->pod.set_uid(uid);
    record->pod.set_priority(Upto(3));
    if (Upto(5) == 0) record->pod.mutable_controller()->set_kind("DaemonSet");
    record->usage.requests.cpu_millis = Upto(3) * 1000;
    if (Upto(1) == 0) record->extended.emplace_back(kGpus, Upto(4));
    if (Upto(2) == 0) record->extended.emplace_back(kOthers, Upto(2));
    record->place = sdk::Place::kBound;
    record->slot = Upto(9) == 0 ? sdk::kNoSlot : static_cast<sdk::Slot>(Upto(2));
    RunTime run_time;
    const auto minutes = [&] { return absl::Minutes(Upto(6) - 2); };
    if (Upto(1) == 0) run_time.run = absl::Minutes(Upto(5));
    if (Upto(1) == 0) run_time.end = kNow + minutes();
    if (Upto(9) == 0) run_time.end = kNow - absl::Minutes(9);  // A wrong estimate.
    if (Upto(4) == 0) run_time.limit = kNow + minutes();
    if (Upto(6) == 0) run_time.gone = kNow + minutes();
    run_time.preemptible = Upto(2) == 0;
    endings.Set(*record, run_time);
    known[uid] = {std::move(record), run_time};
  }

  Endings endings;
  std::map<std::string, Known> known;

 private:
  std::mt19937 random_;
};

using Seen = std::vector<std::pair<absl::Time, Amounts>>;

TEST(EndingsTest, NodesReportEndingsInOrderOfTime) {
  const std::vector<Resource> resources = {{"pods", Resource::Kind::kPods},
                                           {"cpu", Resource::Kind::kCpu},
                                           {"gpu", Resource::Kind::kExtended, kGpus}};
  size_t told = 0, taken_back = 0;
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    Pods pods(seed);
    for (int i = pods.Upto(60); i >= 0; --i) pods.Change();
    Ends ends = {kNow, absl::Minutes(5), std::nullopt};
    if (pods.Upto(1) == 0) ends.take_back_below = pods.Upto(4);
    bool takes_back = false;
    for (sdk::Slot slot = 0; slot < 4; ++slot) {
      Seen expected;
      for (const auto& [uid, pod] : pods.known) {
        const sdk::PodRecord& record = *pod.record;
        if (record.slot != slot) continue;
        takes_back |= ends.TakesBack(pod.run_time, record.pod.priority());
        const auto end = ends.Of(pod.run_time, record.pod.priority());
        if (!end) continue;
        Amounts amounts;
        for (const Resource& resource : resources) amounts.push_back(resource.AskedBy(record));
        expected.emplace_back(*end, std::move(amounts));
      }
      Seen seen;
      pods.endings.Visit(slot, ends, resources, [&](absl::Time when, const int64_t* amounts) {
        seen.emplace_back(when, Amounts(amounts, amounts + resources.size()));
        return true;
      });
      ASSERT_TRUE(std::is_sorted(seen.begin(), seen.end(),
                                 [](const auto& a, const auto& b) { return a.first < b.first; }))
          << "seed " << seed;
      ASSERT_THAT(seen, testing::UnorderedElementsAreArray(expected)) << "seed " << seed;
      told += seen.size();
      size_t asked = 0;
      pods.endings.Visit(slot, ends, resources,
                         [&](absl::Time, const int64_t*) { return ++asked < 2; });
      ASSERT_EQ(asked, std::min<size_t>(2, seen.size())) << "seed " << seed;
    }
    ASSERT_EQ(pods.endings.TakesBackAny(ends), takes_back) << "seed " << seed;
    taken_back += takes_back;
  }
  EXPECT_GT(told, 2500u);
  EXPECT_GT(taken_back, 75u);
}

TEST(EndingsTest, NodesReportUntilWhenAResourceIsInUse) {
  size_t for_ever = 0, for_a_time = 0;
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    Pods pods(seed);
    for (int i = pods.Upto(60); i >= 0; --i) pods.Change();
    const Ends ends = {kNow, absl::Minutes(5), std::nullopt};
    sdk::PodRecord by;
    if (pods.Upto(1) == 0) by.extended.emplace_back(kGpus, pods.Upto(1));
    const bool asks = !by.extended.empty() && by.extended[0].second > 0;
    for (sdk::Slot slot = 0; slot < 4; ++slot) {
      absl::Time expected = kNow;
      for (const auto& [uid, pod] : pods.known) {
        const sdk::PodRecord& record = *pod.record;
        if (record.slot != slot) continue;
        const auto gpus = std::find_if(record.extended.begin(), record.extended.end(),
                                       [](const auto& its) { return its.first == kGpus; });
        const bool has = gpus != record.extended.end() && gpus->second > 0;
        if (asks ? !has : record.pod.controller().kind() == "DaemonSet") continue;
        const auto end = pod.run_time.EndAt(kNow, ends.overrun);
        expected = std::max(expected, end.value_or(absl::InfiniteFuture()));
      }
      ASSERT_EQ(pods.endings.InUseUntil(slot, by, ends), expected) << "seed " << seed;
      for_ever += expected == absl::InfiniteFuture();
      for_a_time += expected > kNow && expected != absl::InfiniteFuture();
    }
  }
  EXPECT_GT(for_ever, 125u);
  EXPECT_GT(for_a_time, 125u);
}

}  // namespace
}  // namespace outboard::backfill::endings_test
