#include "cli/simulate/trace/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::simulate::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

class TraceReportTest : public ::testing::Test {
 protected:
  TraceReportTest() : records_(3, {1000, 4}, absl::UnixEpoch()) {
    jobs_ = ParseTrace("t", R"({"job":"a","arrival":0,"run":10,"class":"x","gpus":1}
{"job":"b","arrival":20,"run":10,"class":"x","gpus":1}
{"job":"c","arrival":30,"run":10,"class":"y","gpus":1})")
                ->jobs;
    records_.job(0).all_bound = At(4);
    records_.job(0).ended = At(14);
    records_.job(1).all_bound = At(22);
    records_.job(1).pods_bound = 1;
    records_.job(1).preempted = 2;
    records_.job(1).gpu_seconds_lost = 7.5;
    records_.job(2).pods_waiting = 1;
    records_.Take({500, 2}, 1, At(10));
    records_.Take({500, 2}, 1, At(20));
    records_.Take({500, 2}, -2, At(30));
    records_.End(At(40));
  }

  std::vector<Job> jobs_;
  Records records_;
};

TEST_F(TraceReportTest, MeansAreWeightedByTime) {
  EXPECT_DOUBLE_EQ(records_.MeanUse(At(0), At(40)).gpu, (10 * 0.5 + 10 * 1.0) / 40);
  EXPECT_DOUBLE_EQ(records_.MeanUse(At(15), At(25)).gpu, 0.75);
  EXPECT_DOUBLE_EQ(records_.MeanUse(At(15), At(25)).cpu, 0.75);
  EXPECT_DOUBLE_EQ(records_.MeanUse(At(30), At(40)).gpu, 0);
  EXPECT_DOUBLE_EQ(records_.MeanUse(At(5), At(5)).gpu, 0);
}

TEST_F(TraceReportTest, SummarizesByClass) {
  const Summary summary = Summarize(jobs_, records_, {});
  EXPECT_EQ(summary.to, absl::Seconds(40));
  EXPECT_EQ(summary.makespan, absl::Seconds(14));
  EXPECT_EQ(summary.pods_bound, 1);
  EXPECT_EQ(summary.pods_waiting, 1);
  const ClassSummary& x = summary.classes.at("x");
  EXPECT_EQ(x.jobs, 2u);
  EXPECT_EQ(x.finished, 1u);
  EXPECT_EQ(x.preempted, 2);
  EXPECT_THAT(x.queue_seconds, ElementsAre(2, 4));
  EXPECT_DOUBLE_EQ(x.QueueMean(), 3);
  EXPECT_DOUBLE_EQ(x.QueueQuantile(0.5), 2);
  EXPECT_DOUBLE_EQ(x.QueueQuantile(0.95), 4);
  EXPECT_EQ(summary.classes.at("y").unscheduled, 1u);
  EXPECT_DOUBLE_EQ(summary.classes.at("y").QueueMean(), 0);
}

TEST_F(TraceReportTest, AWindowIsAboutWhatArrivesInIt) {
  Window window;
  window.from = absl::Seconds(10);
  window.to = absl::Seconds(25);
  const Summary summary = Summarize(jobs_, records_, window);
  EXPECT_EQ(summary.all.jobs, 1u);
  EXPECT_DOUBLE_EQ(summary.use.gpu, (10 * 0.5 + 5 * 1.0) / 15);
}

TEST_F(TraceReportTest, LinesOfJson) {
  Window window;
  window.interval = absl::Seconds(25);
  const std::string lines = ToJsonLines(jobs_, records_, window);
  EXPECT_THAT(
      lines,
      HasSubstr(
          R"({"job":"default/b","class":"x","state":"running","arrival":20.0,"bound":22.0,"ended":null,)"
          R"("queueSeconds":2.0,"preempted":2,"gpuSecondsLost":7.5,)"));
  EXPECT_THAT(lines, HasSubstr(R"("state":"unscheduled")"));
  EXPECT_THAT(lines, HasSubstr(R"({"from":0.0,"to":25.0,"gpu":0.4,"cpu":0.4})"));
  EXPECT_THAT(lines, HasSubstr(R"({"from":25.0,"to":40.0,"gpu":0.333333,"cpu":0.333333})"));
  EXPECT_THAT(
      lines,
      HasSubstr(R"({"summary":{"from":0.0,"to":40.0,"gpu":0.375,"cpu":0.375,"makespan":14.0,)"));
}

TEST_F(TraceReportTest, ATableForPeople) {
  const std::string table = ToTable(jobs_, records_, {});
  EXPECT_THAT(table, HasSubstr("default/c"));
  EXPECT_THAT(table, HasSubstr("In use from 0 s to 40 s: 37.5% of GPUs, 37.5% of CPU."));
}

}  // namespace
}  // namespace outboard::simulate::trace
