#include "plugins/scheduling_gates/scheduling_gates.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::scheduling_gates {
namespace {

TEST(SchedulingGatesTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/scheduling_gates/testdata");
}

}  // namespace
}  // namespace outboard::scheduling_gates
