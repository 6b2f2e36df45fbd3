#include "plugins/gpu_model_match/numa_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace outboard::gpu_model_match::numa_fit_test {
namespace {

using ::testing::ElementsAre;
using Amounts = std::vector<std::pair<std::string, int64_t>>;
using Kind = NumaPart::Kind;

// A machine with `zones` zones of 8 CPUs and 4 GPUs. All is free.
struct Machine {
  NumaTopology topology;
  NumaAvailable available;

  Machine(NumaPolicy policy, NumaScope scope, int zones) {
    topology.policy = policy;
    topology.scope = scope;
    topology.resources = {"cpu", "gpu"};
    for (int id = 0; id < zones; ++id) {
      NumaZone& zone = topology.zones.emplace_back();
      zone.id = id;
      // A ring.
      for (int other = 0; other < zones; ++other)
        zone.distances[other] = id == other                                              ? 10
                                : (id + 1) % zones == other || (other + 1) % zones == id ? 12
                                                                                         : 20;
      topology.amounts.push_back({true, 8000, 8000});
      topology.amounts.push_back({true, 4, 4});
      available.insert(available.end(), {8000, 4});
    }
  }
  int64_t& Cpu(int zone) { return available[zone * 2]; }
  int64_t& Gpu(int zone) { return available[zone * 2 + 1]; }
  NumaMisfit Misfit(const NumaRequests& pod) const { return FindMisfit(pod, topology, available); }
};

NumaRequests Pod(std::vector<NumaPart> containers, Amounts pod = {}) {
  NumaRequests requests;
  requests.containers = std::move(containers);
  requests.pod.kind = Kind::kPod;
  requests.pod.amounts = pod.empty() ? requests.containers[0].amounts : std::move(pod);
  return requests;
}
NumaPart Container(Amounts amounts, Kind kind = Kind::kContainer) {
  return {kind, std::move(amounts)};
}

constexpr NumaScope kContainer = NumaScope::kContainer;
constexpr NumaScope kPod = NumaScope::kPod;
constexpr NumaPolicy kSingle = NumaPolicy::kSingleNumaNode;
constexpr NumaPolicy kRestricted = NumaPolicy::kRestricted;

TEST(NumaFitTest, OneZoneMustHaveEverything) {
  Machine machine(kSingle, kContainer, 2);
  machine.Gpu(0) = 1;
  machine.Cpu(1) = 2000;
  EXPECT_EQ(machine.Misfit(Pod({Container({{"cpu", 8000}})})), NumaMisfit::kNone);
  EXPECT_EQ(machine.Misfit(Pod({Container({{"gpu", 4}})})), NumaMisfit::kNone);
  EXPECT_EQ(machine.Misfit(Pod({Container({{"cpu", 4000}, {"gpu", 2}})})), NumaMisfit::kContainer);
  machine.topology.policy = NumaPolicy::kBestEffort;
  EXPECT_EQ(machine.Misfit(Pod({Container({{"cpu", 4000}, {"gpu", 2}})})), NumaMisfit::kNone);
  machine.topology.policy = NumaPolicy::kNone;
  EXPECT_EQ(machine.Misfit(Pod({Container({{"gpu", 40}})})), NumaMisfit::kNone);
}

TEST(NumaFitTest, ContainersTakeTheFirstZoneOneAfterTheOther) {
  const Machine machine(kSingle, kContainer, 2);
  const NumaPart three = Container({{"gpu", 3}});
  EXPECT_EQ(machine.Misfit(Pod({three, three})), NumaMisfit::kNone);
  EXPECT_EQ(machine.Misfit(Pod({three, three, three})), NumaMisfit::kContainer);
  // An init container gives back what it had, a sidecar does not.
  const NumaPart init = Container({{"gpu", 3}}, Kind::kInitContainer);
  const NumaPart sidecar = Container({{"gpu", 3}}, Kind::kSidecar);
  EXPECT_EQ(machine.Misfit(Pod({init, init, init, three, three})), NumaMisfit::kNone);
  EXPECT_EQ(machine.Misfit(Pod({sidecar, three, three})), NumaMisfit::kContainer);
  EXPECT_EQ(machine.Misfit(Pod({sidecar, sidecar, sidecar})), NumaMisfit::kSidecar);
  EXPECT_EQ(machine.Misfit(Pod({Container({{"gpu", 5}}, Kind::kInitContainer)})),
            NumaMisfit::kInitContainer);
}

TEST(NumaFitTest, ScopePodAlignsTheSum) {
  const Machine machine(kSingle, kPod, 2);
  const NumaPart three = Container({{"gpu", 3}});
  EXPECT_EQ(machine.Misfit(Pod({three, three}, {{"gpu", 6}})), NumaMisfit::kPod);
  EXPECT_EQ(machine.Misfit(Pod({three}, {{"gpu", 3}})), NumaMisfit::kNone);
}

TEST(NumaFitTest, ResourcesThatNoZoneListsAreNotAligned) {
  Machine machine(kSingle, kContainer, 2);
  EXPECT_EQ(machine.Misfit(Pod({Container({{"memory", 1 << 30}, {"nic", 9}})})), NumaMisfit::kNone);
  // Only zone 1 lists GPUs.
  machine.topology.amounts[1] = NumaAmounts();
  machine.Gpu(0) = 0;
  machine.Cpu(1) = 1000;
  EXPECT_EQ(machine.Misfit(Pod({Container({{"cpu", 2000}, {"gpu", 1}})})), NumaMisfit::kContainer);
}

TEST(NumaFitTest, RestrictedWantsAsFewZonesAsAnIdleMachine) {
  Machine machine(kRestricted, kContainer, 2);
  // 6 GPUs always need two zones, and so are admitted in two.
  EXPECT_EQ(machine.Misfit(Pod({Container({{"gpu", 6}})})), NumaMisfit::kNone);
  // 3 fit one zone of an idle machine, but not now.
  machine.Gpu(0) = machine.Gpu(1) = 2;
  EXPECT_EQ(machine.Misfit(Pod({Container({{"gpu", 3}})})), NumaMisfit::kContainer);
  EXPECT_EQ(machine.Misfit(Pod({Container({{"gpu", 2}})})), NumaMisfit::kNone);
  EXPECT_EQ(machine.Misfit(Pod({Container({{"gpu", 9}})})), NumaMisfit::kContainer);
}

TEST(NumaFitTest, RestrictedWantsTheSameZonesForAllResources) {
  const Machine machine(kRestricted, kContainer, 2);
  EXPECT_EQ(machine.Misfit(Pod({Container({{"cpu", 12000}, {"gpu", 6}})})), NumaMisfit::kNone);
  // The GPUs prefer two zones, the CPUs one.
  EXPECT_EQ(machine.Misfit(Pod({Container({{"cpu", 4000}, {"gpu", 6}})})), NumaMisfit::kContainer);
}

TEST(NumaFitTest, RestrictedCountsReservedCpusAndNotReservedMemory) {
  Machine machine(kRestricted, kContainer, 2);
  machine.topology.resources = {"cpu", "memory"};
  machine.topology.amounts = {
      {true, 8000, 6000}, {true, 100, 90}, {true, 8000, 8000}, {true, 100, 90}};
  machine.available = {6000, 90, 4000, 90};
  // An idle zone would have 7 CPUs, of which 2 are reserved: one zone is preferred, and none has
  // it.
  EXPECT_EQ(machine.Misfit(Pod({Container({{"cpu", 7000}})})), NumaMisfit::kContainer);
  // No zone could ever give 95 bytes of memory.
  EXPECT_EQ(machine.Misfit(Pod({Container({{"memory", 95}})})), NumaMisfit::kNone);
}

TEST(NumaFitTest, SpanIsTheFewestZonesAndTheClosest) {
  Machine machine(NumaPolicy::kBestEffort, kContainer, 4);
  const auto span = [&](NumaRequests pod) {
    return FindSpan(pod, machine.topology, machine.available);
  };
  NumaSpan one = span(Pod({Container({{"gpu", 4}})}));
  EXPECT_TRUE(one.fits && one.closest);
  EXPECT_EQ(one.zones, 1);
  EXPECT_EQ(ScoreOf(one, 8), 94);
  // Zones 0 and 2 are not neighbours.
  machine.Gpu(1) = machine.Gpu(3) = 0;
  const NumaSpan far = span(Pod({Container({{"gpu", 8}})}));
  EXPECT_TRUE(far.fits);
  EXPECT_FALSE(far.closest);
  EXPECT_EQ(far.zones, 2);
  EXPECT_EQ(ScoreOf(far, 8), 76);
  EXPECT_FALSE(span(Pod({Container({{"gpu", 9}})})).fits);
  EXPECT_EQ(ScoreOf(span(Pod({Container({{"gpu", 9}})})), 8), 0);
  // The container that needs the most counts.
  EXPECT_EQ(span(Pod({Container({{"cpu", 1000}}), Container({{"gpu", 5}})})).zones, 2);
  // Nothing to align.
  EXPECT_EQ(ScoreOf(span(Pod({Container({{"nic", 1}})})), 8), 100);
}

TEST(NumaFitTest, ScoresStayInRange) {
  NumaSpan span;
  span.fits = true;
  span.zones = 16;
  EXPECT_EQ(ScoreOf(span, 2), 0);
  EXPECT_EQ(ScoreOf(span, 1024), 100);
}

TEST(NumaFitTest, PodsTakeWhereTheKubeletPutsThem) {
  Machine machine(kSingle, kContainer, 2);
  const NumaRequests pod =
      Pod({Container({{"gpu", 3}}, Kind::kInitContainer), Container({{"cpu", 2000}, {"gpu", 3}})});
  TakeAsKubelet(pod, machine.topology, &machine.available);
  EXPECT_THAT(machine.available, ElementsAre(6000, 1, 8000, 4));
  TakeAsKubelet(pod, machine.topology, &machine.available);
  EXPECT_THAT(machine.available, ElementsAre(6000, 1, 6000, 1));
  // The kubelet will reject it, or something has changed: nothing is taken twice or below 0.
  TakeAsKubelet(pod, machine.topology, &machine.available);
  EXPECT_THAT(machine.available, ElementsAre(4000, 0, 6000, 0));
}

TEST(NumaFitTest, PodsCanTakeFromEveryZone) {
  Machine machine(kSingle, kContainer, 2);
  machine.Gpu(1) = 2;
  TakeFromEveryZone(Pod({Container({{"gpu", 3}})}), machine.topology, &machine.available);
  EXPECT_THAT(machine.available, ElementsAre(8000, 1, 8000, 0));
}

TEST(NumaFitTest, ManyZonesAreOnlySearchedOneByOne) {
  Machine machine(kRestricted, kContainer, 64);
  EXPECT_EQ(machine.Misfit(Pod({Container({{"gpu", 5}})})), NumaMisfit::kNone);
  EXPECT_FALSE(FindSpan(Pod({Container({{"gpu", 5}})}), machine.topology, machine.available).fits);
  machine.topology.policy = kSingle;
  EXPECT_EQ(machine.Misfit(Pod({Container({{"gpu", 5}})})), NumaMisfit::kContainer);
  EXPECT_EQ(machine.Misfit(Pod({Container({{"gpu", 4}})})), NumaMisfit::kNone);
}

}  // namespace
}  // namespace outboard::gpu_model_match::numa_fit_test
