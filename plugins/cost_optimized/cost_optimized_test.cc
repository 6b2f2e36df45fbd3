#include "plugins/cost_optimized/cost_optimized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::cost_optimized::cost_optimized_test {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kNightArgs[] = R"({"windows": [{"from": "22:00", "to": "06:00", "factor": 0.5}]})";

absl::Time At(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error)) << text << ": " << error;
  return time;
}

// A harness whose clock the test sets.
std::unique_ptr<PluginHarness> Make(const std::string& args, const std::string& now) {
  absl::StatusOr<std::unique_ptr<PluginHarness>> harness =
      PluginHarness::Create(Descriptor(), args);
  EXPECT_TRUE(harness.ok()) << harness.status();
  (*harness)->SetNow(At(now));
  return *std::move(harness);
}

v1beta1::Pod Patient(const std::string& name, const std::string& latest_start = "") {
  PodBuilder pod(name);
  pod.proto().set_scheduler_name("default-scheduler");
  pod.Annotation("outboard/run-after-cheap-hours", "true");
  if (!latest_start.empty()) pod.Annotation("outboard/latest-start", latest_start);
  return pod.Build();
}

std::vector<std::string> TickAt(PluginHarness* harness, const std::string& now) {
  harness->SetNow(At(now));
  harness->Tick();
  return harness->TakeGateChanges();
}

TEST(CostOptimized, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/cost_optimized/testdata");
}

TEST(CostOptimized, LetsPodsGoWhenCheapHoursBegin) {
  auto harness = Make(kNightArgs, "2026-01-01T12:00:00Z");
  const v1beta1::Pod pod = Patient("p");
  EXPECT_FALSE(harness->PreEnqueue(pod).ok());
  EXPECT_THAT(TickAt(harness.get(), "2026-01-01T21:59:59Z"), IsEmpty());
  EXPECT_THAT(TickAt(harness.get(), "2026-01-01T22:00:00Z"), ElementsAre("default/p"));
  EXPECT_TRUE(harness->PreEnqueue(pod).ok());
  EXPECT_THAT(TickAt(harness.get(), "2026-01-01T22:00:01Z"), IsEmpty());
}

TEST(CostOptimized, LetsPodsGoAtTheirLatestStart) {
  auto harness = Make(kNightArgs, "2026-01-01T12:00:00Z");
  const v1beta1::Pod soon = Patient("soon", "2026-01-01T15:00:00+02:00");
  const v1beta1::Pod later = Patient("later");
  EXPECT_FALSE(harness->PreEnqueue(soon).ok());
  EXPECT_FALSE(harness->PreEnqueue(later).ok());
  EXPECT_THAT(TickAt(harness.get(), "2026-01-01T12:59:59Z"), IsEmpty());
  EXPECT_THAT(TickAt(harness.get(), "2026-01-01T13:00:00Z"), ElementsAre("default/soon"));
  EXPECT_TRUE(harness->PreEnqueue(soon).ok());
  EXPECT_FALSE(harness->PreEnqueue(later).ok());
}

// A push may overtake the answer that holds the pod.
TEST(CostOptimized, ReportsOpenPodsUntilTheShimAsks) {
  auto harness = Make(kNightArgs, "2026-01-01T21:59:59Z");
  const v1beta1::Pod pod = Patient("p");
  EXPECT_FALSE(harness->PreEnqueue(pod).ok());
  for (int i = 10; i < 40; ++i) {
    EXPECT_THAT(TickAt(harness.get(), "2026-01-01T22:00:" + std::to_string(i) + "Z"),
                ElementsAre("default/p"));
    v1beta1::Pod changed = pod;
    (*changed.mutable_labels())["round"] = std::to_string(i);
    harness->AddPod(changed);
  }
  for (int i = 10; i < 40; ++i) {
    EXPECT_THAT(TickAt(harness.get(), "2026-01-01T22:01:" + std::to_string(i) + "Z"),
                ElementsAre("default/p"));
  }
  harness->RemovePod("default/p");
  EXPECT_THAT(TickAt(harness.get(), "2026-01-01T22:01:00Z"), IsEmpty());
}

// The shim may still hold pods that an earlier host held; notifications for other pods end after a
// while.
TEST(CostOptimized, LetsGoWhatAHostBeforeHeld) {
  auto harness = Make(kNightArgs, "2026-01-01T12:00:00Z");
  harness->AddPod(Patient("p"));
  EXPECT_THAT(TickAt(harness.get(), "2026-01-01T21:00:00Z"), IsEmpty());
  int pushes = 0;
  for (int i = 10; i < 40; ++i) {
    pushes += TickAt(harness.get(), "2026-01-01T22:00:" + std::to_string(i) + "Z").empty() ? 0 : 1;
  }
  EXPECT_EQ(pushes, 5);
}

