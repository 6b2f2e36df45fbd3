#include "shim/kube/wire/document.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/manifests/yaml_document.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outboard::manifests {

using kube::DocNode;
using kube::FieldPath;
using kube::ObjectJson;
using kube::ParseJson;
using kube::ToJson;

namespace {

using ::testing::HasSubstr;

std::string Place(const DocNode& node) {
  return std::to_string(node.line) + ":" + std::to_string(node.column);
}

DocNode Json(const std::string& text) {
  absl::StatusOr<DocNode> doc = ParseJson("f", text);
  EXPECT_TRUE(doc.ok()) << doc.status();
  return doc.ok() ? *doc : DocNode();
}

DocNode Yaml(const std::string& text) {
  const YamlDocuments parsed = ParseYaml(text);
  EXPECT_TRUE(parsed.errors.empty()) << parsed.errors[0].what;
  return parsed.documents.size() == 1 ? parsed.documents[0] : DocNode();
}

std::string YamlErrorOf(const std::string& text) {
  std::vector<std::string> errors;
  for (const YamlError& error : ParseYaml(text).errors)
    errors.push_back(absl::StrCat(error.line, ":", error.column, ": ", error.what));
  return absl::StrJoin(errors, "\n");
}
std::string JsonError(const std::string& text) {
  return std::string(ParseJson("f", text).status().message());
}

TEST(Json, ValuesAndPlaces) {
  const DocNode doc = Json(
      "{\n  \"a\": [1, -2.5e3, \"x\\\"\\\\\", \"\\ud83d\\ude00\"],\n  \"b\": {\"c\": true , "
      "\"d\":null}\n}\n");
  EXPECT_EQ(ToJson(doc),
            "{\"a\":[1,-2.5e3,\"x\\\"\\\\\",\"\xf0\x9f\x98\x80\"],\"b\":{\"c\":true,\"d\":null}}");
  const DocNode& a = *doc.Find("a");
  EXPECT_EQ(Place(doc), "1:1");
  EXPECT_EQ(Place(a), "2:8");
  EXPECT_EQ(Place(a.items[0]), "2:9");
  EXPECT_EQ(Place(a.items[1]), "2:12");
  EXPECT_EQ(Place(a.items[2]), "2:20");
  EXPECT_EQ(Place(a.items[3]), "2:29");
  EXPECT_EQ(Place(*doc.Find("b")->Find("c")), "3:14");
  EXPECT_EQ(Place(*doc.Find("b")->Find("d")), "3:25");
  EXPECT_EQ(doc.Find("zzz"), nullptr);
  EXPECT_EQ(std::string(doc.FindString("a")), "");
}

TEST(Json, ObjectsAreWrittenWithoutManagedFields) {
  for (const char* metadata :
       {R"({"managedFields":[{}],"name":"a"})", R"({"name":"a","managedFields":null})"}) {
    const std::string text =
        std::string(R"({"kind":"K","metadata":)") + metadata + R"(,"managedFields":1})";
    EXPECT_EQ(ObjectJson(Json(text)), R"({"kind":"K","metadata":{"name":"a"},"managedFields":1})");
  }
  EXPECT_EQ(ObjectJson(Json(R"({"metadata":["managedFields"]})")),
            R"({"metadata":["managedFields"]})");
  EXPECT_EQ(ObjectJson(Json("{}")), "{}");
}

TEST(Json, Refused) {
  EXPECT_THAT(JsonError("{\n \"a\": 1,\n \"a\": 2}"), HasSubstr("f:3:2: duplicate field \"a\""));
  EXPECT_THAT(JsonError("{\n \"a\": ?}"), HasSubstr("f:2:7: "));
  EXPECT_THAT(JsonError(""), HasSubstr("f:1:1: "));
  EXPECT_THAT(JsonError("{} {}"), HasSubstr("f:1:4: "));
  EXPECT_THAT(JsonError("{\"a\":\"\xff\"}"), HasSubstr("f:1:"));
  EXPECT_THAT(JsonError(std::string(100000, '[')), HasSubstr("nested too deeply"));
}

TEST(Yaml, PlainScalarsAsKubectlReadsThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"5", "5"},
      {"+5", "5"},
      {"-5", "-5"},
      {"010", "8"},
      {"0x1F", "31"},
      {"0o17", "15"},
      {"0b101", "5"},
      {"1.5", "1.5"},
      {".5", "0.5"},
      {"5.", "5.0"},
      {"1e3", "1e3"},
      {"-.5E-2", "-0.5e-2"},
      {"yes", "true"},
      {"Off", "false"},
      {"TRUE", "true"},
      {"~", "null"},
      {"", "null"},
      {"null", "null"},
      {"'5'", "\"5\""},
      {"\"yes\"", "\"yes\""},
      {"1Gi", "\"1Gi\""},
      {"100m", "\"100m\""},
      {"09", "9"},
      {"0", "0"},
      {"00.5", "0.5"},
      {"2026-01-02", "\"2026-01-02\""},
      {"1.2.3", "\"1.2.3\""},
      {".", "\".\""},
      {"n", "\"n\""},
      {"!!str 5", "\"5\""},
      {"|\n  a\n  b", "\"a\\nb\""},
      {".inf", "\".inf\""},
      {"0x", "\"0x\""},
      {"1e", "\"1e\""},
      {"0xFFFFFFFFFFFFFFFFF", "\"0xFFFFFFFFFFFFFFFFF\""},
  };
  for (const auto& [text, json] : cases) {
    EXPECT_EQ(ToJson(Yaml(std::string("a: ") + text)), std::string("{\"a\":") + json + "}") << text;
  }
  // Keys are always strings.
  EXPECT_EQ(ToJson(Yaml("yes: 1\n5: 2\n")), "{\"yes\":1,\"5\":2}");
}

