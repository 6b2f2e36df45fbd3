#include "cli/simulate/trace/equivalence_class.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "cli/simulate/trace/trace.h"

namespace outboard::simulate::trace {
namespace {

EquivalenceClass Of(const std::string& job, int replica = 0, int incarnation = 0) {
  const absl::StatusOr<Trace> trace = ParseTrace("t", job);
  EXPECT_TRUE(trace.ok()) << trace.status();
  if (!trace.ok()) return {};
  return EquivalenceClassOf(*PodOf(trace->jobs.at(0), replica, incarnation));
}

TEST(EquivalenceClassTest, PodsThatDifferOnlyInNameAreEquivalent) {
  const EquivalenceClass a = Of(R"({"job":"a","arrival":0,"run":5,"gpus":2})");
  EXPECT_FALSE(a.kind.empty());
  EXPECT_EQ(a.kind, Of(R"({"job":"b","arrival":7,"run":9,"gpus":2})").kind);
  EXPECT_EQ(a.kind, Of(R"({"job":"b","arrival":7,"run":9,"gpus":2})", 0, 3).kind);
  const std::string gang = R"({"job":"a","arrival":0,"run":5,"gpus":2,"replicas":4,"gang":true})";
  EXPECT_EQ(Of(gang, 0).kind, Of(gang, 3).kind);
}

TEST(EquivalenceClassTest, WhatPluginsLookAtDoes) {
  const std::string base = Of(R"({"job":"a","arrival":0,"run":5,"gpus":2})").kind;
  for (const char* other :
       {R"({"job":"a","arrival":0,"run":5,"gpus":1})",
        R"({"job":"a","arrival":0,"run":5,"gpus":2,"cpu":1})",
        R"({"job":"a","arrival":0,"run":5,"gpus":2,"priority":1})",
        R"({"job":"a","namespace":"b","arrival":0,"run":5,"gpus":2})",
        R"({"job":"a","arrival":0,"run":5,"gpus":2,"labels":{"workload-type":"training"}})",
        R"({"job":"a","arrival":0,"run":5,"gpus":2,"labels":{"job-name":"another"}})",
        R"({"job":"a","arrival":0,"run":5,"gpus":2,"nodeSelector":{"gpu":"h200"}})",
        R"({"job":"a","arrival":0,"run":5,"gpus":2,"replicas":2,"gang":true})",
        R"({"job":"a","arrival":0,"run":5,"gpus":2,"annotations":{"outboard/run-seconds":"soon"}})",
        R"({"job":"a","arrival":0,"run":5,"gpus":2,"schedulerName":"other"})"}) {
    EXPECT_NE(base, Of(other).kind) << other;
  }
}

TEST(EquivalenceClassTest, TheDeclaredRunTimeIsTheAmount) {
  const auto declared = [](int seconds) {
    return Of(absl::StrCat(R"({"job":"a","arrival":0,"run":5,"annotations":)",
                           R"({"outboard/run-seconds":")", seconds, "\"}}"));
  };
  EXPECT_EQ(declared(5).kind, declared(60).kind);
  EXPECT_EQ(declared(5).amount, 5);
  EXPECT_EQ(declared(60).amount, 60);
  const EquivalenceClass silent = Of(R"({"job":"a","arrival":0,"run":5})");
  EXPECT_NE(declared(5).kind, silent.kind);
  EXPECT_FALSE(silent.amount_field.empty()) << "the order in the queue still matters";
  EXPECT_EQ(declared(5).amount_field, silent.amount_field);
}

TEST(EquivalenceClassTest, PodsThatLookAtOthersAreLikeNoOther) {
  const std::string spread =
      R"({"job":"a","arrival":0,"run":5,"template":{"spec":{"containers":[{"name":"c","image":"i"}],)"
      R"("topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone",)"
      R"("whenUnsatisfiable":"DoNotSchedule"}]}}})";
  EXPECT_EQ(Of(spread).kind, "");
}

}  // namespace
}  // namespace outboard::simulate::trace
