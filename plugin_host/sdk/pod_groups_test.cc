#include "plugin_host/sdk/pod_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk {
namespace {

using sdk::testing::PodBuilder;
using ::testing::IsEmpty;

// `DIALECT NAMESPACE/NAME from WHERE`.
std::string TextOf(const v1beta1::Pod& pod) {
  const std::optional<GroupRef> ref = GroupOf(pod);
  return ref ? ref->key.Text() + " from " + ref->from : "none";
}

struct Word {
  const char* expected;
  void (*say)(PodBuilder* pod);
};

// In the order of precedence.
const std::vector<Word>& Words() {
  static const auto& words = *new std::vector<Word>{
      {"scheduler-plugins default/g1 from metadata.labels['scheduling.x-k8s.io/pod-group']",
       [](PodBuilder* pod) { pod->Label("scheduling.x-k8s.io/pod-group", "g1"); }},
      {"volcano default/g2 from metadata.annotations['scheduling.k8s.io/group-name']",
       [](PodBuilder* pod) { pod->Annotation("scheduling.k8s.io/group-name", "g2"); }},
      {"volcano default/g3 from metadata.annotations['scheduling.volcano.sh/group-name']",
       [](PodBuilder* pod) { pod->Annotation("scheduling.volcano.sh/group-name", "g3"); }},
      {"kai default/g4 from metadata.annotations['pod-group-name']",
       [](PodBuilder* pod) { pod->Annotation("pod-group-name", "g4"); }},
      {"koordinator default/g5 from metadata.annotations['gang.scheduling.koordinator.sh/name']",
       [](PodBuilder* pod) { pod->Annotation("gang.scheduling.koordinator.sh/name", "g5"); }},
      {"scheduler-plugins default/g6 from metadata.labels['pod-group.scheduling.sigs.k8s.io']",
       [](PodBuilder* pod) { pod->Label("pod-group.scheduling.sigs.k8s.io", "g6"); }},
      {"legacy default/g7 from metadata.labels['pod-group.scheduling.sigs.k8s.io/name']",
       [](PodBuilder* pod) { pod->Label("pod-group.scheduling.sigs.k8s.io/name", "g7"); }},
      {"job-name default/g8 from metadata.labels['job-name']",
       [](PodBuilder* pod) { pod->Label("job-name", "g8"); }},
      {"job-name default/g9 from metadata.labels['batch.kubernetes.io/job-name']",
       [](PodBuilder* pod) { pod->Label("batch.kubernetes.io/job-name", "g9"); }}};
  return words;
}

TEST(GroupOf, TheFirstDialectThatThePodUsesDecides) {
  for (size_t first = 0; first < Words().size(); ++first) {
    PodBuilder alone("p");
    Words()[first].say(&alone);
    EXPECT_EQ(TextOf(alone), Words()[first].expected);
    PodBuilder all("p");
    for (size_t i = first; i < Words().size(); ++i) Words()[i].say(&all);
    EXPECT_EQ(TextOf(all), Words()[first].expected) << "with all later dialects";
    v1beta1::Pod kubernetes = all;
    kubernetes.set_pod_group_name("g0");
    EXPECT_EQ(TextOf(kubernetes), "kubernetes default/g0 from spec.schedulingGroup.podGroupName");
  }
  EXPECT_EQ(TextOf(PodBuilder("p")), "none");
}

TEST(GroupOf, AnEmptyNameNamesNothing) {
  PodBuilder pod("p");
  pod.Label("scheduling.x-k8s.io/pod-group", "").Annotation("pod-group-name", "");
  EXPECT_EQ(TextOf(pod), "none");
  pod.Label("pod-group.scheduling.sigs.k8s.io/name", "g");
  EXPECT_THAT(TextOf(pod), ::testing::StartsWith("legacy default/g"));
}

TEST(GroupOf, NamespaceAndControllerDistinguishGroups) {
  PodBuilder a("p", "a");
  a.Label("job-name", "j");
  PodBuilder b("p", "b");
  b.Label("job-name", "j");
  EXPECT_FALSE(GroupOf(a)->key == GroupOf(b)->key);
  v1beta1::Pod remade = a;
  remade.mutable_controller()->set_uid("u2");
  EXPECT_FALSE(GroupOf(a)->key == GroupOf(remade)->key);
  PodBuilder kai("p", "a");
  kai.Annotation("pod-group-name", "j");
  v1beta1::Pod other = kai;
  other.mutable_controller()->set_uid("u2");
  EXPECT_TRUE(GroupOf(kai)->key == GroupOf(other)->key) << "groups have pods of many controllers";
}

TEST(GroupOf, PartsOfGroups) {
  PodBuilder kai("p");
  kai.Annotation("pod-group-name", "g").Label("kai.scheduler/subgroup-name", "decode");
  EXPECT_EQ(GroupOf(kai)->sub_group, "decode");
  PodBuilder volcano("p");
  volcano.Annotation("scheduling.k8s.io/group-name", "g").Annotation("volcano.sh/task-spec", "ps");
  EXPECT_EQ(GroupOf(volcano)->sub_group, "ps");
  volcano.Label("volcano.sh/task-spec", "worker");
  EXPECT_EQ(GroupOf(volcano)->sub_group, "worker");
}

PodBuilder Koordinator(const std::string& min, const std::string& total, const std::string& wait) {
  PodBuilder pod("p");
  pod.Annotation("gang.scheduling.koordinator.sh/name", "g");
  if (!min.empty()) pod.Annotation("gang.scheduling.koordinator.sh/min-available", min);
  if (!total.empty()) pod.Annotation("gang.scheduling.koordinator.sh/total-number", total);
  if (!wait.empty()) pod.Annotation("gang.scheduling.koordinator.sh/waiting-time", wait);
  return pod;
}

TEST(GroupOf, KoordinatorsAnnotationsSayItAll) {
  const GroupRef ref = *GroupOf(Koordinator("3", "5", "1m30s"));
  EXPECT_EQ(ref.own.min->value, 3);
  EXPECT_EQ(ref.own.min->from,
            "metadata.annotations['gang.scheduling.koordinator.sh/min-available']");
  EXPECT_EQ(ref.own.total->value, 5);
  EXPECT_EQ(ref.own.timeout->value, absl::Seconds(90));
  EXPECT_EQ(ref.own.fault, "");
  EXPECT_THAT(ref.malformed, IsEmpty());
}

TEST(GroupOf, KoordinatorsModeDecidesWhetherMembersKeepTheirPlaces) {
  const std::string key = "gang.scheduling.koordinator.sh/mode";
  EXPECT_FALSE(GroupOf(Koordinator("3", "", ""))->own.keeps_places);
  EXPECT_TRUE(
      GroupOf(Koordinator("3", "", "").Annotation(key, "NonStrict"))->own.keeps_places->value);
  EXPECT_FALSE(
      GroupOf(Koordinator("3", "", "").Annotation(key, "Strict"))->own.keeps_places->value);
  const GroupRef ref = *GroupOf(Koordinator("3", "", "").Annotation(key, "strict"));
  EXPECT_FALSE(ref.own.keeps_places);
  EXPECT_EQ(ref.malformed.size(), 1u);
}

TEST(GroupOf, WhatCannotBeReadIsAbsentAndASizeIsAFault) {
  GroupRef ref = *GroupOf(Koordinator("3", "some", "soon"));
  EXPECT_EQ(ref.own.min->value, 3);
  EXPECT_FALSE(ref.own.total);
  EXPECT_FALSE(ref.own.timeout);
  EXPECT_EQ(ref.malformed.size(), 2u);
  for (const char* wait : {"0s", "-1s", "inf", "30"})
    EXPECT_FALSE(GroupOf(Koordinator("3", "", wait))->own.timeout) << wait;
  ref = *GroupOf(Koordinator("many", "", ""));
  EXPECT_FALSE(ref.own.min);
  EXPECT_EQ(ref.own.fault, "\"many\" is not a number of replicas between 1 and 100000");
  EXPECT_EQ(ref.malformed.size(), 1u);
  ref = *GroupOf(Koordinator("", "", ""));
  EXPECT_EQ(ref.own.fault, "annotation gang.scheduling.koordinator.sh/min-available is missing");
  EXPECT_THAT(ref.malformed, IsEmpty());
}

TEST(GroupOf, LegacyLabelsAndJobs) {
  PodBuilder legacy("p");
  legacy.Label("pod-group.scheduling.sigs.k8s.io/name", "g")
      .Label("pod-group.scheduling.sigs.k8s.io/min-available", "4");
  EXPECT_EQ(GroupOf(legacy)->own.min->value, 4);
  PodBuilder job("p");
  job.Label("job-name", "j");
  EXPECT_FALSE(GroupOf(job)->own.min) << "the caller has a default";
  EXPECT_EQ(GroupOf(job)->own.fault, "");
  job.Annotation("min-replicas", "2");
  EXPECT_EQ(GroupOf(job)->own.min->value, 2);
  job.Annotation("outboard/min-replicas", "0");
  EXPECT_EQ(GroupOf(job)->own.fault, "\"0\" is not a number of replicas between 1 and 100000");
}

// Every field that makes a group is in the lists for descriptors.
TEST(GroupOf, EverythingItReadsIsDeclared) {
  const std::vector<std::string> fields = GroupInterestFields();
  const std::vector<std::string> annotations = GroupAnnotationFields();
  for (const Word& word : Words()) {
    PodBuilder pod("p");
    word.say(&pod);
    const std::string from = GroupOf(pod)->from;
    EXPECT_THAT(fields, ::testing::Contains(from));
    if (from.find("annotations") != std::string::npos) {
      EXPECT_THAT(annotations, ::testing::Contains("Pod." + from));
    }
  }
  EXPECT_THAT(fields, ::testing::Contains("spec.schedulingGroup"));
}

}  // namespace
}  // namespace outboard::sdk
