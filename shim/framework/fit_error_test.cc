#include "shim/framework/fit_error.h"

#include <gtest/gtest.h>

namespace outboard::framework {
namespace {

v1beta1::PluginStatus Status(const std::string& plugin, std::initializer_list<const char*> reasons,
                             v1beta1::Code code = v1beta1::CODE_UNSCHEDULABLE) {
  v1beta1::PluginStatus status;
  status.set_plugin(plugin);
  status.set_code(code);
  for (const char* reason : reasons) status.add_reasons(reason);
  return status;
}

TEST(FitErrorMessage, SortsTheHistogramAsStrings) {
  Diagnosis diagnosis;
  diagnosis.num_all_nodes = 13;
  diagnosis.AddRejection(Status("TaintToleration", {"node(s) had untolerated taint(s)"}), 2);
  diagnosis.AddRejection(Status("NodeResourcesFit", {"Insufficient cpu", "Insufficient memory"}),
                         10);
  diagnosis.AddRejection(Status("NodeResourcesFit", {"Insufficient cpu"}), 1);
  EXPECT_EQ(FitErrorMessage(diagnosis),
            "0/13 nodes are available: 10 Insufficient memory, 11 Insufficient cpu, 2 node(s) had "
            "untolerated taint(s).");
  EXPECT_EQ(diagnosis.unschedulable_plugins,
            (std::set<std::string>{"NodeResourcesFit", "TaintToleration"}));
}

TEST(FitErrorMessage, CountsNodesThatPreFilterLeftOut) {
  Diagnosis diagnosis;
  diagnosis.num_all_nodes = 5;
  diagnosis.absent_nodes_reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
  diagnosis.AddRejection(Status("NodeResourcesFit", {"Insufficient cpu"}), 1);
  EXPECT_EQ(FitErrorMessage(diagnosis),
            "0/5 nodes are available: 1 Insufficient cpu, 4 node(s) didn't satisfy plugin(s) "
            "[NodeAffinity].");
}

TEST(FitErrorMessage, HasOnlyPreFiltersMessage) {
  Diagnosis diagnosis;
  diagnosis.num_all_nodes = 3;
  diagnosis.pre_filter_message = "pod affinity terms conflict";
  EXPECT_EQ(FitErrorMessage(diagnosis), "0/3 nodes are available: pod affinity terms conflict.");
}

TEST(FitErrorMessage, OfARejectedNodeCountsOne) {
  const Diagnosis diagnosis =
      DiagnosisOfRejectedNode(Status("Gang", {"too few"}, v1beta1::CODE_PENDING));
  EXPECT_EQ(FitErrorMessage(diagnosis), "0/1 nodes are available: 1 too few.");
  EXPECT_EQ(diagnosis.pending_plugins, (std::set<std::string>{"Gang"}));
}

}  // namespace
}  // namespace outboard::framework
