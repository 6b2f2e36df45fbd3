#include "shim/hosts/unserved_plugins.h"

#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/config/default_plugins.h"

namespace outboard::hosts {
namespace {

constexpr size_t kMaxNames = 5;

}  // namespace

std::string UnservedPlugins(const config::Config& config, const HostInfos& infos) {
  std::set<std::string> served;
  for (const auto& [host, info] : infos) {
    for (const v1beta1::PluginInfo& plugin : info.plugins()) served.insert(plugin.name());
  }
  std::vector<std::string> profiles;
  for (const config::ProfileSpec& profile : config.scheduler.profiles) {
    std::vector<std::string> missing, defaults;
    const auto look_at = [&](const config::PluginSet& set) {
      for (const config::PluginEntry& entry : set.enabled) {
        // The administrator's own plugins first: kube-scheduler's come from the built-in host.
        std::vector<std::string>& list = entry.where.line == 0 ? defaults : missing;
        if (!served.contains(entry.name) && !config::MayBeUnserved(entry.name) &&
            !absl::c_linear_search(list, entry.name))
          list.push_back(entry.name);
      }
    };
    look_at(profile.multi_point);
    for (const auto& [point, set] : profile.points) look_at(set);
    missing.insert(missing.end(), defaults.begin(), defaults.end());
    if (missing.empty()) continue;
    const size_t more = missing.size() > kMaxNames ? missing.size() - kMaxNames : 0;
    missing.resize(missing.size() - more);
    profiles.push_back(absl::StrCat("profile \"", profile.scheduler_name,
                                    "\": ", absl::StrJoin(missing, ", "),
                                    more == 0 ? "" : absl::StrCat(" and ", more, " more")));
  }
  return absl::StrJoin(profiles, "; ");
}

}  // namespace outboard::hosts
