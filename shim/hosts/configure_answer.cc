// What answers to Configure say (declared in plans.h).
#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/framework/answer_check.h"
#include "shim/hosts/plans.h"

namespace outboard::hosts {
namespace {

constexpr size_t kMaxNameShown = 253;

// Where the profile enables the plugin: at a point, else in multiPoint; line 0: nowhere, it is a
// default.
config::Location EntryOf(const config::Config& config, const std::string& profile,
                         const std::string& plugin) {
  for (const config::ProfileSpec& spec : config.scheduler.profiles) {
    if (spec.scheduler_name != profile) continue;
    std::vector<const config::PluginSet*> sets;
    for (const auto& [point, set] : spec.points) sets.push_back(&set);
    sets.push_back(&spec.multi_point);
    for (const config::PluginSet* set : sets) {
      for (const config::PluginEntry& entry : set->enabled) {
        if (entry.name == plugin && entry.where.line != 0) return entry.where;
      }
    }
  }
  return {};
}

// The problem's place in the file: the plugin's args, if it is about a field of them, or its entry.
config::Location PlaceOf(const config::Config& config, const config::Profiles& profiles,
                         const v1beta1::ConfigProblem& problem) {
  config::Location place;
  if (problem.field().empty()) place = EntryOf(config, problem.profile(), problem.plugin());
  for (const config::Profile& profile : profiles.profiles) {
    if (profile.name != problem.profile() || place.line != 0) continue;
    for (const config::PluginArgs& args : profile.args) {
      if (args.name == problem.plugin()) place = args.where;
    }
  }
  return place;
}

// The problems that are warnings, or all others: file, line, field, message, profile and plugin.
std::vector<std::string> ProblemTexts(const config::Config& config,
                                      const config::Profiles& profiles,
                                      const v1beta1::ConfigureResponse& response, bool warnings) {
  std::vector<std::string> lines;
  for (const v1beta1::ConfigProblem& problem : response.problems()) {
    if ((problem.severity() == v1beta1::ConfigProblem::SEVERITY_WARNING) != warnings) continue;
    std::string where = config.file;
    if (const config::Location place = PlaceOf(config, profiles, problem); place.line != 0)
      absl::StrAppend(&where, ":", place.line, ":", place.column, ": ", place.path);
    if (!problem.field().empty()) absl::StrAppend(&where, ".", framework::CutText(problem.field()));
    lines.push_back(absl::StrCat(where, ": ", framework::CutText(problem.message()), " (profile \"",
                                 framework::CutText(problem.profile(), kMaxNameShown),
                                 "\", plugin ", framework::CutText(problem.plugin(), kMaxNameShown),
                                 ")"));
  }
  return lines;
}

}  // namespace

bool SameConfigure(const Plans& a, const Plans& b, const std::string& host) {
  const auto in_a = a.configure.find(host);
  const auto in_b = b.configure.find(host);
  if (in_a == a.configure.end() || in_b == b.configure.end())
    return in_a == a.configure.end() && in_b == b.configure.end();
  return google::protobuf::util::MessageDifferencer::Equals(in_a->second, in_b->second);
}

absl::Status ConfigureError(const config::Config& config, const config::Profiles& profiles,
                            const v1beta1::ConfigureResponse& response) {
  const std::vector<std::string> lines = ProblemTexts(config, profiles, response, false);
  if (lines.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

std::vector<std::string> ConfigureWarnings(const config::Config& config,
                                           const config::Profiles& profiles,
                                           const v1beta1::ConfigureResponse& response) {
  return ProblemTexts(config, profiles, response, true);
}

}  // namespace outboard::hosts
