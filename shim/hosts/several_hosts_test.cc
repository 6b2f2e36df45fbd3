// Two hosts over gRPC, called in parallel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/framework/multi_host/extension_point_runner.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/host_loop.h"

namespace outboard::hosts {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using testing::FakeHost;
using testing::Fault;

constexpr absl::Duration kSlow = absl::Milliseconds(700);

class SeveralGrpcHostsTest : public ::testing::Test {
 protected:
  SeveralGrpcHostsTest() {
    profile_.name = "p";
    profile_.filter_plugins = {"Fake"};
    profile_.shares.resize(2);
    for (size_t i = 0; i < 2; ++i) {
      fakes_[i] = FakeHost::Start(
          absl::StrCat("unix:", ::testing::TempDir(), "outboard-several-", getpid(), "-", i));
      const auto host = Handshake(NewHostChannel(fakes_[i]->address()), absl::Seconds(10));
      EXPECT_TRUE(host.ok()) << host.status();
      clients_[i] = std::make_unique<GrpcHostClient>(&loop_, "session", *host);
      hosts_.push_back({clients_[i].get(), 1});
      profile_.shares[i].filter_plugins = {"Fake"};
    }
  }
  ~SeveralGrpcHostsTest() override {
    for (auto& client : clients_) client.reset();
  }

  template <typename Request>
  void MakeSlow(size_t host) {
    Fault slow;
    slow.delay = kSlow;
    fakes_[host]->Inject<Request>(slow);
  }

  HostLoop loop_;
  std::unique_ptr<FakeHost> fakes_[2];
  std::unique_ptr<GrpcHostClient> clients_[2];
  framework::AttemptHosts hosts_;
  framework::AlgorithmProfile profile_;
};

TEST_F(SeveralGrpcHostsTest, TwoSlowHostsTakeTheTimeOfOne) {
  framework::ExtensionPointRunner panel(&hosts_, &profile_, 1, SteadyNow() + absl::Seconds(30));
  for (size_t i = 0; i < 2; ++i) {
    MakeSlow<PreFilterRequest>(i);
    MakeSlow<FilterRequest>(i);
  }
  const absl::Time began = SteadyNow();
  const auto pre_filter = panel.PreFilter("pod");
  ASSERT_TRUE(pre_filter.ok()) << pre_filter.status();
  NodeSearch search;
  search.mutable_nodes()->add_slots(4);
  search.set_num_feasible_nodes_to_find(1);
  const auto filter = panel.Filter(search, {4}, 1);
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_EQ(filter->processed(), 1u);
  const absl::Duration took = SteadyNow() - began;
  EXPECT_GE(took, 2 * kSlow);
  EXPECT_LT(took, 4 * kSlow);
}

TEST_F(SeveralGrpcHostsTest, NamesTheHostThatGivesNoAnswerAndLetsTheOtherGo) {
  Fault failure;
  failure.status = testing::CallFailure(CallError::REASON_STALE, "behind");
  fakes_[0]->Inject<PreFilterRequest>(failure);
  MakeSlow<PreFilterRequest>(1);
  framework::ExtensionPointRunner panel(&hosts_, &profile_, 1, SteadyNow() + absl::Seconds(30));
  const auto answer = panel.PreFilter("pod");
  EXPECT_EQ(framework::CallErrorReason(answer.status()), CallError::REASON_STALE);
  EXPECT_EQ(panel.failed_host(), 0u);
  // The next attempt is answered normally.
  const auto next = panel.PreFilter("pod");
  EXPECT_TRUE(next.ok()) << next.status();
}

TEST_F(SeveralGrpcHostsTest, AHostThatDiedIsNamed) {
  fakes_[1]->Kill();
  framework::ExtensionPointRunner panel(&hosts_, &profile_, 1, SteadyNow() + absl::Seconds(10));
  const auto answer = panel.PreFilter("pod");
  EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
  EXPECT_EQ(panel.failed_host(), 1u);
}

}  // namespace
}  // namespace outboard::hosts
