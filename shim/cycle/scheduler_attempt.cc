#include "shim/cycle/scheduler_attempt.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace outboard::cycle {
namespace {

// Whether one of the fields that a plugin is interested in is set; see plugin_host.proto, Interest.
bool Concerns(const InterestedPlugin& plugin, const v1alpha1::Pod& pod) {
  if (plugin.fields.empty()) return true;
  for (const std::string& field : plugin.fields) {
    absl::string_view path = field;
    if (path == "spec.schedulingGates") {
      if (!pod.scheduling_gates().empty()) return true;
      continue;
    }
    if (absl::ConsumePrefix(&path, "spec.volumes[*].")) {
      const auto& volumes = pod.volumes();
      if (std::any_of(volumes.begin(), volumes.end(),
                      [&](const v1alpha1::Volume& volume) { return volume.source() == path; })) {
        return true;
      }
      continue;
    }
    const bool label = absl::ConsumePrefix(&path, "metadata.labels['");
    if (!label && !absl::ConsumePrefix(&path, "metadata.annotations['")) return true;
    if (!absl::ConsumeSuffix(&path, "']")) return true;
    const auto& map = label ? pod.labels() : pod.annotations();
    if (map.contains(std::string(path))) return true;
  }
  return false;
}

}  // namespace

bool AnyConcerns(const std::vector<InterestedPlugin>& plugins, const v1alpha1::Pod& pod) {
  return std::any_of(plugins.begin(), plugins.end(),
                     [&](const InterestedPlugin& plugin) { return Concerns(plugin, pod); });
}

}  // namespace outboard::cycle
