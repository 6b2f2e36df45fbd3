// Holds the JSON of `outboard simulate` against output.schema.json, and both against the help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "cli/simulate/command.h"
#include "cli/simulate/diff.h"
#include "cli/simulate/report.h"
#include "cli/simulate/testing/json_schema.h"

namespace outboard::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

class OutputSchemaTest : public ::testing::Test {
 protected:
  OutputSchemaTest() {
    std::ifstream file("cli/simulate/output.schema.json");
    schema_ = Json::parse(file);
  }

  std::vector<std::string> Check(const Json& line, const std::string& definition = "attempt") {
    return CheckSchema(schema_, {{"$ref", absl::StrCat("#/$defs/", definition)}}, line);
  }

  // One of each kind.
  static std::vector<v1beta1::Effect> PodEffects() {
    std::vector<v1beta1::Effect> effects(3);
    v1beta1::PatchPod* const patch = effects[0].mutable_patch_pod();
    (*patch->mutable_set_annotations())["b"] = "2";
    (*patch->mutable_set_annotations())["a"] = "1";
    patch->add_remove_labels("l");
    v1beta1::SetPodCondition* const condition = effects[1].mutable_set_pod_condition();
    condition->set_type("example.com/Held");
    condition->set_status(v1beta1::CONDITION_STATUS_FALSE);
    condition->set_reason("NotYet");
    v1beta1::RecordEvent* const event = effects[2].mutable_record_event();
    event->set_type(v1beta1::RecordEvent::TYPE_WARNING);
    event->set_reason("Held");
    event->set_action("Holding");
    event->set_note("not yet");
    return effects;
  }

  // A report with every field.
  static AttemptReport Whole() {
    AttemptReport report;
    report.pod = "default/p";
    report.result = kScheduled;
    report.node = "n1";
    report.filter["n2"] = {"Unschedulable", "NodeResourcesFit", {"Insufficient cpu"}};
    report.scores["n1"] = {90, {{"GPUAware", 90}}, {{"GPUAware", {{"memoryGB", 8.5}}}}};
    report.effects = {
        R"({"put":{"resource":"r","namespace":"n","name":"o","status":false,"body":{}}})"};
    for (const v1beta1::Effect& effect : PodEffects())
      report.effects.push_back(DescribeEffect(effect));
    report.victims = {"default/v"};
    report.reasons = {{"Insufficient cpu", 1}};
    report.attempt = 1;
    report.group = "gang \"g\"";
    report.group_pods = 2;
    return report;
  }

  Json schema_;
};

TEST_F(OutputSchemaTest, HasEveryFieldOfAReport) {
  const Json line = Json::parse(ToJsonLine(Whole()));
  EXPECT_THAT(Check(line), IsEmpty()) << line;
  std::set<std::string> printed, described;
  for (const auto& [name, value] : line.items()) printed.insert(name);
  for (const auto& [name, value] : schema_["$defs"]["attempt"]["properties"].items())
    described.insert(name);
  EXPECT_EQ(printed, described);
  EXPECT_THAT(
      Check(Json::parse(ToJsonLine(PodDifference{{Whole(), {}}, {Whole(), {}}})), "difference"),
      IsEmpty());
}

TEST_F(OutputSchemaTest, EffectsOnThePodAreListed) {
  const std::vector<v1beta1::Effect> effects = PodEffects();
  EXPECT_EQ(DescribeEffect(effects[0]),
            R"({"patchPod":{"setAnnotations":{"a":"1","b":"2"},"removeAnnotations":[],)"
            R"("setLabels":{},"removeLabels":["l"]}})");
  EXPECT_EQ(DescribeEffect(effects[1]),
            R"({"condition":{"type":"example.com/Held","status":"False","reason":"NotYet",)"
            R"("message":""}})");
  EXPECT_EQ(DescribeEffect(effects[2]),
            R"({"event":{"resource":"","namespace":"","name":"","type":"Warning",)"
            R"("reason":"Held","action":"Holding","note":"not yet"}})");
  v1beta1::Effect of_volume;
  of_volume.mutable_bind_volume();
  EXPECT_EQ(DescribeEffect(of_volume), "");
}

TEST_F(OutputSchemaTest, TheHelpDescribesEveryFieldAndResult) {
  const Json& properties = schema_["$defs"]["attempt"]["properties"];
  for (const auto& [name, value] : properties.items())
    EXPECT_THAT(kOutputHelp, HasSubstr(absl::StrCat("\n  ", name, " ")));
  for (const std::string result : properties["result"]["enum"])
    EXPECT_THAT(kOutputHelp, HasSubstr(absl::StrCat(" ", result, " ")));
}

TEST_F(OutputSchemaTest, RejectsOtherLines) {
  Json line = Json::parse(ToJsonLine(Whole()));
  line["result"] = "maybe";
  line["scores"]["n1"]["total"] = "90";
  line["attempt"] = -1;
  line["surprise"] = true;
  line.erase("why");
  EXPECT_THAT(Check(line),
              ElementsAre("why: missing", "attempt: below 0", "result: \"maybe\" is not allowed",
                          "scores.n1.total: not of type integer", "surprise: unknown"));
}

// The golden files are whole outputs, which command_test.sh compares.
TEST_F(OutputSchemaTest, MatchesTheOutputs) {
  size_t lines = 0;
  std::set<std::string> results;
  for (const auto& entry : std::filesystem::directory_iterator("cli/simulate/testdata")) {
    if (entry.path().extension() != ".golden") continue;
    std::ifstream file(entry.path());
    for (std::string text; std::getline(file, text);) {
      if (text.empty() || text[0] != '{') continue;
      const Json line = Json::parse(text);
      if (line.contains("attempts")) continue;
      const bool is_difference = line.contains("before");
      EXPECT_THAT(Check(line, is_difference ? "difference" : "attempt"), IsEmpty()) << entry.path();
      if (!is_difference) results.insert(line["result"]);
      ++lines;
    }
  }
  EXPECT_GT(lines, 20u);
  EXPECT_THAT(results, ::testing::IsSupersetOf(
                           {kScheduled, kPreempting, kUnschedulable, kPreempted, kSkipped}));
}

}  // namespace
}  // namespace outboard::simulate
