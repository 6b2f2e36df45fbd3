#include "shim/kube/wire/json_decode.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "shim/kube/wire/coordination_v1.pb.h"
#include "shim/kube/wire/from_wire.h"

namespace outboard::kube::json_decode_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kPod[] = R"json({
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "9",
    "generation": 2, "creationTimestamp": "2026-01-31T09:30:00Z", "deletionTimestamp": null,
    "labels": {"app": "web"},
    "managedFields": [{"manager": "x", "fieldsV1": {"f:metadata": {}}}],
    "ownerReferences": [
      {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "ju", "controller": true}]},
  "spec": {"containers": [{"name": "c", "image": "i", "command": ["x"],
      "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": 0.25}},
      "ports": [{"containerPort": 80, "hostIP": "10.0.0.1", "hostPort": 80}]}],
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
      {"name": "e", "emptyDir": {}}],
    "priority": 7, "activeDeadlineSeconds": 90, "hostNetwork": true, "someNewField": {"a": [1]}},
  "status": {"phase": "Pending", "podIP": "10.1.1.1", "startTime": "2026-01-31T10:30:00+01:00"}
})json";

TEST(Json, Pod) {
  absl::StatusOr<PodPtr> pod = DecodePodJson(absl::string_view(kPod));
  ASSERT_TRUE(pod.ok()) << pod.status();
  const v1beta1::Pod& got = (*pod)->pod;
  EXPECT_EQ((*pod)->key(), "shop/web");
  EXPECT_EQ((*pod)->resource_version, "9");
  EXPECT_EQ((*pod)->phase, "Pending");
  EXPECT_EQ(got.generation(), 2);
  EXPECT_EQ(got.creation_unix_seconds(), 1769851800);
  EXPECT_EQ(got.start_unix_seconds(), 1769851800);
  EXPECT_EQ(got.deletion_unix_seconds(), 0);
  EXPECT_EQ(got.active_deadline_seconds(), 90);
  EXPECT_EQ(got.controller().kind(), "Job");
  EXPECT_EQ(got.containers(0).requests().cpu_millis(), 250);
  EXPECT_EQ(got.containers(0).requests().memory_bytes(), 1 << 30);
  EXPECT_EQ(got.containers(0).ports(0).host_ip(), "10.0.0.1");
  EXPECT_EQ(got.volumes(0).claim_name(), "data");
  EXPECT_EQ(got.volumes(1).source(), "emptyDir");
  EXPECT_EQ(got.priority(), 7);
}

TEST(Json, NodeAndNamespace) {
  absl::StatusOr<NodePtr> node = DecodeNodeJson(absl::string_view(
      R"({"metadata":{"name":"n","uid":"u"},"spec":{"unschedulable":true,
          "podCIDRs":["10.0.0.0/24"]},
          "status":{"allocatable":{"cpu":"4","pods":"110"},"nodeInfo":{"kernelVersion":"6"},
          "conditions":[{"type":"Ready","status":"True",
          "lastHeartbeatTime":"2026-01-31T09:30:00Z"}]}})"));
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_TRUE((*node)->node.unschedulable());
  EXPECT_EQ((*node)->node.allocatable().pods(), 110);
  EXPECT_EQ((*node)->conditions, "Ready=True");
  absl::StatusOr<NamespacePtr> ns = DecodeNamespaceJson(
      absl::string_view(R"({"metadata":{"name":"a","uid":"b","labels":{"k":"v"}}})"));
  ASSERT_TRUE(ns.ok()) << ns.status();
  EXPECT_EQ((*ns)->ns.labels().at("k"), "v");
}

