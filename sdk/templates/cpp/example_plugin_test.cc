#include "example_plugin.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace example_plugin {
namespace {

using outboard::sdk::testing::NodeBuilder;
using outboard::sdk::testing::PluginHarness;
using outboard::sdk::testing::PodBuilder;

// Clusters, pods and expected results: testdata/*.case.
TEST(ExamplePluginTest, Cases) { outboard::sdk::testing::RunCases(Descriptor(), TESTDATA); }

// For sequences of calls that a case cannot express.
TEST(ExamplePluginTest, AChangedPriceCounts) {
  auto harness = PluginHarness::Create(Descriptor(), R"({"maxPrice": 1})");
  ASSERT_TRUE(harness.ok()) << harness.status();
  (*harness)->AddNode(NodeBuilder("n").Label("example-plugin/price", "2"));
  EXPECT_TRUE((*harness)->Filter(PodBuilder("p"))["n"].rejected());
  (*harness)->AddNode(NodeBuilder("n").Label("example-plugin/price", "0.5"));
  EXPECT_TRUE((*harness)->Filter(PodBuilder("q"))["n"].ok());
}

}  // namespace
}  // namespace example_plugin
