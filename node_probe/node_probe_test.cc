#include "node_probe/node_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "node_probe/testing/fake_kubelet.h"
#include "shim/clock.h"

namespace outboard::node_probe {
namespace {

using ::testing::HasSubstr;

// A machine of testdata/machines, a kubelet, and what the probe writes.
class NodeProbeTest : public ::testing::Test {
 protected:
  static void SetMachine(const std::string& name) {
    setenv("FAKE_NVIDIA_SMI", name.c_str(), /*overwrite=*/1);
  }
  NodeProbeOptions Options() {
    NodeProbeOptions options;
    options.nvidia_smi = "node_probe/testdata/nvidia-smi";
    options.command.timeout = absl::Minutes(1);
    return options;
  }
  WriteAnnotations Record() {
    return [this](const NodeAnnotations& annotations, const kube::CancelToken&) {
      absl::MutexLock lock(&mutex_);
      writes_.push_back(annotations);
      return write_status_;
    };
  }
  // The islands of a machine, or why there are none.
  std::string IslandsOf(const std::string& machine) {
    SetMachine(machine);
    NodeProbe probe(Options(), Record());
    const size_t before = writes_.size();
    const absl::Status status = probe.RunOnce(SteadyNow(), cancel_);
    if (!status.ok()) return std::string(status.message());
    return writes_.size() == before + 1 ? writes_.back().islands.value_or("none") : "not written";
  }

