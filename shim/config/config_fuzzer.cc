// Parses any bytes as a configuration file: expects an error, or a configuration that can be
// written and read again.
#include <cstdint>
#include <cstdlib>

#include "shim/config/config.h"
#include "shim/config/profiles.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outboard::config;  // NOLINT: this file is one function
  absl::StatusOr<Config> config =
      ParseConfig(absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!config.ok()) return 0;
  PluginCatalog catalog;
  for (const ProfileSpec& profile : config->scheduler.profiles) {
    for (const PluginEntry& entry : profile.multi_point.enabled) {
      catalog.plugins[entry.name].points = {outboard::v1alpha1::PRE_FILTER,
                                            outboard::v1alpha1::SCORE};
    }
  }
  (void)ResolveProfiles(*config, catalog);
  if (!ParseConfig(EffectiveConfigYaml(*config, nullptr), "again").ok()) std::abort();
  return 0;
}
