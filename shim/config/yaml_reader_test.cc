#include "shim/config/yaml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace outboard::config {
namespace {

using ::testing::HasSubstr;

struct JsonCase {
  const char* yaml;
  const char* json;  // null: expect an error
};

TEST(YamlToJson, TakesScalarsAsKubeSchedulersYamlReaderDoes) {
  const JsonCase cases[] = {
      {"{a: 1}", R"({"a":1})"},
      {"{a: \"1\"}", R"({"a":"1"})"},
      {"{a: yes, b: off, c: True}", R"({"a":true,"b":false,"c":true})"},
      {"{a: ~, b: null}", R"({"a":null,"b":null})"},
      {"a:", R"({"a":null})"},
      {"{a: 0x1F, b: 010, c: 0o17, d: 0b11, e: 1_000}", R"({"a":31,"b":8,"c":15,"d":3,"e":1000})"},
      {"{a: -9223372036854775808, b: 18446744073709551615}",
       R"({"a":-9223372036854775808,"b":18446744073709551615})"},
      {"{a: 1.5, b: 1e3, c: .5}", R"({"a":1.5,"b":1000,"c":0.5})"},
      {"{a: 10Gi, b: 1.2.3, c: 100m}", R"({"a":"10Gi","b":"1.2.3","c":"100m"})"},
      {"{a: !!str 5}", R"({"a":"5"})"},
      {"[1, [2, {}], []]", "[1,[2,{}],[]]"},
      {"{a: \"q\\\"\\n\\u0001\"}", R"({"a":"q\"\u000a\u0001"})"},
      {"{a: .inf}", nullptr},
      {"{a: .nan}", nullptr},
      {"{a: 1, a: 2}", nullptr},
      {"&r [*r]", nullptr},
      {"{[1]: 2}", nullptr},
  };
  for (const JsonCase& c : cases) {
    absl::StatusOr<std::string> json = YamlToJson(YAML::Load(c.yaml));
    if (c.json == nullptr) {
      EXPECT_FALSE(json.ok()) << c.yaml << " became " << *json;
    } else {
      ASSERT_TRUE(json.ok()) << c.yaml << ": " << json.status();
      EXPECT_EQ(*json, c.json) << c.yaml;
    }
  }
}

TEST(YamlToJson, StopsAtAliasesThatMultiply) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&bomb, j == 0 ? "" : ", ", "*a", i - 1);
    absl::StrAppend(&bomb, "]\n");
  }
  absl::StatusOr<std::string> json = YamlToJson(YAML::Load(bomb));
  ASSERT_FALSE(json.ok());
  EXPECT_THAT(std::string(json.status().message()), HasSubstr("256 KiB"));
}

TEST(Problems, NamesThePlaceAndStopsSomewhere) {
  Problems problems("f.yaml");
  EXPECT_TRUE(problems.ToStatus().ok());
  problems.Add(Location{3, 5, "a.b"}, "bad");
  problems.Add(Location{3, 5, "a.b"}, "bad");
  EXPECT_EQ(problems.ToStatus().message(), "f.yaml:3:5: a.b: bad");
  for (int i = 0; i < 100; ++i) problems.Add(Location{i, 1, "x"}, "bad");
  EXPECT_THAT(std::string(problems.ToStatus().message()), HasSubstr("and 71 more"));
}

}  // namespace
}  // namespace outboard::config
