#include "cli/inspect/cluster_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace outboard::inspect::cluster_node_test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kNode[] = "/api/v1/nodes/gpu-7";
constexpr char kSlices[] =
    "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dgpu-7";
constexpr char kOldSlices[] =
    "/apis/resource.k8s.io/v1beta1/resourceslices?fieldSelector=spec.nodeName%3Dgpu-7";
constexpr char kTopology[] = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/gpu-7";
constexpr char kNodeJson[] =
    R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-7"}})";

// Answers at once, by path; 404 for all others.
class Server : public kube::ApiClient {
 public:
  void Start(kube::ApiRequest request, Done done) override {
    paths_.push_back(request.path);
    kube::ApiResponse response{404, "application/json", R"({"message": "not served"})"};
    const auto known = answers.find(request.path);
    if (known != answers.end()) {
      response.http_status = known->second.first;
      response.body = known->second.second;
    }
    done(std::move(response));
  }
  absl::Status Stream(const kube::ApiRequest&, kube::StreamSink&,
                      const kube::CancelToken&) override {
    return absl::UnimplementedError("no streams here");
  }
  const std::vector<std::string>& paths() const { return paths_; }

  std::map<std::string, std::pair<int, std::string>> answers;

 private:
  std::vector<std::string> paths_;
};

std::vector<std::string> KindsOf(const ClusterNode& node) {
  std::vector<std::string> kinds;
  const json manifest = json::parse(node.manifest);
  for (const json& item : manifest["items"])
    kinds.push_back(item.value("kind", "") + " " + item.value("apiVersion", ""));
  return kinds;
}

TEST(ClusterNodeTest, ReadsTheNodeItsSlicesAndItsTopology) {
  Server server;
  server.answers = {{kNode, {200, kNodeJson}},
                    {kSlices, {200, R"({"items": [{"spec": {"nodeName": "gpu-7"}}, 3]})"}},
                    {kTopology, {200, R"({"apiVersion": "topology.node.k8s.io/v1alpha2",
                           "kind": "NodeResourceTopology", "metadata": {"name": "gpu-7"}})"}}};
  const absl::StatusOr<ClusterNode> node = ReadClusterNode(&server, "gpu-7");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_THAT(KindsOf(*node), ElementsAre("Node v1", "ResourceSlice resource.k8s.io/v1",
                                          "NodeResourceTopology topology.node.k8s.io/v1alpha2"));
  EXPECT_THAT(node->warnings, IsEmpty());
  EXPECT_THAT(server.paths(), ElementsAre(kNode, kSlices, kTopology)) << "and no older version";
}

TEST(ClusterNodeTest, WhatIsNotServedIsLeftOut) {
  Server server;
  server.answers = {{kNode, {200, kNodeJson}}};
  const absl::StatusOr<ClusterNode> node = ReadClusterNode(&server, "gpu-7");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_THAT(KindsOf(*node), ElementsAre("Node v1"));
  EXPECT_THAT(node->warnings, IsEmpty());
  server.answers[kOldSlices] = {200, R"({"items": [{"spec": {}}]})"};
  EXPECT_THAT(KindsOf(*ReadClusterNode(&server, "gpu-7")),
              ElementsAre("Node v1", "ResourceSlice resource.k8s.io/v1beta1"));
}

TEST(ClusterNodeTest, WhatMayNotBeReadIsAWarning) {
  Server server;
  server.answers = {{kNode, {200, kNodeJson}},
                    {kSlices, {403, R"({"message": "slices are forbidden"})"}},
                    {kTopology, {200, "<html>"}}};
  const absl::StatusOr<ClusterNode> node = ReadClusterNode(&server, "gpu-7");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_THAT(node->warnings,
              ElementsAre(HasSubstr("ResourceSlices not read: slices are forbidden"),
                          HasSubstr("NodeResourceTopology not read: ")));
}

TEST(ClusterNodeTest, WithoutTheNodeItFails) {
  Server server;
  EXPECT_TRUE(absl::IsNotFound(ReadClusterNode(&server, "gpu-7").status()));
  server.answers = {{kNode, {403, R"({"message": "nodes are forbidden"})"}}};
  EXPECT_TRUE(absl::IsPermissionDenied(ReadClusterNode(&server, "gpu-7").status()));
  const size_t asked = server.paths().size();
  for (const char* name : {"", "..", "a/b", "a?b", "A", "a%2Fb"})
    EXPECT_TRUE(absl::IsInvalidArgument(ReadClusterNode(&server, name).status())) << name;
  EXPECT_EQ(server.paths().size(), asked) << "such a name is not asked for";
}

TEST(FindClusterTest, NamesTheFileThatItReads) {
  const auto error = [](const ClusterFlags& flags) {
    return std::string(FindCluster(flags).status().message());
  };
  EXPECT_THAT(error({"/nonexistent/a", ""}), HasSubstr("/nonexistent/a"));
  setenv("KUBECONFIG", "/nonexistent/b:/nonexistent/c", 1);
  EXPECT_THAT(error({}), HasSubstr("/nonexistent/b"));
  EXPECT_THAT(error({"/nonexistent/a", ""}), HasSubstr("/nonexistent/a")) << "the flag comes first";
  unsetenv("KUBECONFIG");
  const char* const home = getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  setenv("HOME", "/nonexistent/home", 1);
  EXPECT_THAT(error({}), HasSubstr("/nonexistent/home/.kube/config"));
  setenv("HOME", before.c_str(), 1);
}

TEST(FindClusterTest, UsesTheContext) {
  const std::string path = ::testing::TempDir() + "/cluster_node_test.kubeconfig";
  std::ofstream(path) << R"(current-context: a
clusters: [{name: a, cluster: {server: "http://a:1"}}, {name: b, cluster: {server: "http://b:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: a, context: {cluster: a, user: u}}, {name: b, context: {cluster: b, user: u}}]
)";
  EXPECT_EQ(FindCluster({path, ""})->server, "http://a:1");
  EXPECT_EQ(FindCluster({path, "b"})->server, "http://b:1");
  EXPECT_THAT(std::string(FindCluster({path, "c"}).status().message()), HasSubstr("\"c\""));
}

}  // namespace
}  // namespace outboard::inspect::cluster_node_test
