#include "shim/host_pods/host_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "shim/kube/curl_api_client.h"
#include "shim/kube/testing/fake_api_server.h"

namespace outboard::host_pods {
namespace {

using kube::testing::FakeApiServer;
using kube::testing::Fault;
using ::nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kPatch[] = "/pods/host-a/status";

json Pod(const std::string& name, const std::string& ip, const std::string& app = "host") {
  return {{"metadata",
           {{"namespace", "ns"}, {"name", name}, {"labels", {{"app", app}, {"kind", "x"}}}}},
          {"spec", {{"readinessGates", {{{"conditionType", kReadinessGate}}}}}},
          {"status", {{"phase", "Running"}, {"podIP", ip}}}};
}

config::ShimConfig ConfigWith(const std::vector<std::pair<std::string, int>>& ports,
                              const std::string& selector = "app=host,kind=x") {
  config::ShimConfig config;
  for (const auto& [name, port] : ports) {
    config::HostSpec& host = config.hosts.emplace_back();
    host.name = name;
    host.pods = {"ns", selector, port};
    host.tls = config::HostTls{"ca", "cert", "key", "host.ns.svc"};
  }
  return config;
}

// The test is the scheduling thread: it runs what is posted.
class HostPodsTest : public ::testing::Test {
 protected:
  void Post(HostPods::Work work) {
    absl::MutexLock lock(&mutex_);
    posted_.push_back(std::move(work));
  }
  // Runs posted work until `done`.
  template <typename Condition>
  [[nodiscard]] bool RunUntil(Condition done) {
    while (!done()) {
      std::vector<HostPods::Work> work;
      {
        absl::MutexLock lock(&mutex_);
        const auto any = [this]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !posted_.empty(); };
        if (!mutex_.AwaitWithTimeout(absl::Condition(&any), absl::Seconds(20))) return false;
        work.swap(posted_);
      }
      for (HostPods::Work& one : work) one(now_);
    }
    return true;
  }
  bool RunUntilFound(const std::vector<std::string>& addresses) {
    return RunUntil([&] { return found_ == addresses; });
  }
  json Condition(const std::string& pod) {
    const json object = server_.Get("pods", absl::StrCat("ns/", pod));
    for (const json& condition : object["status"].value("conditions", json::array())) {
      if (condition["type"] == kReadinessGate) return condition;
    }
    return nullptr;
  }
  hosts::InstanceView At(const std::string& host, const std::string& address,
                         hosts::InstanceState state) {
    hosts::InstanceView view;
    view.host = host;
    view.address = address;
    view.state = state;
    return view;
  }

