#include "cli/manifests/custom_object.h"

#include <string>

#include "gtest/gtest.h"

namespace outboard::manifests {

using kube::ParseCustomResourceName;

namespace {

TEST(IsOf, GuessesThePluralAsKubectlDoes) {
  const auto is = [](const char* resource, const char* kind) {
    OtherObject object;
    object.api_version = "example.com/v1";
    object.kind = kind;
    return IsOf(*ParseCustomResourceName(resource), object);
  };
  EXPECT_TRUE(is("widgets.v1.example.com", "Widget"));
  EXPECT_TRUE(is("policies.v1.example.com", "Policy"));
  EXPECT_TRUE(is("classes.v1.example.com", "Class"));
  EXPECT_FALSE(is("widgets.v1.example.com", "Gadget"));
  EXPECT_FALSE(is("widgets.v2.example.com", "Widget"));
  EXPECT_FALSE(is("widgets.v1.example.org", "Widget"));
}

}  // namespace
}  // namespace outboard::manifests
