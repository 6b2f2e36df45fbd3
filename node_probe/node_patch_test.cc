#include "node_probe/node_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "nlohmann/json.hpp"
#include "shim/kube/curl_api_client.h"
#include "shim/kube/testing/fake_api_server.h"
#include "shim/kube/testing/scripted_api_client.h"

namespace outboard::node_probe {
namespace {

using ::testing::HasSubstr;

const NodeAnnotations kBoth = {"nvlink 0-3;4-7", "a/b=0,1"};

TEST(NodePatchTest, APatchHasWhatIsKnown) {
  EXPECT_EQ(PatchText(kBoth),
            R"({"metadata":{"annotations":{"accelerator.sched.io/gpu-islands":"nvlink 0-3;4-7",)"
            R"("accelerator.sched.io/pod-gpus":"a/b=0,1"}}})");
  EXPECT_EQ(PatchText({"pcie 0", std::nullopt}),
            R"({"metadata":{"annotations":{"accelerator.sched.io/gpu-islands":"pcie 0"}}})");
  EXPECT_EQ(PatchText({std::nullopt, ""}),
            R"({"metadata":{"annotations":{"accelerator.sched.io/pod-gpus":""}}})");
}

class NodePatchServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Put("nodes", {{"metadata",
                           {{"name", "n1"},
                            {"labels", {{"nvidia.com/gpu.present", "true"}}},
                            {"annotations", {{"example.com/other", "kept"}}}}}});
  }
  absl::Status Patch(const NodeAnnotations& annotations, const std::string& node = "n1") {
    kube::CurlApiClient client(server_.Config(), {});
    return PatchNode(&client, node, annotations, kube::CancelToken());
  }
  std::string AnnotationOf(const std::string& key) {
    return server_.Get("nodes", "n1")["metadata"]["annotations"].value(key, "none");
  }
  kube::testing::FakeApiServer server_;
};

TEST_F(NodePatchServerTest, ChangesOnlyItsAnnotations) {
  ASSERT_EQ(Patch(kBoth), absl::OkStatus());
  EXPECT_EQ(AnnotationOf("accelerator.sched.io/gpu-islands"), "nvlink 0-3;4-7");
  EXPECT_EQ(AnnotationOf("accelerator.sched.io/pod-gpus"), "a/b=0,1");
  EXPECT_EQ(AnnotationOf("example.com/other"), "kept");
  ASSERT_EQ(Patch({std::nullopt, ""}), absl::OkStatus());
  EXPECT_EQ(AnnotationOf("accelerator.sched.io/gpu-islands"), "nvlink 0-3;4-7");
  EXPECT_EQ(AnnotationOf("accelerator.sched.io/pod-gpus"), "");
  const auto requests = server_.Requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].method, "PATCH");
  EXPECT_EQ(requests[0].path, "/api/v1/nodes/n1");
  EXPECT_EQ(requests[0].query.at("fieldManager"), "outboard-node-probe");
  EXPECT_EQ(requests[0].headers.at("content-type"), "application/merge-patch+json");
}

TEST_F(NodePatchServerTest, ErrorsSayWhatToDo) {
  kube::testing::Fault no;
  no.method = "PATCH";
  no.http_status = 403;
  no.body = "no";
  server_.Inject(no);
  const absl::Status denied = Patch(kBoth);
  EXPECT_EQ(denied.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(denied.message(), HasSubstr("patch of node n1: no (HTTP 403); the account needs"));
  const absl::Status missing = Patch(kBoth, "n2");
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("--node-name must be the Node's name"));
  kube::testing::Fault lost;
  lost.method = "PATCH";
  lost.drop_request = true;
  server_.Inject(lost);
  EXPECT_FALSE(Patch(kBoth).ok());
  EXPECT_EQ(AnnotationOf("accelerator.sched.io/gpu-islands"), "none");
}

TEST(NodePatchCancelTest, DoesNotWaitForAnAnswer) {
  kube::ScriptedApiClient api;
  const kube::CancelToken cancel;
  std::thread canceller([&cancel] { cancel.Cancel(); });
  EXPECT_EQ(PatchNode(&api, "n1", kBoth, cancel).code(), absl::StatusCode::kCancelled);
  canceller.join();
  // The answer comes later.
  if (api.waiting() > 0) api.Answer(200, "{}");
}

}  // namespace
}  // namespace outboard::node_probe
