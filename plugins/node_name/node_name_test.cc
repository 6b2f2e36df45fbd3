#include "plugins/node_name/node_name.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::node_name {
namespace {

TEST(NodeNameTest, Cases) { sdk::testing::RunCases(Descriptor(), "plugins/node_name/testdata"); }

}  // namespace
}  // namespace outboard::node_name
