// The state of a host's instance, and what reports show of it.
#ifndef OUTBOARD_SHIM_HOSTS_INSTANCE_VIEW_H_
#define OUTBOARD_SHIM_HOSTS_INSTANCE_VIEW_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/hosts/shadow.h"

namespace outboard::hosts {

enum class InstanceState {
  kWaiting,      // for other hosts, without which none can be configured, or until its pause ends
  kSyncing,      // configured; its cluster cache is being filled
  kShadow,       // ready; answers beside the serving instance, and is compared with it
  kServing,      // pods are scheduled by it
  kStandby,      // ready, while another instance serves
  kDraining,     // it reported that it is draining
  kRefused,      // its configuration or its plugins are not usable
  kQuarantined,  // a build that failed while it served
};
absl::string_view StateName(InstanceState state);

struct InstanceView {
  std::string host, instance, address, build, build_digest;
  std::string pod;  // NAMESPACE/NAME, of an instance found by its pod
  InstanceState state = InstanceState::kWaiting;
  std::string why;      // the reason for the state
  std::string warning;  // the instance's own, and about its plugins and its configuration
  absl::Time since;     // start of the state
  absl::Time started = absl::InfinitePast();
  bool usable = false;
  bool held_back = false;  // not called until it answers a probe
  int64_t sent_version = 0;
  int64_t acknowledged_version = 0;
  int64_t failures = 0;  // while it serves
  ShadowReport shadow;   // of the instance's time in the shadow
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_INSTANCE_VIEW_H_
