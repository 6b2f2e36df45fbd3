#include "shim/informer/resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/document.h"

namespace outboard::informer::resources_test {
namespace {

constexpr char kProfile[] = "gpu-extender";

std::string PodJson(const std::string& scheduler) {
  return absl::StrCat(
      R"({"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":{)",
      scheduler.empty() ? "" : absl::StrCat(R"("schedulerName":")", scheduler, "\""), "}}");
}

kube::wire::Pod WirePod(const std::string& scheduler) {
  kube::wire::Pod pod;
  pod.mutable_metadata()->set_name("p");
  pod.mutable_metadata()->set_namespace_("n");
  pod.mutable_metadata()->set_uid("u");
  pod.mutable_spec()->set_schedulername(scheduler);
  return pod;
}

void ExpectTaken(const kube::PodPtr& pod) {
  EXPECT_TRUE(pod->externally_scheduled);
  EXPECT_EQ(pod->pod.scheduler_name(), kProfile);
  EXPECT_EQ(pod->key(), "n/p");
}

void ExpectUnchanged(const kube::PodPtr& pod, const std::string& scheduler) {
  EXPECT_FALSE(pod->externally_scheduled);
  EXPECT_EQ(pod->pod.scheduler_name(), scheduler);
}

// Watches and lists, in both encodings.
TEST(PodsOfExtender, TakesThePodsOfTheSchedulersThatAskIt) {
  const Resource<kube::PodObject> pods =
      PodsOfExtender({"default-scheduler", "batch-scheduler"}, kProfile);
  EXPECT_EQ(pods.path, Pods().path);
  kube::Decoder decoder;
  for (const char* scheduler : {"", "default-scheduler", "batch-scheduler"}) {
    const auto document = kube::ParseJson("p", PodJson(scheduler));
    ASSERT_TRUE(document.ok()) << document.status();
    const auto pod = pods.decode_json(*document);
    ASSERT_TRUE(pod.ok()) << pod.status();
    ExpectTaken(*pod);
    const auto decoded = pods.decode(decoder, WirePod(scheduler).SerializeAsString());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ExpectTaken(*decoded);
  }
  kube::wire::PodList list;
  *list.add_items() = WirePod("");
  *list.add_items() = WirePod(kProfile);
  const auto page = pods.decode_list(decoder, list.SerializeAsString());
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->items.size(), 2u);
  ExpectTaken(page->items[0]);
  ExpectUnchanged(page->items[1], kProfile);
  const auto document = kube::ParseJson(
      "list", absl::StrCat(R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":[)",
                           PodJson("another"), ",", PodJson("batch-scheduler"), "]}"));
  ASSERT_TRUE(document.ok()) << document.status();
  const auto json_page = pods.decode_list_json(*document);
  ASSERT_TRUE(json_page.ok()) << json_page.status();
  ASSERT_EQ(json_page->items.size(), 2u);
  ExpectUnchanged(json_page->items[0], "another");
  ExpectTaken(json_page->items[1]);
}

TEST(PodsOfExtender, WithoutSchedulersNoPodIsTaken) {
  const auto document = kube::ParseJson("p", PodJson(""));
  ASSERT_TRUE(document.ok()) << document.status();
  const auto pod = PodsOfExtender({}, kProfile).decode_json(*document);
  ASSERT_TRUE(pod.ok()) << pod.status();
  ExpectUnchanged(*pod, "default-scheduler");
}

TEST(PodsOfExtender, AnInvalidPodStaysAnError) {
  const auto document = kube::ParseJson("p", R"({"metadata":{"name":1}})");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_FALSE(PodsOfExtender({"default-scheduler"}, kProfile).decode_json(*document).ok());
}

}  // namespace
}  // namespace outboard::informer::resources_test
