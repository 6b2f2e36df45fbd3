#include "plugins/node_resources_fit/node_resources_fit.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::node_resources_fit {
namespace {

TEST(NodeResourcesFitTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/node_resources_fit/testdata");
}

}  // namespace
}  // namespace outboard::node_resources_fit
