#include "cli/manifests/testing/fuzz_manifest.h"

#include "absl/strings/match.h"
#include "cli/manifests/object_reader.h"
#include "shim/kube/wire/testing/fuzz_targets.h"
#include "shim/kube/wire/testing/promises.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::manifests {

using kube::NamespacePtr;
using kube::NodePtr;
using kube::PodPtr;
using kube::Require;
using kube::RequireGood;
using kube::SeedBytes;
using kube::Utf8Prefix;

void FuzzManifest(absl::string_view input) {
  if (input.size() > 1 << 20) return;
  const absl::StatusOr<Manifests> manifests = ReadManifests("f", SeedBytes(input));
  if (!manifests.ok()) {
    Require(absl::StartsWith(manifests.status().message(), "f:"), "an error names its file");
    const absl::string_view message = manifests.status().message();
    Require(Utf8Prefix(message) == message.size(), "an error is UTF-8");
    return;
  }
  for (const PodPtr& pod : manifests->pods) RequireGood(*pod);
  for (const NodePtr& node : manifests->nodes) RequireGood(*node);
  for (const NamespacePtr& ns : manifests->namespaces) RequireGood(*ns);
}

}  // namespace outboard::manifests
