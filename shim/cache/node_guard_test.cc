#include "shim/cache/node_guard.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace outboard::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

v1beta1::Pod PodFrom(const std::string& text) {
  v1beta1::Pod pod;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &pod)) << text;
  return pod;
}
v1beta1::ResourceList Resources(const std::string& text) {
  v1beta1::ResourceList list;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &list)) << text;
  return list;
}

TEST(DemandTest, ContainersAddUpAndInitContainersCountAtTheirPeak) {
  const PodDemand demand = DemandOf(PodFrom(R"(
    containers { requests { cpu_millis: 100 memory_bytes: 10 scalar { key: "gpu" value: 1 } } }
    containers { requests { cpu_millis: 200 scalar { key: "gpu" value: 2 } scalar { key: "a" value: 0 } } }
    init_containers { requests { cpu_millis: 250 memory_bytes: 50 scalar { key: "x" value: 7 } } })"));
  EXPECT_EQ(demand.cpu_millis, 300);
  EXPECT_EQ(demand.memory_bytes, 50);
  EXPECT_THAT(demand.extended, ElementsAre(Pair("gpu", 3), Pair("x", 7)));
}

TEST(DemandTest, SidecarsRunOnAndStandBesideLaterInitContainers) {
  const PodDemand demand = DemandOf(PodFrom(R"(
    containers { requests { cpu_millis: 100 memory_bytes: 100 } }
    init_containers { requests { cpu_millis: 180 } }
    init_containers { requests { cpu_millis: 50 memory_bytes: 1 } restart_policy_always: true }
    init_containers { requests { cpu_millis: 120 memory_bytes: 5 } }
    init_containers { requests { cpu_millis: 7 memory_bytes: 1 } restart_policy_always: true })"));
  EXPECT_EQ(demand.cpu_millis, 180);  // start: 180; 50+120; running: 100+50+7
  EXPECT_EQ(demand.memory_bytes, 102);
}

TEST(DemandTest, PodLevelRequestsReplaceWhatTheyNameAndOverheadComesOnTop) {
  const PodDemand demand = DemandOf(PodFrom(R"(
    containers { requests { cpu_millis: 900 memory_bytes: 100 ephemeral_storage_bytes: 3
                            scalar { key: "hugepages-2Mi" value: 8 } scalar { key: "gpu" value: 1 } } }
    pod_requests { cpu_millis: 500 ephemeral_storage_bytes: 99
                   scalar { key: "hugepages-2Mi" value: 4 } scalar { key: "gpu" value: 9 } }
    overhead { cpu_millis: 10 memory_bytes: 1 })"));
  EXPECT_EQ(demand.cpu_millis, 510);
  EXPECT_EQ(demand.memory_bytes, 101);
  EXPECT_EQ(demand.ephemeral_storage_bytes, 3) << "not a pod-level resource";
  EXPECT_THAT(demand.extended, ElementsAre(Pair("gpu", 1), Pair("hugepages-2Mi", 4)));
}

TEST(DemandTest, AResizeCountsAtItsLargest) {
  const std::string pod = R"(
    containers { name: "c" requests { cpu_millis: 500 memory_bytes: 10 } }
    container_statuses { name: "c" allocated_requests { cpu_millis: 300 } actual_requests { memory_bytes: 40 } })";
  EXPECT_EQ(DemandOf(PodFrom(pod)).cpu_millis, 500);
  EXPECT_EQ(DemandOf(PodFrom(pod)).memory_bytes, 40);
  EXPECT_EQ(DemandOf(PodFrom(pod + " resize_infeasible: true")).cpu_millis, 300);
  EXPECT_EQ(DemandOf(PodFrom(R"(containers { name: "c" requests { cpu_millis: 5 } }
                                container_statuses { name: "c" allocated_requests { cpu_millis: 9 } })"))
                .cpu_millis,
            5)
      << "not in force yet";
}

TEST(DemandTest, AResizeOfPodLevelRequestsCountsAtItsLargest) {
  const std::string pod = R"(
    containers { name: "c" requests { cpu_millis: 900 } }
    pod_requests { cpu_millis: 500 memory_bytes: 10 scalar { key: "hugepages-2Mi" value: 7 } }
    pod_allocated_requests { cpu_millis: 300 } )";
  const std::string in_force = pod + R"(pod_actual_requests { memory_bytes: 40
                                        scalar { key: "hugepages-2Mi" value: 9 } } )";
  EXPECT_EQ(DemandOf(PodFrom(pod)).memory_bytes, 10) << "no request is in force";
  const PodDemand demand = DemandOf(PodFrom(in_force));
  EXPECT_EQ(demand.cpu_millis, 500);
  EXPECT_EQ(demand.memory_bytes, 40);
  EXPECT_THAT(demand.extended, ElementsAre(std::make_pair("hugepages-2Mi", 9)));
  EXPECT_EQ(DemandOf(PodFrom(in_force + "resize_infeasible: true")).cpu_millis, 300);
}