TEST(Json, ErrorsNameTheField) {
  auto error = [](const std::string& json) {
    return std::string(DecodePodJson(absl::string_view(json)).status().message());
  };
  EXPECT_EQ(error(R"({"spec":{"priority":"high"}})"),
            "spec.priority: must be an integer, not a string");
  EXPECT_EQ(error(R"({"spec":{"priority":1.5}})"), "spec.priority: must be an integer, not 1.5");
  EXPECT_EQ(error(R"({"spec":{"priority":3000000000}})"),
            "spec.priority: 3000000000 is out of range");
  EXPECT_EQ(error(R"({"spec":{"nodeName":5}})"),
            "spec.nodeName: must be a string, not a number; write \"5\" in quotes");
  EXPECT_EQ(error(R"({"spec":{"containers":{}}})"),
            "spec.containers: must be a list, not an object");
  EXPECT_EQ(error(R"({"spec":[]})"), "spec: must be an object, not a list");
  EXPECT_EQ(error(R"({"spec":{"hostNetwork":"true"}})"),
            "spec.hostNetwork: must be a boolean, not a string");
  EXPECT_EQ(error(R"({"metadata":{"labels":{"a/b":true}}})"),
            "metadata.labels[a/b]: must be a string, not a boolean; write \"true\" in quotes");
  EXPECT_THAT(error(R"({"metadata":{"creationTimestamp":"yesterday"}})"),
              HasSubstr("metadata.creationTimestamp: must be a time"));
  EXPECT_THAT(error(R"({"metadata":{"creationTimestamp":"infinite-future-and-a-day"}})"),
              HasSubstr("must be a time"));
  EXPECT_THAT(error(R"({"spec":{"containers":[{"resources":{"requests":{"cpu":"many"}}}]}})"),
              HasSubstr("spec.containers[0].resources.requests.cpu: \"many\" is not a quantity: "));
  EXPECT_EQ(error("[]"), "must be an object, not a list");
}

TEST(Json, ListWatchAndStatus) {
  absl::StatusOr<DocNode> list =
      ParseJson("list", std::string(
                            R"({"kind":"PodList","metadata":{"resourceVersion":"44","continue":"c",
              "remainingItemCount":3},"items":[)") +
                            kPod + R"(, {"metadata":{}}]})");
  ASSERT_TRUE(list.ok()) << list.status();
  absl::StatusOr<ListPage<PodObject>> page = DecodePodListJson(*list);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->resource_version, "44");
  EXPECT_EQ(page->continue_token, "c");
  EXPECT_EQ(page->remaining_items, 3);
  ASSERT_THAT(page->items, SizeIs(1));
  ASSERT_THAT(page->rejected, SizeIs(1));
  EXPECT_THAT(page->rejected[0].why, HasSubstr("items[1]: "));
  EXPECT_EQ(page->rejected[0].identity.key(), "");

  absl::StatusOr<DocNode> event =
      ParseJson("event", std::string(R"({"type":"MODIFIED","object":)") + kPod + "}");
  ASSERT_TRUE(event.ok());
  absl::StatusOr<JsonWatchFrame> frame = DecodeWatchFrameJson(*event);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->type, WatchEventType::kModified);
  EXPECT_TRUE(DecodePodJson(*frame->object).ok());
  EXPECT_FALSE(DecodeWatchFrameJson(*ParseJson("e", R"({"type":"ADDED"})")).ok());
  EXPECT_FALSE(DecodeWatchFrameJson(*ParseJson("e", R"({"object":{}})")).ok());

  absl::StatusOr<Bookmark> bookmark =
      DecodeBookmarkJson(*ParseJson("b",
                                    R"({"metadata":{"resourceVersion":"8",
          "annotations":{"k8s.io/initial-events-end":"true"}}})"));
  ASSERT_TRUE(bookmark.ok());
  EXPECT_TRUE(bookmark->initial_events_end);
  EXPECT_FALSE(DecodeBookmarkJson(*ParseJson("b", "{}")).ok());

  absl::StatusOr<ApiStatus> status = DecodeStatusJson(
      *ParseJson("s",
                 R"({"kind":"Status","status":"Failure","reason":"TooManyRequests","code":429,
          "details":{"retryAfterSeconds":2}})"));
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->code, 429);
  EXPECT_EQ(status->retry_after_seconds, 2);
}

TEST(Json, LeaseWithMicroTime) {
  wire::Lease lease;
  ASSERT_TRUE(
      FillFromJson(
          *ParseJson(
              "l", R"({"spec":{"holderIdentity":"a","renewTime":"2026-01-31T09:30:00.123456Z"}})"),
          &lease)
          .ok());
  EXPECT_EQ(lease.spec().renewtime().seconds(), 1769851800);
  EXPECT_EQ(lease.spec().renewtime().nanos(), 123456000);
}

}  // namespace
}  // namespace outboard::kube::json_decode_test
