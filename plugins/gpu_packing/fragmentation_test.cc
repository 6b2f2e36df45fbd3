#include "plugins/gpu_packing/fragmentation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "plugins/gpu_packing/gpu_layout.h"

namespace outboard::gpu_packing {
namespace {

Shape MakeShape(int64_t cpu, int32_t gpus, int32_t milli, double weight) {
  Shape shape;
  shape.demand.cpu_millis = cpu;
  shape.demand.gpus = gpus;
  shape.demand.milli = milli;
  shape.weight = weight;
  return shape;
}

NodeRoom Room(int64_t cpu, const std::vector<int32_t>& idle, uint32_t model = 0) {
  NodeRoom room;
  room.cpu_millis = cpu;
  room.memory_bytes = 1000;
  room.model = model;
  room.idle = idle;
  return room;
}

TEST(FragmentationTest, CountsWhatEachShapeCannotUse) {
  const std::vector<int32_t> idle = {1000, 400, 0, 700};
  const std::vector<Shape> half = {MakeShape(100, 1, 500, 1)};
  EXPECT_EQ(Fragmentation(Room(100, idle), half), 400);
  EXPECT_EQ(Fragmentation(Room(99, idle), half), 2100) << "no CPU: everything idle is lost";
  EXPECT_EQ(Fragmentation(Room(100, idle), {MakeShape(0, 1, 1000, 1)}), 1100);
  EXPECT_EQ(Fragmentation(Room(100, idle), {MakeShape(0, 2, 1000, 1)}), 2100) << "one whole GPU";
  EXPECT_EQ(Fragmentation(Room(100, idle), {MakeShape(0, 0, 1000, 1)}), 2100) << "uses no GPU";
  EXPECT_EQ(
      Fragmentation(Room(100, idle), {MakeShape(0, 1, 500, 0.75), MakeShape(0, 2, 1000, 0.25)}),
      0.75 * 400 + 0.25 * 2100);
  EXPECT_EQ(Fragmentation(Room(100, idle), {}), 0);
  EXPECT_EQ(Fragmentation(Room(100, {}), half), 0);
}

TEST(FragmentationTest, MemoryAndModelsAreHard) {
  const std::vector<int32_t> idle = {1000};
  Shape shape = MakeShape(0, 1, 1000, 1);
  shape.demand.memory_bytes = 1000;
  EXPECT_EQ(Fragmentation(Room(0, idle), {shape}), 0);
  shape.demand.memory_bytes = 1001;
  EXPECT_EQ(Fragmentation(Room(0, idle), {shape}), 1000);
  shape.demand.memory_bytes = 0;
  shape.models = {2, 5};
  EXPECT_EQ(Fragmentation(Room(0, idle, 5), {shape}), 0);
  EXPECT_EQ(Fragmentation(Room(0, idle, 3), {shape}), 1000);
  EXPECT_EQ(Fragmentation(Room(0, idle, 0), {shape}), 1000) << "unknown model";
}

TEST(FragmentationTest, GainOfAPlacement) {
  const std::vector<Shape> whole = {MakeShape(0, 1, 1000, 1)};
  Scratch scratch;
  Demand demand;
  demand.gpus = 1;
  demand.milli = 400;
  const std::vector<int32_t> broken = {1000, 400};
  // The rest of a used GPU costs nothing; a part of a whole one breaks it.
  EXPECT_EQ(FragmentationGain(Room(0, broken), whole, 400, demand, &scratch), 400);
  const std::vector<int32_t> intact = {1000, 1000};
  EXPECT_EQ(FragmentationGain(Room(0, intact), whole, 0, demand, &scratch), -600);
  demand.gpus = 3;
  EXPECT_EQ(FragmentationGain(Room(0, intact), whole, 0, demand, &scratch), 0) << "no room";
  EXPECT_EQ(GainScore(400), 59);
  EXPECT_EQ(GainScore(0), 50);
  EXPECT_EQ(GainScore(-600), 35);
  EXPECT_EQ(GainScore(1e300), 100);
  EXPECT_EQ(GainScore(-1e300), 0);
}

TEST(ChooseDevicesTest, TakesTheLeastThatIsEnough) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> idle(random() % 9);
    for (int32_t& value : idle) value = static_cast<int32_t>(random() % 11) * 100;
    Demand demand;
    demand.gpus = static_cast<int32_t>(1 + random() % 4);
    demand.milli = static_cast<int32_t>(1 + random() % 10) * 100;
    std::vector<int32_t> able;
    for (const int32_t value : idle) {
      if (value >= demand.milli) able.push_back(value);
    }
    std::sort(able.begin(), able.end());
    std::vector<int32_t> chosen;
    ASSERT_EQ(ChooseDevices(idle, demand, &chosen),
              able.size() >= static_cast<size_t>(demand.gpus));
    if (able.size() < static_cast<size_t>(demand.gpus)) {
      ASSERT_TRUE(chosen.empty());
      continue;
    }
    std::vector<int32_t> values;
    for (const int32_t device : chosen) values.push_back(idle[static_cast<size_t>(device)]);
    able.resize(static_cast<size_t>(demand.gpus));
    ASSERT_EQ(values, able);
    std::sort(chosen.begin(), chosen.end());
    ASSERT_TRUE(std::adjacent_find(chosen.begin(), chosen.end()) == chosen.end());
  }
}

