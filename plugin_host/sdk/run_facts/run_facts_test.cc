#include "plugin_host/sdk/run_facts/run_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk::run_facts_test {
namespace {

using testing::PodBuilder;

const absl::Time kNow = absl::FromUnixSeconds(1767614400);  // 2026-01-05T12:00:00Z
constexpr int64_t kCreated = 1767600000;                    // 08:00
constexpr int64_t kStarted = 1767603600;                    // 09:00

PodBuilder Running() {
  PodBuilder pod("p");
  pod.proto().set_creation_unix_seconds(kCreated);
  pod.proto().set_start_unix_seconds(kStarted);
  return pod;
}
RunFacts Of(const v1beta1::Pod& pod) { return RunFactsReader().Of(pod, nullptr); }

v1beta1::ClusterObject Object(const char* resource, const char* name, const char* json) {
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& generic = *object.mutable_generic_object();
  generic.set_resource(resource);
  generic.set_namespace_("default");
  generic.set_name(name);
  generic.set_uid(std::string("uid-") + name);
  generic.set_json(json);
  return object;
}

TEST(RunFactsTest, WithoutAnythingAllIsUnknown) {
  const RunFacts facts = Of(PodBuilder("p"));
  EXPECT_EQ(facts, RunFacts());
  EXPECT_FALSE(facts.StartAt(kNow).known());
  EXPECT_FALSE(facts.CheckpointAt(kNow).known());
  EXPECT_FALSE(facts.End().known());
  EXPECT_STREQ(RunSourceName(facts.preemptible.source), "unknown");
}

TEST(RunFactsTest, TheAnnotatedStartWinsUnlessItCannotBe) {
  EXPECT_EQ(Of(Running()).StartAt(kNow).origin, "status.startTime");
  const auto start = [](const char* text) {
    return Of(Running().Annotation("outboard/start-time", text)).StartAt(kNow);
  };
  EXPECT_EQ(start("2026-01-05T10:00:00Z").value, kNow - absl::Hours(2));
  EXPECT_EQ(start("2026-01-05T10:00:00Z").source, RunSource::kOwn);
  EXPECT_EQ(start("2026-01-05T07:59:59Z").source, RunSource::kPod) << "before the pod's creation";
  EXPECT_EQ(start("2026-01-05T12:00:01Z").source, RunSource::kPod) << "in the future";
  EXPECT_EQ(start("ten").source, RunSource::kPod);
}

TEST(RunFactsTest, FutureCheckpointsDoNotCount) {
  const auto facts = [](const char* ours, const char* volcanos) {
    return Of(Running()
                  .Annotation("outboard/last-checkpoint-time", ours)
                  .Annotation("volcano.sh/last-checkpoint-time", volcanos));
  };
  EXPECT_EQ(facts("2026-01-05T11:00:00Z", "2026-01-05T11:30:00Z").CheckpointAt(kNow).value,
            kNow - absl::Hours(1));
  const RunFacts future = facts("2026-01-05T12:00:01Z", "2026-01-05T11:30:00Z");
  EXPECT_EQ(future.CheckpointAt(kNow).value, kNow - absl::Minutes(30));
  EXPECT_EQ(future.CheckpointAt(kNow).source, RunSource::kOtherScheduler);
  EXPECT_EQ(future.NewestCheckpoint(), kNow + absl::Seconds(1));
  EXPECT_FALSE(facts("2027-01-01T00:00:00Z", "later").CheckpointAt(kNow).known());
}

TEST(RunFactsTest, TheEndIsTheEarlierOfWhatIsDeclaredAndWhatIsEnforced) {
  PodBuilder pod = Running().Annotation("outboard/run-seconds", "14400");
  EXPECT_EQ(Of(pod).DeclaredEnd().value, kNow + absl::Hours(1));
  EXPECT_FALSE(Of(pod).EnforcedEnd().known());
  pod.proto().set_active_deadline_seconds(12600);
  EXPECT_EQ(Of(pod).End().value, kNow + absl::Minutes(30));
  EXPECT_EQ(Of(pod).End().origin, "spec.activeDeadlineSeconds");
  pod.Annotation("outboard/estimated-end", "2026-01-05T12:10:00Z");
  EXPECT_EQ(Of(pod).End().value, kNow + absl::Minutes(10));
  EXPECT_EQ(Of(pod).End().origin, "annotation outboard/estimated-end");
  // Our start is where our run time counts from; a deadline counts from the pod's own.
  PodBuilder late = Running().Annotation("outboard/run-seconds", "60");
  late.Annotation("outboard/start-time", "2026-01-05T11:00:00Z");
  late.proto().set_active_deadline_seconds(14400);
  EXPECT_EQ(Of(late).DeclaredEnd().value, kNow - absl::Minutes(59));
  EXPECT_EQ(Of(late).EnforcedEnd().value, kNow + absl::Hours(1));
}

TEST(RunFactsTest, BeforeTheStartARunTimeIsKnownButNoEnd) {
  PodBuilder pod("p");
  pod.Annotation("outboard/run-seconds", "60");
  pod.proto().set_active_deadline_seconds(30);
  EXPECT_EQ(Of(pod).run_time.value, absl::Seconds(60));
  EXPECT_EQ(Of(pod).run_limit.value, absl::Seconds(30));
  EXPECT_FALSE(Of(pod).End().known());
}

TEST(RunFactsTest, LimitsOfKueueAndSlurm) {
  PodBuilder pod = Running().Label("kueue.x-k8s.io/max-exec-time-seconds", "7200");
  pod.Annotation("slurmjob.slinky.slurm.net/timelimit", "90");
  pod.proto().set_active_deadline_seconds(9000);
  const RunFacts facts = Of(pod);
  EXPECT_EQ(facts.run_limit.value, absl::Hours(2));
  EXPECT_EQ(facts.run_limit.origin, "label kueue.x-k8s.io/max-exec-time-seconds");
  EXPECT_EQ(facts.run_time.value, absl::Minutes(90));
  EXPECT_EQ(facts.run_time.source, RunSource::kOtherScheduler);
  // Ours is more trusted, even if it is longer.
  EXPECT_EQ(Of(pod.Annotation("outboard/run-seconds", "6000")).run_time.value, absl::Seconds(6000));
}

TEST(RunFactsTest, Preemptibility) {
  const auto label = [](const char* key, const char* value) {
    return Of(PodBuilder("p").Label(key, value)).preemptible.value;
  };
  EXPECT_EQ(label("kai.scheduler/preemptibility", "preemptible"), true);
  EXPECT_EQ(label("kai.scheduler/preemptibility", "non-preemptible"), false);
  EXPECT_EQ(label("kai.scheduler/preemptibility", "semi-preemptible"), false);
  EXPECT_EQ(label("kai.scheduler/preemptibility", "maybe"), std::nullopt);
  EXPECT_EQ(label("volcano.sh/preemptable", "true"), true);
  EXPECT_EQ(label("volcano.sh/preemptable", "false"), false);
  PodBuilder pod("p");
  pod.Label("volcano.sh/preemptable", "true").Annotation("volcano.sh/preemptable", "false");
  EXPECT_EQ(Of(pod).preemptible.value, false) << "Volcano reads the annotation first";
  pod.Label("kai.scheduler/preemptibility", "preemptible");
  EXPECT_EQ(Of(pod).preemptible.value, true);
  pod.Annotation("outboard/preemptible", "false");
  EXPECT_EQ(Of(pod).preemptible.value, false);
  EXPECT_EQ(Of(pod).preemptible.source, RunSource::kOwn);
}

TEST(RunFactsTest, WhatStartsAgain) {
  EXPECT_EQ(Of(PodBuilder("p").Annotation("outboard/preemptible", "true")).restartable.value, true);
  EXPECT_FALSE(Of(PodBuilder("p").Annotation("outboard/preemptible", "false")).restartable.known());
  const char* resume = "sagemaker.amazonaws.com/enable-job-auto-resume";
  EXPECT_EQ(Of(PodBuilder("p").Annotation(resume, "true")).restartable.source,
            RunSource::kTrainingService);
  EXPECT_FALSE(Of(PodBuilder("p").Annotation(resume, "false")).restartable.known());
}

TEST(RunFactsTest, OwnersSayWhatThePodDoesNot) {
  RunFactsReader reader;
  PodBuilder pod = Running().Label("jobset.sigs.k8s.io/jobset-name", "train");
  v1beta1::ControllerReference& controller = *pod.proto().mutable_controller();
  controller.set_kind("Job");
  controller.set_name("train-node-0");
  controller.set_uid("uid-train-node-0");
  reader.SetPod(pod);
  EXPECT_EQ(reader.Of(pod, nullptr).End().value, std::nullopt);
  EXPECT_THAT(reader.SetObject(Object("jobs.v1.batch", "train-node-0",
                                      R"({"spec": {"activeDeadlineSeconds": 18000},
                                  "status": {"startTime": "2026-01-05T08:30:00Z"}})")),
              ::testing::ElementsAre("default/p"));
  EXPECT_EQ(reader.Of(pod, nullptr).End().value, kNow + absl::Minutes(90));
  EXPECT_EQ(reader.Of(pod, nullptr).End().source, RunSource::kJob);
  reader.SetObject(Object("trainjobs.v1alpha1.trainer.kubeflow.org", "train",
                          R"({"spec": {"activeDeadlineSeconds": 14400}, "status": {"trainerStatus":
                              {"progressPercentage": 40, "estimatedRemainingSeconds": 600,
                               "lastUpdatedTime": "2026-01-05T11:59:00Z"}}})"));
  const RunFacts facts = reader.Of(pod, nullptr);
  EXPECT_EQ(facts.End().value, kNow + absl::Minutes(9));
  EXPECT_EQ(facts.End().origin, "TrainJob status.trainerStatus");
  EXPECT_EQ(facts.EnforcedEnd().value, kNow + absl::Hours(1));
  EXPECT_EQ(facts.restartable.source, RunSource::kTrainJob);
  // The pod's own annotation is more trusted.
  EXPECT_EQ(reader.Of(pod.Annotation("outboard/estimated-end", "2026-01-05T12:30:00Z"), nullptr)
                .DeclaredEnd()
                .value,
            kNow + absl::Minutes(30));
}

