// The query, and what is read from its answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "plugins/cost_optimized/price_reader.h"

namespace outboard::cost_optimized::price_query_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string FileText(const std::string& path) {
  std::ifstream stream(path);
  EXPECT_TRUE(stream) << path;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

prometheus::Sample Sample(std::map<std::string, std::string> labels, std::string value) {
  return {std::move(labels), 1700000100.5, std::move(value)};
}
prometheus::Sample OfNode(const std::string& node, const std::string& value) {
  return Sample({{"node", node}, {"outboard", "node"}}, value);
}
prometheus::Sample OfOffering(const std::string& type, const std::string& capacity,
                              const std::string& value) {
  return Sample({{"instance_type", type},
                 {"capacity_type", capacity},
                 {"zone", "z"},
                 {"outboard", "offering"}},
                value);
}

// integration/publishers/metrics asks a real Prometheus this, and records the answer that the next
// test reads.
TEST(PriceQueryTest, IsTheQueryOfTheRecordedAnswer) {
  EXPECT_EQ(FileText("plugins/cost_optimized/testdata/price_query.promql"),
            PriceQueryText({}) + "\n");
}

TEST(PriceQueryTest, ReadsTheRecordedAnswer) {
  const auto samples =
      prometheus::ParseSamples(FileText("integration/publishers/recorded/prices_answer.json"));
  ASSERT_TRUE(samples.ok()) << samples.status();
  const PriceReading reading = ReadPriceSamples(*samples);
  EXPECT_THAT(reading.prices.by_node,
              UnorderedElementsAre(Pair("elsewhere", 2), Pair("owned", 18), Pair("spot", 31.5)));
  EXPECT_THAT(reading.prices.by_offering,
              ElementsAre(Pair(sdk::Offering{"g6.xlarge", "on-demand", "us-east-1a"}, 0.8048),
                          Pair(sdk::Offering{"g6.xlarge", "spot", "us-east-1a"}, 0.25),
                          Pair(sdk::Offering{"p5.48xlarge", "reserved", "us-east-1a"}, 0)));
  EXPECT_EQ(reading.ignored, 1u) << "an offering without a price";
}

TEST(PriceQueryTest, SamplesOfOneClusterOnly) {
  const std::string query = PriceQueryText({{"cluster", "a"}});
  EXPECT_THAT(query, HasSubstr("(node_total_hourly_cost{cluster=\"a\"})"));
  EXPECT_THAT(query, HasSubstr("price_estimate{cluster=\"a\"})"));
}

TEST(PriceQueryTest, TheRenamedLabelIsThePricedNode) {
  EXPECT_THAT(
      ReadPriceSamples(
          {Sample({{"node", "exporters"}, {"exported_node", "n"}, {"outboard", "node"}}, "2")})
          .prices.by_node,
      ElementsAre(Pair("n", 2)));
}

// Neither publisher has a sign for unknown prices but 0, and no price may make a node look cheap.
TEST(PriceQueryTest, AnAbsurdPriceIsNone) {
  for (const char* price : {"0", "-1", "NaN", "+Inf", "-Inf", "1e16", "", "free"}) {
    const PriceReading reading =
        ReadPriceSamples({OfNode("n", price), OfOffering("t", "spot", price)});
    EXPECT_THAT(reading.prices.by_node, IsEmpty()) << price;
    EXPECT_THAT(reading.prices.by_offering, IsEmpty()) << price;
    EXPECT_EQ(reading.ignored, 2u) << price;
  }
  EXPECT_EQ(ReadPriceSamples({OfNode("", "1"), OfOffering("", "spot", "1"), Sample({}, "1"),
                              Sample({{"node", "n"}, {"outboard", "x"}}, "1")})
                .ignored,
            4u);
}

TEST(PriceQueryTest, ReservedCapacityIsPaidFor) {
  const PriceReading reading =
      ReadPriceSamples({OfOffering("t", "reserved", "9.8e-06"), OfOffering("u", "reserved", "0"),
                        OfOffering("v", "reserved", "NaN")});
  EXPECT_THAT(reading.prices.by_offering,
              ElementsAre(Pair(sdk::Offering{"t", "reserved", "z"}, 0),
                          Pair(sdk::Offering{"u", "reserved", "z"}, 0)));
}

}  // namespace
}  // namespace outboard::cost_optimized::price_query_test
