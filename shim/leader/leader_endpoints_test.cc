#include "shim/leader/leader_endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "shim/kube/curl_api_client.h"
#include "shim/kube/testing/fake_api_server.h"

namespace outboard::leader::leader_endpoints_test {
namespace {

using kube::testing::FakeApiServer;
using kube::testing::Fault;
using ::nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSlice[] = "ns/leader-ipv4";
constexpr char kPath[] = "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices";

// A process that leads with an epoch.
struct Leader {
  Leader(FakeApiServer& server, const std::string& ip, int64_t epoch)
      : client(server.Config(), {}), epoch(epoch) {
    options.service_namespace = "ns";
    options.service = "leader";
    options.port_name = "admit";
    options.port = 10272;
    options.addresses = {{ip, false}};
    options.leads = [this] { return leads.load(); };
    options.epoch = [this] { return this->epoch; };
    // Tests wait for requests, not for time.
    options.check_period = options.retry_period = absl::Milliseconds(10);
  }
  void Begin() {
    endpoints = std::make_unique<LeaderEndpoints>(&client, options);
    endpoints->Begin();
  }

  kube::CurlApiClient client;
  const int64_t epoch;
  std::atomic<bool> leads{true};
  LeaderEndpointsOptions options;
  std::unique_ptr<LeaderEndpoints> endpoints;
};

std::string AddressIn(const FakeApiServer& server, const std::string& slice = kSlice) {
  const json found = server.Get("endpointslices", slice);
  return found.is_null() ? "" : found["endpoints"][0]["addresses"][0].get<std::string>();
}

// Waits for the leader's next complete look at its slice, which changed nothing.
bool AwaitQuiet(FakeApiServer& server) {
  const int seen = server.Count("GET", kPath);
  return server.AwaitCount("GET", kPath, seen + 3);
}

TEST(LeaderEndpoints, CreatesASliceOfEachFamilyAndKeepsIt) {
  FakeApiServer server;
  Leader leader(server, "10.0.0.1", 7);
  leader.options.addresses.push_back({"fd00::1", true});
  leader.Begin();
  ASSERT_TRUE(server.AwaitCount("POST", kPath, 2));
  ASSERT_TRUE(AwaitQuiet(server));
  const json slice = server.Get("endpointslices", kSlice);
  EXPECT_EQ(slice["addressType"], "IPv4");
  EXPECT_EQ(slice["metadata"]["labels"]["kubernetes.io/service-name"], "leader");
  EXPECT_EQ(slice["metadata"]["annotations"]["outboard.dev/leader-epoch"], "7");
  EXPECT_EQ(slice["endpoints"],
            json::parse(R"([{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}])"));
  EXPECT_EQ(slice["ports"],
            json::parse(R"([{"name": "admit", "port": 10272, "protocol": "TCP"}])"));
  EXPECT_EQ(server.Get("endpointslices", "ns/leader-ipv6")["addressType"], "IPv6");
  EXPECT_EQ(AddressIn(server, "ns/leader-ipv6"), "fd00::1");
  EXPECT_EQ(server.Count("PUT", kPath), 0) << "it is right, so there is no reason to write it";
}

TEST(LeaderEndpoints, TheNextLeaderReplacesTheFormerOne) {
  FakeApiServer server;
  Leader former(server, "10.0.0.1", 7);
  former.Begin();
  ASSERT_TRUE(server.AwaitCount("POST", kPath, 1));
  former.endpoints->Stop();
  EXPECT_EQ(AddressIn(server), "10.0.0.1") << "the end of leadership deletes nothing";
  Leader next(server, "10.0.0.2", 9);
  next.Begin();
  ASSERT_TRUE(server.AwaitCount("PUT", kPath, 1));
  ASSERT_TRUE(AwaitQuiet(server));
  EXPECT_EQ(AddressIn(server), "10.0.0.2");
}

// It still believes to lead, as a process that was stopped does for a moment.
TEST(LeaderEndpoints, AFormerLeaderDoesNotOverwriteTheNextOne) {
  FakeApiServer server;
  Leader next(server, "10.0.0.2", 9);
  next.Begin();
  ASSERT_TRUE(server.AwaitCount("POST", kPath, 1));
  next.endpoints->Stop();
  Leader former(server, "10.0.0.1", 7);
  former.Begin();
  ASSERT_TRUE(AwaitQuiet(server));
  EXPECT_EQ(AddressIn(server), "10.0.0.2");
  EXPECT_EQ(server.Count("PUT", kPath), 0);
}

// Its update is executed after the next leader's, although it was made before.
TEST(LeaderEndpoints, ALateUpdateOfAFormerLeaderIsRejected) {
  FakeApiServer server;
  Leader former(server, "10.0.0.1", 7);
  former.Begin();
  ASSERT_TRUE(server.AwaitCount("POST", kPath, 1));
  ASSERT_TRUE(AwaitQuiet(server));
  Fault slow;
  slow.method = "PUT";
  slow.path_part = kPath;
  slow.delay = absl::Seconds(1);
  server.Inject(slow);
  json changed = server.Get("endpointslices", kSlice);
  changed["endpoints"] = json::array();
  server.Put("endpointslices", changed);
  ASSERT_TRUE(server.AwaitCount("PUT", kPath, 1)) << "it restores its address";
  former.leads = false;
  Leader next(server, "10.0.0.2", 9);
  next.Begin();
  ASSERT_TRUE(server.AwaitCount("PUT", kPath, 2));
  former.endpoints->Stop();
  ASSERT_TRUE(AwaitQuiet(server));
  EXPECT_EQ(AddressIn(server), "10.0.0.2");
}

TEST(LeaderEndpoints, RestoresWhatOthersChangeOrDelete) {
  FakeApiServer server;
  Leader leader(server, "10.0.0.1", 7);
  leader.Begin();
  ASSERT_TRUE(server.AwaitCount("POST", kPath, 1));
  ASSERT_TRUE(AwaitQuiet(server));
  json changed = server.Get("endpointslices", kSlice);
  changed["endpoints"][0]["addresses"][0] = "10.9.9.9";
  changed["metadata"]["labels"]["team"] = "a";
  server.Put("endpointslices", changed);
  ASSERT_TRUE(server.AwaitCount("PUT", kPath, 1));
  ASSERT_TRUE(AwaitQuiet(server));
  EXPECT_EQ(AddressIn(server), "10.0.0.1");
  EXPECT_EQ(server.Get("endpointslices", kSlice)["metadata"]["labels"]["team"], "a");
  ASSERT_TRUE(server.Delete("endpointslices", kSlice));
  ASSERT_TRUE(server.AwaitCount("POST", kPath, 2));
  ASSERT_TRUE(AwaitQuiet(server));
  EXPECT_EQ(AddressIn(server), "10.0.0.1");
}

TEST(LeaderEndpoints, RetriesFailedRequests) {
  FakeApiServer server;
  Fault broken;
  broken.path_part = kPath;
  broken.times = 3;
  broken.http_status = 503;
  server.Inject(broken);
  Leader leader(server, "10.0.0.1", 7);
  leader.Begin();
  ASSERT_TRUE(server.AwaitCount("POST", kPath, 1));
  ASSERT_TRUE(AwaitQuiet(server));
  EXPECT_EQ(AddressIn(server), "10.0.0.1");
}

TEST(LeaderEndpoints, SendsNothingWithoutTheLease) {
  FakeApiServer server;
  Leader leader(server, "10.0.0.1", 7);
  leader.leads = false;
  leader.Begin();
  leader.endpoints->Stop();
  EXPECT_TRUE(server.Requests().empty());
}

TEST(ServedAddresses, AreThoseAtWhichTheServerListens) {
  const PodAddress v4 = {"10.0.0.1", false};
  const PodAddress v6 = {"fd00::1", true};
  EXPECT_THAT(*ServedAddresses("10.0.0.1", "0.0.0.0"), ElementsAre(v4));
  EXPECT_THAT(*ServedAddresses("10.0.0.1,fd00::1", "0.0.0.0"), ElementsAre(v4));
  EXPECT_THAT(*ServedAddresses("fd00::1, 10.0.0.1", "::"), ElementsAre(v6, v4));
  EXPECT_THAT(*ServedAddresses("10.0.0.1,fd00:0::1", "fd00::1"), ElementsAre(v6));
  EXPECT_THAT(*ServedAddresses("10.0.0.1,10.0.0.2", "0.0.0.0"), ElementsAre(v4))
      << "a slice of each family has one address";
}

TEST(ServedAddresses, RejectsWhatNoClientCanReach) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "0.0.0.0"},           {"fd00::1", "0.0.0.0"},
      {"127.0.0.1", "0.0.0.0"},  {"::1", "::"},
      {"10.0.0.1,x", "0.0.0.0"}, {"10.0.0.1", "127.0.0.1"},
      {"10.0.0.1", "10.0.0.2"},  {"10.0.0", "0.0.0.0"},
      {"10.0.0.1", "localhost"}};
  for (const auto& [pod_ips, host] : cases) {
    EXPECT_TRUE(absl::IsInvalidArgument(ServedAddresses(pod_ips, host).status()))
        << pod_ips << " " << host;
  }
  EXPECT_THAT(ServedAddresses("fd00::1", "0.0.0.0").status().message(),
              HasSubstr("no address of the pod (\"fd00::1\") is served"));
}

}  // namespace
}  // namespace outboard::leader::leader_endpoints_test
