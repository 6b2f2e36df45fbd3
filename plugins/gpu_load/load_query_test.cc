#include "plugins/gpu_load/load_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

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

Reading Read(const std::string& rows) {
  const absl::StatusOr<Reading> reading = ParseAnswer(AnswerOf(rows), QueryOptions());
  EXPECT_TRUE(reading.ok()) << reading.status();
  return reading.value_or(Reading());
}

TEST(ParseAnswerTest, ReadsHostsAndXids) {
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

TEST(ParseAnswerTest, ReadsTheRecordedAnswer) {
  const auto reading =
      ParseAnswer(FileText("integration/publishers/recorded/gpu_load_answer.json"), QueryOptions());
  ASSERT_TRUE(reading.ok()) << reading.status();
  const absl::Duration age = absl::Seconds(10);
  EXPECT_THAT(
      reading->hosts,
      ElementsAre(
          HostLoad{{"mig", "10.0.0.2:9400"}, 0.25, 0.125, age},
          HostLoad{{"new", "10.0.0.3:9400"}, 0.5, 0.5, age},
          HostLoad{{"nvidia-dcgm-exporter-x7k2p", "by-pod", "10.0.0.1:9400"}, 0.125, 0.25, age},
          HostLoad{{"old", "10.0.0.4:9400"}, 0.5, 0.5, age},
          HostLoad{{"unprofiled", "10.0.0.5:9400"}, 0.5, 0.25, age}));
  EXPECT_THAT(reading->xids, ElementsAre(GpuXid{{"old", "10.0.0.4:9400"}, "1", 79},
                                         GpuXid{{"new", "10.0.0.3:9400"}, "1", 79}));
  EXPECT_EQ(reading->ignored, 0u);
}

TEST(ParseAnswerTest, ReadsWhatPrometheusAdds) {
  const auto reading = ParseAnswer(
      R"({"status":"success","isPartial":false,"data":{"resultType":"vector","result":[],)"
      R"("stats":{"timings":{"evalTotalTime":0.1}},"analysis":[{"name":[1]}]},"warnings":["w"],"infos":[]})",
      QueryOptions());
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_TRUE(reading->hosts.empty());
}

// Impossible figures are ignored; they never make a node look idle.
TEST(ParseAnswerTest, IgnoresAbsurdFigures) {
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

TEST(ParseAnswerTest, RejectsMalformedAnswers) {
  const std::string good = AnswerOf(HostRows("n1", "0.5", "0.5", "1700000090.5"));
  ASSERT_TRUE(ParseAnswer(good, QueryOptions()).ok());
  for (const std::string& bad : std::vector<std::string>{
           "",
           "{}",
           "[]",
           "null",
           "<html>busy</html>",
           good + "x",
           good.substr(0, good.size() - 3),
           R"({"status":"success"})",
           R"({"status":"success","data":[]})",
           R"({"status":"success","data":{"resultType":"vector","result":{}}})",
           R"({"status":"success","data":{"resultType":"matrix","result":[]}})",
           R"({"status":"success","data":{"resultType":"vector","result":"x"}})",
           AnswerOf("1"),
           AnswerOf("null"),
           AnswerOf("[]"),
           AnswerOf("{}"),
           AnswerOf("\"x\""),
           AnswerOf(R"({"metric":{}})"),
           AnswerOf(R"({"metric":[],"value":[1,"1"]})"),
           AnswerOf(R"({"metric":{"a":1},"value":[1,"1"]})"),
           AnswerOf(R"({"metric":{"a":{}},"value":[1,"1"]})"),
           AnswerOf(R"({"metric":"a","value":[1,"1"]})"),
           AnswerOf(R"({"metric":{},"value":[1]})"),
           AnswerOf(R"({"metric":{},"value":["1",1]})"),
           AnswerOf(R"({"metric":{},"value":[1,2]})"),
           AnswerOf(R"({"metric":{},"value":[1,"1","2"]})"),
           AnswerOf(R"({"metric":{},"value":[[1],"1"]})"),
           AnswerOf(R"({"metric":{},"value":"1"})"),
           AnswerOf(absl::StrCat(R"({"metric":{"a":")", std::string(5000, 'x'),
                                 R"("},"value":[1,"1"]})")),
           R"({"status":"success","x":)" + std::string(100000, '[') + std::string(100000, ']') +
               "}",
       }) {
    EXPECT_EQ(ParseAnswer(bad, QueryOptions()).status().code(), absl::StatusCode::kInvalidArgument)
        << bad.substr(0, 200);
  }
  const absl::Status told =
      ParseAnswer(R"({"status":"error","errorType":"timeout","error":"query timed out"})",
                  QueryOptions())
          .status();
  EXPECT_EQ(told.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(told.message()), HasSubstr("query timed out"));
}

// Any bytes: no crash, and no invented figures.
TEST(ParseAnswerTest, SurvivesDamage) {
  const std::string good = AnswerOf(HostRows("n1", "0.25", "0.5", "1700000090.5") + "," +
                                    HostRows("n2", "0.75", "0.5", "1700000090.5") + "," +
                                    Row(R"("Hostname":"n1","gpu":"3","outboard":"xid")", "79"));
  std::mt19937 random(7);
  const char tokens[] = "{}[]\",:0129.eE-+\\untf \x00\xff";
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 4; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = tokens[random() % (sizeof(tokens) - 1)];
          break;
        case 1:
          text.erase(at, 1 + random() % 20);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
        default:
          text.resize(at);
      }
    }
    const absl::StatusOr<Reading> reading = ParseAnswer(text, QueryOptions());
    if (!reading.ok()) continue;
    ++read;
    for (const HostLoad& host : reading->hosts) {
      EXPECT_FALSE(host.names.empty());
      EXPECT_TRUE(host.use >= 0 && host.use <= 1) << text;
      EXPECT_TRUE(!host.memory || (*host.memory >= 0 && *host.memory <= 1)) << text;
      EXPECT_GE(host.age, absl::ZeroDuration());
    }
    for (const GpuXid& xid : reading->xids) EXPECT_GT(xid.code, 0);
  }
  EXPECT_GT(read, 100);  // Otherwise it tests nothing.
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
