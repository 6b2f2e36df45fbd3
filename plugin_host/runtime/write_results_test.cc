#include "plugin_host/runtime/write_results.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugin_host/sdk/metrics.h"

namespace outboard::runtime::write_results_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1beta1::PushResult;

// The counts by plugin and outcome.
class Counts final : public MetricSink {
 public:
  std::shared_ptr<sdk::Counter> NewCounter(const sdk::MetricSpec& spec,
                                           const std::vector<std::string>& labels) override {
    EXPECT_EQ(spec.name, WritesMetric().name);
    EXPECT_EQ(labels.size(), spec.labels.size());
    return std::make_shared<Child>(&values[labels[0] + " " + labels[1]]);
  }
  std::shared_ptr<sdk::Gauge> NewGauge(const sdk::MetricSpec&,
                                       const std::vector<std::string>&) override {
    return nullptr;
  }
  std::shared_ptr<sdk::Histogram> NewHistogram(const sdk::MetricSpec&,
                                               const std::vector<std::string>&) override {
    return nullptr;
  }
  std::map<std::string, double> values;

 private:
  struct Child final : sdk::Counter {
    explicit Child(double* value) : value(value) {}
    void Add(double amount) override { *value += amount; }
    double* value;
  };
};

class Warnings final : public google::LogSink {
 public:
  Warnings() { google::AddLogSink(this); }
  ~Warnings() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity severity, const char*, const char*, int,
            const google::LogMessageTime&, const char* message, size_t length) override {
    if (severity == google::GLOG_WARNING) all.emplace_back(message, length);
  }
  std::vector<std::string> all;
};

class WriteResultsTest : public ::testing::Test {
 protected:
  uint64_t Push(const std::string& key) {
    v1beta1::Effect effect;
    effect.set_plugin("Keeper");
    effect.set_key(key);
    return results_.Push(effect);
  }
  void Answer(uint64_t id, PushResult::Outcome outcome, const std::string& message = "") {
    v1beta1::SyncRequest request;
    PushResult* const result = request.add_push_results();
    result->set_push_id(id);
    result->set_outcome(outcome);
    result->set_message(message);
    results_.Take(request);
  }
  Counts counts_;
  Warnings warnings_;
  WriteResults results_{&counts_};
};

TEST_F(WriteResultsTest, AWriteThatFailsIsLoggedOnceUntilItSucceeds) {
  const auto write = [&](PushResult::Outcome outcome) { Answer(Push("w"), outcome, "why"); };
  write(PushResult::OUTCOME_CONFLICT);
  EXPECT_THAT(warnings_.all,
              ElementsAre("Write of plugin Keeper with key w failed: CONFLICT: why"));
  write(PushResult::OUTCOME_CONFLICT);
  write(PushResult::OUTCOME_FAILED);
  EXPECT_THAT(warnings_.all, SizeIs(1));
  Answer(Push("other"), PushResult::OUTCOME_FORBIDDEN, "no");
  EXPECT_THAT(warnings_.all, SizeIs(2));
  write(PushResult::OUTCOME_APPLIED);
  write(PushResult::OUTCOME_SUPERSEDED);
  EXPECT_THAT(warnings_.all, SizeIs(2));
  write(PushResult::OUTCOME_FAILED);
  EXPECT_THAT(warnings_.all, SizeIs(3));
  EXPECT_EQ(counts_.values, (std::map<std::string, double>{{"Keeper applied", 1},
                                                           {"Keeper conflict", 2},
                                                           {"Keeper failed", 2},
                                                           {"Keeper forbidden", 1},
                                                           {"Keeper superseded", 1}}));
}

TEST_F(WriteResultsTest, AnOutcomeOfANewerContractIsAFailure) {
  Answer(Push("w"), static_cast<PushResult::Outcome>(99), "later");
  EXPECT_THAT(warnings_.all, ElementsAre(HasSubstr("FAILED: later")));
  EXPECT_EQ(counts_.values, (std::map<std::string, double>{{"Keeper failed", 1}}));
}

TEST_F(WriteResultsTest, ResultsOfOtherPushesAreIgnored) {
  const uint64_t id = Push("w");
  Answer(id + 1, PushResult::OUTCOME_FAILED, "no such push");
  Answer(0, PushResult::OUTCOME_FAILED, "no such push");
  EXPECT_THAT(warnings_.all, IsEmpty());
  Answer(id, PushResult::OUTCOME_APPLIED);
  Answer(id, PushResult::OUTCOME_FAILED, "a second result");
  const uint64_t lost = Push("v");
  results_.Reset();
  Answer(lost, PushResult::OUTCOME_FAILED, "of another stream");
  EXPECT_THAT(warnings_.all, IsEmpty());
  EXPECT_EQ(counts_.values, (std::map<std::string, double>{{"Keeper applied", 1}}));
}

TEST_F(WriteResultsTest, AShimThatNeverAnswersCostsNoMemory) {
  const uint64_t first = Push("w");
  for (size_t i = 0; i < WriteResults::kMaxPending; ++i) Push("w");
  Answer(first, PushResult::OUTCOME_FAILED, "forgotten");
  EXPECT_THAT(warnings_.all, IsEmpty());
  Answer(first + 1, PushResult::OUTCOME_FAILED, "the oldest that is known");
  EXPECT_THAT(warnings_.all, SizeIs(1));
}

TEST(WriteResults, WorksWithoutMetrics) {
  WriteResults results(nullptr);
  v1beta1::SyncRequest request;
  request.add_push_results()->set_push_id(results.Push(v1beta1::Effect()));
  request.mutable_push_results(0)->set_outcome(PushResult::OUTCOME_APPLIED);
  results.Take(request);
  EXPECT_GT(results.Push(v1beta1::Effect()), request.push_results(0).push_id());
}

}  // namespace
}  // namespace outboard::runtime::write_results_test