  const kube::CancelToken cancel_;
  absl::Mutex mutex_;
  std::vector<NodeAnnotations> writes_;
  absl::Status write_status_;
};

TEST_F(NodeProbeTest, IslandsOfMachines) {
  EXPECT_EQ(IslandsOf("dgx_a100"), "nvswitch 0-7");
  EXPECT_EQ(IslandsOf("hgx_h100"), "nvswitch 0-7");
  EXPECT_EQ(IslandsOf("pcie_bridges"), "nvlink 0,1;2,3");
  EXPECT_EQ(IslandsOf("mixed"), "nvlink 0,1;2;3");
  EXPECT_EQ(IslandsOf("no_nvlink"), "pcie 0;1;2;3");
  EXPECT_EQ(IslandsOf("mig"), "nvswitch 0;1-6;7") << "parts of a GPU cannot use NVLink";
}

TEST_F(NodeProbeTest, FaultsOfNvidiaSmi) {
  EXPECT_THAT(IslandsOf("no_driver"),
              HasSubstr("nvidia-smi -L: exit status 9: NVIDIA-SMI has failed because"));
  EXPECT_THAT(IslandsOf("no_matrix"),
              HasSubstr("topo -m: exit status 255: Failed to initialize NVML: Unknown Error"));
  EXPECT_THAT(IslandsOf("floods"), HasSubstr("more than 1048576 bytes of output"));
  SetMachine("hangs");
  NodeProbeOptions options = Options();
  options.command.timeout = absl::Milliseconds(100);
  EXPECT_THAT(NodeProbe(options, Record()).RunOnce(SteadyNow(), cancel_).message(),
              HasSubstr("ended after 100ms"));
  options.nvidia_smi = "/nowhere/nvidia-smi";
  EXPECT_THAT(NodeProbe(options, Record()).RunOnce(SteadyNow(), cancel_).message(),
              HasSubstr("cannot start"));
  EXPECT_TRUE(writes_.empty());
}

TEST_F(NodeProbeTest, WritesOnlyChanges) {
  SetMachine("mixed");
  testing::FakeKubelet kubelet;
  NodeProbeOptions options = Options();
  options.pod_resources = kubelet.socket();
  options.kubelet_timeout = absl::Minutes(1);
  NodeProbe probe(options, Record());
  absl::Time now = SteadyNow();
  ASSERT_EQ(probe.RunOnce(now, cancel_), absl::OkStatus());
  ASSERT_EQ(probe.RunOnce(now += absl::Seconds(30), cancel_), absl::OkStatus());
  testing::AddPod(kubelet.pods(), "ns", "p", {"GPU-cca9cbd4-70ca-5d13-8856-5b5ba6a44a32"});
  ASSERT_EQ(probe.RunOnce(now += absl::Seconds(30), cancel_), absl::OkStatus());
  ASSERT_EQ(probe.RunOnce(now += absl::Seconds(30), cancel_), absl::OkStatus());
  const std::string islands = "nvlink 0,1;2;3";
  const std::vector<NodeAnnotations> changes = {{islands, ""}, {islands, "ns/p=3"}};
  EXPECT_EQ(writes_, changes);
  // The Node may have been created again.
  ASSERT_EQ(probe.RunOnce(now + absl::Minutes(10), cancel_), absl::OkStatus());
  EXPECT_EQ(writes_.size(), 3u);
}

TEST_F(NodeProbeTest, AFailedWriteIsTriedAgain) {
  SetMachine("no_nvlink");
  NodeProbe probe(Options(), Record());
  write_status_ = absl::UnavailableError("away");
  EXPECT_EQ(probe.RunOnce(SteadyNow(), cancel_), write_status_);
  EXPECT_EQ(probe.RunOnce(SteadyNow(), cancel_), write_status_);
  write_status_ = absl::OkStatus();
  EXPECT_EQ(probe.RunOnce(SteadyNow(), cancel_), absl::OkStatus());
  EXPECT_EQ(probe.RunOnce(SteadyNow(), cancel_), absl::OkStatus());
  EXPECT_EQ(writes_.size(), 3u);
}

TEST_F(NodeProbeTest, WhatCannotBeReadStays) {
  SetMachine("dgx_a100");
  NodeProbeOptions options = Options();
  options.pod_resources = testing::FakeKubelet::NewSocket();
  options.kubelet_timeout = absl::Minutes(1);
  NodeProbe probe(options, Record());
  // Without a kubelet: the islands.
  EXPECT_THAT(probe.RunOnce(SteadyNow(), cancel_).message(), HasSubstr("kubelet at "));
  ASSERT_EQ(writes_.size(), 1u);
  EXPECT_EQ(writes_[0], (NodeAnnotations{"nvswitch 0-7", std::nullopt}));
  // Without a matrix: what was written before.
  SetMachine("no_matrix");
  EXPECT_THAT(probe.RunOnce(SteadyNow(), cancel_).message(), HasSubstr("topo -m"));
  EXPECT_EQ(writes_.size(), 1u);
  // Nothing at all is known.
  SetMachine("no_driver");
  EXPECT_FALSE(NodeProbe(options, Record()).RunOnce(SteadyNow(), cancel_).ok());
  EXPECT_EQ(writes_.size(), 1u);
}

TEST_F(NodeProbeTest, PausesGrowAfterFailures) {
  const absl::Duration period = absl::Seconds(30);
  EXPECT_EQ(NodeProbe::PauseAfter(0, period, 0.5), period);
  EXPECT_EQ(NodeProbe::PauseAfter(1, period, 0.5), period);
  EXPECT_EQ(NodeProbe::PauseAfter(2, period, 0.5), 2 * period);
  EXPECT_EQ(NodeProbe::PauseAfter(4, period, 0.5), 8 * period);
  EXPECT_EQ(NodeProbe::PauseAfter(1000, period, 0.5), absl::Minutes(5));
  EXPECT_EQ(NodeProbe::PauseAfter(1000, absl::Hours(1), 0.5), absl::Hours(1));
  EXPECT_EQ(NodeProbe::PauseAfter(0, period, 0), absl::Seconds(27));
  EXPECT_EQ(NodeProbe::PauseAfter(0, period, 1), absl::Seconds(33));
}

TEST_F(NodeProbeTest, EndsAtOnceWhenCancelled) {
  SetMachine("hangs");
  NodeProbe hanging(Options(), Record());
  std::thread canceller([this] { cancel_.Cancel(); });
  hanging.Run(cancel_);
  canceller.join();
  // Between two rounds.
  SetMachine("dgx_a100");
  const kube::CancelToken after_write;
  NodeProbe waiting(Options(), [&](const NodeAnnotations&, const kube::CancelToken&) {
    after_write.Cancel();
    return absl::OkStatus();
  });
  waiting.Run(after_write);
  EXPECT_TRUE(writes_.empty());
}

}  // namespace
}  // namespace outboard::node_probe
