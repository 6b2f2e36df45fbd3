#include "plugin_host/sdk/quantity.h"

#include <gtest/gtest.h>

#include <string>

namespace outboard::sdk {
namespace {

TEST(Quantity, ReadsWhatKubernetesWrites) {
  EXPECT_EQ(*ParseQuantity("2", 1000), 2000);
  EXPECT_EQ(*ParseQuantity("500m", 1000), 500);
  EXPECT_EQ(*ParseQuantity("0.1", 1000), 100);
  EXPECT_EQ(*ParseQuantity("1.5Gi", 1), 3 << 29);
  EXPECT_EQ(*ParseQuantity("12e6", 1), 12000000);
  EXPECT_EQ(*ParseQuantity("12E3", 1), 12000);
  EXPECT_EQ(*ParseQuantity("1E", 1), 1000000000000000000);
  EXPECT_EQ(*ParseQuantity("1n", 1000), 1) << "rounded up";
  EXPECT_EQ(*ParseQuantity("-1", 1), -1);
}

TEST(Quantity, AnythingElseIsNone) {
  for (const char* text : {"", " 1", "1 ", "many", "1.2.3", "Gi", "1gi", "0x10", "nan", "1e",
                           "1e99", "99999999E", "--1", "1_000"}) {
    EXPECT_FALSE(ParseQuantity(text, 1000).ok()) << text;
  }
  EXPECT_FALSE(ParseQuantity(std::string(100000, '9'), 1).ok());
}

TEST(Quantity, GoesIntoTheListByName) {
  v1beta1::ResourceList list;
  ASSERT_TRUE(SetResource("cpu", "1500m", &list).ok());
  ASSERT_TRUE(SetResource("memory", "1Ki", &list).ok());
  ASSERT_TRUE(SetResource("nvidia.com/gpu", "8", &list).ok());
  EXPECT_FALSE(SetResource("pods", "few", &list).ok());
  EXPECT_EQ(list.cpu_millis(), 1500);
  EXPECT_EQ(list.memory_bytes(), 1024);
  EXPECT_EQ(list.scalar().at("nvidia.com/gpu"), 8);
}

}  // namespace
}  // namespace outboard::sdk
