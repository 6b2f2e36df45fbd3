#include "plugin_host/sdk/node_facts/price_list.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace outboard::sdk::price_list_test {
namespace {

PriceList Parse(const std::string& text) {
  absl::StatusOr<PriceList> list = PriceList::Parse(text, "p.csv");
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? *std::move(list) : PriceList();
}

StringMap Labels(const std::string& type, const std::string& zone = "",
                 const std::string& region = "") {
  StringMap labels;
  if (!type.empty()) labels["node.kubernetes.io/instance-type"] = type;
  if (!zone.empty()) labels["topology.kubernetes.io/zone"] = zone;
  if (!region.empty()) labels["topology.kubernetes.io/region"] = region;
  return labels;
}

// -1: none.
double PriceOf(const PriceList& list, const StringMap& labels, CapacityType type) {
  const PriceList::Entry* entry = list.Find(labels, type);
  return entry == nullptr ? -1 : entry->price;
}

TEST(PriceListTest, TheEntryThatNamesTheMostWins) {
  const PriceList list = Parse(
      "# Prices of 2026.\n"
      "price, instanceType, capacityType, zone, region\r\n"
      "\n"
      "9,  a,, ,\n"
      "8,  a, On-Demand,,\n"
      "3,  a, spot,,\n"
      "2,  a, spot,,eu\n"
      "1.5,a, spot,eu-1,\n"
      "7,  a, , eu-2,\n"
      "0,  b,reserved,,\n");
  EXPECT_EQ(list.size(), 7u);
  EXPECT_EQ(list.file(), "p.csv");
  EXPECT_EQ(PriceOf(list, Labels("a"), CapacityType::kReserved), 9);
  EXPECT_EQ(PriceOf(list, Labels("a"), CapacityType::kOnDemand), 8);
  EXPECT_EQ(PriceOf(list, Labels("a"), CapacityType::kSpot), 3);
  EXPECT_EQ(PriceOf(list, Labels("a", "eu-3", "eu"), CapacityType::kSpot), 2);
  EXPECT_EQ(PriceOf(list, Labels("a", "eu-1", "eu"), CapacityType::kSpot), 1.5);
  EXPECT_EQ(PriceOf(list, Labels("a", "eu-1", "eu"), CapacityType::kOnDemand), 8);
  EXPECT_EQ(PriceOf(list, Labels("a", "eu-2", "eu"), CapacityType::kSpot), 7)
      << "the zone comes before the capacity type";
  EXPECT_EQ(PriceOf(list, Labels("b"), CapacityType::kReserved), 0);
  EXPECT_EQ(PriceOf(list, Labels("b"), CapacityType::kSpot), -1);
  EXPECT_EQ(PriceOf(list, Labels("A"), CapacityType::kSpot), -1);
  EXPECT_EQ(PriceOf(list, Labels(""), CapacityType::kSpot), -1);
  EXPECT_EQ(list.Find(Labels("b"), CapacityType::kReserved)->line, 10);
}

TEST(PriceListTest, TwoColumnsAreEnough) {
  const PriceList list = Parse("instanceType,price\nm5.large,0.096\n");
  EXPECT_EQ(PriceOf(list, Labels("m5.large", "eu-1", "eu"), CapacityType::kSpot), 0.096);
  EXPECT_EQ(Parse("instanceType,price").size(), 0u) << "an empty list";
}

TEST(PriceListTest, ErrorsNameTheFileTheLineAndTheColumn) {
  const std::string columns = "instanceType,capacityType,zone,region,price\n";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "p.csv:1: no line names the columns, such as instanceType,price"},
      {"# a\n\n", "p.csv:3: no line names the columns, such as instanceType,price"},
      {"m5.large,0.1\n",
       "p.csv:1: unknown column \"m5.large\"; the columns are instanceType, price, capacityType, "
       "zone, region"},
      {"instanceType,price,price\n", "p.csv:1: price: the column is named twice"},
      {"instanceType,zone\n", "p.csv:1: missing column price"},
      {"price\n", "p.csv:1: missing column instanceType"},
      {columns + "a,spot,,,1\na,spot,1\n",
       "p.csv:3: 3 values, but the first line names 5 columns; a price has a point, no comma"},
      {columns + "a,spot,,,1,5\n",
       "p.csv:2: 6 values, but the first line names 5 columns; a price has a point, no comma"},
      {columns + ",spot,,,1\n", "p.csv:2: instanceType: must not be empty"},
      {columns + "a,cheap,,,1\n",
       "p.csv:2: capacityType: \"cheap\" is not on-demand, spot or reserved"},
      {columns + "a,spot,eu-1,eu,1\n", "p.csv:2: region: must be empty where zone has a value"},
      {columns + "a,spot,\"eu-1\",,1\n", "p.csv:2: zone: \"\\\"eu-1\\\"\" must not be quoted"},
      {columns + "a,spot,,,1\na,SPOT,,,2\n",
       "p.csv:3: instanceType: \"a\" has a price on line 2 for the same capacity type and place"}};
  for (const auto& [text, message] : wrong)
    EXPECT_EQ(PriceList::Parse(text, "p.csv").status().message(), message) << text;
  for (const char* price : {"", "-1", "$1", "1e16", "nan", "inf", ".5", "0x1", "free"}) {
    const absl::Status status = PriceList::Parse(columns + "a,,,," + price, "p.csv").status();
    EXPECT_TRUE(status.message().substr(0, 15) == "p.csv:2: price:") << price << ": " << status;
  }
}

TEST(PriceListTest, AFileMayBeMissingOrTooLarge) {
  EXPECT_TRUE(absl::IsNotFound(PriceList::ReadText("/nonexistent").status()));
  EXPECT_FALSE(PriceList::ReadText(::testing::TempDir()).ok()) << "a directory";
  const std::string path = ::testing::TempDir() + "/price_list_test.csv";
  std::ofstream(path) << std::string(PriceList::kMaxBytes, '#');
  EXPECT_TRUE(PriceList::ReadText(path).ok());
  std::ofstream(path) << std::string(PriceList::kMaxBytes + 1, '#');
  EXPECT_EQ(PriceList::ReadText(path).status().message(), path + ": larger than 4 MiB");
}

}  // namespace
}  // namespace outboard::sdk::price_list_test
