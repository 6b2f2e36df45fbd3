#include "plugins/node_affinity/node_affinity.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::node_affinity {
namespace {

TEST(NodeAffinityTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/node_affinity/testdata");
}

}  // namespace
}  // namespace outboard::node_affinity
