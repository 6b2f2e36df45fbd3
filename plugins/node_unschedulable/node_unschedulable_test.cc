#include "plugins/node_unschedulable/node_unschedulable.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::node_unschedulable {
namespace {

TEST(NodeUnschedulableTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/node_unschedulable/testdata");
}

}  // namespace
}  // namespace outboard::node_unschedulable