TEST(RunFactsTest, MalformedValuesAreReportedAndCountAsAbsent) {
  const std::vector<std::pair<const char*, const char*>> annotations = {
      {"outboard/checkpointing", "yes"},
      {"outboard/last-checkpoint-time", "noon"},
      {"outboard/start-time", "2026-01-05"},
      {"outboard/estimated-end", ""},
      {"outboard/run-seconds", "1h"},
      {"outboard/restart-seconds", "-1"},
      {"outboard/preemptible", "1"},
      {"volcano.sh/preemptable", "no"},
      {"volcano.sh/last-checkpoint-time", "0"},
      {"slurmjob.slinky.slurm.net/timelimit", "1-00:00:00"},
      {"sagemaker.amazonaws.com/enable-job-auto-resume", "True!"}};
  PodBuilder pod("p");
  for (const auto& [key, value] : annotations) pod.Annotation(key, value);
  pod.Label("kai.scheduler/preemptibility", "sometimes");
  pod.Label("kueue.x-k8s.io/max-exec-time-seconds", "0");
  std::vector<MalformedLabel> malformed;
  EXPECT_EQ(RunFactsReader().Of(pod, &malformed), RunFacts());
  EXPECT_EQ(malformed.size(), annotations.size() + 2);
  EXPECT_EQ(RunAnnotations().size(), annotations.size());
}

}  // namespace
}  // namespace outboard::sdk::run_facts_test
