#include "plugin_host/sdk/job_gangs.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace outboard::sdk::job_gangs_test {
namespace {

JobObject Read(const std::string& json) {
  v1beta1::GenericObject object;
  object.set_resource(kJobs);
  object.set_namespace_("ns");
  object.set_name("train");
  object.set_uid("u1");
  object.set_json(json);
  return ReadJob(object);
}

TEST(JobGangsTest, TheSizeIsWhatTheJobControllerKeeps) {
  const struct {
    const char* json;
    int64_t size;
  } cases[] = {
      {R"({})", 1},
      {R"({"spec": {"parallelism": 4}})", 4},
      {R"({"spec": {"parallelism": 4, "completions": null}, "status": {"succeeded": 0}})", 4},
      // A queue of work: no more pods after the first success.
      {R"({"spec": {"parallelism": 4}, "status": {"succeeded": 1}})", 1},
      {R"({"spec": {"parallelism": 4, "completions": 3}})", 3},
      {R"({"spec": {"parallelism": 4, "completions": 16}, "status": {"succeeded": 12}})", 4},
      {R"({"spec": {"parallelism": 4, "completions": 16}, "status": {"succeeded": 14}})", 2},
      {R"({"spec": {"parallelism": 4, "completions": 4}, "status": {"succeeded": 4}})", 1},
      {R"({"spec": {"parallelism": 8, "completions": 8, "completionMode": "Indexed"},
           "status": {"succeeded": 2, "failedIndexes": "1,3-4"}})",
       3},
      {R"({"spec": {"parallelism": 0, "completions": 8}})", 1},
      // Resumed, it has its size before the update is seen.
      {R"({"spec": {"parallelism": 4, "completions": 4, "suspend": true}})", 4},
      {R"({"spec": {"parallelism": 100000}})", 100000}};
  for (const auto& one : cases) {
    const JobObject job = Read(one.json);
    ASSERT_TRUE(job.spec.min) << one.json;
    EXPECT_EQ(job.spec.min->value, one.size) << one.json;
    EXPECT_EQ(job.spec.fault, "") << one.json;
    EXPECT_TRUE(job.spec.only_first_start);
    EXPECT_TRUE(job.malformed.empty()) << one.json;
  }
}

TEST(JobGangsTest, IsTheGroupOfItsPods) {
  v1beta1::Pod pod;
  pod.set_namespace_("ns");
  (*pod.mutable_labels())["job-name"] = "train";
  pod.mutable_controller()->set_kind("Job");
  pod.mutable_controller()->set_uid("u1");
  const std::optional<GroupRef> ref = GroupOf(pod);
  ASSERT_TRUE(ref);
  EXPECT_TRUE(ref->key == Read("{}").key);
  EXPECT_TRUE(ref->job.owned);
  EXPECT_FALSE(ref->job.of_several_jobs);
}

TEST(JobGangsTest, MoreMembersThanAGroupHasAreAFault) {
  const JobObject job = Read(R"({"spec": {"parallelism": 100001}})");
  EXPECT_FALSE(job.spec.min);
  EXPECT_EQ(job.spec.fault, "spec.parallelism of the Job: 100001 members are more than 100000");
}

TEST(JobGangsTest, MalformedValuesCountAsAbsentAndAreNamed) {
  const struct {
    const char* json;
    int64_t size;
    const char* from;
  } cases[] = {
      {R"({"spec": {"parallelism": "many", "completions": 3}})", 1, "spec.parallelism"},
      {R"({"spec": {"parallelism": -1}})", 1, "spec.parallelism"},
      {R"({"spec": {"parallelism": 18446744073709551615}})", 1, "spec.parallelism"},
      {R"({"spec": {"parallelism": 2, "completions": 1.5}})", 2, "spec.completions"},
      {R"({"spec": {"parallelism": 3, "completions": 3}, "status": {"succeeded": []}})", 3,
       "status.succeeded"},
      {R"({"spec": {"parallelism": 3, "completions": 3}, "status": {"failedIndexes": "2-1"}})", 3,
       "status.failedIndexes"},
      {R"({"metadata": {"labels": {"outboard/gang": "maybe"}}})", 1,
       "metadata.labels['outboard/gang']"}};
  for (const auto& one : cases) {
    const JobObject job = Read(one.json);
    ASSERT_TRUE(job.spec.min) << one.json;
    EXPECT_EQ(job.spec.min->value, one.size) << one.json;
    ASSERT_EQ(job.malformed.size(), 1u) << one.json;
    EXPECT_EQ(job.malformed[0].from, one.from);
    EXPECT_FALSE(job.wants_gang);
  }
}

TEST(JobGangsTest, ItsLabel) {
  EXPECT_EQ(Read(R"({"metadata": {"labels": {"outboard/gang": "true"}}})").wants_gang, true);
  EXPECT_EQ(Read(R"({"metadata": {"labels": {"outboard/gang": "false"}}})").wants_gang, false);
  EXPECT_EQ(Read(R"({"metadata": {"labels": {"a": "true"}}})").wants_gang, std::nullopt);
}

TEST(JobGangsTest, RulesOfTheArgs) {
  const auto covers = [](const std::string& args, const std::string& ns) {
    ArgsReader reader(args);
    const JobGangRules rules = ReadJobGangRules(reader.root());
    EXPECT_TRUE(reader.Finish().empty()) << args;
    return rules.Covers(ns);
  };
  EXPECT_TRUE(covers("{}", "a"));
  EXPECT_FALSE(covers(R"({"jobGangs": "never"})", "a"));
  EXPECT_TRUE(covers(R"({"jobGangs": "all", "jobGangNamespaces": ["a", "b"]})", "a"));
  EXPECT_FALSE(covers(R"({"jobGangs": "all", "jobGangNamespaces": ["a", "b"]})", "c"));
}

}  // namespace
}  // namespace outboard::sdk::job_gangs_test
