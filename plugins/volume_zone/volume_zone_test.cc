#include "plugins/volume_zone/volume_zone.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"

namespace outboard::volume_zone {
namespace {

TEST(VolumeZoneTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/volume_zone/testdata");
}

}  // namespace
}  // namespace outboard::volume_zone
