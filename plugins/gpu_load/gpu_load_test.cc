#include "plugins/gpu_load/gpu_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::gpu_load {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kArgs[] = R"({"prometheus": {"address": "http://p:9090"}})";

absl::Time At(int seconds) {
  return absl::FromCivil(absl::CivilSecond(2026, 1, 1), absl::UTCTimeZone()) +
         absl::Seconds(seconds);
}

// Returns what the test sets.
class FakeSource : public LoadSource {
 public:
  std::shared_ptr<const LoadSnapshot> Latest() const override { return latest; }
  std::shared_ptr<const LoadSnapshot> latest;
};

HostLoad Host(std::string name, double use, std::optional<double> memory = {}, int age = 0) {
  return {{std::move(name)}, use, memory, absl::Seconds(age)};
}

LoadSnapshot Snapshot(int asked, std::vector<HostLoad> hosts, std::vector<Veto> vetoes = {}) {
  return {At(asked), std::move(hosts), std::move(vetoes)};
}

class GpuLoadTest : public ::testing::Test {
 protected:
  void Start(const char* args = kArgs) {
    auto harness = PluginHarness::Create(
        DescriptorWith([this](const ReaderOptions&, sdk::Metrics*) { return source_; }), args);
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    harness_->SetNow(At(0));
    for (const char* name : {"n1", "n2"}) AddNode(name);
  }
  void AddNode(const std::string& name) {
    harness_->AddNode(NodeBuilder(name).Allocatable({{"cpu", "64"}, {"nvidia.com/gpu", "8"}}));
  }
  void Publish(LoadSnapshot snapshot) {
    source_->latest = std::make_shared<LoadSnapshot>(std::move(snapshot));
  }
  void Tick(int seconds) {
    harness_->SetNow(At(seconds));
    harness_->Tick();
  }
  static PodBuilder Pod(const std::string& name, const std::string& gpus = "1") {
    return PodBuilder(name).Requests({{"nvidia.com/gpu", gpus}});
  }
  std::map<std::string, int64_t> Scores(const std::string& pod) {
    const auto scores = harness_->Score(Pod(pod));
    EXPECT_TRUE(scores.ok()) << scores.status();
    return *scores;
  }
  double Metric(const char* name, std::vector<std::string> values) {
    values.insert(values.begin(), "default-scheduler");
    return harness_->Metric(absl::StrCat("outboard_gpu_load_", name), values).value_or(-1);
  }

  std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>();
  std::unique_ptr<PluginHarness> harness_;
};

// The cases' cluster: Prometheus' figures follow from the nodes' names.
TEST(GPULoadTest, Cases) {
  auto source = std::make_shared<FakeSource>();
  source->latest = std::make_shared<LoadSnapshot>(
      Snapshot(-10,
               {Host("idle", 0, 0),
                Host("busy", 0.9, 0.8),
                Host("half", 0.5, 0.2),
                Host("full", 1, 1),
                Host("memory-taken", 0, 0.9),
                Host("no-memory", 0.4),
                Host("aging", 0.1, 0.1, 110),
                Host("aged", 0.1, 0.1, 111),
                Host("fqdn.example.com", 0.25, 0.25),
                {{"dcgm-exporter-x7k2p", "by-second-label"}, 0.2, 0.2, absl::ZeroDuration()},
                {{"10.0.0.9:9400"}, 0.3, 0.3, absl::ZeroDuration()},
                Host("elsewhere", 0, 0),
                Host("twice", 0.9, 0.9, 20),
                {{"twice", "other"}, 0.1, 0.1, absl::Seconds(5)}},
               {{{"dead"}, "3", 79, At(60)},
                {{"ended"}, "3", 79, At(0)},
                {{"unnumbered"}, "", 48, At(60)},
                {{"wrecked"}, "10", 48, At(60)},
                {{"wrecked"}, "9", 79, At(60)},
                {{"wrecked"}, "1", 64, At(60)},
                {{"wrecked"}, "2", 64, At(60)},
                {{"wrecked"}, "0", 62, At(60)},
                {{"elsewhere"}, "0", 79, At(60)}}));
  sdk::testing::RunCases(
      DescriptorWith([&](const ReaderOptions&, sdk::Metrics*) { return source; }),
      "plugins/gpu_load/testdata");
}

TEST_F(GpuLoadTest, WithoutDataAllNodesAreEqual) {
  Start();
  Tick(0);
  EXPECT_THAT(Scores("a"), UnorderedElementsAre(Pair("n1", 50), Pair("n2", 50)));
  EXPECT_EQ(Metric("nodes", {"unmeasured"}), 2);
  EXPECT_EQ(Metric("sample_age_seconds", {"oldest"}), 0) << "no sample";
}