TEST(CostOptimized, IgnoresPlacedPodsAndPodsOfOtherProfiles) {
  auto harness = Make(kNightArgs, "2026-01-01T12:00:00Z");
  harness->AddNode(NodeBuilder("n").Allocatable({{"cpu", "4"}}));
  const v1beta1::Pod placed = Patient("placed");
  EXPECT_FALSE(harness->PreEnqueue(placed).ok());
  harness->Place("default/placed", v1beta1::PLACEMENT_STATE_ASSUMED, "n");
  v1beta1::Pod other = Patient("other");
  other.set_scheduler_name("another");
  harness->AddPod(other);
  EXPECT_THAT(TickAt(harness.get(), "2026-01-01T22:00:00Z"), IsEmpty());
}

TEST(CostOptimized, HoldsAgainWhatFoundNoRoomInTime) {
  auto harness = Make(kNightArgs, "2026-01-01T23:00:00Z");
  const v1beta1::Pod pod = Patient("p");
  EXPECT_TRUE(harness->PreEnqueue(pod).ok());
  harness->SetNow(At("2026-01-02T06:00:00Z"));
  EXPECT_EQ(harness->PreEnqueue(pod).reasons()[0],
            "waiting for cheap hours, which begin at 2026-01-02T22:00:00Z");
  EXPECT_THAT(TickAt(harness.get(), "2026-01-02T22:00:00Z"), ElementsAre("default/p"));
}

// The reason follows the clock, also backwards.
TEST(CostOptimized, NamesTheNextCheapHours) {
  auto harness = Make(kNightArgs, "2026-01-05T12:00:00Z");
  const v1beta1::Pod pod = Patient("p");
  EXPECT_EQ(harness->PreEnqueue(pod).reasons()[0],
            "waiting for cheap hours, which begin at 2026-01-05T22:00:00Z");
  harness->SetNow(At("2026-01-03T12:00:00Z"));
  EXPECT_EQ(harness->PreEnqueue(pod).reasons()[0],
            "waiting for cheap hours, which begin at 2026-01-03T22:00:00Z");
}

TEST(CostOptimized, NodesThatGoLeaveNoPriceBehind) {
  auto harness = Make("", "2026-01-01T12:00:00Z");
  harness->AddNode(NodeBuilder("cheap")
                       .Label("node-cost-per-hour", "0")
                       .Label("karpenter.sh/capacity-type", "spot"));
  harness->RemoveNode("cheap");
  harness->AddNode(NodeBuilder("plain"));
  const auto raw = harness->RawScore(PodBuilder("p"));
  ASSERT_TRUE(raw.ok());
  EXPECT_EQ(raw->at("plain"), 0);
}

// For any labels, a node gets at most the formula's maximum, and a node without readable labels at
// most the base (classic) or nothing.
TEST(CostOptimized, NothingAbsurdWins) {
  const std::vector<std::string> absurd = {
      "",     "-1",   "-0", "1e309", "nan",  "inf",  "0x0", "1,5",  "٣",   "999999999999999999999",
      "true", "NULL", "$1", "1.2.3", "1e-1", "\xff", "--",  "1e99", "+.5", std::string(300, '9')};
  std::mt19937 random(1);
  constexpr char kClassic[] =
      R"({"formula": "classic", "windows": [{"from": "22:00", "to": "06:00", "factor": 0.5}]})";
  auto harness = Make(kClassic, "2026-01-01T23:00:00Z");
  auto relative = Make(kNightArgs, "2026-01-01T23:00:00Z");
  for (int round = 0; round < 500; ++round) {
    const auto pick = [&] { return absurd[random() % absurd.size()]; };
    const std::string cost = pick();
    NodeBuilder node("n");
    node.Label("node-cost-per-hour", cost)
        .Label("cloud.google.com/gke-spot", pick())
        .Label("karpenter.sh/capacity-type", pick());
    harness->AddNode(node);
    relative->AddNode(node);
    const bool is_spot =
        harness->cluster().FindNode("n")->Label("cloud.google.com/gke-spot") == "true";
    const auto raw = harness->RawScore(PodBuilder("p"));
    ASSERT_TRUE(raw.ok());
    const bool has_cost = cost == "1e-1";
    EXPECT_EQ(raw->at("n"), 100 + (is_spot ? 200 : 0) + (has_cost ? 99 : 0)) << cost;
    const auto compared = relative->RawScore(PodBuilder("p"));
    ASSERT_TRUE(compared.ok());
    EXPECT_EQ(compared->at("n"), has_cost ? 100 : 0) << cost;
    v1beta1::Pod pod = Patient("q", pick());
    EXPECT_TRUE(harness->PreEnqueue(pod).ok());
    harness->RemovePod("default/q");
  }
}

std::string WriteList(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/cost_optimized_prices.csv";
  std::ofstream(path) << text;
  return path;
}

