#include "plugins/priority_sort/priority_sort.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::priority_sort {
namespace {

using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

TEST(PrioritySortTest, HigherPriorityHasTheSmallerKey) {
  auto harness = PluginHarness::Create(Descriptor());
  ASSERT_TRUE(harness.ok()) << harness.status();
  const std::vector<int32_t> falling = {
      std::numeric_limits<int32_t>::max(), 2000001000, 65536, 256, 255, 1, 0, -1, -256,
      std::numeric_limits<int32_t>::min()};
  std::string previous;
  for (size_t i = 0; i < falling.size(); ++i) {
    const std::string key =
        (*harness)->SortKey(PodBuilder("p" + std::to_string(i)).Priority(falling[i]));
    EXPECT_EQ(key.size(), 4u);
    // std::string compares as unsigned bytes, as the queue does.
    if (i > 0) {
      EXPECT_LT(previous, key) << falling[i];
    }
    previous = key;
  }
}

TEST(PrioritySortTest, EqualPrioritiesAreLeftToTheTimeOfQueueing) {
  auto harness = PluginHarness::Create(Descriptor());
  ASSERT_TRUE(harness.ok()) << harness.status();
  EXPECT_EQ((*harness)->SortKey(PodBuilder("a").Priority(7)),
            (*harness)->SortKey(PodBuilder("b", "other").Priority(7)));
  EXPECT_EQ((*harness)->SortKey(PodBuilder("none")),
            (*harness)->SortKey(PodBuilder("zero").Priority(0)));
}

TEST(PrioritySortTest, TakesNoArguments) {
  EXPECT_FALSE(PluginHarness::Create(Descriptor(), "{\"x\": 1}").ok());
}

}  // namespace
}  // namespace outboard::priority_sort
