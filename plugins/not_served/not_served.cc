#include "plugins/not_served/not_served.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::not_served {
namespace {

std::string Message(const std::string& feature, const std::string& plugin) {
  return absl::StrCat("pod uses ", feature, ", which plugin ", plugin,
                      " decides; this host does not serve it yet");
}

constexpr char kSchedulingGroup[] = "spec.schedulingGroup";

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "served": {"type": "array", "items": {"type": "string", "enum": ["spec.schedulingGroup"]},
      "default": [], "description": "Fields that another plugin of the profile supports."}}})json";

// A message about an unsupported feature of the pod; nullopt: none.
std::optional<std::string> UnservedFeature(const v1beta1::Pod& pod, bool groups_served) {
  for (const v1beta1::Volume& volume : pod.volumes()) {
    if (volume.source() != "unknown") continue;
    return Message(absl::StrCat("volume \"", volume.name(), "\" of an unknown kind"),
                   "NodeVolumeLimits");
  }
  if (!groups_served && !pod.pod_group_name().empty()) {
    return Message(absl::StrCat("scheduling group \"", pod.pod_group_name(), "\""),
                   "GangScheduling");
  }
  return std::nullopt;
}

class NotServed : public sdk::Plugin, public sdk::PreFilterPlugin {
 public:
  explicit NotServed(bool groups_served) : groups_served_(groups_served) {}
  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override {
    if (std::optional<std::string> message =
            UnservedFeature(attempt.pod().proto(), groups_served_)) {
      return sdk::Verdict::Unresolvable(*std::move(message));
    }
    return sdk::Verdict::Skip();
  }

 private:
  const bool groups_served_;
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "NotServed";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER};
  d.args_schema = kArgsSchema;
  d.signature = {{"spec.containers", "spec.resourceClaims", kSchedulingGroup, "spec.volumes"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    const sdk::ArgsObject args = context.args->root();
    const std::vector<std::string> served = args.Strings("served");
    for (size_t i = 0; i < served.size(); ++i) {
      if (served[i] != kSchedulingGroup) {
        args.Problem(absl::StrCat("served[", i, "]"),
                     sdk::InvalidValue(served[i], "supported values: \"spec.schedulingGroup\""));
      }
    }
    return std::make_unique<NotServed>(!served.empty());
  };
  return d;
}

}  // namespace outboard::not_served