TEST(CostOptimized, ReadsAPriceList) {
  const std::string path = WriteList(
      "instanceType,capacityType,price\nsmall,on-demand,0.4\nsmall,spot,0.1\nlarge,,0.8\n");
  auto harness = Make(R"({"prices": {"file": ")" + path + R"("}})", "2026-01-01T12:00:00Z");
  const auto add = [&](const std::string& name, const std::string& type) {
    NodeBuilder node(name);
    node.Allocatable({{"cpu", "4"}, {"memory", "8Gi"}});
    node.Label("node.kubernetes.io/instance-type", type);
    return node;
  };
  harness->AddNode(add("a", "small"));
  harness->AddNode(add("b", "small").Label("karpenter.sh/capacity-type", "spot"));
  harness->AddNode(add("c", "large"));
  harness->AddNode(add("d", "large").Label("node-cost-per-hour", "0.2"));
  harness->AddNode(add("e", "unlisted"));
  const auto raw = harness->RawScore(PodBuilder("p").Requests({{"cpu", "1"}}));
  ASSERT_TRUE(raw.ok());
  EXPECT_THAT(*raw, UnorderedElementsAre(Pair("a", 25), Pair("b", 100), Pair("c", 13),
                                         Pair("d", 50), Pair("e", 0)));
  EXPECT_EQ(harness->Metric("outboard_cost_optimized_unknown_nodes", {"default-scheduler"}), 1);
  harness->RemoveNode("e");
  EXPECT_EQ(harness->Metric("outboard_cost_optimized_unknown_nodes", {"default-scheduler"}), 0);
}

// Returns what the test sets.
class FakeSource : public PriceSource {
 public:
  std::shared_ptr<const PriceSnapshot> Latest() const override { return latest; }
  std::shared_ptr<const PriceSnapshot> latest;
};

TEST(CostOptimized, ReadsPublishedPricesUntilTheyAreTooOld) {
  auto source = std::make_shared<FakeSource>();
  auto harness = *PluginHarness::Create(
      DescriptorWith([&](const PriceReaderOptions&, sdk::Metrics*) { return source; }),
      R"({"prices": {"maxAge": "10m", "prometheus": {"address": "http://p:9090"}}})");
  for (const char* name : {"a", "b"})
    harness->AddNode(NodeBuilder(name).Allocatable({{"cpu", "4"}, {"memory", "8Gi"}}));
  const auto raw = [&] { return *harness->RawScore(PodBuilder("p").Requests({{"cpu", "1"}})); };
  const auto metric = [&](const char* name) {
    return harness->Metric(std::string("outboard_cost_optimized_") + name, {"default-scheduler"});
  };
  TickAt(harness.get(), "2026-01-01T12:00:00Z");
  EXPECT_THAT(raw(), UnorderedElementsAre(Pair("a", 0), Pair("b", 0)));
  EXPECT_EQ(metric("unknown_nodes"), 2);

  source->latest = std::make_shared<PriceSnapshot>(
      PriceSnapshot{At("2026-01-01T12:00:01Z"), {{{"a", 0.9}, {"b", 0.1}}, {}}});
  TickAt(harness.get(), "2026-01-01T12:00:02Z");
  EXPECT_THAT(raw(), UnorderedElementsAre(Pair("a", 11), Pair("b", 100)));
  EXPECT_EQ(metric("unknown_nodes"), 0);
  EXPECT_EQ(metric("price_age_seconds"), 1);

  TickAt(harness.get(), "2026-01-01T12:10:01Z");
  EXPECT_THAT(raw(), UnorderedElementsAre(Pair("a", 11), Pair("b", 100)));
  TickAt(harness.get(), "2026-01-01T12:10:02Z");
  EXPECT_THAT(raw(), UnorderedElementsAre(Pair("a", 0), Pair("b", 0)));
  EXPECT_EQ(metric("unknown_nodes"), 2);
  EXPECT_EQ(metric("price_age_seconds"), 601);
}

TEST(CostOptimized, AsksPrometheusOnlyIfTheArgumentsNameOne) {
  int made = 0;
  const sdk::PluginDescriptor descriptor =
      DescriptorWith([&](const PriceReaderOptions& options, sdk::Metrics*) {
        ++made;
        EXPECT_EQ(options.server.address, "http://p:9090");
        EXPECT_EQ(options.matchers.at("cluster"), "a");
        return std::make_shared<FakeSource>();
      });
  EXPECT_TRUE(PluginHarness::Create(descriptor, "").ok());
  EXPECT_EQ(made, 0);
  EXPECT_TRUE(
      PluginHarness::Create(
          descriptor,
          R"({"prices": {"prometheus": {"address": "http://p:9090", "matchers": {"cluster": "a"}}}})")
          .ok());
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace outboard::cost_optimized::cost_optimized_test
