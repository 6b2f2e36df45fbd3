#include "cli/simulate/trace/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "cli/simulate/trace/report.h"

namespace outboard::simulate::trace {
namespace {

using ::testing::ElementsAre;

// Places pods on one node with this number of GPUs, by priority, then by creation. A pod that does
// not fit preempts younger pods of lower priority.
class OneNode final : public Cluster {
 public:
  explicit OneNode(int64_t gpus) : free_(gpus) {}

  void Create(const kube::PodPtr& pod, absl::Time now) override {
    log.push_back(absl::StrCat("+", pod->pod.name(), "@", Seconds(now)));
    waiting_.push_back(pod);
    std::stable_sort(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) {
      return a->pod.priority() > b->pod.priority();
    });
  }
  void Delete(const std::string& uid, absl::Time now) override {
    waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(),
                                  [&](const auto& pod) { return pod->uid() == uid; }),
                   waiting_.end());
    for (auto it = running_.begin(); it != running_.end(); ++it) {
      if ((*it)->uid() != uid) continue;
      log.push_back(absl::StrCat("-", (*it)->pod.name(), "@", Seconds(now)));
      free_ += AmountsOf((*it)->pod).gpus;
      running_.erase(it);
      return;
    }
  }
  absl::Status Begin(absl::Time now) override {
    EXPECT_GE(now, begun);
    begun = now;
    return absl::OkStatus();
  }
  absl::Status Settle(absl::Time now, std::vector<News>* news) override {
    EXPECT_EQ(now, begun) << "the cluster knows the time before it decides";
    ++settled;
    if (!broken.ok()) return broken;
    if (now < not_before) return absl::OkStatus();
    for (size_t i = 0; i < waiting_.size();) {
      const kube::PodPtr pod = waiting_[i];
      const int64_t need = AmountsOf(pod->pod).gpus;
      int64_t lesser = 0;
      for (const kube::PodPtr& other : running_) {
        if (other->pod.priority() < pod->pod.priority()) lesser += AmountsOf(other->pod).gpus;
      }
      while (free_ < need && free_ + lesser >= need && !running_.empty()) {
        const auto victim = std::min_element(
            running_.rbegin(), running_.rend(),
            [](const auto& a, const auto& b) { return a->pod.priority() < b->pod.priority(); });
        if ((*victim)->pod.priority() >= pod->pod.priority()) break;
        lesser -= AmountsOf((*victim)->pod).gpus;
        log.push_back(absl::StrCat("!", (*victim)->pod.name(), "@", Seconds(now)));
        news->push_back({News::Kind::kEvicted, (*victim)->uid()});
        free_ += AmountsOf((*victim)->pod).gpus;
        running_.erase(std::next(victim).base());
      }
      if (free_ < need) {
        ++i;
        continue;
      }
      free_ -= need;
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
      running_.push_back(pod);
      news->push_back({News::Kind::kBound, pod->uid()});
    }
    while (spiteful && !waiting_.empty() && !running_.empty()) {
      free_ += AmountsOf(running_.back()->pod).gpus;
      news->push_back({News::Kind::kEvicted, running_.back()->uid()});
      running_.pop_back();
    }
    return absl::OkStatus();
  }
  absl::Time NextWakeup(absl::Time now) override {
    if (now < not_before) return busy ? now : not_before;
    return waiting_.empty() ? absl::InfiniteFuture() : now + flush;
  }

  // Creations (+), deletions of running pods (-) and evictions (!), with the seconds.
  std::vector<std::string> log;
  int settled = 0;
  absl::Time begun = absl::InfinitePast();
  absl::Status broken;
  absl::Time not_before = absl::InfinitePast();  // nothing is placed earlier
  bool busy = false;                             // until then work is left at each instant
  bool spiteful = false;  // while any pod waits, evicts all others without effect
  absl::Duration flush = absl::Minutes(5);

 private:
  static double Seconds(absl::Time now) { return absl::ToDoubleSeconds(now - absl::UnixEpoch()); }
  int64_t free_;
  std::vector<kube::PodPtr> waiting_, running_;
};

