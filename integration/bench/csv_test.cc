#include "integration/bench/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace outboard::bench {
namespace {

using ::testing::ElementsAre;

TEST(ReadCsvTest, TakesColumnsByName) {
  std::istringstream text("name,cpu_milli,gpu_spec\npod-0,12000,V100M16|V100M32\r\npod-1,6000,\n");
  const auto rows = ReadCsv("pods.csv", {"cpu_milli", "name"}, {"gpu_spec"}, &text);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre("12000", "pod-0", "V100M16|V100M32"),
                                 ElementsAre("6000", "pod-1", "")));
}

// As openb_pod_list_multigpu20.csv.
TEST(ReadCsvTest, AnAbsentOptionalColumnIsEmpty) {
  std::istringstream text(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nopenb-pod-0000,12000,16384,1,1000\n");
  const auto rows = ReadCsv("pods.csv", {"name", "gpu_milli"}, {"gpu_spec"}, &text);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre("openb-pod-0000", "1000", "")));
}

TEST(ReadCsvTest, NamesTheFault) {
  const auto error = [](const std::string& csv) {
    std::istringstream text(csv);
    return std::string(ReadCsv("pods.csv", {"name", "cpu_milli"}, {}, &text).status().message());
  };
  EXPECT_EQ(error(""), "pods.csv: empty");
  EXPECT_EQ(error("name\nx\n"), "pods.csv: no column cpu_milli");
  EXPECT_EQ(error("name,cpu_milli\na,1\nb\n"), "pods.csv:3: 1 fields instead of 2");
}

}  // namespace
}  // namespace outboard::bench
