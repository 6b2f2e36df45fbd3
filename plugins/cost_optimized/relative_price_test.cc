#include "plugins/cost_optimized/relative_price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace outboard::cost_optimized::relative_price_test {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kGi = int64_t{1} << 30;

std::vector<double> Terms(std::vector<double> costs) {
  CostsToTerms(absl::MakeSpan(costs));
  return costs;
}

TEST(RelativePrice, TheScarcestResourceDecidesTheShare) {
  const Amounts node = {16000, 64 * kGi, 8};
  EXPECT_EQ(ShareOf({1000, kGi, 1}, node), 1.0 / 8);
  EXPECT_EQ(ShareOf({8000, kGi, 1}, node), 0.5);
  EXPECT_EQ(ShareOf({1000, 48 * kGi, 1}, node), 0.75);
  EXPECT_EQ(ShareOf({1000, kGi, 0}, node), 1.0 / 16);
  EXPECT_EQ(ShareOf({}, node), 1) << "prices of whole nodes";
}

TEST(RelativePrice, ANodeThatIsTooSmallIsOccupied) {
  EXPECT_EQ(ShareOf({1000, 0, 1}, {16000, kGi, 0}), 1);
  EXPECT_EQ(ShareOf({1000, 0, 0}, {500, kGi, 0}), 1);
  EXPECT_EQ(ShareOf({1000, 0, 0}, {}), 1);
}

TEST(RelativePrice, TermsAreInProportionToTheCheapest) {
  EXPECT_THAT(Terms({0.9, 0.1, 0.2}), ElementsAre(DoubleEq(100.0 / 9), 100, 50));
  EXPECT_THAT(Terms({90, 10, 20}), ElementsAre(DoubleEq(100.0 / 9), 100, 50)) << "any currency";
  EXPECT_THAT(Terms({7}), ElementsAre(100));
  EXPECT_THAT(Terms({}), IsEmpty());
}

TEST(RelativePrice, AnUnknownPriceNeverCountsAsCheap) {
  EXPECT_THAT(Terms({kUnknownPrice, 90, 10}), ElementsAre(0, DoubleEq(100.0 / 9), 100));
  EXPECT_THAT(Terms({kUnknownPrice, kUnknownPrice}), ElementsAre(0, 0));
}

// Otherwise one free node would make all other prices equal.
TEST(RelativePrice, BesideFreeNodesTheOthersStillDiffer) {
  EXPECT_THAT(Terms({0, 10, 20, kUnknownPrice}), ElementsAre(100, 50, 25, 0));
  EXPECT_THAT(Terms({0, 0}), ElementsAre(100, 100));
}

TEST(RelativePrice, ExtremePricesStayInRange) {
  const double largest = std::numeric_limits<double>::max(), least = 5e-324;
  for (const double term : Terms({largest, least, 1, 0, kUnknownPrice})) {
    EXPECT_GE(term, 0);
    EXPECT_LE(term, 100);
  }
}

}  // namespace
}  // namespace outboard::cost_optimized::relative_price_test