class ReplayTest : public ::testing::Test {
 protected:
  // Replays the trace on a node with this number of GPUs.
  void Play(int64_t gpus, const std::string& text, ReplayOptions options = {}) {
    absl::StatusOr<Trace> trace = ParseTrace("t.jsonl", text);
    ASSERT_TRUE(trace.ok()) << trace.status();
    trace_ = *std::move(trace);
    if (cluster_ == nullptr) cluster_ = std::make_unique<OneNode>(gpus);
    records_ = std::make_unique<Records>(trace_.jobs.size(), Amounts{0, gpus}, absl::UnixEpoch());
    Replay replay(trace_.jobs, running_, cluster_.get(), records_.get(), absl::UnixEpoch());
    status_ = replay.Run(options);
  }
  double Bound(size_t job) const {
    return absl::ToDoubleSeconds(*records_->job(job).all_bound - absl::UnixEpoch());
  }
  double Ended(size_t job) const {
    return absl::ToDoubleSeconds(*records_->job(job).ended - absl::UnixEpoch());
  }
  double End() const { return absl::ToDoubleSeconds(records_->end() - absl::UnixEpoch()); }
  double GpuUse(double from, double to) const {
    return records_
        ->MeanUse(absl::UnixEpoch() + absl::Seconds(from), absl::UnixEpoch() + absl::Seconds(to))
        .gpu;
  }

  std::unique_ptr<OneNode> cluster_;
  std::vector<kube::PodPtr> running_;
  Trace trace_;
  std::unique_ptr<Records> records_;
  absl::Status status_;
};

TEST_F(ReplayTest, TheEndOfAPodMakesRoomAtThatVeryInstant) {
  Play(1, R"({"job":"a","arrival":0,"run":100.25,"gpus":1}
{"job":"b","arrival":10,"run":50,"gpus":1})");
  ASSERT_TRUE(status_.ok()) << status_;
  EXPECT_EQ(Bound(0), 0);
  EXPECT_EQ(Ended(0), 100.25);
  EXPECT_EQ(Bound(1), 100.25);
  EXPECT_EQ(Ended(1), 150.25);
  EXPECT_EQ(End(), 150.25) << "the last event ends the replay";
  EXPECT_THAT(cluster_->log, ElementsAre("+a@0", "+b@10", "-a@100.25", "-b@150.25"));
  EXPECT_DOUBLE_EQ(GpuUse(0, 150.25), 1);
}

TEST_F(ReplayTest, ItEndsOnceTooManyPodsWait) {
  ReplayOptions options;
  options.most_waiting = 2;
  const std::string jobs = R"({"job":"a","arrival":0,"run":100,"gpus":1}
{"job":"b","arrival":10,"run":1,"gpus":1}
{"job":"c","arrival":20,"run":1,"gpus":1}
{"job":"d","arrival":30,"run":1,"gpus":1})";
  Play(1, jobs, options);
  ASSERT_TRUE(status_.ok()) << status_;
  EXPECT_EQ(End(), 30);
  EXPECT_EQ(records_->job(0).pods_bound, 1);
  EXPECT_EQ(records_->job(3).pods_waiting, 1);
  options.most_waiting = 3;
  cluster_ = nullptr;
  Play(1, jobs, options);
  EXPECT_EQ(Ended(3), 103) << "pods with a node do not wait";
}

TEST_F(ReplayTest, WhatEndsWhenAnotherArrivesMakesRoomForIt) {
  Play(1, R"({"job":"b","arrival":100,"run":1,"gpus":1}
{"job":"a","arrival":0,"run":100,"gpus":1})");
  EXPECT_THAT(cluster_->log, ElementsAre("+a@0", "-a@100", "+b@100", "-b@101"));
  EXPECT_EQ(Bound(0), 100);
}

TEST_F(ReplayTest, ReplicasRunForThemselvesAndAGangTogether) {
  Play(2, R"({"job":"alone","arrival":0,"run":10,"gpus":1}
{"job":"free","arrival":0,"run":10,"replicas":2,"gpus":1})");
  EXPECT_EQ(Bound(1), 10) << "the second of them waits for the first job";
  EXPECT_EQ(Ended(1), 20);
  EXPECT_DOUBLE_EQ(records_->job(1).gpu_seconds_idle, 0);

  cluster_.reset();
  Play(2, R"({"job":"alone","arrival":0,"run":10,"gpus":1}
{"job":"gang","arrival":0,"run":10,"replicas":2,"gang":true,"gpus":1})");
  EXPECT_EQ(Bound(1), 10);
  EXPECT_EQ(Ended(1), 20);
  EXPECT_THAT(cluster_->log, ElementsAre("+alone@0", "+gang-0@0", "+gang-1@0", "-alone@10",
                                         "-gang-0@20", "-gang-1@20"));
  EXPECT_DOUBLE_EQ(records_->job(1).gpu_seconds_idle, 10)
      << "what the first member held while it waited";
}

