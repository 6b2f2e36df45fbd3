#include "shim/cycle/profile_plan.h"

#include <algorithm>
#include <cstdint>

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
    if (path == "spec.schedulingGroup") {
      if (!pod.pod_group_name().empty()) return true;
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

bool ProfilePlan::CanDoWithout(size_t host) const {
  const std::string& name = host_names[host];
  if (host < algorithm.shares.size()) {
    if (!algorithm.shares[host].is_optional()) return false;
  } else if (algorithm.shares.empty() && host == 0) {
    return false;
  }
  if (std::find(post_filter_hosts.begin(), post_filter_hosts.end(), name) !=
          post_filter_hosts.end() ||
      name == sort_host) {
    return false;
  }
  for (const auto* shares : {&pre_enqueue, &reserve, &permit}) {
    for (const PointShare& share : *shares) {
      if (share.host_name == name && !share.is_open) return false;
    }
  }
  return true;
}

size_t PointShare::PositionOf(const std::string& plugin) const {
  for (const InterestedPlugin& own : plugins) {
    if (own.name == plugin) return own.position;
  }
  return SIZE_MAX;
}

bool AnyConcerns(const std::vector<InterestedPlugin>& plugins, const v1alpha1::Pod& pod) {
  return std::any_of(plugins.begin(), plugins.end(),
                     [&](const InterestedPlugin& plugin) { return Concerns(plugin, pod); });
}

bool AnyConcerns(const std::vector<PointShare>& shares, const v1alpha1::Pod& pod) {
  return std::any_of(shares.begin(), shares.end(),
                     [&](const PointShare& share) { return AnyConcerns(share.plugins, pod); });
}

}  // namespace outboard::cycle
