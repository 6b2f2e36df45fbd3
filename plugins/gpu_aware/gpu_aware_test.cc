#include "plugins/gpu_aware/gpu_aware.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::gpu_aware {
namespace {

TEST(GPUAwareTest, Cases) { sdk::testing::RunCases(Descriptor(), "plugins/gpu_aware/testdata"); }

}  // namespace
}  // namespace outboard::gpu_aware