// A sample counts until it is too old, even without a newer snapshot.
TEST_F(GpuLoadTest, SamplesGrowOld) {
  Start();
  Publish(Snapshot(0, {Host("n1", 0.5), Host("n2", 0, 0, 60)}));
  Tick(0);
  EXPECT_THAT(Scores("a"), UnorderedElementsAre(Pair("n1", 50), Pair("n2", 100)));
  Tick(60);
  EXPECT_THAT(Scores("b"), UnorderedElementsAre(Pair("n1", 50), Pair("n2", 100)));
  EXPECT_EQ(Metric("nodes", {"measured"}), 2);
  EXPECT_EQ(Metric("sample_age_seconds", {"oldest"}), 120);
  EXPECT_EQ(Metric("sample_age_seconds", {"newest"}), 60);
  Tick(61);
  EXPECT_THAT(Scores("c"), UnorderedElementsAre(Pair("n1", 50), Pair("n2", 50)));
  EXPECT_EQ(Metric("nodes", {"unmeasured"}), 1);
  EXPECT_EQ(Metric("sample_age_seconds", {"oldest"}), 121) << "too old, but still reported";
  // Prometheus returns.
  Publish(Snapshot(65, {Host("n1", 0.5), Host("n2", 0.2, 0.2)}));
  Tick(66);
  EXPECT_THAT(Scores("d"), UnorderedElementsAre(Pair("n1", 50), Pair("n2", 80)));
}

