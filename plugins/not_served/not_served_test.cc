#include "plugins/not_served/not_served.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::not_served {
namespace {

TEST(NotServedTest, Cases) { sdk::testing::RunCases(Descriptor(), "plugins/not_served/testdata"); }

}  // namespace
}  // namespace outboard::not_served
