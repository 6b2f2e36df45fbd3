#include "plugin_host/runtime/shim_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outboard::runtime::shim_problems_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using v1beta1::ClusterEvent;
using v1beta1::DeclaredResource;

// A plugin that needs one thing of each kind, a profile that uses it, and a shim that offers all.
class ShimProblemsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    plugin_.set_name("P");
    ClusterEvent* event = plugin_.add_wake_up_events();
    event->set_resource("Node");
    event->add_actions(ClusterEvent::ACTION_ADD);
    plugin_.add_needed_fields("Pod.metadata.annotations['a']");
    plugin_.add_needed_fields("Pod.spec.containers[*].args");
    Uses("things.v1.example.com", DeclaredResource::VERB_PATCH_STATUS);
    profile_.set_name("default");
    for (const auto point : {v1beta1::EXTENSION_POINT_FILTER, v1beta1::EXTENSION_POINT_BIND}) {
      v1beta1::PointConfig* config = profile_.add_points();
      config->set_extension_point(point);
      config->add_plugins("Another");
      config->add_plugins("P");
    }
    shim_.add_extension_points(v1beta1::EXTENSION_POINT_FILTER);
    shim_.add_extension_points(v1beta1::EXTENSION_POINT_BIND);
    shim_.add_event_actions(ClusterEvent::ACTION_ADD);
    shim_.add_needed_fields("Pod.metadata.annotations['KEY']");
    shim_.add_needed_fields("Pod.spec.containers[*].args");
    shim_.add_effects("patch_object");
    shim_.add_pushes("effect");
  }
  DeclaredResource* Uses(const std::string& resource, DeclaredResource::Verb verb) {
    DeclaredResource* declared = plugin_.add_declared_resources();
    declared->set_resource(resource);
    declared->add_verbs(verb);
    return declared;
  }
  std::vector<std::string> Messages() const {
    std::vector<std::string> messages;
    for (const v1beta1::ConfigProblem& problem : ShimProblems(profile_, plugin_, shim_)) {
      EXPECT_EQ(problem.severity(), v1beta1::ConfigProblem::SEVERITY_WARNING);
      EXPECT_EQ(problem.profile(), "default");
      EXPECT_EQ(problem.plugin(), "P");
      messages.push_back(problem.message());
    }
    return messages;
  }

  v1beta1::ProfileConfig profile_;
  v1beta1::PluginInfo plugin_;
  v1beta1::ShimInfo shim_;
};

TEST_F(ShimProblemsTest, AShimThatOffersAllIsNoProblem) { EXPECT_THAT(Messages(), IsEmpty()); }

TEST_F(ShimProblemsTest, APointThatTheShimDoesNotCall) {
  shim_.clear_extension_points();
  EXPECT_THAT(Messages(), ElementsAre("the shim does not call plugins at extension point BIND",
                                      "the shim does not call plugins at extension point FILTER"));
  for (v1beta1::PointConfig& point : *profile_.mutable_points())
    point.mutable_plugins()->RemoveLast();
  EXPECT_THAT(Messages(), IsEmpty()) << "the profile does not use the plugin there";
}

TEST_F(ShimProblemsTest, AnOlderShimNeverCallsAtBindAndPostBind) {
  v1beta1::PointConfig* const point = profile_.add_points();
  point->set_extension_point(v1beta1::EXTENSION_POINT_POST_BIND);
  point->add_plugins("P");
  shim_.mutable_extension_points()->RemoveLast();
  EXPECT_THAT(Messages(),
              ElementsAre("the shim does not call plugins at extension point BIND",
                          "the shim does not call plugins at extension point POST_BIND"));
}

TEST_F(ShimProblemsTest, AtTheNameDefaultBinderTheShimBinds) {
  shim_.mutable_extension_points()->RemoveLast();
  plugin_.set_name("DefaultBinder");
  for (v1beta1::PointConfig& point : *profile_.mutable_points())
    point.set_plugins(1, "DefaultBinder");
  EXPECT_THAT(ShimProblems(profile_, plugin_, shim_), IsEmpty());
}

TEST_F(ShimProblemsTest, AnUnknownActionOfAnEvent) {
  plugin_.mutable_wake_up_events(0)->add_actions(ClusterEvent::ACTION_UPDATE_NODE_LABEL);
  EXPECT_THAT(Messages(),
              ElementsAre("the shim does not know action UPDATE_NODE_LABEL of event Node"));
}

TEST_F(ShimProblemsTest, AFieldThatTheShimDoesNotSend) {
  plugin_.add_needed_fields("Node.metadata.annotations['a']");
  plugin_.add_needed_fields("Pod.metadata.annotations");
  EXPECT_THAT(Messages(), ElementsAre("the shim does not send field Node.metadata.annotations['a']",
                                      "the shim does not send field Pod.metadata.annotations"));
}

TEST_F(ShimProblemsTest, AWriteThatTheShimDoesNotCarryOut) {
  Uses("others.v1.example.com", DeclaredResource::VERB_CREATE);
  Uses("rest.v1.example.com", DeclaredResource::VERB_DELETE)->set_optional(true);
  EXPECT_THAT(Messages(), ElementsAre("the shim does not carry out effect put_object, which "
                                      "others.v1.example.com needs"));
  shim_.add_effects("put_object");
  shim_.clear_pushes();
  EXPECT_THAT(Messages(),
              ElementsAre("the shim does not write others.v1.example.com in the background",
                          "the shim does not write things.v1.example.com in the background"));
}

TEST_F(ShimProblemsTest, EveryProblemThatIsNoWarningIsAnError) {
  google::protobuf::RepeatedPtrField<v1beta1::ConfigProblem> problems;
  EXPECT_FALSE(HasErrors(problems));
  problems.Add()->set_severity(v1beta1::ConfigProblem::SEVERITY_WARNING);
  EXPECT_FALSE(HasErrors(problems));
  for (const int severity : {0, 1, 77}) {
    v1beta1::ConfigProblem* problem = problems.Add();
    problem->set_severity(static_cast<v1beta1::ConfigProblem::Severity>(severity));
    EXPECT_TRUE(HasErrors(problems)) << severity;
    problems.RemoveLast();
  }
}

}  // namespace
}  // namespace outboard::runtime::shim_problems_test
