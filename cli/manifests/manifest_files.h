// Files as they stand on a command line: a file, a directory, or - for standard input.
#ifndef OUTBOARD_CLI_MANIFESTS_MANIFEST_FILES_H_
#define OUTBOARD_CLI_MANIFESTS_MANIFEST_FILES_H_

#include <istream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/manifests/object_reader.h"

namespace outboard::manifests {

// The arguments of two flags.
struct ManifestArguments {
  std::vector<std::string> cluster;  // --cluster
  std::vector<std::string> pods;     // --pods, whose pods are to be scheduled
};

// Reads all of them. Of a directory, as kubectl does: its files *.yaml, *.yml and *.json, by name,
// without those of its subdirectories. `input` is standard input.
//
// An error is also an argument without any object, and --pods without any pod.
Manifests ReadManifestFiles(const ManifestArguments& arguments, bool strict, std::istream* input);

// The content of a file. Errors: INVALID_ARGUMENT, "FILE: the system's reason".
absl::StatusOr<std::string> ReadText(const std::string& file);

// All errors as one, INVALID_ARGUMENT: the only one, or a list below a headline.
absl::Status ToStatus(const std::vector<std::string>& errors);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_MANIFEST_FILES_H_
