#include "plugins/topology_aware_gpu_gate/gpu_islands.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace outboard::topology_aware_gpu_gate {
namespace {

TEST(GpuIslandsTest, WhatIsWrittenIsReadAgain) {
  for (const char* text :
       {"nvswitch 0-7", "nvlink 0-3;4-7", "pcie 0;1;2;3", "nvlink 0,1;2-5;7", "nvswitch 0-63"}) {
    const auto islands = ParseIslands(text);
    ASSERT_TRUE(islands) << text;
    EXPECT_EQ(FormatIslands(*islands), text);
  }
  EXPECT_EQ(ParseIslands("NVLink 1,0")->islands, std::vector<sdk::GpuSet>{0b11});
}

TEST(GpuIslandsTest, AnythingElseIsNone) {
  for (const char* text : {"", " ", "nvlink", "nvlink ", "0-7", "infiniband 0-7", "nvlink  0-7",
                           "nvlink 0-3;", "nvlink 0-3;3-7", "nvlink 0-64", "nvlink 0 1",
                           "unknown 0-7", "nvlink\t0-7", "nvlink 0-3 ;4-7", "nvlink GPU0"}) {
    EXPECT_FALSE(ParseIslands(text)) << text;
  }
}

TEST(GpuIslandsTest, TheRoomiestIslandHasTheMostFreeGpus) {
  EXPECT_EQ(Roomiest({{4, 0}, {4, 0}}), 4);
  EXPECT_EQ(Roomiest({{4, 1}, {4, 1}}), 3);
  EXPECT_EQ(Roomiest({{4, 1}, {2, 0}}), 3);
  EXPECT_EQ(Roomiest({{4, 3}, {2, 0}}), 2);
  EXPECT_EQ(Roomiest({{4, 4}}), 0);
  EXPECT_EQ(Roomiest({}), 0);
}

TEST(GpuIslandsTest, MustFitWhereverTheHiddenOnesAre) {
  EXPECT_TRUE(MustFit({{4, 0}, {4, 0}}, 4, 8, 0));
  EXPECT_TRUE(MustFit({{4, 0}, {4, 0}}, 4, 7, 1)) << "one pod cannot be in both islands";
  EXPECT_FALSE(MustFit({{4, 0}, {4, 0}}, 4, 6, 2)) << "one GPU of each may be in use";
  EXPECT_TRUE(MustFit({{4, 0}, {4, 0}}, 2, 3, 5)) << "5 leave at least 2 in one of them";
  EXPECT_FALSE(MustFit({{4, 0}, {4, 0}}, 2, 2, 6));
  EXPECT_TRUE(MustFit({{4, 4}, {4, 0}}, 4, 4, 0));
  EXPECT_FALSE(MustFit({{4, 4}, {4, 0}}, 4, 3, 1));
  EXPECT_FALSE(MustFit({}, 2, 8, 0));
}

// The bound is exact: the test tries all placements of hidden GPUs in two islands.
TEST(GpuIslandsTest, MustFitIsExact) {
  for (int64_t a = 0; a <= 5; ++a) {
    for (int64_t b = 0; b <= 5; ++b) {
      for (int64_t hidden = 0; hidden <= a + b; ++hidden) {
        for (int64_t wanted = 1; wanted <= 6; ++wanted) {
          bool always = true;
          for (int64_t in_a = 0; in_a <= std::min(hidden, a); ++in_a) {
            if (hidden - in_a > b) continue;
            always &= a - in_a >= wanted || b - (hidden - in_a) >= wanted;
          }
          EXPECT_EQ(MustFit({{a, 0}, {b, 0}}, wanted, a + b - hidden, hidden), always)
              << a << " " << b << " " << hidden << " " << wanted;
        }
      }
    }
  }
}

}  // namespace
}  // namespace outboard::topology_aware_gpu_gate
