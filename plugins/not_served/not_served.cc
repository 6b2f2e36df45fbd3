#include "plugins/not_served/not_served.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace outboard::not_served {
namespace {

std::string Message(const std::string& feature, const std::string& plugin) {
  return absl::StrCat("pod uses ", feature, ", which plugin ", plugin,
                      " decides; this host does not serve it yet");
}

// What the pod itself needs that nobody judges; absent: nothing.
std::optional<std::string> UnservedFeature(const v1alpha1::Pod& pod) {
  for (const v1alpha1::Volume& volume : pod.volumes()) {
    if (volume.source() != "unknown") continue;
    return Message(absl::StrCat("volume \"", volume.name(), "\" of an unknown kind"),
                   "NodeVolumeLimits");
  }
  if (!pod.pod_group_name().empty()) {
    return Message(absl::StrCat("scheduling group \"", pod.pod_group_name(), "\""),
                   "GangScheduling");
  }
  return std::nullopt;
}

class NotServed : public sdk::Plugin, public sdk::PreFilterPlugin {
 public:
  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override {
    if (std::optional<std::string> message = UnservedFeature(attempt.pod().proto())) {
      return sdk::Verdict::Unresolvable(*std::move(message));
    }
    return sdk::Verdict::Skip();
  }
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "NotServed";
  d.extension_points = {v1alpha1::PRE_FILTER};
  d.signature = {
      {"spec.containers", "spec.resourceClaims", "spec.schedulingGroup", "spec.volumes"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NotServed>();
  };
  return d;
}

}  // namespace outboard::not_served
