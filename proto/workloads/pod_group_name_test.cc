#include "proto/workloads/pod_group_name.h"

#include <gtest/gtest.h>

#include <string>

namespace outboard::workloads {
namespace {

// The pod of each step names a group in one more dialect, of higher precedence.
TEST(PodGroupName, TheFirstDialectDecides) {
  v1beta1::Pod pod;
  EXPECT_FALSE(PodGroupNameOf(pod).has_value());
  const auto expect = [&](GroupSource source, const char* key, const char* name) {
    const auto group = PodGroupNameOf(pod);
    ASSERT_TRUE(group.has_value()) << key;
    EXPECT_EQ(group->source, source) << key;
    EXPECT_EQ(std::string(group->key), key);
    EXPECT_EQ(group->name, name);
  };
  const auto label = [&](GroupSource source, const char* key, const char* name) {
    (*pod.mutable_labels())[key] = name;
    expect(source, key, name);
  };
  const auto annotation = [&](GroupSource source, const char* key, const char* name) {
    (*pod.mutable_annotations())[key] = name;
    expect(source, key, name);
  };
  label(GroupSource::kJobName, "batch.kubernetes.io/job-name", "a");
  label(GroupSource::kJobName, "job-name", "b");
  label(GroupSource::kLegacyName, "pod-group.scheduling.sigs.k8s.io/name", "c");
  label(GroupSource::kLegacyPodGroup, "pod-group.scheduling.sigs.k8s.io", "d");
  annotation(GroupSource::kKoordinator, "gang.scheduling.koordinator.sh/name", "e");
  annotation(GroupSource::kKai, "pod-group-name", "f");
  annotation(GroupSource::kVolcano, "scheduling.volcano.sh/group-name", "g");
  annotation(GroupSource::kVolcano, "scheduling.k8s.io/group-name", "h");
  label(GroupSource::kPodGroupLabel, "scheduling.x-k8s.io/pod-group", "i");
  pod.set_pod_group_name("j");
  expect(GroupSource::kSchedulingGroup, "", "j");
}

TEST(PodGroupName, AnEmptyNameIsNone) {
  v1beta1::Pod pod;
  (*pod.mutable_labels())["scheduling.x-k8s.io/pod-group"] = "";
  (*pod.mutable_annotations())["pod-group-name"] = "";
  EXPECT_FALSE(PodGroupNameOf(pod).has_value());
  (*pod.mutable_labels())["batch.kubernetes.io/job-name"] = "job";
  EXPECT_EQ(PodGroupNameOf(pod)->name, "job");
  (*pod.mutable_labels())["job-name"] = "";
  EXPECT_FALSE(PodGroupNameOf(pod).has_value()) << "the first of both labels is empty";
}

}  // namespace
}  // namespace outboard::workloads
