// The wall clock of outboard-shim is set while it runs: it goes on as if nothing had happened, and
// what it writes has the new time. The API server and the host are in this process, whose clock is
// not changed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "proto/testing/fake_host.h"
#include "shim/kube/testing/fake_api_server.h"
#include "shim/kube/testing/shim_program.h"

namespace outboard::shim {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using nlohmann::json;

constexpr absl::Duration kPatience = absl::Seconds(60);

// So few requests a second that most wait for the rate limit.
constexpr char kConfiguration[] = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceName: clock-test, leaseDuration: 8s, renewDeadline: 6s, retryPeriod: 500ms}
clientConnection: {qps: 10, burst: 1}
profiles:
- schedulerName: outboard
  plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: Sorter}, {name: NodeResourcesFit}, {name: DefaultBinder}]}
    preFilter: {disabled: [{name: NotServed}]}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:$DIRECTORY/host"}]
servingAddress: ""
verbosity: $VERBOSITY
)";

json Node(const std::string& name) {
  const json resources = {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "100"}};
  return {{"metadata", {{"name", name}}},
          {"status", {{"allocatable", resources}, {"capacity", resources}}}};
}

// Its uid is its name.
json Pod(const std::string& name) {
  return {
      {"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", name}}},
      {"spec", {{"schedulerName", "outboard"}, {"containers", {{{"name", "c"}, {"image", "i"}}}}}},
      {"status", {{"phase", "Pending"}}}};
}

void AddPlugin(GetHostInfoResponse* info, const char* name,
               const std::vector<ExtensionPoint>& points) {
  PluginInfo* const plugin = info->add_plugins();
  plugin->set_name(name);
  plugin->mutable_extension_points()->Assign(points.begin(), points.end());
}

class WallClockTest : public ::testing::Test {
 protected:
  WallClockTest() {
    host_ = outboard::testing::FakeHost::Start(absl::StrCat("unix:", shim_.directory(), "/host"));
    ProgramHost();
    api_.Put("nodes", Node("n"));
    Configure(0);
    MapStep();
    StartShim();
  }
  ~WallClockTest() override {
    if (HasFailure()) ADD_FAILURE() << shim_.Log();
    shim_.End();
    munmap(step_, sizeof(*step_));
    host_ = nullptr;
  }

  void Configure(int verbosity) {
    shim_.Write("new",
                absl::StrReplaceAll(kConfiguration, {{"$DIRECTORY", shim_.directory()},
                                                     {"$VERBOSITY", absl::StrCat(verbosity)}}));
    std::filesystem::rename(shim_.directory() + "/new", shim_.directory() + "/config");
  }
  void MapStep() {
    shim_.Write("step", std::string(sizeof(int64_t), '\0'));
    const int fd = open((shim_.directory() + "/step").c_str(), O_RDWR);
    void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    ASSERT_NE(mapped, MAP_FAILED);
    step_ = static_cast<std::atomic<int64_t>*>(mapped);
  }
  void StartShim() {
    shim_.Start({absl::StrCat("LD_PRELOAD=",
                              (testing::ShimProgram::Tests() / "stepped_wall_clock.so").string()),
                 absl::StrCat("OUTBOARD_WALL_CLOCK_STEP=", shim_.directory(), "/step")});
  }

  void ProgramHost() {
    host_->Answer<GetHostInfoRequest, GetHostInfoResponse>(
        [](const GetHostInfoRequest&, GetHostInfoResponse* info) {
          info->add_capabilities(CAPABILITY_FUSED_CYCLE);
          AddPlugin(info, "Sorter", {EXTENSION_POINT_QUEUE_SORT});
          AddPlugin(info, "NodeResourcesFit",
                    {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER, EXTENSION_POINT_PRE_SCORE,
                     EXTENSION_POINT_SCORE});
          AddPlugin(info, "DefaultBinder", {EXTENSION_POINT_BIND});
          return grpc::Status::OK;
        });
    host_->Answer<PreFilterRequest, PreFilterResponse>(
        [](const PreFilterRequest& request, PreFilterResponse* response) {
          if (!absl::StartsWith(request.pod_uid(), "full")) return grpc::Status::OK;
          PluginStatus* const rejection = response->mutable_rejection();
          rejection->set_plugin("NodeResourcesFit");
          rejection->set_code(CODE_UNSCHEDULABLE);
          rejection->add_reasons("no");
          return grpc::Status::OK;
        });
    host_->Answer<ScoreRequest, ScoreResponse>(
        [](const ScoreRequest& request, ScoreResponse* response) {
          PluginScores* const scores = response->add_plugins();
          scores->set_plugin("NodeResourcesFit");
          scores->set_scores(std::string(request.nodes().slots_size(), 50));
          return grpc::Status::OK;
        });
  }

