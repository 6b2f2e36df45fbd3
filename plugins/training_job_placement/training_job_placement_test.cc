#include "plugins/training_job_placement/training_job_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/object_store.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/training_job_placement/placement_object.h"

namespace outboard::training_job_placement {
namespace {

using nlohmann::json;
using sdk::testing::NodeBuilder;
using sdk::testing::ObjectStore;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TrainingJobPlacement, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/training_job_placement/testdata");
}

class KeepingTest : public ::testing::Test {
 protected:
  void SetUp() override { Restart(); }
  // Starts a new host without state; the objects stay.
  void Restart() {
    auto harness =
        PluginHarness::Create(Descriptor(), R"({"levels": ["fabric"], "retention": "1h"})");
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    store_ = std::make_unique<ObjectStore>(harness_.get());
    for (const char* node : {"n1", "n2", "n3"})
      harness_->AddNode(NodeBuilder(node).Label("fabric", node[1] == '3' ? "f2" : "f1"));
  }
  static v1beta1::Pod Worker(const std::string& name, const std::string& node = "") {
    PodBuilder pod(name);
    pod.Label(kJobLabel, "j");
    pod.proto().set_scheduler_name("default-scheduler");
    pod.proto().mutable_controller()->set_api_version("batch/v1");
    pod.proto().mutable_controller()->set_kind("Job");
    pod.proto().mutable_controller()->set_name("j");
    pod.proto().mutable_controller()->set_uid("job-uid");
    if (!node.empty()) pod.OnNode(node);
    return pod.Build();
  }
  json Object(const std::string& name = "j") { return store_->Get(kResource, "default", name); }
  json Status() { return Object()["status"]; }
  int Settle() { return store_->Settle(&now_); }
  std::map<std::string, int64_t> Scores() {
    const auto scores = harness_->Score(Worker("probe"));
    EXPECT_TRUE(scores.ok()) << scores.status();
    harness_->RemovePod("default/probe");
    return *scores;
  }

