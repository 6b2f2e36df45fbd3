// What answers to Configure say (declared in plans.h).
#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/framework/answer_check.h"
#include "shim/hosts/plans.h"

namespace outboard::hosts {
namespace {

constexpr size_t kMaxNameShown = 253;

// The problems that are warnings, or all others: file, line, field, message, profile and plugin.
std::vector<std::string> ProblemTexts(const config::Config& config,
                                      const config::Profiles& profiles,
                                      const v1beta1::ConfigureResponse& response, bool warnings) {
  std::vector<std::string> lines;
  for (const v1beta1::ConfigProblem& problem : response.problems()) {
    if ((problem.severity() == v1beta1::ConfigProblem::SEVERITY_WARNING) != warnings) continue;
    std::string where = config.file;
    for (const config::Profile& profile : profiles.profiles) {
      if (profile.name != problem.profile()) continue;
      for (const config::PluginArgs& args : profile.args) {
        if (args.name != problem.plugin() || args.where.line == 0) continue;
        where = absl::StrCat(config.file, ":", args.where.line, ":", args.where.column, ": ",
                             args.where.path);
      }
    }
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
