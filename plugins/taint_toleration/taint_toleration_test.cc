#include "plugins/taint_toleration/taint_toleration.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::taint_toleration {
namespace {

TEST(TaintTolerationTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/taint_toleration/testdata");
}

}  // namespace
}  // namespace outboard::taint_toleration
