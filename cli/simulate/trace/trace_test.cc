#include "cli/simulate/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace outboard::simulate::trace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string FaultOf(const std::string& text) {
  const absl::StatusOr<Trace> trace = ParseTrace("t.jsonl", text);
  EXPECT_FALSE(trace.ok()) << "was accepted: " << text;
  EXPECT_TRUE(trace.ok() || absl::IsInvalidArgument(trace.status()));
  return std::string(trace.status().message());
}

TEST(TraceTest, AJobHasTheFieldsOfItsLine) {
  const auto trace = ParseTrace("t.jsonl", R"(
# A comment, and an empty line above.
{"job": "a", "namespace": "ml", "arrival": 1.5, "run": 600, "replicas": 2, "gang": true, "class": "big", "checkpointEvery": 60,
)"
                                           "\n");
  EXPECT_FALSE(trace.ok()) << "an object must be on one line";

  const auto good = ParseTrace(
      "t.jsonl",
      R"({"job":"a","namespace":"ml","arrival":1.5,"run":600,"replicas":2,"gang":true,"class":"big","checkpointEvery":60,)"
      R"("cpu":"500m","memory":"2Gi","gpus":8,"priority":7,"schedulerName":"gpu","labels":{"k":"v"},"annotations":{"n":"1"},)"
      R"("nodeSelector":{"zone":"z"}})");
  ASSERT_TRUE(good.ok()) << good.status();
  ASSERT_THAT(good->jobs, SizeIs(1));
  EXPECT_THAT(good->warnings, IsEmpty());
  const Job& job = good->jobs[0];
  EXPECT_EQ(job.key(), "ml/a");
  EXPECT_EQ(job.job_class, "big");
  EXPECT_EQ(job.arrival, absl::Milliseconds(1500));
  EXPECT_EQ(job.run, absl::Minutes(10));
  EXPECT_EQ(job.checkpoint_every, absl::Minutes(1));
  EXPECT_TRUE(job.gang);

  const kube::PodPtr pod = PodOf(job, 1, 0);
  EXPECT_EQ(pod->key(), "ml/a-1");
  EXPECT_EQ(pod->pod.priority(), 7);
  EXPECT_EQ(pod->pod.scheduler_name(), "gpu");
  EXPECT_EQ(pod->pod.labels().at("k"), "v");
  EXPECT_EQ(pod->pod.labels().at("job-name"), "a");
  EXPECT_EQ(pod->pod.annotations().at("n"), "1");
  EXPECT_EQ(pod->pod.annotations().at("outboard/min-replicas"), "2");
  EXPECT_EQ(pod->pod.node_selector().at("zone"), "z");
  EXPECT_EQ(pod->pod.controller().name(), "a");
  EXPECT_EQ(AmountsOf(pod->pod).cpu_millis, 500);
  EXPECT_EQ(AmountsOf(pod->pod).gpus, 8);
  const kube::PodPtr again = PodOf(job, 1, 1);
  EXPECT_EQ(again->key(), "ml/a-1.r1");
  EXPECT_NE(again->uid(), pod->uid());
}

TEST(TraceTest, AJobHasItsShapeAndItsOwnOverIt) {
  const auto trace = ParseTrace("t.jsonl", R"({"shape":"s","gpus":4,"cpu":2,"run":10}
{"job":"a","arrival":0,"shape":"s"}
{"job":"b","arrival":5,"shape":"s","gpus":1,"class":"mine"})");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_THAT(trace->jobs, SizeIs(2));
  EXPECT_EQ(trace->jobs[0].job_class, "s");
  EXPECT_EQ(trace->jobs[0].run, absl::Seconds(10));
  EXPECT_EQ(AmountsOf(trace->jobs[0].pod->pod).gpus, 4);
  EXPECT_EQ(trace->jobs[1].job_class, "mine");
  EXPECT_EQ(AmountsOf(trace->jobs[1].pod->pod).gpus, 1);
  EXPECT_EQ(AmountsOf(trace->jobs[1].pod->pod).cpu_millis, 2000);
}

TEST(TraceTest, ATemplateIsTakenAsItIs) {
  const auto trace = ParseTrace(
      "t.jsonl",
      R"({"job":"a","arrival":0,"template":{"metadata":{"labels":{"x":"y"}},"spec":{"preemptionPolicy":"Never",)"
      R"("tolerations":[{"key":"gpu","operator":"Exists"}],"containers":[{"name":"c","image":"i"}]}}})");
  ASSERT_TRUE(trace.ok()) << trace.status();
  const v1beta1::Pod& pod = trace->jobs[0].pod->pod;
  EXPECT_EQ(pod.tolerations_size(), 1);
  EXPECT_EQ(pod.labels().at("x"), "y");
  EXPECT_EQ(pod.labels().at("job-name"), "a");
  EXPECT_FALSE(trace->jobs[0].run.has_value()) << "it never ends";
}