  std::unique_ptr<PluginHarness> harness_;
  std::unique_ptr<ObjectStore> store_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

TEST_F(KeepingTest, ReportsWhereThePodsAre) {
  harness_->AddPod(Worker("w1", "n3"));
  harness_->AddPod(Worker("w0", "n1"));
  harness_->AddPod(Worker("w2"));
  EXPECT_EQ(Settle(), 2) << "an object, then its status";
  EXPECT_EQ(Object()["spec"]["jobID"], "j");
  EXPECT_EQ(Object()["metadata"]["ownerReferences"][0]["uid"], "job-uid");
  EXPECT_EQ(Status()["pods"], 2);
  EXPECT_EQ(Status()["placements"][0]["pod"], "w0");
  EXPECT_EQ(Status()["placements"][0]["node"], "n1");
  EXPECT_EQ(Status()["placements"][1]["domains"]["fabric"], "f2");
  EXPECT_TRUE(sdk::IsConditionTrue(Status(), "Active"));
  // An assumed pod may still move to another node.
  harness_->Place("default/w2", v1beta1::PLACEMENT_STATE_ASSUMED, "n2");
  EXPECT_EQ(Settle(), 0);
  harness_->AddPod(Worker("w2", "n2"));
  EXPECT_EQ(Settle(), 1);
  EXPECT_EQ(Status()["pods"], 3);
  harness_->RemovePod("default/w0");
  Settle();
  EXPECT_EQ(Status()["pods"], 2);
}

TEST_F(KeepingTest, FollowsLabelsOfNodesAndPods) {
  harness_->AddPod(Worker("w0", "n1"));
  Settle();
  harness_->AddNode(NodeBuilder("n1").Label("fabric", "f9"));
  EXPECT_EQ(Settle(), 1);
  EXPECT_EQ(Status()["summary"], "fabric=f9");
  v1beta1::Pod moved = Worker("w0", "n1");
  (*moved.mutable_labels())[kJobLabel] = "K_1";
  harness_->AddPod(moved);
  Settle();
  EXPECT_FALSE(sdk::IsConditionTrue(Status(), "Active"));
  EXPECT_EQ(Object(NameOfJob("K_1"))["status"]["pods"], 1);
}

TEST_F(KeepingTest, AJobThatStartsAgainGoesBackToItsDomain) {
  harness_->AddPod(Worker("w0", "n3"));
  Settle();
  harness_->RemovePod("default/w0");
  Settle();
  EXPECT_EQ(Status()["pods"], 0);
  EXPECT_EQ(Status()["placements"][0]["node"], "n3") << "the object keeps the last placements";
  EXPECT_EQ(Scores(), (std::map<std::string, int64_t>{{"n1", 0}, {"n2", 0}, {"n3", 100}}));
  // Also after a restart of all processes.
  const json before = Object();
  Restart();
  store_->Apply(kResource, "default", "j", before.dump());
  EXPECT_EQ(Scores(), (std::map<std::string, int64_t>{{"n1", 0}, {"n2", 0}, {"n3", 100}}));
}

TEST_F(KeepingTest, AnObjectThatIsDeletedComesBack) {
  harness_->AddPod(Worker("w0", "n1"));
  Settle();
  const json before = Status();
  store_->Delete(kResource, "default", "j");
  Settle();
  EXPECT_EQ(Status()["placements"], before["placements"]);
}

TEST_F(KeepingTest, AnEditedStatusIsReplacedAndThatIsSaid) {
  harness_->AddPod(Worker("w0", "n1"));
  Settle();
  const json good = Object();
  json edited = good;
  edited["status"]["placements"][0]["node"] = "n9";
  store_->Apply(kResource, "default", "j", edited.dump());
  Settle();
  EXPECT_EQ(Status()["placements"], good["status"]["placements"]);
  EXPECT_TRUE(sdk::IsConditionTrue(Status(), "StatusEdited"));
  // The same without pods: this host knows the earlier status.
  harness_->RemovePod("default/w0");
  Settle();
  edited = Object();
  edited["status"]["domains"] = json::parse(R"([{"level":"fabric","value":"f2","pods":9}])");
  store_->Apply(kResource, "default", "j", edited.dump());
  EXPECT_THAT(Scores(), IsEmpty()) << "an edited status is ignored";
  Settle();
  EXPECT_EQ(Status()["domains"], good["status"]["domains"]);
  EXPECT_EQ(Scores().at("n1"), 100);
}

TEST_F(KeepingTest, APersonsDomainIsHonoured) {
  harness_->AddPod(Worker("w0", "n1"));
  Settle();
  json edited = Object();
  edited["spec"]["domain"] = {{"level", "fabric"}, {"value", "f2"}};
  store_->Apply(kResource, "default", "j", edited.dump());
  Settle();
  EXPECT_EQ(Object()["spec"], edited["spec"]);
  EXPECT_TRUE(sdk::IsConditionTrue(Status(), "DomainHonoured"));
  EXPECT_EQ(Scores().at("n3"), 100);
  edited["spec"]["domain"]["level"] = "row";
  store_->Apply(kResource, "default", "j", edited.dump());
  Settle();
  EXPECT_FALSE(sdk::IsConditionTrue(Status(), "DomainHonoured"));
  EXPECT_NE(sdk::FindCondition(Status(), "DomainHonoured"), nullptr);
  EXPECT_EQ(Scores().at("n1"), 100);
}

TEST_F(KeepingTest, GoesSomeTimeAfterTheLastPod) {
  harness_->AddPod(Worker("w0", "n1"));
  Settle();
  harness_->RemovePod("default/w0");
  Settle();
  now_ += absl::Minutes(58);
  EXPECT_EQ(Settle(), 0);
  now_ += absl::Minutes(2);
  Settle();
  EXPECT_THAT(store_->Names(kResource), IsEmpty());
}

TEST_F(KeepingTest, APersonsObjectStays) {
  store_->Apply(kResource, "default", "j",
                R"({"spec":{"jobID":"j","domain":{"level":"fabric","value":"f2"}}})");
  EXPECT_EQ(Settle(), 0) << "no pod of this profile";
  harness_->AddPod(Worker("w0", "n3"));
  Settle();
  EXPECT_EQ(Status()["pods"], 1);
  harness_->RemovePod("default/w0");
  Settle();
  now_ += absl::Hours(2);
  Settle();
  EXPECT_THAT(store_->Names(kResource), ElementsAre("j"));
}

TEST_F(KeepingTest, LeavesTheObjectsOfOtherProfilesAlone) {
  harness_->AddPod(Worker("w0", "n1"));
  store_->Apply(kResource, "default", "j",
                R"({"metadata":{"annotations":{"accelerator.sched.io/kept-by":"another"}},)"
                R"("spec":{"jobID":"j"}})");
  EXPECT_EQ(Settle(), 0);
}

TEST_F(KeepingTest, WithoutTheResourceItAsksLessAndLessOften) {
  harness_->AddPod(Worker("w0", "n1"));
  int asked = 0;
  for (int second = 0; second < 300; ++second) {
    harness_->SetNow(now_ + absl::Seconds(second));
    harness_->Tick();
    asked += static_cast<int>(harness_->TakeWritten().size());
  }
  EXPECT_GE(asked, 5);
  EXPECT_LE(asked, 12);
}

}  // namespace
}  // namespace outboard::training_job_placement
