#include "plugins/coscheduling/coscheduling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::coscheduling {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;

class CoschedulingTest : public testing::Test {
 protected:
  void SetUp() override {
    auto harness = PluginHarness::Create(Descriptor());
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    harness_->AddNode(NodeBuilder("n"));
    Tick(100);
  }
  // A member of a job, or a single pod.
  static v1beta1::Pod Pod(const std::string& name, const std::string& job, int created,
                          int priority = 0) {
    PodBuilder pod(name);
    if (!job.empty()) pod.Label("job-name", job);
    pod.Priority(priority);
    pod.proto().set_creation_unix_seconds(created);
    return pod;
  }
  v1beta1::Pod Add(const v1beta1::Pod& pod) {
    harness_->AddPod(pod);
    return pod;
  }
  void Tick(int seconds) {
    harness_->SetNow(absl::FromUnixSeconds(seconds));
    harness_->Tick();
  }
  std::string Key(const v1beta1::Pod& pod) { return harness_->SortKey(pod); }
  // The pod finds no node.
  void Fails(const v1beta1::Pod& pod) {
    harness_->PreFilter(pod);
    const sdk::Verdict verdict = harness_->PostFilter(pod);
    EXPECT_EQ(verdict.code(), v1beta1::CODE_UNSCHEDULABLE);
    EXPECT_THAT(verdict.reasons(), IsEmpty());
  }
  static v1beta1::ClusterObject Object(const std::string& name, const std::string& created) {
    v1beta1::ClusterObject object;
    auto* custom = object.mutable_generic_object();
    custom->set_resource("podgroups.v1alpha1.scheduling.x-k8s.io");
    custom->set_namespace_("default");
    custom->set_name(name);
    custom->set_uid(name);
    custom->set_resource_version("1");
    custom->set_json(absl::StrCat(R"({"metadata":{"creationTimestamp":")", created,
                                  R"("},"spec":{"minMember":2}})"));
    return object;
  }

  std::unique_ptr<PluginHarness> harness_;
};

TEST_F(CoschedulingTest, PriorityDecidesFirst) {
  const std::vector<int32_t> falling = {std::numeric_limits<int32_t>::max(), 256, 1, 0, -1,
                                        std::numeric_limits<int32_t>::min()};
  std::string previous;
  for (size_t i = 0; i < falling.size(); ++i) {
    const std::string name = absl::StrCat("p", i);
    // The later ones are older.
    const v1beta1::Pod pod =
        Add(Pod(name, i % 2 == 0 ? name : "", 50 - static_cast<int>(i), falling[i]));
    const std::string key = Key(pod);
    if (i > 0) {
      EXPECT_LT(previous, key) << falling[i];
    }
    previous = key;
  }
}

TEST_F(CoschedulingTest, MembersHaveOneKeyAndSinglesTheirTime) {
  const v1beta1::Pod a1 = Add(Pod("a1", "a", 10)), b1 = Add(Pod("b1", "b", 11)),
                     single = Add(Pod("s", "", 11)), a2 = Add(Pod("a2", "a", 12)),
                     late = Add(Pod("l", "", 12));
  EXPECT_EQ(Key(a1), Key(a2));
  EXPECT_EQ(Key(a1).size(), 64u);
  EXPECT_EQ(Key(single).size(), 12u);
  EXPECT_LT(Key(a1), Key(b1));
  EXPECT_LT(Key(a1), Key(single));
  EXPECT_LT(Key(single), Key(late));
  EXPECT_LT(Key(b1), Key(late));
  EXPECT_LT(Key(Add(Pod("a3", "a", 30))), Key(single)) << "late members join the others";
}

TEST_F(CoschedulingTest, GroupsThatAreAlikeDoNotMix) {
  const std::string same(60, 'x');
  const v1beta1::Pod a = Add(Pod("a", same + "a", 10)), b = Add(Pod("b", same + "b", 10));
  EXPECT_NE(Key(a), Key(b));
  v1beta1::Pod first = Pod("c", "train", 10), second = Pod("d", "train", 10);
  first.mutable_controller()->set_uid("job-1");
  second.mutable_controller()->set_uid("job-2");
  EXPECT_NE(Key(Add(first)), Key(Add(second)));
  PodBuilder other("e", "default");
  other.Label("scheduling.x-k8s.io/pod-group", "train");
  other.proto().set_creation_unix_seconds(10);
  EXPECT_NE(Key(Add(other)), Key(first));
}