TEST(DemandTest, SumsStopAtTheLargestNumber) {
  const PodDemand demand = DemandOf(PodFrom(R"(
    containers { requests { cpu_millis: 9223372036854775807 } }
    containers { requests { cpu_millis: 9223372036854775807 } })"));
  EXPECT_EQ(demand.cpu_millis, std::numeric_limits<int64_t>::max());
  NodeUsage usage;
  usage.Add(demand);
  usage.Add(demand);
  EXPECT_FALSE(
      usage.CheckFits(demand, Resources("pods: 9 cpu_millis: 9223372036854775807"), false).ok());
  usage.Remove(demand);
  EXPECT_TRUE(
      usage.CheckFits(demand, Resources("pods: 9 cpu_millis: 9223372036854775807"), true).ok());
}

TEST(GuardTest, OnlyWhatThePodAsksForIsChecked) {
  const auto allocatable =
      Resources("cpu_millis: 1000 memory_bytes: 10 pods: 3 scalar { key: 'gpu' value: 2 }");
  NodeUsage usage;
  PodDemand foreign;
  foreign.cpu_millis = 1500;
  foreign.extended = {{"gpu", 5}};
  usage.Add(foreign);
  PodDemand none;
  EXPECT_TRUE(usage.CheckFits(none, allocatable, false).ok());
  PodDemand memory;
  memory.memory_bytes = 10;
  EXPECT_TRUE(usage.CheckFits(memory, allocatable, false).ok());
  memory.memory_bytes = 11;
  EXPECT_THAT(std::string(usage.CheckFits(memory, allocatable, false).message()),
              HasSubstr("Insufficient memory"));
  EXPECT_EQ(ShortageOf(usage.CheckFits(memory, allocatable, false)), "memory");
  PodDemand cpu;
  cpu.cpu_millis = 1;
  EXPECT_EQ(usage.CheckFits(cpu, allocatable, false).code(), absl::StatusCode::kResourceExhausted);
  PodDemand gpu;
  gpu.extended = {{"gpu", 1}};
  EXPECT_FALSE(usage.CheckFits(gpu, allocatable, false).ok());
  gpu.extended = {{"unheard-of", 1}};
  EXPECT_EQ(ShortageOf(usage.CheckFits(gpu, allocatable, false)), "extended_resource");
  PodDemand disk;
  disk.ephemeral_storage_bytes = 1;
  EXPECT_EQ(ShortageOf(usage.CheckFits(disk, allocatable, false)), "ephemeral_storage");
  EXPECT_EQ(ShortageOf(usage.CheckFits(cpu, allocatable, false)), "cpu");
  EXPECT_EQ(ShortageOf(usage.CheckFits(none, allocatable, false)), "");
  EXPECT_EQ(ShortageOf(absl::ResourceExhaustedError("of another kind")), "");
}

TEST(GuardTest, DevicesAreCountedElsewhereWhereTheNodeHasNoneOfTheResource) {
  const DeviceClassResources devices = {{"gpu", 1}};
  const PodDemand gpu =
      DemandOf(PodFrom("containers { requests { scalar { key: 'gpu' value: 2 } } }"));
  const NodeUsage usage;
  EXPECT_FALSE(usage.CheckFits(gpu, Resources("pods: 9"), false).ok());
  EXPECT_TRUE(usage.CheckFits(gpu, Resources("pods: 9"), false, {}, devices).ok());
  const auto one = Resources("pods: 9 scalar { key: 'gpu' value: 1 }");
  EXPECT_FALSE(usage.CheckFits(gpu, one, false, {}, devices).ok()) << "its device plugin counts it";
}

TEST(GuardTest, PodsAreCountedAndAnAlreadyCountedPodOnlyOnce) {
  const auto allocatable = Resources("cpu_millis: 100 pods: 2");
  NodeUsage usage;
  PodDemand half;
  half.cpu_millis = 50;
  usage.Add(half);
  EXPECT_TRUE(usage.CheckFits(half, allocatable, false).ok());
  usage.Add(half);
  EXPECT_THAT(std::string(usage.CheckFits(PodDemand(), allocatable, false).message()),
              HasSubstr("Too many pods"));
  EXPECT_EQ(ShortageOf(usage.CheckFits(PodDemand(), allocatable, false)), "pods");
  EXPECT_TRUE(usage.CheckFits(half, allocatable, true).ok());
  usage.Add(half);
  EXPECT_FALSE(usage.CheckFits(half, allocatable, true).ok());
}

TEST(GuardTest, HostPorts) {
  const auto allocatable = Resources("pods: 10");
  const PodDemand web =
      DemandOf(PodFrom("containers { ports { host_port: 80 container_port: 1 } }"));
  const PodDemand udp =
      DemandOf(PodFrom("containers { ports { host_port: 80 protocol: PROTOCOL_UDP } }"));
  const PodDemand one =
      DemandOf(PodFrom("containers { ports { host_port: 80 host_ip: '10.0.0.1' } }"));
  const PodDemand two =
      DemandOf(PodFrom("init_containers { restart_policy_always: true ports { host_port: 80 "
                       "host_ip: '10.0.0.2' protocol: PROTOCOL_TCP } }"));
  const PodDemand started = DemandOf(PodFrom("init_containers { ports { host_port: 80 } }"));
  EXPECT_TRUE(started.ports.empty()) << "it ends before the pod runs";
  NodeUsage usage;
  usage.Add(one);
  EXPECT_EQ(ShortageOf(usage.CheckFits(web, allocatable, false)), "host_port");
  EXPECT_FALSE(usage.CheckFits(one, allocatable, false).ok());
  EXPECT_TRUE(usage.CheckFits(one, allocatable, true).ok());
  EXPECT_TRUE(usage.CheckFits(two, allocatable, false).ok());
  EXPECT_TRUE(usage.CheckFits(udp, allocatable, false).ok());
  usage.Remove(one);
  usage.Add(web);
  EXPECT_FALSE(usage.CheckFits(two, allocatable, false).ok());
  usage.Remove(web);
  EXPECT_TRUE(usage.CheckFits(web, allocatable, false).ok());
}

}  // namespace
}  // namespace outboard::cache
