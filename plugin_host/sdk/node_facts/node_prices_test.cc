#include "plugin_host/sdk/node_facts/node_prices.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk::node_prices_test {
namespace {

constexpr char kType[] = "node.kubernetes.io/instance-type";
constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kCapacity[] = "karpenter.sh/capacity-type";

class NodePricesTest : public ::testing::Test {
 protected:
  NodePricesTest() : list_(*PriceList::Parse("instanceType,price\nlisted,4\n", "p.csv")) {
    published_.by_node["n"] = 5;
    published_.by_offering[{"listed", "on-demand", "z"}] = 6;
    published_.by_offering[{"g6.xlarge", "on-demand", "z"}] = 7;
    published_.by_offering[{"g6.xlarge", "spot", "z"}] = 2;
  }
  Fact<double> Read(testing::NodeBuilder node) {
    malformed_.clear();
    return ReadPrice(node.Build(), {&list_, &published_}, &malformed_);
  }

  const PriceList list_;
  PublishedPrices published_;
  std::vector<MalformedLabel> malformed_;
};

TEST_F(NodePricesTest, TheLabelComesFirst) {
  const Fact<double> price =
      Read(testing::NodeBuilder("n").Label("node-cost-per-hour", "3").Label(kType, "listed"));
  EXPECT_EQ(price, (Fact<double>{3, FactSource::kAdministrator, "label node-cost-per-hour"}));
}

TEST_F(NodePricesTest, ThenThePriceList) {
  EXPECT_EQ(Read(testing::NodeBuilder("n").Label(kType, "listed")),
            (Fact<double>{4, FactSource::kAdministrator, "price list p.csv:2"}));
}

TEST_F(NodePricesTest, ThenOpenCost) {
  EXPECT_EQ(Read(testing::NodeBuilder("n").Label(kType, "g6.xlarge").Label(kZone, "z")),
            (Fact<double>{5, FactSource::kMetrics, "node_total_hourly_cost of OpenCost"}));
}

TEST_F(NodePricesTest, ThenKarpenterByTypeCapacityTypeAndZone) {
  const auto node = [](const char* zone, const char* capacity) {
    return testing::NodeBuilder("m")
        .Label(kType, "g6.xlarge")
        .Label(kZone, zone)
        .Label(kCapacity, capacity);
  };
  EXPECT_EQ(Read(node("z", "spot")),
            (Fact<double>{2, FactSource::kMetrics, "price estimate of Karpenter"}));
  EXPECT_EQ(Read(node("z", "on-demand")).value, 7);
  EXPECT_FALSE(Read(node("z", "reserved")).known());
  EXPECT_FALSE(Read(node("y", "spot")).known());
  EXPECT_EQ(Read(testing::NodeBuilder("m").Label(kType, "g6.xlarge").Label(kZone, "z")).value, 7)
      << "an unknown capacity type counts as on-demand";
}

TEST_F(NodePricesTest, UnknownIsAValue) {
  EXPECT_EQ(Read(testing::NodeBuilder("m")), Fact<double>());
  EXPECT_EQ(ReadPrice(testing::NodeBuilder("n").Build(), {}, nullptr), Fact<double>());
}

TEST_F(NodePricesTest, AMalformedLabelCountsAsAbsent) {
  EXPECT_EQ(Read(testing::NodeBuilder("n").Label("node-cost-per-hour", "$3")).value, 5);
  ASSERT_EQ(malformed_.size(), 1u);
  EXPECT_EQ(malformed_[0].key, "node-cost-per-hour");
}

}  // namespace
}  // namespace outboard::sdk::node_prices_test