TEST_F(ReplayTest, APreemptedPodReturnsAndRestarts) {
  Play(1, R"({"job":"low","arrival":0,"run":100,"gpus":1}
{"job":"high","arrival":70,"run":10,"gpus":1,"priority":1})");
  EXPECT_THAT(cluster_->log, ElementsAre("+low@0", "+high@70", "!low@70", "+low.r1@70", "-high@80",
                                         "-low.r1@180"));
  EXPECT_EQ(Ended(0), 180);
  EXPECT_EQ(records_->job(0).preempted, 1);
  EXPECT_DOUBLE_EQ(records_->job(0).gpu_seconds_lost, 70);
  EXPECT_EQ(Bound(0), 0) << "its first node counts";
}

TEST_F(ReplayTest, OnlyWorkSinceTheLastCheckpointIsLost) {
  Play(2, R"({"job":"low","arrival":0,"run":100,"gpus":2,"checkpointEvery":30}
{"job":"high","arrival":70,"run":10,"gpus":1,"priority":1}
{"job":"again","arrival":100,"run":10,"gpus":1,"priority":1})");
  // 60 of 70 s are saved; from 80 on 20 more by 100 make 80, of which 60 were saved: nothing new.
  EXPECT_EQ(records_->job(0).preempted, 2);
  EXPECT_DOUBLE_EQ(records_->job(0).gpu_seconds_lost, 2 * 10 + 2 * 20);
  EXPECT_EQ(Ended(0), 110 + 40);
}

TEST_F(ReplayTest, ACheckpointAtEveryMomentLosesNothing) {
  Play(1, R"({"job":"low","arrival":0,"run":100,"gpus":1,"checkpointEvery":0}
{"job":"high","arrival":70,"run":10,"gpus":1,"priority":1})");
  EXPECT_DOUBLE_EQ(records_->job(0).gpu_seconds_lost, 0);
  EXPECT_EQ(Ended(0), 110);
}

TEST_F(ReplayTest, AGangThatLosesAMemberRestartsAsAWhole) {
  Play(
      4,
      R"({"job":"gang","arrival":0,"run":100,"replicas":4,"gang":true,"gpus":1,"checkpointEvery":40}
{"job":"high","arrival":50,"run":10,"gpus":1,"priority":1})");
  EXPECT_EQ(records_->job(0).preempted, 1);
  EXPECT_DOUBLE_EQ(records_->job(0).gpu_seconds_lost, 4 * 10);
  EXPECT_EQ(Bound(0), 0);
  // Three come back at once and wait for the fourth, which waits for `high`.
  EXPECT_DOUBLE_EQ(records_->job(0).gpu_seconds_idle, 3 * 10);
  EXPECT_EQ(Ended(0), 60 + 60);
  EXPECT_EQ(std::count_if(cluster_->log.begin(), cluster_->log.end(),
                          [](const std::string& line) { return line[0] == '+'; }),
            4 + 1 + 4);
}

TEST_F(ReplayTest, PodsThatRunFromTheBeginningCountAndDoNotComeBack) {
  cluster_ = std::make_unique<OneNode>(2);
  const auto other = ParseTrace("o", R"({"job":"other","arrival":0,"gpus":1})");
  running_.push_back(PodOf(other->jobs[0], 0, 0));
  ASSERT_TRUE(cluster_->Begin(absl::UnixEpoch()).ok());
  cluster_->Create(running_[0], absl::UnixEpoch());
  std::vector<Cluster::News> ignored;
  ASSERT_TRUE(cluster_->Settle(absl::UnixEpoch(), &ignored).ok());
  Play(2, R"({"job":"high","arrival":10,"run":10,"gpus":2,"priority":1})");
  EXPECT_EQ(Ended(0), 20);
  EXPECT_DOUBLE_EQ(GpuUse(0, 10), 0.5);
  EXPECT_DOUBLE_EQ(GpuUse(10, 20), 1);
  EXPECT_DOUBLE_EQ(GpuUse(5, 15), 0.75);
}

