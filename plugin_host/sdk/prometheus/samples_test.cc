#include "plugin_host/sdk/prometheus/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::prometheus::samples_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kGood[] = R"({"metric":{"__name__":"x","node":"n1"},"value":[1700000100.5,"0.25"]})";

std::string AnswerOf(const std::string& rows) {
  return absl::StrCat(R"({"status":"success","data":{"resultType":"vector","result":[)", rows,
                      "]}}");
}

std::optional<double> NumberOf(const std::string& value) { return Sample{{}, 100, value}.Number(); }

TEST(ParseSamplesTest, ReadsLabelsTimeAndValue) {
  const auto samples =
      ParseSamples(AnswerOf(absl::StrCat(kGood, R"(,{"value":[5,"NaN"],"metric":{}})")));
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 2u);
  EXPECT_THAT(samples->at(0).labels, ElementsAre(Pair("__name__", "x"), Pair("node", "n1")));
  EXPECT_EQ(samples->at(0).time, 1700000100.5);
  EXPECT_EQ(samples->at(0).value, "0.25");
  EXPECT_EQ(samples->at(0).Number(), 0.25);
  EXPECT_TRUE(samples->at(1).labels.empty());
  EXPECT_EQ(samples->at(1).Number(), std::nullopt);
}

TEST(ParseSamplesTest, ReadsWhatPrometheusAdds) {
  const auto samples = ParseSamples(
      R"({"status":"success","isPartial":false,"data":{"resultType":"vector","result":[],)"
      R"("stats":{"timings":{"evalTotalTime":0.1}},"analysis":[{"name":[1]}]},"warnings":["w"],"infos":[]})");
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_TRUE(samples->empty());
}

TEST(ParseSamplesTest, RejectsMalformedAnswers) {
  const std::string good = AnswerOf(kGood);
  ASSERT_TRUE(ParseSamples(good).ok());
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
    EXPECT_EQ(ParseSamples(bad).status().code(), absl::StatusCode::kInvalidArgument)
        << bad.substr(0, 200);
  }
  const absl::Status told =
      ParseSamples(R"({"status":"error","errorType":"timeout","error":"query timed out"})")
          .status();
  EXPECT_EQ(told.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(told.message()), HasSubstr("query timed out"));
}

TEST(SampleTest, OnlyFiniteNumbersAreNumbers) {
  EXPECT_EQ(NumberOf("1.5e3"), 1500);
  EXPECT_EQ(NumberOf("-2"), -2);
  for (const char* value : {"NaN", "+Inf", "-Inf", "", "0x1p", "half", "1e400", "½"})
    EXPECT_EQ(NumberOf(value), std::nullopt) << value;
}

TEST(SampleTest, ValuesAreInTheOrderOfTheNames) {
  const Sample sample{{{"a", "1"}, {"b", ""}, {"c", "3"}}, 0, "1"};
  EXPECT_THAT(sample.Values({"c", "b", "missing", "a"}), ElementsAre("3", "1"));
  EXPECT_EQ(sample.Label("missing"), "");
}

TEST(QuotedTest, IsALiteral) { EXPECT_EQ(Quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\nd\""); }

}  // namespace outboard::prometheus::samples_test