  FakeApiServer server_;
  absl::Mutex mutex_;
  std::vector<HostPods::Work> posted_;
  kube::CurlApiClient client_{server_.Config(), {}};
  std::vector<std::string> found_;
  std::vector<hosts::Endpoint> endpoints_;
  std::vector<std::string> written_;
  std::atomic<bool> leads_{true};
  absl::Time now_ = absl::FromUnixSeconds(1000);
  HostPods pods_{&client_,
                 {[this](HostPods::Work work) { Post(std::move(work)); },
                  [this](std::vector<hosts::Endpoint> found) {
                    endpoints_ = std::move(found);
                    found_.clear();
                    for (const hosts::Endpoint& endpoint : endpoints_)
                      found_.push_back(absl::StrCat(endpoint.host, " ", endpoint.address));
                    std::sort(found_.begin(), found_.end());
                  },
                  [this](const HostPod& pod, const Readiness& written, absl::Time) {
                    written_.push_back(absl::StrCat(pod.key(), " ", written.status));
                  },
                  [this] { return leads_.load(); }, [] { return absl::FromUnixSeconds(0); }}};
};

TEST_F(HostPodsTest, PodsWithTheLabelsAreEndpointsOfTheirHosts) {
  server_.Put("pods", Pod("host-a", "10.0.0.1"));
  server_.Put("pods", Pod("other", "10.0.0.9", "shim"));
  json elsewhere = Pod("host-x", "10.0.0.8");
  elsewhere["metadata"]["namespace"] = "team";
  server_.Put("pods", elsewhere);
  pods_.SetConfig(ConfigWith({{"main", 10271}, {"claims", 10275}}));
  ASSERT_TRUE(RunUntilFound({"claims 10.0.0.1:10275", "main 10.0.0.1:10271"}));
  EXPECT_EQ(endpoints_[0].pod, "ns/host-a");
  EXPECT_EQ(endpoints_[0].tls->server_name, "host.ns.svc");
  int lists = 0;
  for (const kube::testing::RequestLog& request : server_.Requests())
    lists += request.query.count("sendInitialEvents");
  EXPECT_EQ(lists, 1) << "both hosts are in the same pods";

  server_.Put("pods", Pod("host-b", "fd00::1"));
  ASSERT_TRUE(RunUntilFound({"claims 10.0.0.1:10275", "claims [fd00::1]:10275",
                             "main 10.0.0.1:10271", "main [fd00::1]:10271"}));
}

TEST_F(HostPodsTest, APodIsAnEndpointFromItsAddressToItsEnd) {
  json pod = Pod("host-a", "");
  server_.Put("pods", pod);
  server_.Put("pods", Pod("host-b", "10.0.0.2"));
  pods_.SetConfig(ConfigWith({{"main", 1}}));
  ASSERT_TRUE(RunUntilFound({"main 10.0.0.2:1"}));
  pod["status"]["podIP"] = "10.0.0.1";
  server_.Put("pods", pod);
  ASSERT_TRUE(RunUntilFound({"main 10.0.0.1:1", "main 10.0.0.2:1"}));
  // While it is being deleted, its instance drains.
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  server_.Put("pods", pod);
  server_.Delete("pods", "ns/host-b");
  ASSERT_TRUE(RunUntilFound({"main 10.0.0.1:1"}));
  pod["status"]["phase"] = "Failed";
  server_.Put("pods", pod);
  ASSERT_TRUE(RunUntilFound({}));
}

TEST_F(HostPodsTest, AnotherConfigurationHasOtherPods) {
  server_.Put("pods", Pod("host-a", "10.0.0.1"));
  server_.Put("pods", Pod("host-b", "10.0.0.2", "new"));
  pods_.SetConfig(ConfigWith({{"main", 1}}));
  ASSERT_TRUE(RunUntilFound({"main 10.0.0.1:1"}));
  pods_.SetConfig(ConfigWith({{"main", 2}}));
  EXPECT_THAT(found_, ElementsAre("main 10.0.0.1:2"));
  pods_.SetConfig(ConfigWith({{"main", 1}}, "app=new"));
  ASSERT_TRUE(RunUntilFound({"main 10.0.0.2:1"}));
  pods_.SetConfig({});
  EXPECT_THAT(found_, IsEmpty());
}

TEST_F(HostPodsTest, TheLeaderWritesTheCondition) {
  server_.Put("pods", Pod("host-a", "10.0.0.1"));
  pods_.SetConfig(ConfigWith({{"main", 1}}));
  ASSERT_TRUE(RunUntilFound({"main 10.0.0.1:1"}));
  leads_ = false;
  pods_.Tick({}, now_);
  leads_ = true;
  pods_.Tick({}, now_);
  ASSERT_TRUE(RunUntil([&] { return written_.size() == 1; }));
  EXPECT_EQ(Condition("host-a")["reason"], "NotConnected");
  EXPECT_EQ(Condition("host-a")["status"], "False");
  EXPECT_EQ(server_.Count("PATCH", kPatch), 1);

  // Another reason without another status waits.
  const std::vector<hosts::InstanceView> syncing = {
      At("main", "10.0.0.1:1", hosts::InstanceState::kSyncing)};
  pods_.Tick(syncing, now_ + absl::Seconds(9));
  EXPECT_EQ(server_.Count("PATCH", kPatch), 1);
  const std::vector<hosts::InstanceView> serving = {
      At("main", "10.0.0.1:1", hosts::InstanceState::kServing)};
  pods_.Tick(serving, now_);
  pods_.Tick(serving, now_);  // the first write is under way
  ASSERT_TRUE(RunUntil([&] { return written_.size() == 2; }));
  pods_.Tick(serving, now_);
  EXPECT_EQ(Condition("host-a")["status"], "True");
  EXPECT_EQ(Condition("host-a")["lastTransitionTime"], "1970-01-01T00:00:00Z");
  EXPECT_EQ(server_.Count("PATCH", kPatch), 2);
}

// The session of an older instance ends soon after it was ready (replacement.keepWarm), perhaps
// before the other host in its pod is ready, and before this replica leads.
TEST_F(HostPodsTest, HostsOfAPodNeedNotBeReadyAtTheSameTime) {
  server_.Put("pods", Pod("host-a", "10.0.0.1"));
  server_.Put("pods", Pod("host-b", "10.0.0.2"));
  pods_.SetConfig(ConfigWith({{"main", 1}, {"claims", 2}}));
  ASSERT_TRUE(RunUntilFound(
      {"claims 10.0.0.1:2", "claims 10.0.0.2:2", "main 10.0.0.1:1", "main 10.0.0.2:1"}));
  leads_ = false;
  pods_.Tick({At("claims", "10.0.0.1:2", hosts::InstanceState::kStandby)}, now_);
  pods_.OnRetired("10.0.0.2:2");  // It was ready between two ticks.
  leads_ = true;
  pods_.Tick({At("main", "10.0.0.1:1", hosts::InstanceState::kServing),
              At("main", "10.0.0.2:1", hosts::InstanceState::kShadow)},
             now_);
  ASSERT_TRUE(RunUntil([&] { return written_.size() == 2; }));
  EXPECT_THAT(written_, UnorderedElementsAre("ns/host-a True", "ns/host-b False"));
  EXPECT_EQ(Condition("host-b")["reason"], "Comparing");
  pods_.Tick({At("main", "10.0.0.2:1", hosts::InstanceState::kServing)}, now_);
  ASSERT_TRUE(RunUntil([&] { return written_.size() == 3; }));
  EXPECT_EQ(written_.back(), "ns/host-b True");

  // Its container was started again, and is refused.
  pods_.Tick({At("main", "10.0.0.1:1", hosts::InstanceState::kServing),
              At("claims", "10.0.0.1:2", hosts::InstanceState::kRefused)},
             now_);
  ASSERT_TRUE(RunUntil([&] { return written_.size() == 4; }));
  EXPECT_EQ(written_.back(), "ns/host-a False");
}

TEST_F(HostPodsTest, OnlyPodsWithTheGateGetTheCondition) {
  json pod = Pod("host-a", "10.0.0.1");
  pod["spec"].erase("readinessGates");
  server_.Put("pods", pod);
  server_.Put("pods", Pod("host-b", "10.0.0.2"));
  pods_.SetConfig(ConfigWith({{"main", 1}}));
  ASSERT_TRUE(RunUntilFound({"main 10.0.0.1:1", "main 10.0.0.2:1"}));
  pods_.Tick({}, now_);
  ASSERT_TRUE(RunUntil([&] { return !written_.empty(); }));
  EXPECT_THAT(written_, ElementsAre("ns/host-b False"));
}

TEST_F(HostPodsTest, AFailedWriteIsRepeated) {
  server_.Put("pods", Pod("host-a", "10.0.0.1"));
  pods_.SetConfig(ConfigWith({{"main", 1}}));
  ASSERT_TRUE(RunUntilFound({"main 10.0.0.1:1"}));
  Fault fault;
  fault.method = "PATCH";
  fault.http_status = 403;
  server_.Inject(fault);
  pods_.Tick({}, now_);
  // Its answer is the only work that is posted.
  ASSERT_TRUE(server_.AwaitCount("PATCH", kPatch, 1));
  bool answered = false;
  ASSERT_TRUE(RunUntil([&] { return std::exchange(answered, true); }));
  pods_.Tick({}, now_ + absl::Seconds(4));
  pods_.Tick({}, now_ + absl::Seconds(5));
  ASSERT_TRUE(RunUntil([&] { return written_.size() == 1; }));
  EXPECT_EQ(server_.Count("PATCH", kPatch), 2);
}

}  // namespace
}  // namespace outboard::host_pods
