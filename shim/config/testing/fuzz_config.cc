#include "shim/config/testing/fuzz_config.h"

#include "integration/fuzz/seeds.h"
#include "shim/config/config.h"
#include "shim/config/profiles.h"

namespace outboard::config {

void FuzzConfig(absl::string_view text) {
  const absl::StatusOr<Config> config = ParseConfig(text, "fuzz");
  if (!config.ok()) {
    fuzz::Require(!config.status().message().empty(), "an error has a text");
    return;
  }
  PluginCatalog catalog;
  for (const ProfileSpec& profile : config->scheduler.profiles) {
    for (const PluginEntry& entry : profile.multi_point.enabled)
      catalog.plugins[entry.name].points = {v1beta1::EXTENSION_POINT_PRE_FILTER,
                                            v1beta1::EXTENSION_POINT_SCORE};
  }
  (void)ResolveProfiles(*config, catalog);
  fuzz::Require(ParseConfig(EffectiveConfigYaml(*config, nullptr), "again").ok(),
                "a configuration can be written and read again");
}

}  // namespace outboard::config
