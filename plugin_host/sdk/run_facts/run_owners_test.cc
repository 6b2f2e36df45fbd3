#include "plugin_host/sdk/run_facts/run_owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk::run_owners_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::PodBuilder;

constexpr char kJobs[] = "jobs.v1.batch";
constexpr char kJobSets[] = "jobsets.v1alpha2.jobset.x-k8s.io";
constexpr char kTrainJobs[] = "trainjobs.v1alpha1.trainer.kubeflow.org";

v1beta1::ClusterObject Object(const char* resource, const std::string& name,
                              const std::string& json) {
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& generic = *object.mutable_generic_object();
  generic.set_resource(resource);
  generic.set_namespace_("default");
  generic.set_name(name);
  generic.set_uid("uid-" + name);
  generic.set_json(json);
  return object;
}

v1beta1::Pod PodOf(const std::string& name, const std::string& job, const std::string& job_set) {
  PodBuilder pod(name);
  if (!job_set.empty()) pod.Label("jobset.sigs.k8s.io/jobset-name", job_set);
  v1beta1::ControllerReference& controller = *pod.proto().mutable_controller();
  controller.set_api_version("batch/v1");
  controller.set_kind("Job");
  controller.set_name(job);
  controller.set_uid("uid-" + job);
  return pod;
}

absl::Time At(const char* text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error)) << error;
  return time;
}

TEST(RunOwnersTest, AJobsDeadlineCountsFromItsStart) {
  RunOwners owners;
  owners.Set(Object(kJobs, "j", R"({"spec": {"activeDeadlineSeconds": 3600}})"));
  const v1beta1::Pod pod = PodOf("p", "j", "");
  ASSERT_NE(owners.JobOf(pod), nullptr);
  EXPECT_FALSE(owners.JobOf(pod)->deadline) << "it has not started";
  owners.Set(Object(kJobs, "j", R"({"spec": {"activeDeadlineSeconds": 3600},
                                    "status": {"startTime": "2026-01-05T12:00:00Z"}})"));
  EXPECT_EQ(owners.JobOf(pod)->deadline, At("2026-01-05T13:00:00Z"));
}

TEST(RunOwnersTest, AJobThatWasCreatedAgainHasOtherPods) {
  RunOwners owners;
  owners.Set(Object(kJobs, "j", "{}"));
  v1beta1::Pod pod = PodOf("p", "j", "");
  EXPECT_NE(owners.JobOf(pod), nullptr);
  pod.mutable_controller()->set_uid("another");
  EXPECT_EQ(owners.JobOf(pod), nullptr);
  pod.mutable_controller()->set_uid("uid-j");
  pod.mutable_controller()->set_kind("ReplicaSet");
  EXPECT_EQ(owners.JobOf(pod), nullptr);
  pod.mutable_controller()->set_kind("Job");
  pod.set_namespace_("other");
  EXPECT_EQ(owners.JobOf(pod), nullptr);
}

TEST(RunOwnersTest, RestartsLeftOfAJobSet) {
  RunOwners owners;
  const v1beta1::Pod pod = PodOf("p", "js-worker-0", "js");
  const auto left = [&](const char* json) {
    owners.Set(Object(kJobSets, "js", json));
    return owners.JobSetOf(pod)->has_restarts_left;
  };
  EXPECT_FALSE(left("{}"));
  EXPECT_TRUE(left(R"({"spec": {"failurePolicy": {"maxRestarts": 2}}})"));
  EXPECT_TRUE(left(R"({"spec": {"failurePolicy": {"maxRestarts": 2}},
                       "status": {"restarts": 9, "restartsCountTowardsMax": 1}})"));
  EXPECT_FALSE(left(R"({"spec": {"failurePolicy": {"maxRestarts": 2}},
                        "status": {"restartsCountTowardsMax": 2}})"));
  EXPECT_FALSE(left(R"({"spec": {"failurePolicy": {"maxRestarts": "2"}}})"));
}

