// The manifest of a plugin directory: which objects to load, and the digest of each.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_MANIFEST_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_MANIFEST_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outboard::reload {

// The file's name. It has the format of sha256sum(1): `sha256sum *.so > SHA256SUMS` creates it and
// `sha256sum -c SHA256SUMS` checks it, also in a Dockerfile. One file for the whole directory, so
// that one rename activates a whole set: the host never loads a part of it.
inline constexpr char kManifestName[] = "SHA256SUMS";

// File names of objects with their SHA-256 in lower-case hexadecimal.
using Manifest = std::map<std::string, std::string>;

// Lines `DIGEST  NAME` or `DIGEST *NAME`; ignores empty lines and lines that begin with #. Pure.
// Errors: INVALID_ARGUMENT with the line, for any other text, a name that is not a `.so` file of
//         the same directory, or a duplicate name.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text);
// The inverse of ParseManifest. Pure.
std::string ManifestText(const Manifest& manifest);

// Whether `name` is valid for an object's file: `[A-Za-z0-9][A-Za-z0-9._-]*.so`. Pure.
bool IsObjectName(absl::string_view name);

// A directory without a manifest has an empty one.
// Errors: as ParseManifest, with the path; UNAVAILABLE with the path and the system's message.
absl::StatusOr<Manifest> ReadManifest(const std::string& directory);

// Reads the whole file.
// Errors: UNAVAILABLE (NOT_FOUND if it does not exist) with the path and the system's message.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// Writes a temporary file and renames it, so that readers see the old or the new content, also
// after a crash.
// Errors: UNAVAILABLE with the path and the system's message.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

// SHA-256 in lower-case hexadecimal. Pure.
std::string Sha256(absl::string_view content);

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_MANIFEST_H_
