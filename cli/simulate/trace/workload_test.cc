#include "cli/simulate/trace/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cli/manifests/object_reader.h"
#include "cli/simulate/trace/trace.h"

namespace outboard::simulate::trace {
namespace {

std::vector<Job> JobsOf(const WorkloadOptions& options) {
  absl::StatusOr<Trace> trace = ParseTrace("t", MakeWorkload(options).trace);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? std::move(trace->jobs) : std::vector<Job>();
}

double GpuSeconds(const Job& job) {
  return static_cast<double>(AmountsOf(job.pod->pod).gpus) * job.replicas *
         absl::ToDoubleSeconds(*job.run);
}

TEST(WorkloadTest, TheSameSeedGivesTheSameFilesAndAnotherOneOthers) {
  WorkloadOptions options;
  options.nodes = 5;
  options.hours = 2;
  EXPECT_EQ(MakeWorkload(options).trace, MakeWorkload(options).trace);
  EXPECT_EQ(MakeWorkload(options).cluster_yaml, MakeWorkload(options).cluster_yaml);
  const std::string first = MakeWorkload(options).trace;
  options.seed = 2;
  EXPECT_NE(MakeWorkload(options).trace, first);
}

TEST(WorkloadTest, JobsAskForTheLoadInTheirShares) {
  WorkloadOptions options;
  options.nodes = 50;
  options.hours = 24;
  double training = 0, inference = 0;
  for (const Job& job : JobsOf(options)) {
    (job.job_class == "inference" ? inference : training) += GpuSeconds(job);
    EXPECT_LE(job.arrival, absl::Hours(24));
  }
  const double capacity = 50 * 8 * 24 * 3600.0;
  EXPECT_NEAR(training / capacity, 0.9 * 0.7, 0.001);
  EXPECT_NEAR(inference / capacity, 0.9 * 0.3, 0.001);
}

TEST(WorkloadTest, ShapesAreThoseOfRealClusters) {
  WorkloadOptions options;
  options.nodes = 200;
  options.hours = 48;
  std::vector<double> runs;  // of training with one GPU
  std::map<int64_t, double> jobs, gpu_seconds;
  size_t trainings = 0, by_day = 0, by_night = 0;
  for (const Job& job : JobsOf(options)) {
    const int64_t gpus = AmountsOf(job.pod->pod).gpus * job.replicas;
    if (job.job_class == "inference") {
      EXPECT_LE(gpus, 2);
      EXPECT_GT(job.pod->pod.priority(), 0);
      const int64_t hour = job.arrival / absl::Hours(1) % 24;
      by_day += hour >= 8 && hour < 20;
      by_night += hour < 8 || hour >= 20;
      continue;
    }
    ++trainings;
    ++jobs[gpus];
    gpu_seconds[gpus] += GpuSeconds(job);
    if (gpus == 1) runs.push_back(absl::ToDoubleSeconds(*job.run));
    EXPECT_EQ(job.gang, job.replicas > 1);
    EXPECT_LE(AmountsOf(job.pod->pod).gpus, 8);
  }
  std::sort(runs.begin(), runs.end());
  EXPECT_NEAR(runs[runs.size() / 2], 124, 15);
  EXPECT_NEAR(jobs[1] / static_cast<double>(trainings), 0.55, 0.02);
  double large = 0, all = 0;
  for (const auto& [gpus, seconds] : gpu_seconds) {
    all += seconds;
    if (gpus >= 8) large += seconds;
  }
  EXPECT_GT(large / all, 0.7) << "most GPU time goes to few jobs";
  EXPECT_EQ(jobs.rbegin()->first, 32);
  EXPECT_GT(by_day, by_night * 3 / 2);
}

TEST(WorkloadTest, JobsDeclareRunTimesIfConfigured) {
  WorkloadOptions options;
  options.nodes = 5;
  options.hours = 2;
  for (const Job& job : JobsOf(options))
    EXPECT_TRUE(job.pod->pod.annotations().empty() || job.gang);
  for (const double declared : {1.0, 2.5}) {
    options.declared = declared;
    for (const Job& job : JobsOf(options)) {
      const auto& annotations = job.pod->pod.annotations();
      const auto found = annotations.find("outboard/run-seconds");
      ASSERT_NE(found, annotations.end()) << job.name;
      const double over = std::stod(found->second) - declared * absl::ToDoubleSeconds(*job.run);
      EXPECT_GE(over, -1e-6) << job.name;
      EXPECT_LT(over, 1) << job.name;
    }
  }
}

TEST(WorkloadTest, TheClusterIsReadAsWritten) {
  WorkloadOptions options;
  options.nodes = 3;
  options.gpus_per_node = 4;
  const auto manifests = manifests::ReadManifests("c.yaml", MakeWorkload(options).cluster_yaml);
  EXPECT_TRUE(manifests.errors.empty());
  EXPECT_TRUE(manifests.warnings.empty());
  ASSERT_EQ(manifests.nodes.size(), 3u);
  EXPECT_EQ(AmountsOf(manifests.nodes[2]->node).gpus, 4);
}

TEST(WorkloadTest, SmallClustersGetNothingThatCanNeverFit) {
  WorkloadOptions options;
  options.nodes = 1;
  options.gpus_per_node = 6;
  options.hours = 10;
  for (const Job& job : JobsOf(options))
    EXPECT_LE(AmountsOf(job.pod->pod).gpus * job.replicas, 6) << job.name;
}

TEST(WorkloadTest, BadOptionsAreNamed) {
  WorkloadOptions options;
  EXPECT_TRUE(CheckWorkloadOptions(options).ok());
  options.load = 0;
  EXPECT_EQ(CheckWorkloadOptions(options).message(), "--load must be from 0.001 to 10");
  options.load = 1;
  options.declared = 0.5;
  EXPECT_EQ(CheckWorkloadOptions(options).message(), "--declared must be 0, or from 1 to 1000");
  options.declared = 0;
  options.nodes = 0;
  EXPECT_EQ(CheckWorkloadOptions(options).message(), "--nodes must be from 1 to 100000");
}

}  // namespace
}  // namespace outboard::simulate::trace
