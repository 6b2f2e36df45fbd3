// The readers of the two kinds of documents. Internal to shim/config.
#ifndef OUTBOARD_SHIM_CONFIG_DOCUMENTS_H_
#define OUTBOARD_SHIM_CONFIG_DOCUMENTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "shim/config/config.h"
#include "shim/config/yaml_reader.h"

namespace outboard::config {

// Each reads a whole document, fills in defaults and validates. Problems are added to the reader's.
void ReadSchedulerConfig(MapReader& reader, SchedulerConfig* out,
                         std::vector<std::string>* warnings);
void ReadShimConfig(MapReader& reader, ShimConfig* out, std::vector<std::string>* warnings);

// `hosts` of a ShimConfiguration, whose socket directory was read before.
void ReadHosts(MapReader& reader, ShimConfig* out);

// Maximum length of a Unix socket path on Linux.
inline constexpr size_t kMaxSocketPath = 107;

// Kubernetes' syntax of a label's value, and of the name part of its key.
bool IsLabelText(absl::string_view text);

// The defaults for a file without KubeSchedulerConfiguration.
SchedulerConfig DefaultSchedulerConfig();

// The point with this name in the configuration.
std::optional<v1beta1::ExtensionPoint> PointByName(absl::string_view name);

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_DOCUMENTS_H_