TEST_F(ReplayTest, TheClockJumpsToWakeUps) {
  cluster_ = std::make_unique<OneNode>(1);
  cluster_->not_before = absl::UnixEpoch() + absl::Seconds(42);
  Play(1, R"({"job":"a","arrival":0,"run":10,"gpus":1})");
  EXPECT_EQ(Bound(0), 42);
  EXPECT_EQ(cluster_->settled, 3) << "at 0, 42 and 52";
}

TEST_F(ReplayTest, WhatIsLeftAtAnInstantCostsAMoment) {
  cluster_ = std::make_unique<OneNode>(1);
  cluster_->not_before = absl::UnixEpoch() + absl::Milliseconds(3);
  cluster_->busy = true;
  Play(1, R"({"job":"a","arrival":0,"run":10,"gpus":1})");
  EXPECT_DOUBLE_EQ(Bound(0), 0.003);
  EXPECT_DOUBLE_EQ(Ended(0), 10.003);
}

TEST_F(ReplayTest, PodsThatAreAlwaysPreemptedDoNotStopTheClock) {
  cluster_ = std::make_unique<OneNode>(1);
  cluster_->spiteful = true;
  ReplayOptions options;
  options.until = absl::Milliseconds(100);
  Play(1, R"({"job":"low","arrival":0,"run":1,"gpus":1}
{"job":"huge","arrival":0,"run":1,"gpus":2,"priority":1})",
       options);
  ASSERT_TRUE(status_.ok());
  EXPECT_DOUBLE_EQ(End(), 0.1);
  EXPECT_GE(records_->job(0).preempted, 50);
}

TEST_F(ReplayTest, EndsWhenNothingCanBeExpectedAnyMore) {
  Play(1, R"({"job":"a","arrival":0,"run":100,"gpus":1}
{"job":"huge","arrival":0,"run":1,"gpus":2})");
  EXPECT_FALSE(records_->job(1).all_bound.has_value());
  EXPECT_EQ(records_->job(1).pods_waiting, 1);
  EXPECT_EQ(End(), 100 + 600) << "two flushes without a node";
}

TEST_F(ReplayTest, EndsAtTheGivenInstant) {
  ReplayOptions options;
  options.until = absl::Seconds(30);
  Play(2, R"({"job":"a","arrival":0,"run":100,"gpus":1}
{"job":"service","arrival":0,"gpus":1}
{"job":"late","arrival":40,"run":1,"gpus":1})",
       options);
  EXPECT_EQ(End(), 30);
  EXPECT_EQ(records_->job(0).pods_bound, 1);
  EXPECT_FALSE(records_->job(0).ended.has_value());
  EXPECT_THAT(cluster_->log, ElementsAre("+a@0", "+service@0"));
  EXPECT_DOUBLE_EQ(GpuUse(0, 30), 1);
}

TEST_F(ReplayTest, AFailureOfTheClusterEndsIt) {
  cluster_ = std::make_unique<OneNode>(1);
  cluster_->broken = absl::UnavailableError("gone");
  Play(1, R"({"job":"a","arrival":0,"run":10,"gpus":1})");
  EXPECT_TRUE(absl::IsUnavailable(status_));
}

TEST_F(ReplayTest, TheSameTraceGivesTheSameReport) {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&text, R"({"job":"j)", i, R"(","arrival":)", i * 7 % 50, R"(,"run":)",
                    1 + i * 13 % 40, R"(,"gpus":)", 1 + i % 3, R"(,"priority":)", i % 4,
                    i % 5 == 0 ? R"(,"replicas":2,"gang":true)" : "", "}\n");
  }
  std::string first;
  for (int i = 0; i < 2; ++i) {
    cluster_.reset();
    Play(8, text);
    ASSERT_TRUE(status_.ok());
    const std::string report = ToJsonLines(trace_.jobs, *records_, {});
    if (i == 0) first = report;
    EXPECT_EQ(report, first);
    EXPECT_EQ(Summarize(trace_.jobs, *records_, {}).all.finished, 200u);
  }
}

}  // namespace
}  // namespace outboard::simulate::trace
