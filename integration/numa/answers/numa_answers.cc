// What GPUModelMatch says about a pod and a node with a NodeResourceTopology object, for the
// comparison with scheduler-plugins' NodeResourceTopologyMatch (numa_test.go).
//
// Reads a case a line: a JSON object with `args`, `node`, `object`, `pods` (on the node) and `pod`,
// in the syntax of plugins' text cases (plugin_host/sdk/testing/README.md). Writes a line for each:
// the reason of Filter, or `ok`; a tab; the score.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/testing/object_yaml.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/gpu_model_match/gpu_model_match.h"

namespace outboard {
namespace {

using sdk::testing::PluginHarness;

// Ends the program with the reason: a malformed case is a mistake of the caller.
template <typename T>
T OrDie(absl::StatusOr<T> value, const std::string& line) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << ", in " << line << "\n";
  exit(1);
}

std::string AnswerTo(const std::string& line) {
  const YAML::Node given = YAML::Load(line);
  const std::unique_ptr<PluginHarness> harness = OrDie(
      PluginHarness::Create(gpu_model_match::Descriptor(), sdk::testing::YamlToJson(given["args"])),
      line);
  const v1beta1::Node node = OrDie(sdk::testing::NodeFromYaml(given["node"]), line);
  harness->AddNode(node);
  if (given["object"])
    harness->AddObject(OrDie(sdk::testing::ObjectFromYaml(given["object"]), line));
  for (const auto& pod : given["pods"])
    harness->AddPod(OrDie(sdk::testing::PodFromYaml(pod), line));
  const v1beta1::Pod pod = OrDie(sdk::testing::PodFromYaml(given["pod"]), line);
  const sdk::Verdict verdict = harness->Filter(pod).at(node.name());
  const auto scores = OrDie(harness->Score(pod), line);
  const auto score = scores.find(node.name());
  return absl::StrCat(verdict.ok() ? "ok" : absl::StrJoin(verdict.reasons(), "; "), "\t",
                      score == scores.end() ? "skip" : absl::StrCat(score->second));
}

}  // namespace
}  // namespace outboard

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (std::string line; std::getline(std::cin, line);)
    std::cout << outboard::AnswerTo(line) << "\n";
  return testing::UnitTest::GetInstance()->failed_test_count() > 0 ? 1 : 0;
}
