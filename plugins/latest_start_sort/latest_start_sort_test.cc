#include "plugins/latest_start_sort/latest_start_sort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::latest_start_sort::latest_start_sort_test {

using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSla[] = "outboard/sla-latest-start";
constexpr char kCheap[] = "outboard/latest-start";

class LatestStartSortTest : public ::testing::Test {
 protected:
  void Start(const std::string& args = "") {
    auto harness = PluginHarness::Create(Descriptor(), args);
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
  }
  // Created at this hour of 2026-01-01.
  static PodBuilder Pod(const std::string& name, int hour = 0) {
    PodBuilder pod(name);
    pod.proto().set_creation_unix_seconds(absl::ToUnixSeconds(
        absl::FromCivil(absl::CivilHour(2026, 1, 1, hour), absl::UTCTimeZone())));
    return pod;
  }
  static std::string Hour(int hour) { return absl::StrCat("2026-01-01T", hour, ":00:00Z"); }
  // Names in the order of the queue.
  std::vector<std::string> Order(const std::vector<v1beta1::Pod>& pods) {
    std::vector<std::pair<std::string, std::string>> keys;
    for (const v1beta1::Pod& pod : pods) keys.emplace_back(harness_->SortKey(pod), pod.name());
    std::stable_sort(keys.begin(), keys.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> names;
    for (const auto& [key, name] : keys) names.push_back(name);
    return names;
  }

  std::unique_ptr<PluginHarness> harness_;
};

TEST_F(LatestStartSortTest, TheLeastSlackIsFirst) {
  Start();
  EXPECT_THAT(
      Order({Pod("evening").Annotation(kSla, Hour(20)), Pod("noon").Annotation(kSla, Hour(12)),
             Pod("past").Annotation(kSla, "2025-12-31T23:00:00Z"),
             Pod("cheap").Annotation(kCheap, Hour(15))}),
      ElementsAre("past", "noon", "cheap", "evening"));
}

TEST_F(LatestStartSortTest, PriorityDecidesFirst) {
  Start();
  EXPECT_THAT(Order({Pod("soon").Annotation(kSla, Hour(10)).Priority(-1),
                     Pod("late").Annotation(kSla, Hour(20)).Priority(5), Pod("none").Priority(6)}),
              ElementsAre("none", "late", "soon"));
}

// Otherwise pods with a far latest start would always be before those without one.
TEST_F(LatestStartSortTest, PodsWithoutOneHaveAnAssumedSlack) {
  Start(R"({"assumedSlack": "12h"})");
  EXPECT_THAT(Order({Pod("old", 0), Pod("young", 9), Pod("noon").Annotation(kSla, Hour(11)),
                     Pod("evening").Annotation(kSla, Hour(20)),
                     Pod("malformed", 1).Annotation(kSla, "tomorrow"),
                     Pod("second", 5).Annotation(kSla, "?").Annotation(kCheap, Hour(14))}),
              ElementsAre("noon", "old", "malformed", "second", "evening", "young"));
}

TEST_F(LatestStartSortTest, AMalformedTimeCountsAsAbsent) {
  Start();
  EXPECT_EQ(harness_->SortKey(Pod("a").Annotation(kSla, "2026-13-01T00:00:00Z")),
            harness_->SortKey(Pod("b")));
}

// The queue orders equal keys by the time of queueing.
TEST_F(LatestStartSortTest, KeysDoNotChangeWhileThePodWaits) {
  Start();
  const v1beta1::Pod pod = Pod("p").Annotation(kSla, Hour(12));
  harness_->SetNow(absl::FromUnixSeconds(1767225600));
  const std::string key = harness_->SortKey(pod);
  EXPECT_EQ(key.size(), 12u);
  harness_->SetNow(absl::FromUnixSeconds(1767225600 + 86400));
  harness_->Tick();
  EXPECT_EQ(harness_->SortKey(pod), key);
  EXPECT_EQ(harness_->SortKey(Pod("q").Annotation(kSla, Hour(12))), key);
}

TEST_F(LatestStartSortTest, ArgsHaveARange) {
  for (const char* bad : {"-1s", "8760h1s"}) {
    EXPECT_THAT(std::string(PluginHarness::Create(Descriptor(),
                                                  absl::StrCat(R"({"assumedSlack": ")", bad, "\"}"))
                                .status()
                                .message()),
                HasSubstr("assumedSlack: Invalid value: "))
        << bad;
  }
  Start(R"({"assumedSlack": "8760h"})");
  Start(R"({"assumedSlack": "0s"})");
}

}  // namespace outboard::latest_start_sort::latest_start_sort_test
