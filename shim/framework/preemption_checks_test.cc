// What the shim knows itself about preemptions: groups, disruption budgets, recent evictions.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/disruption_budgets.h"
#include "shim/framework/eviction_limits.h"
#include "shim/framework/pod_group.h"

namespace outboard::framework::preemption_checks_test {
namespace {

v1beta1::Pod PodWith(bool is_label, const std::string& key, const std::string& value) {
  v1beta1::Pod pod;
  pod.set_namespace_("ns");
  (is_label ? *pod.mutable_labels() : *pod.mutable_annotations())[key] = value;
  return pod;
}

constexpr const char* kLabels[] = {
    "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name", "job-name", "batch.kubernetes.io/job-name"};
constexpr const char* kAnnotations[] = {"scheduling.k8s.io/group-name",
                                        "scheduling.volcano.sh/group-name", "pod-group-name",
                                        "gang.scheduling.koordinator.sh/name"};

TEST(DeclaredGroup, OfEachDialect) {
  v1beta1::Pod pod;
  pod.set_namespace_("ns");
  EXPECT_EQ(DeclaredGroup(pod), "");
  pod.set_pod_group_name("g");
  EXPECT_EQ(DeclaredGroup(pod), "kubernetes ns/g");
  for (const char* key : kLabels) {
    EXPECT_NE(DeclaredGroup(PodWith(true, key, "g")), "") << key;
    EXPECT_EQ(DeclaredGroup(PodWith(true, key, "")), "") << key;
    EXPECT_EQ(DeclaredGroup(PodWith(false, key, "g")), "") << key;
  }
  for (const char* key : kAnnotations) {
    EXPECT_NE(DeclaredGroup(PodWith(false, key, "g")), "") << key;
    EXPECT_EQ(DeclaredGroup(PodWith(true, key, "g")), "") << key;
  }
}

TEST(DeclaredGroup, IsOneForTheWaysToDeclareIt) {
  EXPECT_EQ(DeclaredGroup(PodWith(true, kLabels[0], "g")),
            DeclaredGroup(PodWith(true, kLabels[1], "g")));
  EXPECT_EQ(DeclaredGroup(PodWith(false, kAnnotations[0], "g")),
            DeclaredGroup(PodWith(false, kAnnotations[1], "g")));
  EXPECT_EQ(DeclaredGroup(PodWith(true, "job-name", "g")),
            DeclaredGroup(PodWith(true, "batch.kubernetes.io/job-name", "g")));
}

TEST(DeclaredGroup, DiffersByNamespaceNameDialectAndController) {
  const v1beta1::Pod pod = PodWith(true, "job-name", "g");
  v1beta1::Pod other = pod;
  other.set_namespace_("other");
  EXPECT_NE(DeclaredGroup(other), DeclaredGroup(pod));
  EXPECT_NE(DeclaredGroup(PodWith(true, "job-name", "h")), DeclaredGroup(pod));
  EXPECT_NE(DeclaredGroup(PodWith(true, kLabels[0], "g")), DeclaredGroup(pod));
  other = pod;
  other.mutable_controller()->set_uid("recreated");
  EXPECT_NE(DeclaredGroup(other), DeclaredGroup(pod));
  // The first dialect decides.
  other = pod;
  (*other.mutable_labels())[kLabels[0]] = "h";
  EXPECT_EQ(DeclaredGroup(other), DeclaredGroup(PodWith(true, kLabels[0], "h")));
}

kube::ClusterObjectPtr Budget(const std::string& name, const std::string& app, int32_t allowed,
                              const std::string& name_space = "ns") {
  auto object = std::make_shared<kube::ClusterObject>();
  object->object_uid = name;
  object->resource_version = "1";
  v1beta1::PodDisruptionBudget* const budget = object->object.mutable_pod_disruption_budget();
  budget->set_namespace_(name_space);
  budget->set_name(name);
  budget->set_disruptions_allowed(allowed);
  if (!app.empty()) (*budget->mutable_selector()->mutable_match_labels())["app"] = app;
  return object;
}

kube::PodPtr Victim(const std::string& name, const std::string& app) {
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_namespace_("ns");
  pod->pod.set_name(name);
  if (!app.empty()) (*pod->pod.mutable_labels())["app"] = app;
  return pod;
}

TEST(CountBudgetViolations, CountsAsKubeSchedulerDoes) {
  const std::vector<kube::PodPtr> victims = {Victim("a", "web"), Victim("b", "web"),
                                             Victim("c", "db"), Victim("d", "")};
  cache::ClusterState cluster;
  EXPECT_EQ(CountBudgetViolations(victims, cluster), 0u);
  cluster.UpsertObject(Budget("everything", "", 0));
  cluster.UpsertObject(Budget("elsewhere", "web", 0, "other"));
  EXPECT_EQ(CountBudgetViolations(victims, cluster), 0u);
  cluster.UpsertObject(Budget("web", "web", 1));
  EXPECT_EQ(CountBudgetViolations(victims, cluster), 1u) << "the second";
  cluster.UpsertObject(Budget("web-too", "web", 0));
  EXPECT_EQ(CountBudgetViolations(victims, cluster), 2u) << "a pod counts once";
  cluster.UpsertObject(Budget("db", "db", -1));
  EXPECT_EQ(CountBudgetViolations(victims, cluster), 3u);
  cluster.RemoveObject(*Budget("web-too", "web", 0));
  cluster.RemoveObject(*Budget("db", "db", -1));
  EXPECT_EQ(CountBudgetViolations(victims, cluster), 1u);
  auto counted = std::make_shared<kube::ClusterObject>(*Budget("web", "web", 0));
  counted->resource_version = "2";
  counted->object.mutable_pod_disruption_budget()->add_disrupted_pods("a");
  cluster.UpsertObject(counted);
  EXPECT_EQ(CountBudgetViolations(victims, cluster), 1u) << "the eviction of a is counted already";
}

TEST(RecentEvictions, AreThoseOfTheLastMinute) {
  const absl::Time start = absl::FromUnixSeconds(1000);
  RecentEvictions recent;
  EXPECT_EQ(recent.Count(start), 0u);
  recent.Add(2, start);
  recent.Add(3, start + absl::Seconds(30));
  EXPECT_EQ(recent.Count(start + absl::Seconds(59)), 5u);
  EXPECT_EQ(recent.Count(start + absl::Seconds(60)), 3u);
  EXPECT_EQ(recent.Count(start + absl::Seconds(90)), 0u);
}

}  // namespace
}  // namespace outboard::framework::preemption_checks_test
