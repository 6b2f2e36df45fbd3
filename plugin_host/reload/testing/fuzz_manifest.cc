#include "plugin_host/reload/testing/fuzz_manifest.h"

#include <string>

#include "integration/fuzz/seeds.h"
#include "plugin_host/reload/manifest.h"

namespace outboard::reload {

void FuzzManifest(absl::string_view bytes) {
  const absl::StatusOr<Manifest> manifest = ParseManifest(bytes);
  if (!manifest.ok()) return;
  for (const auto& [name, digest] : *manifest) {
    fuzz::Require(IsObjectName(name), "a name is one of an object");
    fuzz::Require(name.find('/') == std::string::npos, "a name stays in the directory");
    fuzz::Require(digest.size() == 64, "a digest has 64 digits");
    fuzz::Require(digest.find_first_not_of("0123456789abcdef") == std::string::npos,
                  "a digest has lower-case digits");
  }
  const absl::StatusOr<Manifest> again = ParseManifest(ManifestText(*manifest));
  fuzz::Require(again.ok() && *again == *manifest, "a manifest can be written and read again");
}

}  // namespace outboard::reload
