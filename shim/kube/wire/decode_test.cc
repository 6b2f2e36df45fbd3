#include "shim/kube/wire/decode.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "shim/kube/wire/runtime.pb.h"

namespace outboard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Message>
Message Text(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

constexpr char kPod[] = R"pb(
  metadata {
    name: "web-1"
    namespace: "shop"
    uid: "u1"
    resourceVersion: "77"
    creationTimestamp { seconds: 1700000000 }
  }
  spec { containers { name: "c" image: "nginx" } }
)pb";

wire::WatchEvent Event(const std::string& type, const std::string& kind,
                       const google::protobuf::MessageLite& object) {
  wire::WatchEvent event;
  event.set_type(type);
  event.mutable_object()->set_raw(SealEnvelope("v1", kind, object));
  return event;
}

TEST(Envelope, OpensWhatItSealed) {
  const std::string body = SealEnvelope("v1", "Pod", Text<wire::Pod>(kPod));
  EXPECT_EQ(body.substr(0, 4), std::string("k8s\0", 4));
  absl::StatusOr<Envelope> envelope = OpenEnvelope(body);
  ASSERT_TRUE(envelope.ok()) << envelope.status();
  EXPECT_EQ(std::string(envelope->api_version), "v1");
  EXPECT_EQ(std::string(envelope->kind), "Pod");
  Decoder decoder;
  absl::StatusOr<PodPtr> pod = decoder.DecodePod(envelope->raw);
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ((*pod)->key(), "shop/web-1");
  EXPECT_EQ((*pod)->resource_version, "77");
}

TEST(Envelope, RefusesOtherBytes) {
  EXPECT_THAT(std::string(OpenEnvelope("{\"kind\":\"Pod\"}").status().message()),
              HasSubstr("magic"));
  EXPECT_FALSE(OpenEnvelope("").ok());
  EXPECT_FALSE(OpenEnvelope(absl::string_view("k8s\0\xff", 5)).ok());
  wire::Unknown gzip;
  gzip.set_contentencoding("gzip");
  EXPECT_FALSE(OpenEnvelope(std::string("k8s\0", 4) + gzip.SerializeAsString()).ok());
  wire::Unknown json;
  json.set_contenttype("application/json");
  EXPECT_FALSE(OpenEnvelope(std::string("k8s\0", 4) + json.SerializeAsString()).ok());
}

TEST(Watch, FrameOfEveryType) {
  const auto pod = Text<wire::Pod>(kPod);
  const std::pair<const char*, WatchEventType> types[] = {{"ADDED", WatchEventType::kAdded},
                                                          {"MODIFIED", WatchEventType::kModified},
                                                          {"DELETED", WatchEventType::kDeleted},
                                                          {"BOOKMARK", WatchEventType::kBookmark},
                                                          {"ERROR", WatchEventType::kError}};
  for (const auto& [text, type] : types) {
    const std::string bytes = Event(text, "Pod", pod).SerializeAsString();
    absl::StatusOr<WatchFrame> frame = DecodeWatchFrame(bytes);
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_EQ(frame->type, type);
    EXPECT_EQ(std::string(frame->object.kind), "Pod");
  }
  EXPECT_THAT(
      std::string(
          DecodeWatchFrame(Event("GONE", "Pod", pod).SerializeAsString()).status().message()),
      HasSubstr("\"GONE\""));
}

// No prefix of a frame is read beyond its end or accepted as the whole frame.
TEST(Watch, EveryPrefixIsRefused) {
  const std::string bytes = Event("ADDED", "Pod", Text<wire::Pod>(kPod)).SerializeAsString();
  Decoder decoder;
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string prefix = bytes.substr(0, length);
    EXPECT_FALSE(DecodeWatchFrame(prefix).ok()) << length;
  }
}

