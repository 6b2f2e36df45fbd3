#include "cli/manifests/testing/fuzz_manifest.h"

#include "absl/strings/match.h"
#include "cli/manifests/object_reader.h"
#include "shim/kube/wire/testing/promises.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::manifests {

using fuzz::Require;
using kube::NamespacePtr;
using kube::NodePtr;
using kube::PodPtr;
using kube::RequireGood;
using kube::Utf8Prefix;

void FuzzManifest(absl::string_view input) {
  if (input.size() > 1 << 20) return;
  const Manifests manifests = ReadManifests("f", std::string(input));
  for (const auto* messages : {&manifests.errors, &manifests.warnings}) {
    for (const std::string& message : *messages) {
      Require(absl::StartsWith(message, "f:") || absl::StartsWith(message, "…"),
              "a message names its file");
      Require(Utf8Prefix(message) == message.size(), "a message is UTF-8");
    }
  }
  for (const PodPtr& pod : manifests.pods) RequireGood(*pod);
  for (const NodePtr& node : manifests.nodes) RequireGood(*node);
  for (const NamespacePtr& ns : manifests.namespaces) RequireGood(*ns);
}

}  // namespace outboard::manifests
