#include "plugins/node_resources_balanced_allocation/node_resources_balanced_allocation.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::node_resources_balanced_allocation {
namespace {

TEST(NodeResourcesBalancedAllocationTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/node_resources_balanced_allocation/testdata");
}

}  // namespace
}  // namespace outboard::node_resources_balanced_allocation
