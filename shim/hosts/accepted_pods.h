// Which instances in pods a leader has accepted.
#ifndef OUTBOARD_SHIM_HOSTS_ACCEPTED_PODS_H_
#define OUTBOARD_SHIM_HOSTS_ACCEPTED_PODS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "shim/hosts/instance.h"

namespace outboard::hosts {

// An instance in a pod whose readiness gate says whether the leader has accepted it.
struct GatedInstance {
  std::string host, address;
  bool is_accepted = false;
  friend bool operator==(const GatedInstance&, const GatedInstance&) = default;
};

// A replica that does not lead schedules no pods, and so cannot compare instances. It follows the
// leader, so that it does not begin to lead with a build that the leader has not accepted.
//
// Without pods with the gate, nothing is awaited.
//
// Threading: scheduling thread.
class AcceptedPods {
 public:
  // How long an instance that was not accepted waits for an accepted one, if none serves.
  static constexpr absl::Duration kFirst = absl::Seconds(10);

  // This process leads unless set.
  void SetLeading(bool leads, absl::Time now);
  bool leads() const { return leads_; }
  absl::Time leads_since() const { return leads_since_; }

  // All of them, instead of the former ones.
  void Set(std::vector<GatedInstance> all);
  // Whether Set has changed something since the last call.
  bool TakeChanged() { return std::exchange(changed_, false); }

  Acceptance Of(const std::string& address) const;
  // Whether an accepted instance of the host, other than these, may still become ready.
  bool AnotherIsComing(const std::string& name, const HostInstances& host) const;

 private:
  bool leads_ = true;
  absl::Time leads_since_ = absl::InfinitePast();
  bool changed_ = false;
  std::vector<GatedInstance> all_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_ACCEPTED_PODS_H_