TEST(Yaml, DocumentsAnchorsAndMerges) {
  const YamlDocuments parsed = ParseYaml("---\na: 1\n---\n# nothing\n---\nb: 2\n...\n");
  ASSERT_EQ(parsed.documents.size(), 2u);
  EXPECT_EQ(ToJson(parsed.documents[1]), "{\"b\":2}");
  EXPECT_EQ(parsed.documents[1].line, 6);
  EXPECT_EQ(parsed.documents[1].members[0].line, 6);
  EXPECT_EQ(parsed.documents[1].members[0].column, 1);
  EXPECT_EQ(ToJson(Yaml("x: &a {p: 1, q: [2]}\ny: *a\nz:\n  <<: *a\n  p: 3\n")),
            "{\"x\":{\"p\":1,\"q\":[2]},\"y\":{\"p\":1,\"q\":[2]},\"z\":{\"p\":3,\"q\":[2]}}");
  EXPECT_EQ(ToJson(Yaml("a: &a {p: 1}\nb: &b {p: 2, q: 2}\nc: {<<: [*a, *b]}\n")),
            "{\"a\":{\"p\":1},\"b\":{\"p\":2,\"q\":2},\"c\":{\"p\":1,\"q\":2}}");
}

TEST(Yaml, Refused) {
  EXPECT_EQ(YamlErrorOf("a: 1\nb: 2\na: 3\n"), "3:1: duplicate field \"a\"");
  EXPECT_THAT(YamlErrorOf("a: [1\n"), HasSubstr("2:"));
  EXPECT_THAT(YamlErrorOf("a: b: c\n"), HasSubstr("1:5: "));
  EXPECT_THAT(YamlErrorOf("? [a]\n: 1\n"), HasSubstr("a key must be a string"));
  EXPECT_THAT(YamlErrorOf("a: &x [*x]\n"), HasSubstr("alias"));
  EXPECT_THAT(YamlErrorOf("<<: 5\n"), HasSubstr("<< must refer to"));
  EXPECT_THAT(YamlErrorOf(std::string(100000, '[')), HasSubstr("1:"));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + ", " + last +
            ", " + last + "]\n";
  }
  EXPECT_THAT(YamlErrorOf(bomb), HasSubstr("too large"));
}

TEST(FieldPath, TextAndPlace) {
  const DocNode doc = Yaml("spec:\n  list:\n  - a/b: 1\n");
  FieldPath path;
  EXPECT_EQ(path.ToString(), "");
  FieldPath::Step spec(&path, "spec");
  FieldPath::Step list(&path, "list");
  FieldPath::Step index(&path, 0);
  {
    FieldPath::Step key(&path, "a/b");
    EXPECT_EQ(path.ToString(), "spec.list[0][a/b]");
    EXPECT_EQ(Place(path.Resolve(doc)), "3:10");
  }
  FieldPath::Step missing(&path, "missing");
  EXPECT_EQ(path.ToString(), "spec.list[0].missing");
  EXPECT_EQ(Place(path.Resolve(doc)), "3:5");
}

}  // namespace
}  // namespace outboard::manifests