// A burst of pods must not all go to the node that looks idle.
TEST_F(GpuLoadTest, PodsThatDoNotShowYetAreEstimated) {
  Start();
  Publish(Snapshot(0, {Host("n1", 0.1, 0.1), Host("n2", 0.3, 0.3)}));
  Tick(1);
  EXPECT_THAT(Scores("a"), UnorderedElementsAre(Pair("n1", 90), Pair("n2", 70)));
  harness_->AddPod(Pod("a", "2"));
  harness_->Place("default/a", v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  EXPECT_THAT(Scores("b"), UnorderedElementsAre(Pair("n1", 65), Pair("n2", 70)));
  // Binding is an update, not a new pod.
  Tick(20);
  harness_->AddPod(Pod("a", "2").OnNode("n1"));
  // Samples from before its settling time (1m) do not include it.
  Publish(Snapshot(60, {Host("n1", 0.1, 0.1), Host("n2", 0.3, 0.3)}));
  Tick(61);
  EXPECT_THAT(Scores("c"), UnorderedElementsAre(Pair("n1", 65), Pair("n2", 70)));
  Publish(Snapshot(61, {Host("n1", 0.35, 0.35), Host("n2", 0.3, 0.3)}));
  Tick(62);
  EXPECT_THAT(Scores("d"), UnorderedElementsAre(Pair("n1", 65), Pair("n2", 70)));
  // The kubelet started it later than it was bound.
  v1beta1::Pod started = Pod("a", "2").OnNode("n1");
  started.set_start_unix_seconds(absl::ToUnixSeconds(At(30)));
  harness_->AddPod(started);
  EXPECT_THAT(Scores("e"), UnorderedElementsAre(Pair("n1", 40), Pair("n2", 70)));
  Publish(Snapshot(90, {Host("n1", 0.35, 0.35), Host("n2", 0.3, 0.3)}));
  Tick(90);
  EXPECT_THAT(Scores("f"), UnorderedElementsAre(Pair("n1", 65), Pair("n2", 70)));
  // Use is capped at the whole, and deleted pods do not count.
  harness_->AddPod(Pod("big", "8"));
  harness_->Place("default/big", v1beta1::PLACEMENT_STATE_ASSUMED, "n2");
  EXPECT_THAT(Scores("g"), UnorderedElementsAre(Pair("n1", 65), Pair("n2", 0)));
  harness_->RemovePod("default/big");
  EXPECT_THAT(Scores("h"), UnorderedElementsAre(Pair("n1", 65), Pair("n2", 70)));
}

// After a restart, pods are part of the first snapshot of the cluster.
TEST_F(GpuLoadTest, ExistingPodsHaveTheirStartTimeFromTheKubelet) {
  Start();
  const auto pod = [&](const char* name, int created, int started) {
    v1beta1::Pod made = Pod(name, "2").OnNode("n1");
    made.set_creation_unix_seconds(absl::ToUnixSeconds(At(created)));
    if (started != 0) made.set_start_unix_seconds(absl::ToUnixSeconds(At(started)));
    return made;
  };
  harness_->AddPod(pod("old", -4000, -3600));
  harness_->AddPod(pod("waited-long", -4000, -59));
  harness_->AddPod(pod("new", -20, 0));
  Publish(Snapshot(0, {Host("n1", 0, 0)}));
  Tick(0);
  EXPECT_EQ(Scores("a")["n1"], 50);
}

TEST_F(GpuLoadTest, VetoesEndAndWakeThoseThatTheyRejected) {
  Start();
  Publish(Snapshot(0, {}, {{{"n1"}, "3", 79, At(100)}, {{"n2"}, "0", 48, At(50)}}));
  Tick(0);
  EXPECT_EQ(Metric("nodes", {"vetoed"}), 2);
  const auto verdict = [&](const char* pod, const char* node) {
    return harness_->Filter(Pod(pod)).at(node);
  };
  EXPECT_EQ(verdict("a", "n1"), sdk::Verdict::Unresolvable("GPU error: XID 79 on GPU 3"));
  EXPECT_EQ(verdict("b", "n2"), sdk::Verdict::Unresolvable("GPU error: XID 48 on GPU 0"));
  // Pods without GPUs run there.
  EXPECT_TRUE(harness_->Filter(PodBuilder("cpu")).at("n1").ok());
  Tick(49);
  EXPECT_THAT(harness_->TakeActivated(), IsEmpty());
  Tick(50);
  EXPECT_THAT(harness_->TakeActivated(), UnorderedElementsAre("default/a", "default/b"));
  EXPECT_TRUE(verdict("b", "n2").ok());
  EXPECT_FALSE(verdict("a", "n1").ok());
  // A later reading ends it, too. Deleted pods, and pods with a place, are not activated.
  verdict("gone", "n1");
  verdict("placed", "n1");
  harness_->RemovePod("default/gone");
  harness_->Place("default/placed", v1beta1::PLACEMENT_STATE_ASSUMED, "n2");
  Publish(Snapshot(60, {}));
  Tick(60);
  EXPECT_THAT(harness_->TakeActivated(), UnorderedElementsAre("default/a", "default/b"));
  EXPECT_TRUE(verdict("a", "n1").ok());
  EXPECT_EQ(Metric("nodes", {"vetoed"}), 0);
}

// A veto that Prometheus could not renew ends by itself.
TEST_F(GpuLoadTest, NodesThatComeAndGo) {
  Start();
  Publish(Snapshot(0, {Host("n3", 0.5, 0.5), Host("n1", 0, 0)}, {{{"n1"}, "0", 79, At(1000)}}));
  Tick(0);
  EXPECT_EQ(Metric("unknown_hosts", {}), 1);
  // Another node gets its slot, without its state.
  harness_->RemoveNode("n1");
  AddNode("n4");
  EXPECT_EQ(Scores("a")["n4"], 50);
  EXPECT_TRUE(harness_->Filter(Pod("b")).at("n4").ok());
  AddNode("n3");
  Tick(1);
  EXPECT_EQ(Scores("c")["n3"], 50);
  EXPECT_EQ(Metric("nodes", {"measured"}), 1);
  EXPECT_EQ(Metric("unknown_hosts", {}), 1) << "n1";
}

TEST(GPULoadTest, EveryArgReachesTheReader) {
  ReaderOptions seen;
  const auto harness = PluginHarness::Create(
      DescriptorWith([&](const ReaderOptions& options, sdk::Metrics*) {
        seen = options;
        return std::make_shared<FakeSource>();
      }),
      R"({"prometheus": {"address": "https://p:9090/prefix/", "bearerTokenFile": "/t", "caFile": "/ca",
          "timeout": "3s", "matchers": {"cluster": "a"}}, "period": "30s", "maxSampleAge": "1m30s",
          "nodeLabels": ["node"], "xid": {"vetoCodes": [79, 48, 79], "vetoFor": "0s"}})");
  ASSERT_TRUE(harness.ok()) << harness.status();
  ReaderOptions want;
  want.server = {"https://p:9090/prefix/", "/t", "/ca", absl::Seconds(3)};
  want.query = {{"node"}, {{"cluster", "a"}}, absl::Seconds(90)};
  want.period = absl::Seconds(30);
  want.veto_codes = {48, 79};
  want.veto_for = absl::ZeroDuration();
  EXPECT_EQ(seen, want);
}

}  // namespace
}  // namespace outboard::gpu_load
