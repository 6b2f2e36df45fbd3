#include "plugins/node_declared_features/node_declared_features.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::node_declared_features {
namespace {

TEST(NodeDeclaredFeaturesTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/node_declared_features/testdata");
}

}  // namespace
}  // namespace outboard::node_declared_features
