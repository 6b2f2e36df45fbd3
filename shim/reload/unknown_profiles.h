// Pods that wait for a profile that does not exist.
#ifndef OUTBOARD_SHIM_RELOAD_UNKNOWN_PROFILES_H_
#define OUTBOARD_SHIM_RELOAD_UNKNOWN_PROFILES_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "shim/kube/objects.h"

namespace outboard::reload {

// Which pending pods name a scheduler that looks like a profile of this installation, but is none:
// the process had a profile of this name earlier, or the name has a prefix of the configuration. A
// pod that another scheduler handles does not count: it has a condition PodScheduled that this
// process did not write. A pod counts after kPatience, because another replica or installation may
// place it.
//
// Threading: thread-compatible; the scheduling thread.
// Lifetime: shares ownership of the pods.
// Errors: none.
class UnknownProfiles {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(30);
  // Schedulers that are counted by name; the others are "other". Each is a label of a metric.
  static constexpr size_t kMaxNames = 20;

  // Replaces the profiles and the prefixes; remembers the earlier profiles. Afterwards OnPod must
  // be called with all pods.
  void Configure(const std::vector<std::string>& profiles,
                 const std::vector<std::string>& prefixes);
  void OnPod(const kube::PodPtr& pod, absl::Time now);
  void OnPodDelete(const std::string& uid) { waiting_.erase(uid); }

  // How many pods wait, by scheduler; with 0 for a scheduler that had some.
  std::map<std::string, size_t> Count(absl::Time now);
  // Visits at most `limit` pods that wait and were not visited before.
  void TakeUnreported(size_t limit, absl::Time now,
                      const std::function<void(const kube::PodObject& pod)>& visit);

 private:
  struct Pod {
    kube::PodPtr pod;
    absl::Time since;
    bool reported = false;
    bool is_handled = false;  // by another scheduler
  };
  bool IsUnknown(const kube::PodObject& pod) const;
  static bool Counts(const Pod& waits, absl::Time now);

  std::set<std::string> profiles_;
  std::set<std::string> earlier_;
  std::vector<std::string> prefixes_;
  absl::flat_hash_map<std::string, Pod> waiting_;  // by uid
  std::set<std::string> counted_;                  // labels that were used
};

}  // namespace outboard::reload

#endif  // OUTBOARD_SHIM_RELOAD_UNKNOWN_PROFILES_H_
