#include "plugins/pod_topology_spread/spread_index.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::pod_topology_spread {
namespace {

using sdk::Slot;
using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

// An index with small limits that observes a harness.
class Watcher : public sdk::Plugin, public sdk::ClusterObserver, public sdk::PreFilterPlugin {
 public:
  explicit Watcher(const sdk::ClusterView& cluster)
      : index(cluster, {.topologies = 2, .groups = 2, .selectors = 3, .sums_of_selector = 2}) {}
  sdk::Verdict PreFilter(const sdk::Attempt&, sdk::PreFilterResult*) const override {
    return sdk::Verdict::Skip();
  }
  void OnReset() override { index.Reset(); }
  void OnNodeChanged(Slot slot) override { index.NodeChanged(slot); }
  void OnNodeRemoved(Slot slot, const std::string& name) override { index.NodeChanged(slot); }
  void OnPodAddedToNode(const sdk::PodRecord& pod, Slot slot) override {
    index.PodAdded(pod, slot);
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, Slot slot) override {
    index.PodRemoved(pod, slot);
  }
  SpreadIndex index;
};

class SpreadIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    sdk::PluginDescriptor descriptor;
    descriptor.name = "Watcher";
    descriptor.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER};
    descriptor.create = [](const sdk::PluginContext& context) {
      return std::make_unique<Watcher>(context.cluster);
    };
    auto created = PluginHarness::Create(descriptor);
    ASSERT_TRUE(created.ok()) << created.status();
    harness_ = std::move(*created);
  }
  SpreadIndex& index() { return dynamic_cast<Watcher&>(harness_->plugin()).index; }
  static PodSelector App(const std::string& value) {
    PodSelector selector = PodSelector::Everything();
    selector.AddLabel("app", value);
    return selector;
  }
  // By label value: matching pods and number of nodes.
  std::map<std::string, std::pair<int64_t, int>> Sums(const std::string& ns, const std::string& app,
                                                      const std::string& key,
                                                      const NodeGroupSpec& group) {
    const auto topology = index().TopologyOf(key);
    const auto matching = index().Matching(ns, App(app));
    const auto sums = index().SumsOf(*matching, topology, index().GroupOf(group));
    std::map<std::string, std::pair<int64_t, int>> result;
    for (Slot slot : harness_->cluster().node_order()) {
      const Domain domain = topology->Of(slot);
      const std::string value(harness_->cluster().node(slot).Label(key).value_or(""));
      const Domain counted = domain == kNoDomain ? kEmptyValueDomain : domain;
      if (sums->nodes(counted) > 0) result[value] = {sums->pods(counted), sums->nodes(counted)};
    }
    EXPECT_EQ(sums->present(), static_cast<int64_t>(result.size()));
    return result;
  }
  std::map<std::string, std::pair<int64_t, int>> Recount(const std::string& ns,
                                                         const std::string& app,
                                                         const std::string& key,
                                                         const std::string& pool) {
    std::map<std::string, std::pair<int64_t, int>> result;
    for (Slot slot : harness_->cluster().node_order()) {
      const sdk::NodeView node = harness_->cluster().node(slot);
      if (!pool.empty() && node.Label("pool") != pool) continue;
      auto& [pods, nodes] = result[std::string(node.Label(key).value_or(""))];
      ++nodes;
      for (const sdk::PodRecord* pod : node.pods()) {
        pods += pod->pod.namespace_() == ns && pod->pod.labels().at("app") == app;
      }
    }
    return result;
  }

  std::unique_ptr<PluginHarness> harness_;
};

TEST_F(SpreadIndexTest, IsRightWhateverHadToBeDroppedBefore) {
  std::mt19937 random(7);
  auto pick = [&](std::initializer_list<const char*> values) {
    return std::string(*(values.begin() + random() % values.size()));
  };
  for (int step = 0; step < 4000; ++step) {
    const std::string name = absl::StrCat("n", random() % 6);
    if (random() % 3 == 0) {
      if (random() % 3 == 0 && harness_->cluster().FindNode(name)) {
        harness_->RemoveNode(name);
      } else {
        NodeBuilder node(name);
        node.Label("pool", pick({"x", "y", "z"})).Label("host", name);
        if (random() % 4 > 0) node.Label("zone", pick({"a", "b", "c"}));
        if (random() % 2 > 0) node.Label("rack", absl::StrCat("r", random() % 30));
        harness_->AddNode(node);
      }
    } else {
      harness_->AddPod(PodBuilder(absl::StrCat("p", random() % 20), pick({"s", "t"}))
                           .Label("app", pick({"a", "b", "c"}))
                           .OnNode(name));
    }
    const std::string ns = pick({"s", "t"}), app = pick({"a", "b", "c"});
    const std::string key = pick({"zone", "zone", "rack", "host"}),
                      pool = pick({"", "x", "y", "z"});
    NodeGroupSpec group;
    v1beta1::Pod pod = PodBuilder("p");
    if (!pool.empty()) (*pod.mutable_node_selector())["pool"] = pool;
    group.affinity_of = &pod;
    ASSERT_EQ(Sums(ns, app, key, group), Recount(ns, app, key, pool)) << "step " << step;
    ASSERT_LE(index().columns(), 7u);
  }
}

// Autoscaled clusters produce new host names without end.
TEST_F(SpreadIndexTest, GivesDomainsOfGoneNodesToOthers) {
  harness_->AddNode(NodeBuilder("stays").Label("host", "stays"));
  for (int i = 0; i < 100; ++i) {
    const std::string name = absl::StrCat("n", i);
    harness_->AddNode(NodeBuilder(name).Label("host", name));
    harness_->AddPod(PodBuilder(name).Label("app", "a").OnNode(name));
    EXPECT_EQ(Sums("default", "a", "host", {}), Recount("default", "a", "host", ""));
    harness_->RemovePod("default/" + name);
    harness_->RemoveNode(name);
  }
  EXPECT_LE(index().TopologyOf("host")->size(), 3u);
}

TEST_F(SpreadIndexTest, DropsUnusedColumns) {
  harness_->AddNode(NodeBuilder("n").Label("zone", "a"));
  harness_->AddPod(PodBuilder("p").Label("app", "a").OnNode("n"));
  EXPECT_EQ(Sums("default", "a", "zone", {})["a"].first, 1);
  EXPECT_EQ(index().columns(), 3u);
  for (int i = 0; i < 600; ++i) index().Tick();
  EXPECT_EQ(index().columns(), 3u);
  EXPECT_EQ(Sums("default", "a", "zone", {})["a"].first, 1);
  for (int i = 0; i < 600; ++i) index().Tick();
  EXPECT_EQ(index().columns(), 3u);
  index().Tick();
  EXPECT_EQ(index().columns(), 0u);
  harness_->AddPod(PodBuilder("q").Label("app", "a").OnNode("n"));
  EXPECT_EQ(Sums("default", "a", "zone", {})["a"].first, 2);
}

}  // namespace
}  // namespace outboard::pod_topology_spread
