// The reader against a server that answers as the test sets.
#include "plugins/cost_optimized/price_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/time/clock.h"
#include "plugin_host/sdk/prometheus/testing/fake_prometheus.h"

namespace outboard::cost_optimized::price_reader_test {
namespace {

using prometheus::testing::FakePrometheus;
using prometheus::testing::ReadCounts;
using prometheus::testing::SampleJson;
using prometheus::testing::SamplesAnswer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class PriceReaderTest : public ::testing::Test {
 protected:
  PriceReaderTest() {
    options_.server.address = prometheus_.address();
    options_.server.timeout = absl::Milliseconds(300);
    options_.period = absl::Milliseconds(20);
  }

  FakePrometheus prometheus_;
  ReadCounts metrics_;
  PriceReaderOptions options_;
};

TEST_F(PriceReaderTest, AsksAndPublishes) {
  prometheus_.Say(SamplesAnswer(SampleJson(R"("node":"n","outboard":"node")", "3.5")));
  const absl::Time before = absl::Now();
  PriceReader reader(options_, &metrics_);
  metrics_.Await("ok", 2);
  const auto snapshot = reader.Latest();
  ASSERT_NE(snapshot, nullptr);
  EXPECT_THAT(snapshot->prices.by_node, ElementsAre(Pair("n", 3.5)));
  EXPECT_GE(snapshot->asked, before);
  EXPECT_LE(snapshot->asked, absl::Now());
  EXPECT_THAT(prometheus_.AwaitRequests(1), HasSubstr("node_total_hourly_cost"));
}

TEST_F(PriceReaderTest, FailuresLeaveWhatIsKnown) {
  prometheus_.Say(SamplesAnswer(SampleJson(R"("node":"n","outboard":"node")", "3.5")));
  PriceReader reader(options_, &metrics_);
  metrics_.Await("ok", 1);
  prometheus_.Say(SamplesAnswer(""));
  metrics_.Await("no_samples", 2);
  const auto snapshot = reader.Latest();
  ASSERT_NE(snapshot, nullptr);
  EXPECT_THAT(snapshot->prices.by_node, ElementsAre(Pair("n", 3.5)));
  prometheus_.Say(prometheus::testing::Ok("<html>"));
  metrics_.Await("malformed", 1);
  EXPECT_EQ(reader.Latest(), snapshot) << "with its age";
}

TEST_F(PriceReaderTest, IsSharedByOptions) {
  prometheus_.Say(SamplesAnswer(""));
  const auto one = PriceReader::Shared(options_, &metrics_);
  EXPECT_EQ(PriceReader::Shared(options_, &metrics_), one);
  options_.matchers = {{"cluster", "a"}};
  EXPECT_NE(PriceReader::Shared(options_, &metrics_), one);
}

}  // namespace
}  // namespace outboard::cost_optimized::price_reader_test
