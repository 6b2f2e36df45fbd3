#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/config/config.h"

namespace outboard::config {

absl::Status CheckReload(const Config& in_force, const Config& next) {
  std::vector<std::string> problems;
  const auto same = [&](const char* field, bool is_same) {
    if (is_same) return;
    problems.push_back(absl::StrCat(next.file, ": ", field,
                                    ": cannot be changed while the shim runs; restart the shim"));
  };
  const SchedulerConfig& a = in_force.scheduler;
  const SchedulerConfig& b = next.scheduler;
  same("leaderElection", a.leader_election == b.leader_election);
  same("clientConnection", a.client_connection == b.client_connection);
  same("podInitialBackoffSeconds", a.pod_initial_backoff == b.pod_initial_backoff);
  same("podMaxBackoffSeconds", a.pod_max_backoff == b.pod_max_backoff);
  same("servingAddress", in_force.shim.serving_address == next.shim.serving_address);
  same("explainMemoryMiB", in_force.shim.explain_memory_mib == next.shim.explain_memory_mib);
  // Objects that were read before keep what was read of them.
  same("allowedEnvironmentVariables",
       in_force.shim.reading.environment_variables == next.shim.reading.environment_variables);
  same("featureGates", in_force.shim.reading.feature_gates == next.shim.reading.feature_gates);
  same("secureServing", in_force.shim.secure_serving == next.shim.secure_serving);
  same("extender", in_force.shim.extender == next.shim.extender);
  // Hosts that may read a resource have its objects in their caches.
  const auto same_rule = [](const CustomResourceRule& x, const CustomResourceRule& y) {
    return x.resource == y.resource && x.verbs == y.verbs && x.namespaces == y.namespaces;
  };
  same("customResources",
       std::equal(in_force.shim.custom_resources.begin(), in_force.shim.custom_resources.end(),
                  next.shim.custom_resources.begin(), next.shim.custom_resources.end(), same_rule));
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace outboard::config
