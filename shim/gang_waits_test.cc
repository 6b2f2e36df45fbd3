#include "shim/gang_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace outboard::shim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class GangWaitsTest : public ::testing::Test {
 protected:
  v1beta1::Pod Pod(const std::string& name, const std::string& group) {
    v1beta1::Pod pod;
    pod.set_namespace_("ns");
    pod.set_name(name);
    pod.set_uid(name);
    if (!group.empty()) (*pod.mutable_labels())["scheduling.x-k8s.io/pod-group"] = group;
    return pod;
  }
  absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }
  void Bind(const std::string& uid, int seconds) {
    waits_.OnTried(uid);
    waits_.OnBound(uid, GangWaits::BoundBy::kUs);
    waits_.OnLeft(uid, At(seconds));
  }
  int Count(const std::string& result, const std::string& ns = "ns") {
    return static_cast<int>(Histogram(result, ns).sample_count);
  }
  double Sum(const std::string& result, const std::string& ns = "ns") {
    return Histogram(result, ns).sample_sum;
  }

  metrics::Metrics metrics_{"test"};
  GangWaits waits_{&metrics_};

 private:
  prometheus::ClientMetric::Histogram Histogram(const std::string& result, const std::string& ns) {
    return metrics_.gang_wait.With({ns, result}).Collect().histogram;
  }
};

TEST_F(GangWaitsTest, AWaitGoesFromTheFirstMemberToTheLastBind) {
  waits_.OnQueued(Pod("a", "g"), At(0));
  waits_.OnQueued(Pod("b", "g"), At(20));
  waits_.OnQueued(Pod("a", "g"), At(30));  // a change of the pod
  waits_.OnQueued(Pod("other", ""), At(0));
  Bind("b", 40);
  Bind("other", 40);
  EXPECT_EQ(Count("bound"), 0);
  Bind("a", 45);
  EXPECT_EQ(Count("bound"), 1);
  EXPECT_EQ(Sum("bound"), 45);
  // A member above the group's number comes later.
  waits_.OnQueued(Pod("c", "g"), At(100));
  Bind("c", 103);
  EXPECT_EQ(Count("bound"), 2);
  EXPECT_EQ(Sum("bound"), 48);
}

TEST_F(GangWaitsTest, ARejectedRoundIsObservedOnceAndTheWaitGoesOn) {
  for (const char* name : {"a", "b", "c"}) waits_.OnQueued(Pod(name, "g"), At(0));
  for (const int round : {1, 2}) {
    for (const char* name : {"a", "b"}) waits_.OnPermitWaitEnd(name, false, At(30 * round));
    EXPECT_EQ(Count("failed"), round);
  }
  EXPECT_EQ(Sum("failed"), 30 + 60);
  for (const char* name : {"a", "b", "c"}) {
    waits_.OnPermitWaitEnd(name, true, At(90));
    Bind(name, 90);
  }
  EXPECT_EQ(Count("failed"), 2);
  EXPECT_EQ(Sum("bound"), 90);
}

TEST_F(GangWaitsTest, AGroupWhoseLastMemberIsDeleted) {
  waits_.OnQueued(Pod("a", "g"), At(0));
  waits_.OnQueued(Pod("b", "g"), At(0));
  Bind("a", 10);
  waits_.OnTried("b");
  waits_.OnLeft("b", At(700));
  EXPECT_EQ(Count("bound"), 0);
  EXPECT_EQ(Sum("deleted"), 700);
  // Never tried, as on a replica that is not the leader.
  waits_.OnQueued(Pod("c", "h"), At(0));
  waits_.OnLeft("c", At(10));
  EXPECT_EQ(Count("deleted"), 1);
}

TEST_F(GangWaitsTest, PodsThatAnotherReplicaBindsAreNotObserved) {
  waits_.OnQueued(Pod("a", "g"), At(0));
  waits_.OnTried("a");
  waits_.OnBound("a", GangWaits::BoundBy::kAnother);
  waits_.OnLeft("a", At(10));
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("gang_scheduling_wait_seconds_count")));
}

