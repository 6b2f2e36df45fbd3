#include "cli/simulate/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/simulate/diff.h"
#include "cli/simulate/why.h"

namespace outboard::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

AttemptReport Report(const std::string& pod, const char* result, const std::string& node,
                     const std::string& message) {
  AttemptReport report;
  report.pod = pod;
  report.result = result;
  report.node = node;
  report.message = message;
  report.attempt = 1;
  report.nodes = 1;
  return report;
}

// The rows, with the essence that a Reporter adds.
std::vector<PodRow> Rows(std::vector<AttemptReport> reports) {
  for (AttemptReport& report : reports) report.why = Why(report);
  return RowsOf(reports);
}

TEST(TableTest, HasARowForEachPodAndASummary) {
  AttemptReport preempting = Report("default/high", kPreempting, "", "0/1 …");
  preempting.nominated_node = "n1";
  preempting.victims = {"default/low"};
  preempting.reasons = {{"Insufficient cpu", 1}};
  const std::vector<AttemptReport> reports = {
      Report("default/web", kScheduled, "n1", ""), preempting,
      Report("default/a", kError, "", "plugin host \"x\" did not answer"),
      Report("default/b", kUnschedulable, "", "waiting for scheduling gates: [x]"),
      Report("default/c", kSkipped, "n7", "has a node: spec.nodeName is n7")};
  EXPECT_EQ(ToTable(Rows(reports), {}),
            R"(POD           RESULT         NODE  WHY
default/web   scheduled      n1    the only node
default/high  preempting     n1    preempts default/low; no node of 1: 1 Insufficient cpu
default/a     error          -     plugin host "x" did not answer
default/b     unschedulable  -     waiting for scheduling gates: [x]
default/c     skipped        n7    has a node: spec.nodeName is n7

5 pods: 1 scheduled, 1 preempting (they evict 1 pod), 1 unschedulable, 1 error, 1 skipped

Pods without a node, by reason (a pod can have several):
     1  plugin host "x" did not answer
     1  waiting for scheduling gates: [x]
)");
  EXPECT_EQ(ToTable({}, {}), "POD  RESULT  NODE  WHY\n\n0 pods\n");
}

TEST(TableTest, TheLastAttemptCounts) {
  AttemptReport first = Report("default/p", kPreempting, "", "");
  first.nominated_node = "n1";
  first.victims = {"default/a", "default/b"};
  AttemptReport second = Report("default/p", kScheduled, "n1", "");
  second.attempt = 2;
  EXPECT_EQ(ToTable(Rows({first, Report("default/q", kScheduled, "n1", ""), second}), {}),
            R"(POD        RESULT     NODE  TRIES  WHY
default/p  scheduled  n1    2      preempted default/a, default/b; the only node
default/q  scheduled  n1    1      the only node

2 pods: 2 scheduled
)");
}

TEST(TableTest, BreaksLinesAtTheWidth) {
  const std::string long_text =
      "no node: 12 insufficient GPU: need 16, available 0 to 8, 3 had untolerated taint(s)";
  std::vector<AttemptReport> reports = {Report("default/p", kUnschedulable, "", long_text),
                                        Report("default/q", kUnschedulable, "", long_text)};
  Style style;
  style.width = 80;
  EXPECT_THAT(ToTable(Rows(reports), style), HasSubstr(R"(
default/p  unschedulable  -     no node: 12 insufficient GPU: need 16,
                                available 0 to 8, 3 had untolerated taint(s)
default/q  unschedulable  -     as default/p
)"));
  // With long names there is no room beside them.
  reports[0].pod = "a-namespace-with-a-long-name/a-pod-with-a-long-name";
  EXPECT_THAT(ToTable(Rows(reports), style), HasSubstr(R"(a-pod-with-a-long-name  unschedulable  -
    no node: 12 insufficient GPU: need 16, available 0 to 8, 3 had untolerated
    taint(s)
)"));
}

TEST(TableTest, ColorsResults) {
  Style style;
  style.color = true;
  EXPECT_EQ(ToTable(Rows({Report("default/p", kScheduled, "n1", "")}), style),
            "\x1b[1mPOD        RESULT     NODE  WHY\x1b[0m\n"
            "default/p  \x1b[32mscheduled\x1b[0m  n1    the only node\n\n"
            "1 pod: \x1b[32m1 scheduled\x1b[0m\n");
}

TEST(ProgressLineTest, IsOverwrittenAndErased) {
  ::testing::internal::CaptureStderr();
  {
    ProgressLine progress(/*shows=*/true, absl::ZeroDuration());
    progress.Show("1 attempt");
    progress.Show("2 attempts");  // too soon
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "\r\x1b[K1 attempt\r\x1b[K");
  ::testing::internal::CaptureStderr();
  {
    ProgressLine progress(/*shows=*/false, absl::ZeroDuration());
    progress.Show("1 attempt");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(DiffTest, ShowsPodsThatDiffer) {
  const std::vector<PodRow> before =
      Rows({Report("default/p", kScheduled, "n1", ""), Report("default/q", kScheduled, "n1", ""),
            Report("default/r", kError, "", "no")});
  const std::vector<PodRow> after =
      Rows({Report("default/q", kScheduled, "n1", ""), Report("default/p", kScheduled, "n2", ""),
            Report("default/r", kScheduled, "n1", "")});
  const std::vector<PodDifference> differences = DifferencesOf(before, after);
  EXPECT_EQ(ToDiff(differences, before.size(), {"old.yaml", "new.yaml"}, {}), R"(--- old.yaml
+++ new.yaml
default/p
  - scheduled on n1: the only node
  + scheduled on n2: the only node
default/r
  - error: no
  + scheduled on n1: the only node

2 of 3 pods differ
)");
  EXPECT_EQ(ToDiff({}, 3, {"old.yaml", "new.yaml"}, {}), "0 of 3 pods differ\n");
}

TEST(DiffTest, OtherVictimsAreADifferenceAndOtherReasonsAreNot) {
  AttemptReport report = Report("default/p", kPreempting, "", "");
  report.victims = {"default/a", "default/b"};
  AttemptReport other = report;
  other.victims = {"default/b", "default/a"};
  other.message = "other words";
  EXPECT_THAT(DifferencesOf(Rows({report}), Rows({other})), IsEmpty());
  other.victims = {"default/c"};
  EXPECT_THAT(DifferencesOf(Rows({report}), Rows({other})), SizeIs(1));
}

}  // namespace
}  // namespace outboard::simulate
