#include "plugin_host/sdk/resources.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk {
namespace {

using testing::MakeResources;
using testing::PodBuilder;

TEST(ResourcesTest, SumsContainersAndTakesTheHighestInitContainer) {
  PodBuilder pod("p");
  pod.Container("a", {{"cpu", "1"}, {"memory", "1Gi"}}).Container("b", {{"cpu", "500m"}});
  pod.InitContainer({{"cpu", "3"}, {"memory", "512Mi"}});
  const Resources requests = ComputePodRequests(pod);
  EXPECT_EQ(requests.cpu_millis, 3000);
  EXPECT_EQ(requests.memory_bytes, int64_t{1} << 30);
  EXPECT_FALSE(requests.has_ephemeral_storage);
}

TEST(ResourcesTest, SidecarsRunBesideLaterInitContainersOnly) {
  PodBuilder pod("p");
  pod.Container("a", {{"cpu", "1"}});
  pod.InitContainer({{"cpu", "2"}});
  pod.InitContainer({{"cpu", "200m"}}, /*sidecar=*/true);
  pod.InitContainer({{"cpu", "1900m"}});
  EXPECT_EQ(ComputePodRequests(pod).cpu_millis, 2100);
}

TEST(ResourcesTest, PodLevelRequestsReplaceOnlyWhatTheyName) {
  PodBuilder pod("p");
  pod.Container("a", {{"cpu", "4"}, {"memory", "1Gi"}, {"ephemeral-storage", "1Gi"}});
  *pod.proto().mutable_pod_requests() =
      MakeResources({{"cpu", "2"}, {"ephemeral-storage", "5Gi"}, {"hugepages-2Mi", "4Mi"}});
  *pod.proto().mutable_overhead() = MakeResources({{"cpu", "100m"}});
  const Resources requests = ComputePodRequests(pod);
  EXPECT_EQ(requests.cpu_millis, 2100);
  EXPECT_EQ(requests.memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(requests.ephemeral_storage_bytes, int64_t{1} << 30);  // Not a pod-level resource.
  EXPECT_EQ(requests.Get("hugepages-2Mi"), 4 << 20);
  PodRequestsOptions options;
  options.skip_pod_level = true;
  EXPECT_EQ(ComputePodRequests(pod, options).cpu_millis, 4100);
}

TEST(ResourcesTest, AnUnsupportedPodLevelRequestAloneIsNone) {
  PodBuilder pod("p");
  *pod.proto().mutable_pod_requests() = MakeResources({{"ephemeral-storage", "5Gi"}});
  EXPECT_FALSE(HasPodLevelRequests(pod));
}

TEST(ResourcesTest, AResizeCountsWithTheHighest) {
  PodBuilder pod("p");
  pod.Requests({{"cpu", "1"}});
  v1beta1::ContainerStatus* status = pod.proto().add_container_statuses();
  status->set_name("main");
  *status->mutable_actual_requests() = MakeResources({{"cpu", "2"}});
  *status->mutable_allocated_requests() = MakeResources({{"cpu", "1500m"}});
  EXPECT_EQ(ComputePodRequests(pod).cpu_millis, 1000);
  EXPECT_EQ(ComputePodUsage(pod).requests.cpu_millis, 2000);
  pod.Requests({{"cpu", "8"}});
  pod.proto().set_resize_infeasible(true);
  EXPECT_EQ(ComputePodUsage(pod).requests.cpu_millis, 2000);
  status->clear_actual_requests();  // Without it Kubernetes uses only the spec.
  EXPECT_EQ(ComputePodUsage(pod).requests.cpu_millis, 8000);
}

TEST(ResourcesTest, AResizeOfPodLevelRequestsCountsWithTheHighest) {
  PodBuilder pod("p");
  pod.Container("a", {{"cpu", "9"}});
  *pod.proto().mutable_pod_requests() =
      MakeResources({{"cpu", "1"}, {"memory", "1Gi"}, {"hugepages-2Mi", "4Mi"}});
  EXPECT_EQ(ComputePodUsage(pod).requests.cpu_millis, 1000);
  *pod.proto().mutable_pod_allocated_requests() = MakeResources({{"cpu", "4"}});
  EXPECT_EQ(ComputePodUsage(pod).requests.cpu_millis, 1000) << "no actual amounts";
  *pod.proto().mutable_pod_actual_requests() =
      MakeResources({{"cpu", "2"}, {"memory", "3Gi"}, {"ephemeral-storage", "1Gi"}});
  EXPECT_EQ(ComputePodUsage(pod).requests.cpu_millis, 4000);
  EXPECT_EQ(ComputePodUsage(pod).requests.memory_bytes, int64_t{3} << 30);
  EXPECT_EQ(ComputePodUsage(pod).requests.Get("hugepages-2Mi"), 4 << 20);
  EXPECT_FALSE(ComputePodUsage(pod).requests.has_ephemeral_storage) << "not named by the pod";
  EXPECT_EQ(ComputePodRequests(pod).cpu_millis, 1000) << "only the spec";
  // An infeasible resize does not count; a resource without any amount then counts 0.
  pod.proto().set_resize_infeasible(true);
  pod.proto().mutable_pod_requests()->set_cpu_millis(50000);
  EXPECT_EQ(ComputePodUsage(pod).requests.cpu_millis, 4000);
  EXPECT_EQ(ComputePodUsage(pod).requests.Get("hugepages-2Mi"), 0);
  // Without pod-level requests the pod's status is ignored.
  pod.proto().clear_pod_requests();
  EXPECT_EQ(ComputePodUsage(pod).requests.cpu_millis, 9000);
}

TEST(ResourcesTest, AssumesAMinimumWhereNothingIsNamed) {
  PodBuilder silent("p");
  EXPECT_EQ(ComputePodUsage(silent).nonzero_cpu_millis, 100);
  EXPECT_EQ(ComputePodUsage(silent).nonzero_memory_bytes, 200 << 20);
  EXPECT_EQ(ComputePodUsage(silent).requests.cpu_millis, 0);
  PodBuilder zero("p");
  zero.Requests({{"cpu", "0"}});
  EXPECT_EQ(ComputePodUsage(zero).nonzero_cpu_millis, 0);
  PodBuilder pod_level("p");
  pod_level.Container("a", {}).Container("b", {});
  *pod_level.proto().mutable_pod_requests() = MakeResources({{"cpu", "50m"}});
  EXPECT_EQ(ComputePodUsage(pod_level).nonzero_cpu_millis, 50);
  EXPECT_EQ(ComputePodUsage(pod_level).nonzero_memory_bytes, 400 << 20);
}

TEST(ResourcesTest, KnowsKubernetesNames) {
  EXPECT_TRUE(IsExtendedResourceName("nvidia.com/gpu"));
  EXPECT_FALSE(IsExtendedResourceName("requests.nvidia.com/gpu"));
  EXPECT_FALSE(IsExtendedResourceName("cpu"));
  EXPECT_FALSE(IsExtendedResourceName("kubernetes.io/batch"));
  EXPECT_FALSE(IsExtendedResourceName("Bad_.com/gpu"));
  EXPECT_TRUE(IsScalarResourceName("hugepages-2Mi"));
  EXPECT_TRUE(IsScalarResourceName("attachable-volumes-csi"));
  EXPECT_FALSE(IsScalarResourceName("storage"));
}

}  // namespace
}  // namespace outboard::sdk
