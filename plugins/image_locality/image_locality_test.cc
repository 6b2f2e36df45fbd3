#include "plugins/image_locality/image_locality.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::image_locality {
namespace {

TEST(ImageLocalityTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/image_locality/testdata");
}

}  // namespace
}  // namespace outboard::image_locality
