#include "plugins/gpu_model_match/numa_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "plugin_host/sdk/testing/object_yaml.h"

namespace outboard::gpu_model_match::numa_requests_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Kind = NumaPart::Kind;

constexpr int64_t kGi = int64_t{1} << 30;

NumaRequests Of(const std::string& yaml) {
  const auto pod = sdk::testing::PodFromYaml(YAML::Load(yaml));
  EXPECT_TRUE(pod.ok()) << pod.status();
  return NumaRequestsOf(*pod);
}

TEST(NumaRequestsTest, GuaranteedContainersHaveWholeCpusAndMemoryOfTheirOwn) {
  const NumaRequests requests = Of(R"({name: p, containers: [{name: c,
    requests: {cpu: 4, memory: 1Gi, hugepages-2Mi: 64Mi, ephemeral-storage: 1Gi, nvidia.com/gpu: 1},
    limits: {cpu: 4, memory: 1Gi, hugepages-2Mi: 64Mi, ephemeral-storage: 1Gi, nvidia.com/gpu: 1}}]})");
  EXPECT_THAT(requests.pod.amounts,
              ElementsAre(Pair("cpu", 4000), Pair("hugepages-2Mi", int64_t{64} << 20),
                          Pair("memory", kGi), Pair("nvidia.com/gpu", 1)));
  ASSERT_EQ(requests.containers.size(), 1u);
  EXPECT_EQ(requests.containers[0].amounts, requests.pod.amounts);
}

TEST(NumaRequestsTest, PartsOfCpusAreShared) {
  const NumaRequests requests = Of(R"({name: p, containers: [
    {name: a, requests: {cpu: 1500m, memory: 1Gi}, limits: {cpu: 1500m, memory: 1Gi}},
    {name: b, requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 2, memory: 1Gi}}]})");
  EXPECT_THAT(requests.pod.amounts, ElementsAre(Pair("cpu", 2000), Pair("memory", 2 * kGi)));
}

TEST(NumaRequestsTest, OtherPodsHaveOnlyDevices) {
  // No limit of memory.
  EXPECT_THAT(Of(R"({name: p, containers: [{name: c, requests: {cpu: 4, nvidia.com/gpu: 2},
                limits: {cpu: 4, nvidia.com/gpu: 2}}]})")
                  .pod.amounts,
              ElementsAre(Pair("nvidia.com/gpu", 2)));
  // Requests below limits.
  EXPECT_TRUE(Of(R"({name: p, containers: [{name: c, requests: {cpu: 4, memory: 1Gi},
                limits: {cpu: 5, memory: 1Gi}}]})")
                  .empty());
  // One container of two limits nothing.
  EXPECT_TRUE(Of(R"({name: p, containers: [
                {name: a, requests: {cpu: 4, memory: 1Gi}, limits: {cpu: 4, memory: 1Gi}},
                {name: b}]})")
                  .empty());
  // BestEffort.
  EXPECT_TRUE(Of("{name: p, containers: [{name: c}]}").empty());
}

TEST(NumaRequestsTest, PodLevelResourcesAreNotAligned) {
  EXPECT_THAT(Of(R"({name: p, podRequests: {cpu: 4, memory: 1Gi}, podLimits: {cpu: 4, memory: 1Gi},
                containers: [{name: c, requests: {cpu: 4, memory: 1Gi, nvidia.com/gpu: 1},
                              limits: {cpu: 4, memory: 1Gi, nvidia.com/gpu: 1}}]})")
                  .pod.amounts,
              ElementsAre(Pair("nvidia.com/gpu", 1)));
}

TEST(NumaRequestsTest, OverheadIsNotAligned) {
  EXPECT_THAT(Of(R"({name: p, overhead: {cpu: 1, memory: 1Gi}, containers: [
                {name: c, requests: {cpu: 4, memory: 1Gi}, limits: {cpu: 4, memory: 1Gi}}]})")
                  .pod.amounts,
              ElementsAre(Pair("cpu", 4000), Pair("memory", kGi)));
}

TEST(NumaRequestsTest, InitContainersRunBesideEarlierSidecarsOnly) {
  const NumaRequests requests = Of(R"({name: p, initContainers: [
    {name: first, requests: {a.b/gpu: 4}, limits: {a.b/gpu: 4}},
    {name: proxy, restartPolicyAlways: true, requests: {a.b/gpu: 1}, limits: {a.b/gpu: 1}},
    {name: second, requests: {a.b/gpu: 4}, limits: {a.b/gpu: 4}}],
    containers: [{name: c, requests: {a.b/gpu: 2}, limits: {a.b/gpu: 2}},
                 {name: d, requests: {a.b/gpu: 1}, limits: {a.b/gpu: 1}}, {name: e}]})");
  EXPECT_THAT(requests.pod.amounts, ElementsAre(Pair("a.b/gpu", 5)));
  std::vector<Kind> kinds;
  for (const NumaPart& part : requests.containers) kinds.push_back(part.kind);
  EXPECT_THAT(kinds, ElementsAre(Kind::kInitContainer, Kind::kSidecar, Kind::kInitContainer,
                                 Kind::kContainer, Kind::kContainer));
}

TEST(NumaRequestsTest, AbsurdAmountsDoNotOverflow) {
  v1beta1::Pod pod;
  for (int i = 0; i < 100; ++i) {
    v1beta1::Container* container = pod.add_containers();
    for (auto* list : {container->mutable_requests(), container->mutable_limits()}) {
      list->set_cpu_millis(9223372036854775000);
      list->set_memory_bytes(9223372036854775807);
      (*list->mutable_scalar())["a.b/gpu"] = i == 0 ? -1 : 9223372036854775807;
    }
  }
  EXPECT_THAT(NumaRequestsOf(pod).pod.amounts,
              ElementsAre(Pair("a.b/gpu", 99 * kMaxNumaAmount), Pair("cpu", 100 * kMaxNumaAmount),
                          Pair("memory", 100 * kMaxNumaAmount)));
}

}  // namespace
}  // namespace outboard::gpu_model_match::numa_requests_test
