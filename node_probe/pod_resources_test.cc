#include "node_probe/pod_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "node_probe/pod_resources.pb.h"
#include "node_probe/testing/fake_kubelet.h"

namespace outboard::node_probe {
namespace {

using ::testing::HasSubstr;

GpuInventory FourGpus() {
  return *ParseGpuInventory(
      "GPU 0: A (UUID: GPU-a)\n  MIG 1g.5gb Device 0: (UUID: MIG-a0)\n"
      "  MIG 1g.5gb Device 1: (UUID: MIG-a1)\n"
      "GPU 1: A (UUID: GPU-b)\nGPU 2: A (UUID: GPU-c)\nGPU 3: A (UUID: GPU-d)\n");
}

TEST(GpusOfPodsTest, DevicesOfAllContainersAndResources) {
  v1::ListPodResourcesResponse pods;
  testing::AddPod(&pods, "ns", "train-0", {"GPU-b", "GPU-d"});
  testing::AddPod(&pods, "ns", "train-0", {"GPU-c"}, "nvidia.com/gpu.shared");
  testing::AddPod(&pods, "ns", "shares", {"GPU-b::0", "GPU-b::5"});
  testing::AddPod(&pods, "other", "parts", {"MIG-a0", "MIG-a1"}, "nvidia.com/mig-1g.5gb");
  testing::AddPod(&pods, "other", "network", {"mlx5_0"}, "nvidia.com/rdma");
  testing::AddPod(&pods, "other", "none", {});
  const PodDevices devices = GpusOfPods(pods, FourGpus());
  EXPECT_EQ(devices.gpus,
            (sdk::PodGpus{{"ns/train-0", 0b1110}, {"ns/shares", 0b10}, {"other/parts", 0b1}}));
  EXPECT_EQ(devices.unknown_devices, 0u);
  EXPECT_EQ(devices.unnamed_pods, 0u);
}

TEST(GpusOfPodsTest, WhatCannotBeReportedIsCounted) {
  v1::ListPodResourcesResponse pods;
  testing::AddPod(&pods, "ns", "p", {"GPU-gone", "MIG-gone", "GPU-b"});
  testing::AddPod(&pods, "", "p", {"GPU-b"});
  testing::AddPod(&pods, "ns", "a=b;c", {"GPU-b"});
  testing::AddPod(&pods, "n/s", "p", {"GPU-b"});
  const PodDevices devices = GpusOfPods(pods, FourGpus());
  EXPECT_EQ(devices.gpus, (sdk::PodGpus{{"ns/p", 0b10}}));
  EXPECT_EQ(devices.unknown_devices, 2u);
  EXPECT_EQ(devices.unnamed_pods, 3u);
}

TEST(PodResourcesClientTest, AsksTheKubelet) {
  testing::FakeKubelet kubelet;
  testing::AddPod(kubelet.pods(), "ns", "p", {"GPU-c"});
  PodResourcesClient client(kubelet.socket(), absl::Minutes(1));
  const auto devices = client.List(FourGpus(), kube::CancelToken());
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->gpus, (sdk::PodGpus{{"ns/p", 0b100}}));
}

TEST(PodResourcesClientTest, AKubeletThatReturnsIsFoundAgain) {
  const std::string socket = testing::FakeKubelet::NewSocket();
  PodResourcesClient client(socket, absl::Minutes(1));
  const auto away = client.List(FourGpus(), kube::CancelToken());
  EXPECT_EQ(away.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(away.status().message(), HasSubstr(absl::StrCat("kubelet at ", socket)));
  testing::FakeKubelet kubelet(socket);
  EXPECT_TRUE(client.List(FourGpus(), kube::CancelToken()).ok());
}

TEST(PodResourcesClientTest, AnAnswerIsBounded) {
  testing::FakeKubelet kubelet;
  testing::AddPod(kubelet.pods(), "ns", "p", {std::string(kMaxPodResourcesBytes, 'x')});
  PodResourcesClient client(kubelet.socket(), absl::Minutes(1));
  EXPECT_EQ(client.List(FourGpus(), kube::CancelToken()).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(PodResourcesClientTest, AKubeletThatHangs) {
  testing::FakeKubelet kubelet;
  kubelet.Hang();
  PodResourcesClient hasty(kubelet.socket(), absl::Milliseconds(100));
  EXPECT_EQ(hasty.List(FourGpus(), kube::CancelToken()).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  const kube::CancelToken cancel;
  std::thread canceller([&] { cancel.Cancel(); });
  PodResourcesClient patient(kubelet.socket(), absl::Minutes(1));
  EXPECT_EQ(patient.List(FourGpus(), cancel).status().code(), absl::StatusCode::kCancelled);
  canceller.join();
}

}  // namespace
}  // namespace outboard::node_probe