TEST(Watch, Bookmark) {
  Decoder decoder;
  const auto pod =
      Text<wire::Pod>(R"pb(metadata {
                             resourceVersion: "912"
                             annotations { key: "k8s.io/initial-events-end" value: "true" }
                           })pb");
  absl::StatusOr<Bookmark> bookmark = decoder.DecodeBookmark(pod.SerializeAsString());
  ASSERT_TRUE(bookmark.ok()) << bookmark.status();
  EXPECT_EQ(bookmark->resource_version, "912");
  EXPECT_TRUE(bookmark->initial_events_end);
  bookmark = decoder.DecodeBookmark(
      Text<wire::Node>("metadata { resourceVersion: \"5\" }").SerializeAsString());
  ASSERT_TRUE(bookmark.ok());
  EXPECT_FALSE(bookmark->initial_events_end);
  EXPECT_FALSE(decoder.DecodeBookmark("").ok());
}

TEST(Status, CarriesRetryAndCauses) {
  Decoder decoder;
  const auto status = Text<wire::Status>(R"pb(
    status: "Failure"
    message: "too old"
    reason: "Expired"
    code: 410
    details {
      retryAfterSeconds: 3
      causes { reason: "ResourceVersionTooLarge" message: "m" field: "f" }
    }
  )pb");
  absl::StatusOr<ApiStatus> decoded = decoder.DecodeStatus(status.SerializeAsString());
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->code, 410);
  EXPECT_EQ(decoded->reason, "Expired");
  EXPECT_EQ(decoded->retry_after_seconds, 3);
  ASSERT_EQ(decoded->causes.size(), 1u);
  EXPECT_EQ(decoded->causes[0].reason, "ResourceVersionTooLarge");
}

TEST(List, ItemsInOrderAndBadOnesNamed) {
  wire::PodList list;
  list.mutable_metadata()->set_resourceversion("1000");
  list.mutable_metadata()->set_continue_("next");
  list.mutable_metadata()->set_remainingitemcount(12);
  *list.add_items() = Text<wire::Pod>(kPod);
  *list.add_items() = Text<wire::Pod>(kPod);
  (*list.mutable_items(1)
        ->mutable_spec()
        ->mutable_containers(0)
        ->mutable_resources()
        ->mutable_requests())["cpu"]
      .set_string("lots");
  *list.add_items() = Text<wire::Pod>(kPod);
  list.mutable_items(2)->mutable_metadata()->set_name("web-3");
  Decoder decoder;
  absl::StatusOr<ListPage<PodObject>> page = decoder.DecodePodList(list.SerializeAsString());
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->resource_version, "1000");
  EXPECT_EQ(page->continue_token, "next");
  EXPECT_EQ(page->remaining_items, 12);
  ASSERT_EQ(page->items.size(), 2u);
  EXPECT_EQ(page->items[0]->key(), "shop/web-1");
  EXPECT_EQ(page->items[1]->key(), "shop/web-3");
  // The reused message keeps nothing of the rejected item.
  EXPECT_FALSE(page->items[1]->pod.containers(0).has_requests());
  ASSERT_EQ(page->rejected.size(), 1u);
  EXPECT_EQ(page->rejected[0].why,
            "items[1]: pod shop/web-1: spec.containers[0].resources.requests.cpu: "
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  EXPECT_EQ(page->rejected[0].identity.key(), "shop/web-1");
  EXPECT_EQ(page->rejected[0].identity.uid, page->items[0]->uid());
  EXPECT_EQ(page->rejected[0].identity.resource_version, page->items[0]->resource_version);
  EXPECT_FALSE(decoder.DecodePodList("\x0a\x50").ok());
}

TEST(Object, BoundsOfSizeAndNesting) {
  Decoder decoder;
  EXPECT_THAT(
      std::string(decoder.DecodePod(std::string(kMaxObjectBytes + 1, '\0')).status().message()),
      HasSubstr("at most"));
  // Unknown groups may nest without limit: the parser must stop.
  EXPECT_FALSE(decoder.DecodePod(std::string(100000, '\x63')).ok());
  EXPECT_FALSE(decoder.DecodePod("").ok()) << "no name";
  EXPECT_FALSE(decoder.DecodeNode("\xff\xff").ok());
}

}  // namespace
}  // namespace outboard::kube
