// The reader of one value per node, against a server that answers as the test sets.
#include "plugin_host/sdk/prometheus/metric_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plugin_host/sdk/prometheus/testing/fake_prometheus.h"

namespace outboard::prometheus::metric_reader_test {

using ::testing::ElementsAre;
using testing::FakePrometheus;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::ReadCounts;
using testing::SampleJson;
using testing::SamplesAnswer;

std::string Samples(const std::vector<std::string>& samples) {
  std::string joined;
  for (const std::string& sample : samples)
    absl::StrAppend(&joined, joined.empty() ? "" : ",", sample);
  return SamplesAnswer(joined);
}

class MetricReaderTest : public ::testing::Test {
 protected:
  MetricReadOptions Options(const std::string& query) const {
    MetricReadOptions options;
    options.read.server.address = prometheus_.address();
    options.read.server.timeout = absl::Milliseconds(300);
    options.read.query = query;
    options.read.lookback = absl::Minutes(2);
    options.read.period = absl::Milliseconds(20);
    options.report.metric = "reads_total";
    options.report.label_values = {query};
    options.node_labels = {"node", "instance"};
    return options;
  }

  FakePrometheus prometheus_;
  ReadCounts metrics_;
};

TEST_F(MetricReaderTest, KeepsFiniteValuesThatNameANode) {
  prometheus_.Say(
      Samples({SampleJson(R"("instance":"10.0.0.1:9100","node":"n1")", "0.25"),
               SampleJson(R"("instance":"n2:9100")", "-3e2"), SampleJson(R"("node":"n3")", "NaN"),
               SampleJson(R"("node":"n4")", "+Inf"), SampleJson(R"("node":"n5")", "fast"),
               SampleJson(R"("pod":"p")", "1"), SampleJson(R"("node":"")", "1")}));
  const absl::Time before = absl::Now();
  const MetricReader reader(Options("latency"), &metrics_);
  metrics_.Await("ok", 1);
  const auto snapshot = reader.Latest();
  ASSERT_NE(snapshot, nullptr);
  EXPECT_THAT(snapshot->values, ElementsAre(Pair(ElementsAre("n1", "10.0.0.1:9100"), 0.25),
                                            Pair(ElementsAre("n2:9100"), -300)));
  EXPECT_GE(snapshot->asked, before);
  EXPECT_LE(snapshot->asked, absl::Now());
  EXPECT_THAT(prometheus_.AwaitRequests(1), HasSubstr("query=latency&lookback_delta=120000ms"));
}

// Without a usable sample the snapshot is empty: earlier values do not stay.
TEST_F(MetricReaderTest, AnAnswerWithoutValuesReplacesEarlierOnes) {
  prometheus_.Say(Samples({SampleJson(R"("node":"n1")", "1")}));
  const MetricReader reader(Options("latency"), &metrics_);
  metrics_.Await("ok", 1);
  prometheus_.Say(Samples({SampleJson(R"("node":"n1")", "NaN")}));
  metrics_.Await("no_samples", 2);
  EXPECT_THAT(reader.Latest()->values, IsEmpty());
}

// The age of values is the plugin's to judge.
TEST_F(MetricReaderTest, AFailedReadingLeavesWhatIsKnown) {
  prometheus_.Say(Samples({SampleJson(R"("node":"n1")", "1")}));
  const MetricReader reader(Options("latency"), &metrics_);
  metrics_.Await("ok", 1);
  prometheus_.Say(
      testing::Ok(R"({"status":"error","errorType":"bad_data","error":"parse error"})"));
  metrics_.Await("error", 2);
  EXPECT_THAT(reader.Latest()->values, ElementsAre(Pair(ElementsAre("n1"), 1)));
}

TEST_F(MetricReaderTest, EachQueryHasItsOwnReader) {
  prometheus_.SayTo("latency", Samples({SampleJson(R"("node":"n1")", "1")}));
  prometheus_.SayTo("throughput", Samples({SampleJson(R"("node":"n1")", "2")}));
  const auto latency = MetricReader::Shared(Options("latency"), &metrics_);
  const auto throughput = MetricReader::Shared(Options("throughput"), &metrics_);
  EXPECT_EQ(MetricReader::Shared(Options("latency"), &metrics_), latency);
  EXPECT_NE(throughput, latency);
  const absl::Time until = absl::Now() + absl::Seconds(20);
  while ((latency->Latest() == nullptr || throughput->Latest() == nullptr) && absl::Now() < until)
    std::this_thread::yield();
  ASSERT_NE(latency->Latest(), nullptr);
  ASSERT_NE(throughput->Latest(), nullptr);
  EXPECT_EQ(latency->Latest()->values.at(0).second, 1);
  EXPECT_EQ(throughput->Latest()->values.at(0).second, 2);
}

}  // namespace outboard::prometheus::metric_reader_test