TEST(TraceTest, FaultsHaveFileLineAndField) {
  EXPECT_EQ(FaultOf(R"({"job":"a"})"), "t.jsonl:1: arrival: is required");
  EXPECT_EQ(FaultOf("\n{\"arrival\":0}"), "t.jsonl:2: job is required, or shape for a shape");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":-1})"),
            "t.jsonl:1: arrival: must be a number of seconds, 0 or more, at most 1e9");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":"1"})"),
            "t.jsonl:1: arrival: must be a number of seconds, 0 or more, at most 1e9");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":0,"run":0})"),
            "t.jsonl:1: run: must be a number of seconds, more than 0, at most 1e9");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":0,"replicas":0})"),
            "t.jsonl:1: replicas: must be an integer from 1 to 10000");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":0,"gpus":1.5})"),
            "t.jsonl:1: gpus: must be an integer from 0 to 1000000");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":0,"priority":18446744073709551615})"),
            "t.jsonl:1: priority: must be an integer from -2147483648 to 1000000000");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":0,"gang":1})"),
            "t.jsonl:1: gang: must be true or false");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrivel":0})"),
            "t.jsonl:1: arrivel: unknown field; did you mean arrival?");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":0,"arrival":1})"),
            "t.jsonl:1: arrival: duplicate field");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":0,"shape":"s"})"),
            "t.jsonl:1: shape: \"s\" is not defined before");
  EXPECT_EQ(FaultOf("{\"job\":\"a\",\"arrival\":0}\n{\"job\":\"a\",\"arrival\":0}"),
            "t.jsonl:2: job: duplicate pod \"a\" in namespace default");
  EXPECT_EQ(
      FaultOf("{\"job\":\"a\",\"arrival\":0,\"replicas\":2}\n{\"job\":\"a-1\",\"arrival\":0}"),
      "t.jsonl:2: job: duplicate pod \"a-1\" in namespace default");
  EXPECT_EQ(FaultOf(R"({"job":"a.r1","arrival":0})"),
            "t.jsonl:1: job: must not end in .r and a number, like returned pods");
  EXPECT_EQ(FaultOf("{\"shape\":\"s\"}\n{\"shape\":\"s\"}"), "t.jsonl:2: shape: duplicate \"s\"");
  EXPECT_EQ(FaultOf(R"({"shape":"s","arrival":1})"), "t.jsonl:1: arrival: not allowed in a shape");
  EXPECT_EQ(FaultOf("[1]"), "t.jsonl:1: must be an object");
  EXPECT_THAT(FaultOf("\n\n{\"job\": }"), StartsWith("t.jsonl:3:9: invalid JSON: "));
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":1e999})"),
            "t.jsonl:1: invalid JSON: number overflow parsing '1e999'");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":0,"labels":{"k":1}})"),
            "t.jsonl:1: labels.k: must be a string");
  EXPECT_EQ(FaultOf(R"({"job":"a","arrival":0,"template":{"spec":{}},"cpu":1})"),
            "t.jsonl:1: cpu: not allowed with template");
}

TEST(TraceTest, AnObjectThatTheApiRejectsIsReportedWithItsLine) {
  EXPECT_THAT(FaultOf(R"({"job":"a","arrival":0,"cpu":"many"})"), StartsWith("t.jsonl:1: cpu: "));
  EXPECT_THAT(FaultOf(R"({"job":"A","arrival":0})"), StartsWith("t.jsonl:1: job: "));
  EXPECT_THAT(
      FaultOf(R"({"job":"a","arrival":0,"template":{"spec":{"containers":[{"name":"c","image":"i",)"
              R"("resources":{"requests":{"memory":"much"}}}]}}})"),
      StartsWith("t.jsonl:1: template.spec.containers[0]."));
  const auto unknown = ParseTrace(
      "t.jsonl",
      R"({"job":"a","arrival":0,"template":{"spec":{"containers":[{"name":"c","image":"i"}],"colour":"red"}}})");
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  ASSERT_THAT(unknown->warnings, SizeIs(1));
  EXPECT_THAT(unknown->warnings[0], StartsWith("t.jsonl:1: template.spec.colour: "));
}

TEST(TraceTest, AFileThatIsNotThereIsNamed) {
  const auto trace = ReadTraces({"/nowhere/t.jsonl"});
  EXPECT_TRUE(absl::IsInvalidArgument(trace.status()));
  EXPECT_EQ(trace.status().message(), "/nowhere/t.jsonl: No such file or directory");
}

TEST(TraceTest, TemplatesMayNameAClassOfPriority) {
  const std::string file = ::testing::TempDir() + "trace_test_classes.jsonl";
  std::ofstream(file)
      << R"({"job":"a","arrival":0,"template":{"spec":{"priorityClassName":"high","containers":[{"name":"c"}]}}})";
  manifests::PriorityClasses classes;
  kube::wire::PriorityClass high;
  high.mutable_metadata()->set_name("high");
  high.set_value(7);
  ASSERT_FALSE(classes.Add(high));
  const auto trace = ReadTraces({file}, classes);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->jobs[0].pod->pod.priority(), 7);
  EXPECT_EQ(
      ReadTraces({file}).status().message(),
      file + ":1: template.spec.priorityClassName: no PriorityClass with name high was found");
}

TEST(TraceTest, TheHelpNamesEveryFieldThatIsTaken) {
  for (const char* field : {"job", "namespace", "arrival", "run", "shape", "class", "replicas",
                            "gang", "cpu", "memory", "gpus", "checkpointEvery", "schedulerName",
                            "priority", "labels", "annotations", "nodeSelector", "template"}) {
    EXPECT_THAT(kTraceHelp, HasSubstr(field));
  }
}

}  // namespace
}  // namespace outboard::simulate::trace
