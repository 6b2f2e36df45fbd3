#include "plugins/node_ports/node_ports.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::node_ports {
namespace {

TEST(NodePortsTest, Cases) { sdk::testing::RunCases(Descriptor(), "plugins/node_ports/testdata"); }

}  // namespace
}  // namespace outboard::node_ports
