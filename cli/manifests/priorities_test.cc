#include "cli/manifests/priorities.h"

#include "gtest/gtest.h"

namespace outboard::manifests {
namespace {

namespace wire = kube::wire;

wire::PriorityClass Class(const std::string& name, int value) {
  wire::PriorityClass priority_class;
  priority_class.mutable_metadata()->set_name(name);
  priority_class.set_value(value);
  return priority_class;
}

std::string Resolved(const PriorityClasses& classes, wire::Pod pod) {
  if (const auto fault = classes.Resolve(&pod)) return fault->ToString();
  return pod.spec().ShortDebugString();
}

TEST(PrioritiesTest, ClassesGivePriorityAndPolicy) {
  PriorityClasses classes;
  wire::PriorityClass modest = Class("modest", 10);
  modest.set_preemptionpolicy("Never");
  EXPECT_FALSE(classes.Add(modest));
  wire::Pod pod;
  EXPECT_EQ(Resolved(classes, pod), "");
  pod.mutable_spec()->set_priorityclassname("modest");
  EXPECT_EQ(Resolved(classes, pod),
            "priorityClassName: \"modest\" priority: 10 preemptionPolicy: \"Never\"");
  pod.mutable_spec()->set_priority(10);
  pod.mutable_spec()->set_preemptionpolicy("Never");
  EXPECT_EQ(Resolved(classes, pod),
            "priorityClassName: \"modest\" priority: 10 preemptionPolicy: \"Never\"");
  pod.mutable_spec()->set_priority(11);
  EXPECT_EQ(Resolved(classes, pod),
            "spec.priority: the integer value of priority (11) must not be provided in pod spec; "
            "priority admission controller computed 10 from the given PriorityClass name");
  // The class has another value since the pod was admitted.
  pod.mutable_metadata()->set_resourceversion("4");
  EXPECT_EQ(Resolved(classes, pod),
            "priorityClassName: \"modest\" priority: 11 preemptionPolicy: \"Never\"");
}

TEST(PrioritiesTest, TheSystemsClassesAreKnown) {
  wire::Pod pod;
  pod.mutable_spec()->set_priorityclassname("system-node-critical");
  EXPECT_EQ(Resolved(PriorityClasses(), pod),
            "priorityClassName: \"system-node-critical\" priority: 2000001000 preemptionPolicy: "
            "\"PreemptLowerPriority\"");
  EXPECT_EQ(CheckSystemClass(Class("system-node-critical", 2000001000)), "");
  EXPECT_EQ(CheckSystemClass(Class("system-node-critical", 5)),
            "value of system-node-critical PriorityClass must be 2000001000");
  wire::PriorityClass critical = Class("system-cluster-critical", 2000000000);
  critical.set_globaldefault(true);
  EXPECT_EQ(CheckSystemClass(critical),
            "globalDefault of system-cluster-critical PriorityClass must be false");
}

TEST(PrioritiesTest, TheDefaultClassIsForPodsThatSayNothing) {
  PriorityClasses classes;
  wire::PriorityClass usual = Class("usual", 3);
  usual.set_globaldefault(true);
  EXPECT_FALSE(classes.Add(usual));
  wire::Pod pod;
  EXPECT_EQ(Resolved(classes, pod),
            "priorityClassName: \"usual\" priority: 3 preemptionPolicy: \"PreemptLowerPriority\"");
  pod.mutable_spec()->set_preemptionpolicy("Never");
  EXPECT_EQ(Resolved(classes, pod),
            "spec.preemptionPolicy: the string value of PreemptionPolicy (Never) must not be "
            "provided in pod spec; priority admission controller computed PreemptLowerPriority "
            "from the given PriorityClass name");
  pod.mutable_spec()->set_priority(0);
  EXPECT_EQ(Resolved(classes, pod), "priority: 0 preemptionPolicy: \"Never\"");
  EXPECT_EQ(classes.Add(usual)->ToString(),
            "globalDefault: PriorityClass usual is already marked as default. Only one default can "
            "exist");
}

TEST(PrioritiesTest, AMissingClass) {
  PriorityClasses classes;
  wire::Pod pod;
  pod.mutable_spec()->set_priorityclassname("system-node-critcal");
  EXPECT_EQ(Resolved(classes, pod),
            "spec.priorityClassName: no PriorityClass with name system-node-critcal was found; did "
            "you mean system-node-critical?");
  pod.mutable_spec()->set_priority(4);
  EXPECT_EQ(Resolved(classes, pod), "priorityClassName: \"system-node-critcal\" priority: 4");
}

}  // namespace
}  // namespace outboard::manifests
