// The kinds of Kubernetes: which apiVersions serve them, and what is done with their objects here.
// A test compares the table with the API's types.
//
// Threading: pure functions.
// Lifetime: the table lives as long as the process.
#ifndef OUTBOARD_CLI_MANIFESTS_KINDS_H_
#define OUTBOARD_CLI_MANIFESTS_KINDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace outboard::manifests {

struct KnownKind {
  enum Use {
    kRead,
    // Kept as JSON, for plugins that declare it.
    kForPlugins,
    // Read for its selector; a controller creates pods from it; no controller runs here.
    kReadWorkload,
    // A controller creates pods from it, and nothing else of it concerns scheduling.
    kWorkload,
    kSkipped,
  };

  absl::string_view kind;
  // Separated by spaces, the preferred one first.
  absl::string_view api_versions;
  Use use;

  bool Serves(absl::string_view api_version) const;
  bool HasGroup(absl::string_view group) const;
};

// Null if Kubernetes has no such kind.
const KnownKind* FindKind(absl::string_view kind);
// All kinds; those that are read if `read`.
std::vector<std::string> KindNames(bool read = false);

// "" for the core group.
absl::string_view GroupOf(absl::string_view api_version);

// Why a file with this kind is not a manifest, or "".
absl::string_view NotAManifest(absl::string_view kind);

// "; did you mean NAME?", or "" if no candidate is similar.
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_KINDS_H_
