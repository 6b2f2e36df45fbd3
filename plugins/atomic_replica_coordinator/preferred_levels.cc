#include "plugins/atomic_replica_coordinator/preferred_levels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::atomic_replica_coordinator {
namespace {

constexpr size_t kMaxLevels = 16;

}  // namespace

const char kPreferredLevelsSchema[] = R"json("preferredLevels": {"type": "array", "maxItems": 16,
      "items": {"type": "string"}, "default": [],
      "description": "Labels of nodes, the nearest level first; with commas: the same values of all. A group with GPUs that names no topology is placed within one value of the first level where all members fit."},
    "gpuResourceNames": {"type": "array", "minItems": 1, "items": {"type": "string"},
      "default": ["nvidia.com/gpu"], "description": "Extended resources that are GPUs."})json";

PreferredLevels::PreferredLevels(const sdk::ArgsObject& args)
    : levels_(args.Strings("preferredLevels")),
      gpus_(args.Strings("gpuResourceNames", {"nvidia.com/gpu"})) {
  if (levels_.size() > kMaxLevels) {
    args.Problem("preferredLevels", absl::StrCat("Too many: ", levels_.size(),
                                                 ": must have at most ", kMaxLevels, " items"));
  }
  if (gpus_.empty()) args.Problem("gpuResourceNames", "Required value");
  for (size_t i = 0; i < levels_.size(); ++i) {
    const std::string field = absl::StrCat("preferredLevels[", i, "]");
    for (const std::string& label : std::vector<std::string>(absl::StrSplit(levels_[i], ','))) {
      for (const std::string& error : sdk::QualifiedNameErrors(label))
        args.Problem(field, sdk::InvalidValue(label, error));
    }
    if (std::count(levels_.begin(), levels_.begin() + static_cast<std::ptrdiff_t>(i), levels_[i]) >
        0) {
      args.Problem(field, sdk::DuplicateValue(levels_[i]));
    }
  }
}

void PreferredLevels::AddTo(sdk::GroupToPlace* group) const {
  if (levels_.empty()) return;
  if (!group->topology.required.empty() || !group->topology.preferred.empty()) return;
  const auto has_gpus = [&](const sdk::PodRecord* pod) {
    return std::any_of(gpus_.begin(), gpus_.end(), [&](const std::string& name) {
      return sdk::ExtendedRequestOf(pod->pod, name) > 0;
    });
  };
  if (std::none_of(group->pending.begin(), group->pending.end(), has_gpus)) return;
  group->topology.preferred = levels_;
  group->topology.best_score_first = true;
}

}  // namespace outboard::atomic_replica_coordinator