TEST_F(GangWaitsTest, TimeWithSchedulingGatesIsNotPartOfIt) {
  v1beta1::Pod pod = Pod("a", "g");
  pod.add_scheduling_gates("quota");
  waits_.OnQueued(pod, At(0));
  pod.clear_scheduling_gates();
  waits_.OnQueued(pod, At(100));
  Bind("a", 105);
  EXPECT_EQ(Sum("bound"), 5);
}

TEST_F(GangWaitsTest, EveryDialect) {
  int number = 0;
  const auto play = [&](void (*name_group)(v1beta1::Pod*)) {
    v1beta1::Pod pod = Pod(absl::StrCat("pod-", number), "");
    name_group(&pod);
    waits_.OnQueued(pod, At(0));
    Bind(pod.uid(), 1);
    EXPECT_EQ(Count("bound"), ++number);
  };
  play([](v1beta1::Pod* pod) { pod->set_pod_group_name("g"); });
  play([](v1beta1::Pod* pod) {
    (*pod->mutable_annotations())["scheduling.k8s.io/group-name"] = "g";
  });
  play([](v1beta1::Pod* pod) { (*pod->mutable_annotations())["pod-group-name"] = "g"; });
  play([](v1beta1::Pod* pod) {
    (*pod->mutable_annotations())["gang.scheduling.koordinator.sh/name"] = "g";
  });
  play([](v1beta1::Pod* pod) {
    (*pod->mutable_labels())["pod-group.scheduling.sigs.k8s.io/name"] = "g";
  });
  play([](v1beta1::Pod* pod) {
    (*pod->mutable_labels())["job-name"] = "g";
    (*pod->mutable_annotations())["outboard/min-replicas"] = "1";
  });
}

TEST_F(GangWaitsTest, AJobIsAGangOnceItsPodsWaitForEachOther) {
  waits_.SetJobLabels({"example.com/run"});
  for (const char* label : {"job-name", "example.com/run"}) {
    for (const char* name : {"a", "b"}) {
      v1beta1::Pod pod = Pod(name, "");
      (*pod.mutable_labels())[label] = "job";
      waits_.OnQueued(pod, At(0));
    }
    Bind("a", 5);
    Bind("b", 5);
  }
  EXPECT_EQ(Count("bound"), 0) << "placed individually";
  for (const char* label : {"job-name", "example.com/run"}) {
    for (const char* name : {"a", "b"}) {
      v1beta1::Pod pod = Pod(name, "");
      (*pod.mutable_labels())[label] = "job";
      waits_.OnQueued(pod, At(0));
    }
    waits_.OnPermitWaitEnd("a", true, At(5));
    Bind("a", 5);
    Bind("b", 5);
  }
  EXPECT_EQ(Count("bound"), 2);
}

TEST_F(GangWaitsTest, NamespacesAreLimited) {
  for (int i = 0; i < 150; ++i) {
    v1beta1::Pod pod = Pod(absl::StrCat("pod-", i), "g");
    pod.set_namespace_(absl::StrCat("ns-", i));
    waits_.OnQueued(pod, At(0));
    Bind(pod.uid(), 20);
  }
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("gang_scheduling_wait_seconds_count{namespace=\"ns-99\","));
  EXPECT_THAT(text, Not(HasSubstr("\"ns-100\"")));
  EXPECT_EQ(Count("bound", "other"), 50);
  EXPECT_THAT(text, HasSubstr("{namespace=\"ns-7\",result=\"bound\",le=\"10\"} 0"));
  EXPECT_THAT(text, HasSubstr("{namespace=\"ns-7\",result=\"bound\",le=\"30\"} 1"));
  EXPECT_THAT(text, HasSubstr("{namespace=\"ns-7\",result=\"bound\",le=\"600\"} 1"));
}

}  // namespace
}  // namespace outboard::shim