TEST_F(CoschedulingTest, TheObjectsCreationIsTheTimeOfTheGroup) {
  PodBuilder builder("m");
  builder.Label("scheduling.x-k8s.io/pod-group", "g");
  builder.proto().set_creation_unix_seconds(50);
  const v1beta1::Pod member = Add(builder), early = Add(Pod("e", "", 30)),
                     late = Add(Pod("l", "", 60));
  EXPECT_LT(Key(early), Key(member));
  EXPECT_LT(Key(member), Key(late));
  harness_->AddObject(Object("g", "1970-01-01T00:00:20Z"));
  EXPECT_LT(Key(member), Key(early));
  EXPECT_THAT(harness_->TakeSortKeyChanges(), IsEmpty());
  Tick(101);
  EXPECT_THAT(harness_->TakeSortKeyChanges(), ElementsAre("default/m"));
  harness_->AddObject(Object("g", "yesterday"));
  EXPECT_LT(Key(early), Key(member)) << "a malformed value counts as absent";
  harness_->AddObject(Object("g", "1970-01-01T00:00:20Z"));
  harness_->RemoveObject(Object("g", ""));
  EXPECT_LT(Key(early), Key(member));
  Tick(102);
  EXPECT_THAT(harness_->TakeSortKeyChanges(), ElementsAre("default/m"));
}

TEST_F(CoschedulingTest, AnOlderMemberMakesTheGroupOlder) {
  const v1beta1::Pod young = Add(Pod("young", "g", 50)), single = Add(Pod("s", "", 40));
  Tick(101);
  EXPECT_THAT(harness_->TakeSortKeyChanges(), IsEmpty()) << "the shim requests new pods' keys";
  const v1beta1::Pod old = Add(Pod("old", "g", 30));
  EXPECT_LT(Key(young), Key(single));
  Tick(102);
  EXPECT_THAT(harness_->TakeSortKeyChanges(), ElementsAre("default/old", "default/young"));
  harness_->RemovePod("default/old");
  EXPECT_LT(Key(young), Key(single)) << "the group's time is unchanged";
}

TEST_F(CoschedulingTest, AGroupThatFailedGoesBehindThoseThatAreThere) {
  const v1beta1::Pod a1 = Add(Pod("a1", "a", 10)), a2 = Add(Pod("a2", "a", 10)),
                     b = Add(Pod("b", "b", 20)), single = Add(Pod("s", "", 99)),
                     c = Add(Pod("c", "c", 30));
  Fails(a1);
  EXPECT_THAT(harness_->TakeSortKeyChanges(), ElementsAre("default/a1", "default/a2"));
  EXPECT_EQ(Key(a1), Key(a2));
  for (const v1beta1::Pod& other : {b, single, c}) EXPECT_LT(Key(other), Key(a1)) << other.name();
  // A group that fails in the same second is still behind it.
  Fails(c);
  EXPECT_LT(Key(a1), Key(c));
  EXPECT_LT(Key(b), Key(c));
  EXPECT_LT(Key(a1), Key(Add(Pod("new", "", 101)))) << "later pods are behind it";
}

TEST_F(CoschedulingTest, FailuresOfOneGroupAreNotedOnceATick) {
  const v1beta1::Pod a1 = Add(Pod("a1", "a", 10)), a2 = Add(Pod("a2", "a", 10));
  Fails(a1);
  const std::string key = Key(a1);
  EXPECT_THAT(harness_->TakeSortKeyChanges(), SizeIs(2));
  Fails(a2);
  Fails(a1);
  EXPECT_THAT(harness_->TakeSortKeyChanges(), IsEmpty());
  EXPECT_EQ(Key(a1), key);
  Tick(101);
  Fails(a2);
  EXPECT_THAT(harness_->TakeSortKeyChanges(), SizeIs(2));
  EXPECT_LT(key, Key(a1));
}

