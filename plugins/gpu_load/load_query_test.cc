#include "plugins/gpu_load/load_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace outboard::gpu_load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string AnswerOf(const std::string& rows) {
  return absl::StrCat(R"({"status":"success","data":{"resultType":"vector","result":[)", rows,
                      "]}}");
}

std::string Row(const std::string& labels, const std::string& value) {
  return absl::StrCat(R"({"metric":{)", labels, R"(},"value":[1700000100.5,")", value, "\"]}");
}

std::string HostRows(const std::string& host, const std::string& use, const std::string& memory,
                     const std::string& sampled) {
  const auto row = [&](const char* kind, const std::string& value) {
    return Row(absl::StrCat(R"("Hostname":")", host, R"(","outboard":")", kind, "\""), value);
  };
  return absl::StrCat(row("use", use), ",", row("memory", memory), ",", row("sampled", sampled));
}

Reading ReadAnswer(const std::string& answer) {
  const auto samples = prometheus::ParseSamples(answer);
  EXPECT_TRUE(samples.ok()) << samples.status();
  return samples.ok() ? ReadSamples(*samples, QueryOptions()) : Reading();
}

Reading Read(const std::string& rows) { return ReadAnswer(AnswerOf(rows)); }

TEST(ReadSamplesTest, ReadsHostsAndXids) {
  const Reading reading = Read(
      HostRows("n1", "0.25", "0.5", "1700000090.5") + "," +
      Row(R"("Hostname":"dcgm-x7k","node":"n2","instance":"10.0.0.2:9400","outboard":"use")", "1") +
      "," +
      Row(R"("Hostname":"dcgm-x7k","node":"n2","instance":"10.0.0.2:9400","outboard":"sampled")",
          "1.7000001005e9") +
      "," + Row(R"("Hostname":"n1","gpu":"3","outboard":"xid")", "79") + "," +
      Row(R"("Hostname":"n1","outboard":"xid")", "13"));
  EXPECT_THAT(
      reading.hosts,
      ElementsAre(HostLoad{{"dcgm-x7k", "n2", "10.0.0.2:9400"}, 1, {}, absl::ZeroDuration()},
                  HostLoad{{"n1"}, 0.25, 0.5, absl::Seconds(10)}));
  EXPECT_THAT(reading.xids, ElementsAre(GpuXid{{"n1"}, "3", 79}, GpuXid{{"n1"}, "", 13}));
  EXPECT_EQ(reading.ignored, 0u);
}

std::string FileText(const std::string& path) {
  std::ifstream stream(path);
  EXPECT_TRUE(stream) << path;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

// integration/publishers/metrics asks a real Prometheus this, and records the answer that the next
// test reads.
TEST(QueryTextTest, IsTheQueryOfTheRecordedAnswer) {
  EXPECT_EQ(FileText("plugins/gpu_load/testdata/default_query.promql"),
            QueryText(QueryOptions()) + "\n");
}

TEST(ReadSamplesTest, ReadsTheRecordedAnswer) {
  const Reading reading =
      ReadAnswer(FileText("integration/publishers/recorded/gpu_load_answer.json"));
  const absl::Duration age = absl::Seconds(10);
  EXPECT_THAT(
      reading.hosts,
      ElementsAre(
          HostLoad{{"mig", "10.0.0.2:9400"}, 0.25, 0.125, age},
          HostLoad{{"new", "10.0.0.3:9400"}, 0.5, 0.5, age},
          HostLoad{{"nvidia-dcgm-exporter-x7k2p", "by-pod", "10.0.0.1:9400"}, 0.125, 0.25, age},
          HostLoad{{"old", "10.0.0.4:9400"}, 0.5, 0.5, age},
          HostLoad{{"unprofiled", "10.0.0.5:9400"}, 0.5, 0.25, age}));
  EXPECT_THAT(reading.xids, ElementsAre(GpuXid{{"old", "10.0.0.4:9400"}, "1", 79},
                                        GpuXid{{"new", "10.0.0.3:9400"}, "1", 79}));
  EXPECT_EQ(reading.ignored, 0u);
}

// Impossible figures are ignored; they never make a node look idle.
TEST(ReadSamplesTest, IgnoresAbsurdFigures) {
  for (const char* use :
       {"NaN", "+Inf", "-Inf", "-0.01", "1.02", "100", "", "0x1p", "half", "1e400", "0.5 ", "½"}) {
    const Reading reading = Read(HostRows("n1", use, "0.5", "1700000090.5"));
    EXPECT_TRUE(reading.hosts.empty() || std::string(use) == "0.5 ") << use;
    EXPECT_TRUE(reading.ignored == 1 || std::string(use) == "0.5 ") << use;
  }
  EXPECT_EQ(Read(HostRows("n1", "0.5", "-1", "1700000090.5")).hosts.at(0).memory, std::nullopt);
  EXPECT_EQ(Read(HostRows("n1", "1.005", "NaN", "1700000090.5")).hosts.at(0).use, 1);
  // From a clock that is slightly ahead, and far ahead.
  EXPECT_EQ(Read(HostRows("n1", "0.5", "0.5", "1700000150")).hosts.at(0).age, absl::ZeroDuration());
  EXPECT_TRUE(Read(HostRows("n1", "0.5", "0.5", "1700000170")).hosts.empty());
  EXPECT_TRUE(Read(Row(R"("outboard":"use")", "0.5")).hosts.empty()) << "names no host";
  for (const char* xid : {"0", "-79", "79.5", "65536", "1e18", "NaN"}) {
    EXPECT_TRUE(Read(Row(R"("Hostname":"n1","outboard":"xid")", xid)).xids.empty()) << xid;
  }
}

TEST(QueryTextTest, QuotesMatchersAndNamesLabels) {
  QueryOptions options;
  options.node_labels = {"Hostname", "node"};
  options.matchers = {{"cluster", "a\"b\\c\nd"}, {"env", "prod"}};
  options.max_sample_age = absl::Milliseconds(90500);
  const std::string query = QueryText(options);
  EXPECT_THAT(query, HasSubstr("DCGM_FI_DEV_XID_ERRORS{cluster=\"a\\\"b\\\\c\\nd\",env=\"prod\"}"));
  EXPECT_THAT(query, HasSubstr(">= (time() - 90.5)"));
  EXPECT_THAT(query, HasSubstr("avg by (Hostname,node) (max by (Hostname,node,gpu,GPU_I_ID) ("));
}

}  // namespace
}  // namespace outboard::gpu_load
