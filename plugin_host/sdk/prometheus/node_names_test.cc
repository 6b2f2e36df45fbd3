#include "plugin_host/sdk/prometheus/node_names.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::prometheus::node_names_test {

struct Idle : sdk::Plugin, sdk::NodeFilterPlugin {
  sdk::Verdict FilterNode(const sdk::Attempt&, const sdk::NodeView&) const override {
    return sdk::Verdict::Success();
  }
};

class NodeNamesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sdk::PluginDescriptor idle;
    idle.name = "Idle";
    idle.extension_points = {v1beta1::EXTENSION_POINT_FILTER};
    idle.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
      return std::make_unique<Idle>();
    };
    auto harness = sdk::testing::PluginHarness::Create(idle);
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    harness_->AddNode(sdk::testing::NodeBuilder("n1"));
    harness_->AddNode(
        sdk::testing::NodeBuilder("cloud-7").Label("kubernetes.io/hostname", "ip-10-0-0-7"));
  }
  // The node's name; empty: unknown.
  std::string Find(const std::vector<std::string>& names) {
    NodeNames finder(harness_->cluster());
    const auto slot = finder.Find(names);
    return slot ? harness_->cluster().node(*slot).name() : "";
  }

  std::unique_ptr<sdk::testing::PluginHarness> harness_;
};

TEST_F(NodeNamesTest, ANodeIsFoundByNameAndByHostname) {
  EXPECT_EQ(Find({"n1"}), "n1");
  EXPECT_EQ(Find({"n1:9400"}), "n1");
  EXPECT_EQ(Find({"ip-10-0-0-7"}), "cloud-7");
  EXPECT_EQ(Find({"ip-10-0-0-7:9400"}), "cloud-7");
}

TEST_F(NodeNamesTest, TheFirstKnownNameCounts) {
  EXPECT_EQ(Find({"dcgm-exporter-x7k", "cloud-7", "n1"}), "cloud-7");
}

TEST_F(NodeNamesTest, UnknownNamesFindNothing) {
  EXPECT_EQ(Find({}), "");
  EXPECT_EQ(Find({"", ":", "n1:", "10.0.0.1:9400", "n"}), "n1") << "a port may be empty";
  EXPECT_EQ(Find({"", ":", "10.0.0.1:9400", "n"}), "");
}

}  // namespace outboard::prometheus::node_names_test