TEST(RunOwnersTest, ATrainJobIsFoundByTheNameOfItsJobSet) {
  RunOwners owners;
  const v1beta1::Pod pod = PodOf("p", "train-node-0", "train");
  owners.Set(Object(kTrainJobs, "train", R"({"status": {"trainerStatus":
      {"progressPercentage": 40, "estimatedRemainingSeconds": 600,
       "lastUpdatedTime": "2026-01-05T12:00:00Z"}}})"));
  const RunOwner* train_job = owners.TrainJobOf(pod);
  ASSERT_NE(train_job, nullptr);
  EXPECT_EQ(train_job->estimated_end, At("2026-01-05T12:10:00Z"));
  EXPECT_TRUE(train_job->reports_progress);
  EXPECT_EQ(owners.TrainJobOf(PodOf("q", "j", "")), nullptr);
  // A JobSet that is known and has another owner is not the TrainJob's.
  owners.Set(Object(kJobSets, "train", "{}"));
  EXPECT_EQ(owners.TrainJobOf(pod), nullptr);
  owners.Set(Object(kJobSets, "train", R"({"metadata": {"ownerReferences":
      [{"kind": "TrainJob", "name": "train"}]}})"));
  EXPECT_NE(owners.TrainJobOf(pod), nullptr);
}

TEST(RunOwnersTest, NothingIsConcludedFromWhatCannotBeRead) {
  RunOwners owners;
  const v1beta1::Pod pod = PodOf("p", "train-node-0", "train");
  for (const char* json :
       {"", "[]", "null", R"({"spec": []})", R"({"status": {"trainerStatus": 3}})",
        R"({"spec": {"activeDeadlineSeconds": -1}})", R"({"spec": {"activeDeadlineSeconds": 0}})",
        R"({"spec": {"activeDeadlineSeconds": 18446744073709551615}})",
        R"({"spec": {"activeDeadlineSeconds": 1e3}})",
        R"({"metadata": {"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "0"}}})",
        R"({"metadata": {"annotations": {"slurmjob.slinky.slurm.net/timelimit": "1-00:00"}}})",
        R"({"status": {"trainerStatus": {"estimatedRemainingSeconds": 600}}})",
        R"({"status": {"trainerStatus": {"estimatedRemainingSeconds": 600,
                                         "lastUpdatedTime": "noon"}}})"}) {
    owners.Set(Object(kTrainJobs, "train", json));
    RunOwner nothing;
    nothing.uid = "uid-train";
    ASSERT_NE(owners.TrainJobOf(pod), nullptr) << json;
    EXPECT_EQ(*owners.TrainJobOf(pod), nothing) << json;
  }
}

TEST(RunOwnersTest, LimitsOfOtherSchedulers) {
  RunOwners owners;
  owners.Set(Object(kJobs, "j", R"({"metadata":
      {"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "90"},
       "annotations": {"slurmjob.slinky.slurm.net/timelimit": "5"}}})"));
  const RunOwner* job = owners.JobOf(PodOf("p", "j", ""));
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->kueue_limit, absl::Seconds(90));
  EXPECT_EQ(job->slurm_limit, absl::Minutes(5));
}

TEST(RunOwnersTest, NamesThePodsOfAnObjectThatSaysSomethingElse) {
  RunOwners owners;
  for (const char* name : {"a", "b"}) owners.SetPod(PodOf(name, "train-node-0", "train"));
  owners.SetPod(PodOf("c", "other", ""));
  const char* running = R"({"spec": {"activeDeadlineSeconds": 60},
                            "status": {"active": 1, "startTime": "2026-01-05T12:00:00Z"}})";
  const char* same = R"({"spec": {"activeDeadlineSeconds": 60},
                         "status": {"active": 2, "startTime": "2026-01-05T12:00:00Z"}})";
  EXPECT_THAT(owners.Set(Object(kJobs, "other", running)), ElementsAre("default/c"));
  EXPECT_THAT(owners.Set(Object(kJobs, "other", same)), IsEmpty());
  EXPECT_THAT(owners.Set(Object(kJobs, "unrelated", running)), IsEmpty());
  EXPECT_THAT(owners.Set(Object("widgets.v1.example.com", "train", running)), IsEmpty());
  EXPECT_THAT(owners.Set(Object(kJobSets, "train", "{}")), ElementsAre("default/a", "default/b"));
  EXPECT_THAT(owners.Set(Object(kTrainJobs, "train", "{}")), ElementsAre("default/a", "default/b"));
  owners.RemovePod("default/a");
  EXPECT_THAT(owners.Remove(Object(kTrainJobs, "train", "{}")), ElementsAre("default/b"));
  EXPECT_THAT(owners.Remove(Object(kTrainJobs, "train", "{}")), IsEmpty());
  // The pod belongs to another owner now.
  owners.SetPod(PodOf("b", "other", ""));
  EXPECT_THAT(owners.Remove(Object(kJobSets, "train", "{}")), IsEmpty());
  EXPECT_THAT(owners.Remove(Object(kJobs, "other", running)),
              ElementsAre("default/b", "default/c"));
}

}  // namespace
}  // namespace outboard::sdk::run_owners_test
