#include "plugin_host/sdk/custom_objects.h"

#include <gtest/gtest.h>

namespace outboard::sdk {
namespace {

using nlohmann::json;

v1beta1::GenericObject Object(const std::string& text) {
  v1beta1::GenericObject object;
  object.set_resource("widgets.v1.example.com");
  object.set_namespace_("a");
  object.set_name("w");
  object.set_uid("u");
  object.set_resource_version("7");
  object.set_json(text);
  return object;
}

TEST(CustomObjects, ReadsWhateverStandsThere) {
  const json whole = ParseCustomObject(
      Object(R"({"spec":{"text":"x","number":3,"map":{"a":"1","b":2},"list":[{"text":"y"}]}})"));
  EXPECT_EQ(TextAt(whole, {"spec", "text"}), "x");
  EXPECT_EQ(TextAt(whole, {"spec", "number"}), std::nullopt);
  EXPECT_EQ(TextAt(whole, {"spec", "text", "deeper"}), std::nullopt);
  EXPECT_EQ(TextAt(whole, {"spec", "list", "text"}), std::nullopt);
  EXPECT_EQ(StringsAt(whole, {"spec", "map"}), (std::map<std::string, std::string>{{"a", "1"}}));
  EXPECT_TRUE(StringsAt(whole, {"spec", "text"}).empty());
  for (const char* text : {"", "[]", "3", "{", "null", "\"x\"", "{\"a\":"})
    EXPECT_EQ(ParseCustomObject(Object(text)), json::object()) << text;
}

TEST(CustomObjects, WritesWithPreconditions) {
  const v1beta1::GenericObject object = Object("{}");
  const json whole = {{"kind", "Widget"}};
  const v1beta1::Effect create = CreateObject(object.resource(), "a", "w", whole);
  EXPECT_EQ(create.put_object().uid(), "");
  EXPECT_EQ(create.put_object().json(), R"({"kind":"Widget"})");
  const v1beta1::Effect replace = ReplaceObject(object, whole);
  EXPECT_EQ(replace.put_object().uid(), "u");
  EXPECT_EQ(replace.put_object().resource_version(), "7");
  EXPECT_FALSE(replace.put_object().status());
  EXPECT_TRUE(ReplaceStatus(object, whole).put_object().status());
  EXPECT_EQ(DeleteObject(object).delete_object().resource_version(), "7");
  EXPECT_EQ(create.key(), replace.key()) << "one write of an object at a time";
  EXPECT_LE(create.key().size(), 63u);
  EXPECT_NE(create.key(), CreateObject(object.resource(), "a", "v", whole).key());
  EXPECT_EQ(JsonText(json("\xff")), "\"\xef\xbf\xbd\"");
}

TEST(CustomObjects, ATransitionIsAChangeOfTheTruth) {
  const absl::Time first = absl::FromUnixSeconds(0);
  json status = "nonsense";
  SetCondition({"Ready", false, "Waits", "for rain"}, first, &status);
  SetCondition({"Ready", false, "Waits", "for sun"}, first + absl::Hours(1), &status);
  ASSERT_EQ(status["conditions"].size(), 1u);
  EXPECT_EQ(TextAt(*FindCondition(status, "Ready"), {"message"}), "for sun");
  EXPECT_EQ(TransitionTime(*FindCondition(status, "Ready")), first);
  SetCondition({"Ready", true, "Is", ""}, first + absl::Hours(2), &status);
  EXPECT_EQ(TransitionTime(*FindCondition(status, "Ready")), first + absl::Hours(2));
  EXPECT_TRUE(IsConditionTrue(status, "Ready"));
  RemoveCondition("Ready", &status);
  EXPECT_EQ(FindCondition(status, "Ready"), nullptr);
  for (const char* text : {"{}", R"({"conditions":3})", R"({"conditions":[1,{"type":2}]})"})
    EXPECT_EQ(FindCondition(json::parse(text), "Ready"), nullptr) << text;
}

TEST(WritePace, AsksLessAndLessOften) {
  WritePace pace;
  const absl::Time start = absl::FromUnixSeconds(1000);
  int asked = 0;
  for (int second = 0; second < 600; ++second)
    asked += pace.IsDue("o", start + absl::Seconds(second)) ? 1 : 0;
  EXPECT_EQ(asked, 15);
  EXPECT_TRUE(pace.IsDue("other", start));
  EXPECT_FALSE(pace.IsDue("other", start));
  EXPECT_TRUE(pace.IsDue("other", start + absl::Seconds(1)));
  EXPECT_FALSE(pace.IsDue("other", start + absl::Seconds(2)));
  pace.Changed("other");
  EXPECT_TRUE(pace.IsDue("other", start + absl::Seconds(3)));
  EXPECT_TRUE(pace.IsDue("other", start + absl::Seconds(4)));
}

}  // namespace
}  // namespace outboard::sdk
