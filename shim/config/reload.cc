#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shim/config/config.h"

namespace outboard::config {
namespace {

// The endpoint that runs needs its profile, and a pod has one scheduler.
absl::Status CheckRunningExtender(const Config& next) {
  const auto& extender = next.shim.extender;
  if (!extender.has_value() || extender->profile.empty()) return absl::OkStatus();
  const auto problem = [&](absl::string_view what, absl::string_view name) {
    return absl::InvalidArgumentError(
        absl::StrCat(next.file, ": profiles: ", what, " the schedulerName \"", name,
                     "\", which the running extender uses; extender cannot change while the shim "
                     "runs; restart the shim"));
  };
  bool is_there = false;
  for (const ProfileSpec& profile : next.scheduler.profiles) {
    if (absl::c_linear_search(extender->scheduler_names, profile.scheduler_name))
      return problem("a profile has", profile.scheduler_name);
    is_there |= profile.scheduler_name == extender->profile;
  }
  return is_there ? absl::OkStatus() : problem("no profile has", extender->profile);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> KeepUntilRestart(const Config& in_force, Config* next) {
  std::vector<std::string> waiting;
  const auto keep = [&](const char* field, const auto& running, auto* wanted) {
    if (*wanted == running) return;
    waiting.emplace_back(field);
    *wanted = running;
  };
  const SchedulerConfig& a = in_force.scheduler;
  SchedulerConfig& b = next->scheduler;
  keep("leaderElection", a.leader_election, &b.leader_election);
  keep("clientConnection", a.client_connection, &b.client_connection);
  keep("podInitialBackoffSeconds", a.pod_initial_backoff, &b.pod_initial_backoff);
  keep("podMaxBackoffSeconds", a.pod_max_backoff, &b.pod_max_backoff);
  const ShimConfig& running = in_force.shim;
  ShimConfig& wanted = next->shim;
  keep("servingAddress", running.serving_address, &wanted.serving_address);
  keep("secureServing", running.secure_serving, &wanted.secure_serving);
  keep("extender", running.extender, &wanted.extender);
  keep("explainMemoryMiB", running.explain_memory_mib, &wanted.explain_memory_mib);
  // Objects that were read before keep what was read of them.
  keep("allowedEnvironmentVariables", running.reading.environment_variables,
       &wanted.reading.environment_variables);
  keep("featureGates", running.reading.feature_gates, &wanted.reading.feature_gates);
  if (absl::Status usable = CheckRunningExtender(*next); !usable.ok()) return usable;
  return waiting;
}

}  // namespace outboard::config
