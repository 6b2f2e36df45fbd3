#include "shim/framework/profile_plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace outboard::framework {
namespace {

bool AsksForDevices(const v1beta1::Container& container,
                    const cache::DeviceClassResources& devices) {
  const auto& resources = container.requests().scalar();
  return std::any_of(resources.begin(), resources.end(),
                     [&](const auto& resource) { return devices.contains(resource.first); });
}

bool IsSet(const PodField& field, const v1beta1::Pod& pod,
           const cache::DeviceClassResources& devices) {
  switch (field.kind) {
    case PodField::Kind::kUnknown:
      return true;
    case PodField::Kind::kSchedulingGates:
      return !pod.scheduling_gates().empty();
    case PodField::Kind::kSchedulingGroup:
      return !pod.pod_group_name().empty();
    case PodField::Kind::kResourceClaims:
      return !pod.claims().empty();
    case PodField::Kind::kDeviceClassResource: {
      if (devices.empty()) return false;
      const auto asks = [&](const auto& container) { return AsksForDevices(container, devices); };
      return std::any_of(pod.containers().begin(), pod.containers().end(), asks) ||
             std::any_of(pod.init_containers().begin(), pod.init_containers().end(), asks);
    }
    case PodField::Kind::kVolume:
      return std::any_of(
          pod.volumes().begin(), pod.volumes().end(),
          [&](const v1beta1::Volume& volume) { return volume.source() == field.key; });
    case PodField::Kind::kLabel:
      return pod.labels().contains(field.key);
    case PodField::Kind::kAnnotation:
      return pod.annotations().contains(field.key);
  }
  return true;
}

bool Concerns(const InterestedPlugin& plugin, const v1beta1::Pod& pod,
              const cache::DeviceClassResources& devices) {
  return plugin.fields.empty() ||
         std::any_of(plugin.fields.begin(), plugin.fields.end(),
                     [&](const PodField& field) { return IsSet(field, pod, devices); });
}

}  // namespace

PodField::PodField(const std::string& path) {
  absl::string_view rest = path;
  if (path == "spec.schedulingGates") {
    kind = Kind::kSchedulingGates;
  } else if (path == "spec.schedulingGroup") {
    kind = Kind::kSchedulingGroup;
  } else if (path == "spec.resourceClaims") {
    kind = Kind::kResourceClaims;
  } else if (path == "spec.containers[*].resources.requests[deviceClass]") {
    kind = Kind::kDeviceClassResource;
  } else if (absl::ConsumePrefix(&rest, "spec.volumes[*].")) {
    kind = Kind::kVolume;
  } else if (absl::ConsumePrefix(&rest, "metadata.labels['") && absl::ConsumeSuffix(&rest, "']")) {
    kind = Kind::kLabel;
  } else if (absl::ConsumePrefix(&rest, "metadata.annotations['") &&
             absl::ConsumeSuffix(&rest, "']")) {
    kind = Kind::kAnnotation;
  }
  key = std::string(rest);
}

const ProfilePlan* ProfilePlan::For(const v1beta1::Pod& pod,
                                    const cache::DeviceClassResources& devices) const {
  for (const SkippedHost& host : skipped) {
    if (!Concerns(host.interest, pod, devices)) return host.without->For(pod, devices);
  }
  return this;
}

void ProfilePlanMap::Set(ProfilePlan plan) {
  const std::string name = plan.algorithm.name;
  KeepInPlace(name, &plan);
  plans_[name] = std::move(plan);
}

void ProfilePlanMap::KeepInPlace(const std::string& path, ProfilePlan* plan) {
  for (SkippedHost& skipped : plan->skipped) {
    const std::string path_without = absl::StrCat(path, "/", skipped.host_name);
    KeepInPlace(path_without, skipped.without.get());
    std::shared_ptr<ProfilePlan>& kept = without_[path_without];
    if (kept == nullptr) {
      kept = skipped.without;
    } else {
      *kept = std::move(*skipped.without);
      skipped.without = kept;
    }
  }
}

const ProfilePlan* ProfilePlanMap::Find(const std::string& profile) const {
  const auto it = plans_.find(profile);
  return it == plans_.end() ? nullptr : &it->second;
}

const ProfilePlan* ProfilePlanMap::For(const std::string& profile, const v1beta1::Pod& pod,
                                       const cache::DeviceClassResources& devices) const {
  const ProfilePlan* const plan = Find(profile);
  return plan == nullptr ? nullptr : plan->For(pod, devices);
}

bool ProfilePlan::Serves(const std::string& host, const std::string& plugin) const {
  const auto it = host_of.find(plugin);
  return it != host_of.end() && it->second == host;
}

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
  for (const auto* shares : {&pre_enqueue, &reserve, &permit, &pre_bind, &bind, &placement_generate,
                             &placement_score, &pod_group_post_filter}) {
    for (const HostExtensionPoint& share : *shares) {
      if (share.host_name == name && !share.fail_open) return false;
    }
  }
  return true;
}

size_t HostExtensionPoint::PositionOf(const std::string& plugin) const {
  for (const InterestedPlugin& own : plugins) {
    if (own.name == plugin) return own.position;
  }
  return SIZE_MAX;
}

bool AnyInterestedIn(const std::vector<InterestedPlugin>& plugins, const v1beta1::Pod& pod,
                     const cache::DeviceClassResources& devices) {
  return std::any_of(plugins.begin(), plugins.end(), [&](const InterestedPlugin& plugin) {
    return Concerns(plugin, pod, devices);
  });
}

bool AnyInterestedIn(const std::vector<HostExtensionPoint>& shares, const v1beta1::Pod& pod,
                     const cache::DeviceClassResources& devices) {
  return std::any_of(shares.begin(), shares.end(), [&](const HostExtensionPoint& share) {
    return AnyInterestedIn(share.plugins, pod, devices);
  });
}

}  // namespace outboard::framework
