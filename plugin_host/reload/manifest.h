// The manifest of a plugin directory: which objects are to be loaded, and the digest of each.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_MANIFEST_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_MANIFEST_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outboard::reload {

// The file's name. It has the format of sha256sum(1), so that `sha256sum *.so > SHA256SUMS` makes
// it and `sha256sum -c SHA256SUMS` checks it, in a Dockerfile too. One file for the whole
// directory, so that one rename puts a whole set in force: objects that belong together are never
// seen apart.
inline constexpr char kManifestName[] = "SHA256SUMS";

// File names of objects with their SHA-256 in lower-case hexadecimal.
using Manifest = std::map<std::string, std::string>;

// Lines `DIGEST  NAME` or `DIGEST *NAME`; empty ones and those that begin with # say nothing.
// Errors: INVALID_ARGUMENT with the line, for any other text, a name that is none of a `.so` file
// of the same directory, or comes twice. Pure.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text);
// What ParseManifest reads. Pure.
std::string ManifestText(const Manifest& manifest);

// Whether it can be an object's file name: `[A-Za-z0-9][A-Za-z0-9._-]*.so`. Pure.
bool IsObjectName(absl::string_view name);

// A directory without a manifest has an empty one. Errors: as ParseManifest, with the path;
// UNAVAILABLE with the path and the system's words.
absl::StatusOr<Manifest> ReadManifest(const std::string& directory);

// The whole file. Errors: UNAVAILABLE (NOT_FOUND if there is none) with the path and the system's
// words.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// Writes a file beside it and renames, so that a reader, or a crash, sees the one or the other.
// Errors: UNAVAILABLE with the path and the system's words.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

// SHA-256 in lower-case hexadecimal. Pure.
std::string Sha256(absl::string_view content);

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_MANIFEST_H_
