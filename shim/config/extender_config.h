// A part of the ShimConfiguration: the extender of a kube-scheduler, and the webhook for binds.
#ifndef OUTBOARD_SHIM_CONFIG_EXTENDER_CONFIG_H_
#define OUTBOARD_SHIM_CONFIG_EXTENDER_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "shim/config/location.h"
#include "shim/config/servers.h"

namespace outboard::config {

// The endpoint for a kube-scheduler that uses this shim as its extender.
struct ExtenderConfig {
  std::string address;  // HOST:PORT
  // schedulerName of the profile whose plugins are used; empty: only the webhook is served.
  std::string profile;
  // Whose pods are the profile's pods for its plugins. By default kube-scheduler's, unless a
  // profile has this name.
  std::vector<std::string> scheduler_names = {"default-scheduler"};
  std::optional<ServerTls> tls;  // required unless loopback
  // Every request is answered within this time, if necessary with an error.
  absl::Duration deadline = absl::Seconds(2);
  // The same for a bind, including its waits at Permit and PreBind. Shorter than the httpTimeout of
  // kube-scheduler, by default 5 s.
  absl::Duration bind_deadline = absl::Seconds(4);
  int32_t max_binds = 128;  // in progress at a time
  // Whether the endpoint also serves the API server's webhook that checks other schedulers' binds
  // against the nodes' free resources.
  bool admits_bindings = false;
  // A Service without a selector, in the lease's namespace, that shall lead to the leader alone:
  // the leader writes its EndpointSlices. Empty: none.
  std::string leader_service;
  Location where;                    // of `profile`
  std::optional<Location> names_at;  // of `scheduler_names`; absent: the default

  // Ignores locations.
  bool operator==(const ExtenderConfig& other) const {
    return address == other.address && profile == other.profile &&
           scheduler_names == other.scheduler_names && tls == other.tls &&
           deadline == other.deadline && bind_deadline == other.bind_deadline &&
           max_binds == other.max_binds && admits_bindings == other.admits_bindings &&
           leader_service == other.leader_service;
  }
};

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_EXTENDER_CONFIG_H_
