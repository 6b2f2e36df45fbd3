// Which hosts with the capability SINGLE_SESSION this shim may configure.
#ifndef OUTBOARD_SHIM_HOSTS_SINGLE_SESSIONS_H_
#define OUTBOARD_SHIM_HOSTS_SINGLE_SESSIONS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::hosts {

bool KeepsOneSession(const v1beta1::GetHostInfoResponse& info);

// Such a host forgets the session of one shim when another shim configures it. Two shims that took
// it from each other in turn would both place few pods. So a shim replaces another shim's session
// once: the host of a shim that crashed, or of the previous leader, serves its successor at once.
// After that it waits until a probe names no other session.
//
// Usage: OnHandshake → WhyNot, until it is empty → OnBegun; OnProbe at any time.
// Threading: scheduling thread.
class SingleSessions {
 public:
  // Instances that are remembered, of all hosts. The session of a forgotten instance is replaced
  // once more.
  static constexpr size_t kMaxInstances = 64;

  // Only a shim that leads begins sessions. It leads unless set.
  void SetLeading(bool leads) { leads_ = leads; }
  bool leads() const { return leads_; }

  // The instance is connected, possibly again: only later probes count.
  void OnHandshake(const std::string& instance);
  // This shim configures the instance.
  void OnBegun(const std::string& instance);
  // `current`: the session that the instance named; empty: none.
  void OnProbe(const std::string& instance, const std::string& current);
  // Why no session with the instance may begin now, for people; empty: it may. `own`: its id.
  std::string WhyNot(absl::string_view instance, absl::string_view own) const;
  // Whether the last probe named another session than `own`.
  bool IsTaken(absl::string_view instance, absl::string_view own) const;
  // Whether this shim waits until another one leaves a host that no other instance serves.
  void SetYielding(bool yielding) { yielding_ = yielding; }
  bool yielding() const { return yielding_; }
  // An administrator lets this shim replace other sessions once more.
  void Clear() { seen_.clear(); }

 private:
  struct Seen {
    std::string instance;
    bool began = false;   // this shim had a session with it
    bool probed = false;  // since the handshake
    std::string current;  // as that probe named it
  };
  const Seen* Find(absl::string_view instance) const;
  Seen& FindOrAdd(const std::string& instance);

  bool leads_ = true;
  bool yielding_ = false;
  std::vector<Seen> seen_;  // the oldest first
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_SINGLE_SESSIONS_H_