TEST_F(CoschedulingTest, APlaceThatIsGivenBackIsAFailure) {
  const v1beta1::Pod a1 = Add(Pod("a1", "a", 10)), a2 = Add(Pod("a2", "a", 10)),
                     b = Add(Pod("b", "b", 20));
  harness_->Place("default/a1", v1beta1::PLACEMENT_STATE_ASSUMED, "n");
  harness_->Place("default/a1", v1beta1::PLACEMENT_STATE_WAITING, "n");
  EXPECT_LT(Key(a2), Key(b));
  harness_->Place("default/a1", v1beta1::PLACEMENT_STATE_UNPLACED, "");
  EXPECT_LT(Key(b), Key(a1));
  EXPECT_EQ(Key(a1), Key(a2));
  EXPECT_THAT(harness_->TakeSortKeyChanges(), ElementsAre("default/a1", "default/a2"));

  // Binding and deletion are not failures.
  Tick(101);
  const std::string key = Key(a1);
  harness_->Place("default/a1", v1beta1::PLACEMENT_STATE_ASSUMED, "n");
  v1beta1::Pod bound = a1;
  bound.set_node_name("n");
  harness_->AddPod(bound);
  harness_->Place("default/a2", v1beta1::PLACEMENT_STATE_WAITING, "n");
  v1beta1::Pod leaving = a2;
  leaving.set_deletion_unix_seconds(1);
  harness_->AddPod(leaving);
  harness_->Place("default/a2", v1beta1::PLACEMENT_STATE_UNPLACED, "");
  EXPECT_EQ(Key(Add(Pod("a3", "a", 10))), key);
  EXPECT_THAT(harness_->TakeSortKeyChanges(), IsEmpty());
}

TEST_F(CoschedulingTest, BoundMembersAreNotAskedFor) {
  v1beta1::Pod bound = Pod("bound", "a", 10);
  bound.set_node_name("n");
  harness_->AddPod(bound);
  Fails(Add(Pod("a1", "a", 10)));
  EXPECT_THAT(harness_->TakeSortKeyChanges(), ElementsAre("default/a1"));
}

TEST_F(CoschedulingTest, AGroupThatIsGoneIsForgotten) {
  const v1beta1::Pod a = Add(Pod("a1", "a", 10)), b = Add(Pod("b", "b", 20));
  Fails(a);
  EXPECT_LT(Key(b), Key(a));
  harness_->RemovePod("default/a1");
  EXPECT_LT(Key(Add(Pod("a1", "a", 10))), Key(b)) << "a new group with the same name";
}

TEST_F(CoschedulingTest, SinglesFailWithoutConsequence) {
  const v1beta1::Pod single = Add(Pod("s", "", 10));
  const std::string key = Key(single);
  Fails(single);
  EXPECT_EQ(Key(single), key);
  EXPECT_THAT(harness_->TakeSortKeyChanges(), IsEmpty());
}

TEST_F(CoschedulingTest, TakesNoArguments) {
  EXPECT_FALSE(PluginHarness::Create(Descriptor(), "{\"x\": 1}").ok());
}

// After any events: the order is total, members are adjacent, the last group that failed is last.
TEST_F(CoschedulingTest, RandomGroupsStandTogether) {
  std::mt19937_64 random(7);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 300; ++i) {
    const int job = below(40);
    pods.push_back(Add(
        Pod(absl::StrCat("p", i), job < 30 ? absl::StrCat("job", job) : "", below(90), job % 3)));
  }
  for (int i = 0; i < 60; ++i) {
    Tick(101 + i / 4);
    Fails(pods[static_cast<size_t>(below(300))]);
  }
  std::vector<std::pair<std::string, std::string>> order;  // key, group
  for (const v1beta1::Pod& pod : pods) {
    const auto job = pod.labels().find("job-name");
    order.emplace_back(Key(pod), job == pod.labels().end() ? pod.name() : job->second);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> seen;
  for (const auto& [key, group] : order) {
    if (!seen.empty() && seen.back() == group) continue;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), group), 0) << group << " is not adjacent";
    seen.push_back(group);
  }
}

}  // namespace
}  // namespace outboard::coscheduling
