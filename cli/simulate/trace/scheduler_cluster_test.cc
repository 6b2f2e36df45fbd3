#include "cli/simulate/trace/scheduler_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/simulate/trace/commands.h"
#include "proto/testing/fake_host.h"

namespace outboard::simulate::trace {
namespace {

using testing::FakeHost;
using ::testing::HasSubstr;

constexpr char kConfiguration[] = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: Sort}, {name: Fake}, {name: DefaultBinder}]}
    preFilter: {disabled: [{name: NotServed}]}
)";

// One node, and a host that accepts every pod.
class SchedulerClusterTest : public ::testing::Test {
 protected:
  SchedulerClusterTest()
      : host_(FakeHost::Start(
            absl::StrCat("unix:", ::testing::TempDir(), "/trace-", getpid(), ".sock"))) {
    host_->Answer<v1beta1::GetHostInfoRequest, v1beta1::GetHostInfoResponse>(
        [](const auto&, v1beta1::GetHostInfoResponse* info) {
          info->add_capabilities(v1beta1::CAPABILITY_FUSED_CYCLE);
          const std::pair<const char*, v1beta1::ExtensionPoint> plugins[] = {
              {"Sort", v1beta1::EXTENSION_POINT_QUEUE_SORT},
              {"Fake", v1beta1::EXTENSION_POINT_FILTER},
              {"DefaultBinder", v1beta1::EXTENSION_POINT_BIND}};
          for (const auto& [name, point] : plugins) {
            v1beta1::PluginInfo* const plugin = info->add_plugins();
            plugin->set_name(name);
            plugin->add_extension_points(point);
          }
          return grpc::Status::OK;
        });
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_name("n1");
    node->node.set_uid("uid-n1");
    node->node.mutable_allocatable()->set_pods(100);
    scene_.nodes.push_back(std::move(node));
  }

  absl::StatusOr<std::string> Play() {
    const absl::StatusOr<config::Config> config = config::ParseConfig(kConfiguration, "test");
    if (!config.ok()) return config.status();
    const absl::StatusOr<Trace> trace = ParseTrace("t", R"({"job":"a","arrival":0,"run":5})"
                                                        "\n"
                                                        R"({"job":"b","arrival":1,"run":5})");
    if (!trace.ok()) return trace.status();
    TraceRun run;
    run.json = true;
    return RunTrace(*trace, scene_, *config, {host_->address()}, run);
  }

  const std::unique_ptr<FakeHost> host_;
  SimulationInput scene_;
};

TEST_F(SchedulerClusterTest, JobsRunAndEnd) {
  const absl::StatusOr<std::string> said = Play();
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_THAT(*said, HasSubstr(R"("finished":2)"));
}

// A parked pod continues when its host is back; when that is depends on the machine.
TEST_F(SchedulerClusterTest, WithoutAnAnswerThereAreNoFigures) {
  host_->Inject<v1beta1::CycleRequest>(
      {.status = testing::CallFailure(v1beta1::CallError::REASON_INTERNAL, "out of order"),
       .after = 1});
  const absl::StatusOr<std::string> said = Play();
  EXPECT_EQ(said.status(),
            absl::UnavailableError("plugin host fake-1 did not answer: out of order"));
}

}  // namespace
}  // namespace outboard::simulate::trace