Tenant MakeTenant(int64_t created, int32_t gpus, int32_t milli,
                  std::vector<std::string> devices = {}) {
  Tenant tenant;
  tenant.created = created;
  tenant.gpus = gpus;
  tenant.milli = milli;
  tenant.devices = std::move(devices);
  return tenant;
}

std::vector<int32_t> IdleOf(std::vector<Tenant> tenants, int32_t gpus) {
  std::vector<int32_t> idle;
  LayOut(&tenants, gpus, &idle);
  return idle;
}

TEST(LayOutTest, PacksInTheOrderOfCreation) {
  using Idle = std::vector<int32_t>;
  EXPECT_EQ(IdleOf({}, 2), (Idle{1000, 1000}));
  EXPECT_EQ(IdleOf({MakeTenant(1, 1, 600), MakeTenant(2, 1, 400)}, 2), (Idle{0, 1000}));
  EXPECT_EQ(IdleOf({MakeTenant(2, 1, 400), MakeTenant(1, 1, 700)}, 2), (Idle{300, 600}));
  EXPECT_EQ(IdleOf({MakeTenant(1, 2, 1000), MakeTenant(2, 1, 10)}, 3), (Idle{0, 0, 990}));
  EXPECT_EQ(IdleOf({MakeTenant(1, 2, 300)}, 3), (Idle{700, 700, 1000})) << "two shares, two GPUs";
}

TEST(LayOutTest, KnownDevicesComeFirst) {
  using Idle = std::vector<int32_t>;
  EXPECT_EQ(
      IdleOf({MakeTenant(1, 1, 500, {"a"}), MakeTenant(2, 1, 500, {"b"}), MakeTenant(0, 1, 400)},
             2),
      (Idle{100, 500}));
  EXPECT_EQ(IdleOf({MakeTenant(1, 1, 500, {"a"}), MakeTenant(2, 1, 500, {"a"})}, 2),
            (Idle{0, 1000}));
  EXPECT_EQ(IdleOf({MakeTenant(1, 2, 1000, {"a"})}, 2), (Idle{0, 0})) << "one of its two is known";
}

TEST(LayOutTest, TooMuchNeverFallsBelowZero) {
  using Idle = std::vector<int32_t>;
  EXPECT_EQ(IdleOf({MakeTenant(1, 5, 1000)}, 2), (Idle{0, 0}));
  EXPECT_EQ(IdleOf({MakeTenant(1, 1, 600), MakeTenant(2, 1, 600), MakeTenant(3, 1, 600)}, 2),
            (Idle{0, 400}));
  EXPECT_EQ(IdleOf({MakeTenant(1, 1, 900, {"a"}), MakeTenant(2, 1, 900, {"a"})}, 1), (Idle{0}));
  EXPECT_EQ(IdleOf({MakeTenant(1, 1, 100, {"a"}), MakeTenant(1, 1, 100, {"b"})}, 1), (Idle{800}))
      << "more names than GPUs";
  EXPECT_EQ(IdleOf({MakeTenant(1, 1, 100)}, 0), Idle{});
  EXPECT_EQ(IdleOf({}, 1 << 30).size(), static_cast<size_t>(kMaxGpus));
}

TEST(LayOutTest, AHeldGpuIsNotWhole) {
  using Idle = std::vector<int32_t>;
  Tenant holder = MakeTenant(1, 1, 1000, {"a"});
  holder.holds_only = true;
  EXPECT_EQ(IdleOf({holder}, 2), (Idle{999, 1000}));
  EXPECT_EQ(IdleOf({holder, MakeTenant(2, 1, 500, {"a"})}, 2), (Idle{500, 1000}));
}

// Any layout: nothing below 0 or above 1000, and the sums match.
TEST(LayOutTest, KeepsSums) {
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    const auto gpus = static_cast<int32_t>(1 + random() % 8);
    std::vector<Tenant> tenants;
    int64_t sum = 0;
    for (size_t n = random() % 12; n > 0; --n) {
      tenants.push_back(MakeTenant(static_cast<int64_t>(random() % 5), 1,
                                   static_cast<int32_t>(1 + random() % 1000)));
      sum += tenants.back().milli;
    }
    const std::vector<int32_t> idle = IdleOf(tenants, gpus);
    for (const int32_t value : idle) ASSERT_TRUE(value >= 0 && value <= kWholeGpu);
    ASSERT_GE(std::accumulate(idle.begin(), idle.end(), int64_t{0}), gpus * kWholeGpu - sum);
    if (tenants.size() <= idle.size()) {
      ASSERT_EQ(std::accumulate(idle.begin(), idle.end(), int64_t{0}), gpus * kWholeGpu - sum);
    }
  }
}

}  // namespace
}  // namespace outboard::gpu_packing