  // Polls until `done`; false after too long.
  bool Await(const std::function<bool()>& done) {
    const absl::Time limit = absl::Now() + kPatience;
    while (!done()) {
      if (absl::Now() > limit || !shim_.IsRunning()) return false;
      absl::SleepFor(absl::Milliseconds(20));  // poll interval
    }
    return true;
  }
  bool IsBound(const std::string& pod) {
    return api_.Get("pods", "ns/" + pod)["spec"].contains("nodeName");
  }
  // How far the time that was written as `text` is ahead of now.
  static absl::Duration Ahead(const json& text) {
    absl::Time time;
    std::string error;
    EXPECT_TRUE(text.is_string() &&
                absl::ParseTime(absl::RFC3339_full, text.get<std::string>(), &time, &error))
        << text;
    return time - absl::Now();
  }
  static void ExpectWallTime(const json& text, absl::Duration step) {
    const absl::Duration ahead = Ahead(text);
    EXPECT_GT(ahead, step - kPatience * 3) << text;
    EXPECT_LT(ahead, step + kPatience) << text;
  }

  void Begin() {
    api_.Put("pods", Pod("first"));
    ASSERT_TRUE(Await([this] { return IsBound("first"); })) << shim_.Log();
  }
  // Everything that waits, after the clock was set by `step`.
  void GoesOn(const std::string& name, absl::Duration step) {
    SCOPED_TRACE(name);
    *step_ = absl::ToInt64Nanoseconds(step);
    // absl::Now reads the clock only every few seconds.
    ASSERT_TRUE(Await([&] {
      const json lease = api_.Get("leases", "kube-system/clock-test");
      return absl::AbsDuration(Ahead(lease["spec"]["renewTime"]) - step) < kPatience;
    })) << "no renewal";
    // The rate limit, informers, the scheduling thread.
    for (int i = 0; i < 4; ++i) api_.Put("pods", Pod(absl::StrCat(name, "-", i)));
    ASSERT_TRUE(Await([&] {
      for (int i = 0; i < 4; ++i)
        if (!IsBound(absl::StrCat(name, "-", i))) return false;
      return true;
    })) << "not bound";
    // A bind whose request was lost: a read, a pause, and the bind again.
    kube::testing::Fault lost;
    lost.method = "POST";
    lost.path_part = "/pods/" + name + "-lost/binding";
    lost.drop_request = true;
    api_.Inject(lost);
    api_.Put("pods", Pod(name + "-lost"));
    ASSERT_TRUE(Await([&] { return IsBound(name + "-lost"); })) << "not bound again";
    EXPECT_EQ(api_.Count("POST", "/pods/" + name + "-lost/binding"), 2);
    // A status patch that has to be repeated, and its time.
    kube::testing::Fault busy;
    busy.method = "PATCH";
    busy.path_part = "/pods/full-" + name + "/status";
    busy.http_status = 429;
    busy.retry_after_seconds = 1;
    api_.Inject(busy);
    api_.Put("pods", Pod("full-" + name));
    json condition;
    ASSERT_TRUE(Await([&] {
      const json conditions = api_.Get("pods", "ns/full-" + name)["status"]["conditions"];
      if (conditions.empty()) return false;
      condition = conditions[0];
      return true;
    })) << "no condition";
    ExpectWallTime(condition["lastTransitionTime"], step);
    ASSERT_TRUE(Await([&] {
      for (const json& event : api_.All("events")) {
        if (event["regarding"]["name"] != "full-" + name) continue;
        ExpectWallTime(event["eventTime"], step);
        return true;
      }
      return false;
    })) << "no event";
    // The lease.
    const int renewals = api_.Count("PUT", "/leases/");
    ASSERT_TRUE(Await([&] { return api_.Count("PUT", "/leases/") >= renewals + 3; })) << "no lease";
    ExpectWallTime(api_.Get("leases", "kube-system/clock-test")["spec"]["renewTime"], step);
    // Informers that have to connect again, after lists that fail.
    kube::testing::Fault away;
    away.method = "GET";
    away.path_part = "/pods";
    away.drop_request = true;
    api_.Inject(away);
    api_.CloseConnections();
    api_.Put("pods", Pod(name + "-again"));
    ASSERT_TRUE(Await([&] { return IsBound(name + "-again"); })) << "informers";
    // The configuration.
    const auto reloads = [this] {
      size_t count = 0;
      const std::string log = shim_.Log();
      for (size_t at = 0; (at = log.find("Config reloaded", at)) != log.npos; ++at) ++count;
      return count;
    };
    const size_t before = reloads();
    Configure(static_cast<int>(before % 2) + 1);
    ASSERT_TRUE(Await([&] { return reloads() > before; })) << "not reloaded";
  }

  kube::testing::FakeApiServer api_;
  testing::ShimProgram shim_{"wall-clock", api_.url()};
  std::unique_ptr<outboard::testing::FakeHost> host_;
  std::atomic<int64_t>* step_ = nullptr;  // shared with the shim
};

TEST_F(WallClockTest, TheShimGoesOnWhenItIsSetBack) {
  Begin();
  GoesOn("back", -absl::Hours(1));
}

TEST_F(WallClockTest, TheShimGoesOnWhenItIsSetAhead) {
  Begin();
  GoesOn("ahead", absl::Hours(1));
  if (!HasFatalFailure()) GoesOn("right", absl::ZeroDuration());
}

}  // namespace
}  // namespace outboard::shim
