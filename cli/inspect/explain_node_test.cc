#include "cli/inspect/explain_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::inspect {
namespace {

using ::testing::HasSubstr;

TEST(ExplainNodeTest, ShowsKnownAndUnknownFactsAndMalformedLabels) {
  const absl::StatusOr<std::string> table = NodeFactsTable(R"({"nodes":[{"name":"n1","facts":[
    {"fact":"model","value":"NVIDIA-B200","source":"GPU Feature Discovery","origin":"label nvidia.com/gpu.product"},
    {"fact":"network","value":null,"source":"unknown","publishers":"topograph, AWS"}],
    "malformed":[{"key":"gpu-memory-gb","value":"lots","wanted":"a number of GB"}]}]})");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table,
            "n1\n"
            "  model    NVIDIA-B200  [GPU Feature Discovery: label nvidia.com/gpu.product]\n"
            "  network  unknown; published by: topograph, AWS\n"
            "  gpu-memory-gb=\"lots\" is not a number of GB and counts as absent\n");
  for (const char* other : {"", "[]", "{}", R"({"nodes":[1]})", R"({"nodes":[{"name":"n"}]})"})
    EXPECT_TRUE(absl::IsInternal(NodeFactsTable(other).status())) << other;
}

TEST(ExplainNodeTest, NamesWhatIsWrongWithTheFiles) {
  ExplainNodeLine line;
  line.files = {"/nonexistent.yaml"};
  const absl::StatusOr<std::string> result = ExplainNode(line);
  EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("/nonexistent.yaml"));
}

TEST(ExplainNodeTest, WithoutFilesItNamesTheKubeconfigThatItCannotRead) {
  ExplainNodeLine line;
  line.name = "gpu-7";
  line.cluster.kubeconfig = "/nonexistent/kubeconfig";
  const absl::StatusOr<std::string> result = ExplainNode(line);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("/nonexistent/kubeconfig"));
}

}  // namespace
}  // namespace outboard::inspect
