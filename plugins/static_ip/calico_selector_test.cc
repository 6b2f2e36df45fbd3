#include "plugins/static_ip/calico_selector.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace outboard::static_ip::calico_selector_test {
namespace {

std::optional<bool> Matches(const std::string& text) {
  static const auto& labels = *new std::map<std::string, std::string>{
      {"zone", "zone-1"}, {"topology.kubernetes.io/rack", "r1"}, {"empty", ""}};
  const std::optional<CalicoSelector> selector = CalicoSelector::Parse(text);
  if (!selector) return std::nullopt;
  return selector->Matches([&](absl::string_view key) -> std::optional<absl::string_view> {
    const auto it = labels.find(std::string(key));
    if (it == labels.end()) return std::nullopt;
    return it->second;
  });
}

TEST(CalicoSelectorTest, Matches) {
  for (const char* text : {"",
                           " ",
                           "all()",
                           "global()",
                           "zone == 'zone-1'",
                           "zone==\"zone-1\"",
                           "zone != 'zone-2'",
                           "absent != 'x'",
                           "zone in {'zone-2', 'zone-1'}",
                           "zone not in {'zone-2'}",
                           "absent not in {'x'}",
                           "zone contains 'ne-'",
                           "zone starts with 'zone'",
                           "zone ends with '-1'",
                           "has(topology.kubernetes.io/rack)",
                           "!has(absent)",
                           "! !has(zone)",
                           "has(empty)",
                           "empty == ''",
                           "absent == 'x' || zone == 'zone-1' && has(empty)",
                           "!(has(zone) && has(absent))",
                           "( ( has(zone) ) )"}) {
    EXPECT_EQ(Matches(text), true) << text;
  }
}

TEST(CalicoSelectorTest, DoesNotMatch) {
  for (const char* text :
       {"zone == 'zone-2'", "zone != 'zone-1'", "absent == ''", "zone in {}", "absent in {'x'}",
        "zone not in {'zone-1'}", "absent contains ''", "zone starts with '-1'",
        "zone ends with 'zone'", "has(absent)", "!all()",
        "(absent == 'x' || zone == 'zone-1') && has(absent)", "!has(zone) || has(absent)"}) {
    EXPECT_EQ(Matches(text), false) << text;
  }
}

TEST(CalicoSelectorTest, RefusesAnythingElse) {
  for (const char* text : {"zone",
                           "zone = 'a'",
                           "zone == a",
                           "zone == 'a",
                           "zone == 'a' &&",
                           "zone == 'a' has(b)",
                           "zone in 'a'",
                           "zone in {'a'",
                           "zone in {'a',}",
                           "zone not",
                           "zone starts 'a'",
                           "has()",
                           "has(zone",
                           "none()",
                           "(all()",
                           "all())",
                           "!",
                           "'zone' == 'a'",
                           "zone == 'a' | all()",
                           "&&"}) {
    EXPECT_EQ(Matches(text), std::nullopt) << text;
  }
  EXPECT_EQ(Matches(std::string(10000, '!') + "all()"), std::nullopt);
  EXPECT_EQ(Matches(std::string(10000, '(') + "all()" + std::string(10000, ')')), std::nullopt);
}

}  // namespace
}  // namespace outboard::static_ip::calico_selector_test
