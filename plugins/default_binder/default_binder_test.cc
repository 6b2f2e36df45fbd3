#include "plugins/default_binder/default_binder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::default_binder {
namespace {

TEST(DefaultBinderTest, IsKnownUnderTheNameThatProfilesUse) {
  sdk::PluginRegistry registry;
  ASSERT_TRUE(registry.Add(Descriptor()).ok());
  const sdk::PluginDescriptor* descriptor = registry.Find("DefaultBinder");
  ASSERT_NE(descriptor, nullptr);
  EXPECT_THAT(descriptor->extension_points, testing::ElementsAre(v1beta1::EXTENSION_POINT_BIND));
}

TEST(DefaultBinderTest, TakesNoArguments) {
  sdk::ArgsReader args("{\"bindTimeoutSeconds\": 3}");
  sdk::PluginContext context{"default-scheduler", &args, nullptr,
                             sdk::ClusterView(nullptr, nullptr, nullptr, nullptr)};
  ASSERT_TRUE(Descriptor().create(context).ok());
  const std::vector<sdk::ArgsProblem> problems = args.Finish();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].field, "bindTimeoutSeconds");
}

}  // namespace
}  // namespace outboard::default_binder
