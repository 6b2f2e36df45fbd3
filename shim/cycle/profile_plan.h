// A profile as the scheduler drives it: which host does what.
#ifndef OUTBOARD_SHIM_CYCLE_PROFILE_PLAN_H_
#define OUTBOARD_SHIM_CYCLE_PROFILE_PLAN_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "shim/cycle/algorithm.h"
#include "shim/cycle/cluster_state.h"
#include "shim/queue/scheduling_queue.h"

namespace outboard::cycle {

// What of a pod a plugin cares about; see plugin_host.proto, Interest. Taken apart once, for it is
// asked about every pod.
struct PodField {
  PodField(const std::string& path);                           // NOLINT: a path is one
  PodField(const char* path) : PodField(std::string(path)) {}  // NOLINT

  enum class Kind {
    kUnknown,  // no path that is known here: every pod has it
    kSchedulingGates,
    kSchedulingGroup,
    kResourceClaims,
    kDeviceClassResource,
    kVolume,      // `key` is the source
    kLabel,       // `key` is the label's
    kAnnotation,  // `key` is the annotation's
  };
  Kind kind = Kind::kUnknown;
  std::string key;
};

// A plugin at Reserve, Permit or PreEnqueue with the pods that it cares about: those in which any
// of `fields` is set; empty: all.
struct InterestedPlugin {
  std::string name;
  std::vector<PodField> fields;
  size_t position = 0;  // among the profile's plugins at the point
};

// What one host does at a point.
struct PointShare {
  std::string host_name;
  std::vector<InterestedPlugin> plugins;
  // An attempt goes on without the host's answer here (failurePolicies).
  bool is_open = false;

  // Where the plugin stands in the profile; behind all for one that is not here.
  size_t PositionOf(const std::string& plugin) const;
};

struct ProfilePlan;

// What a plugin whose host is spared the pod would say at PostFilter.
struct SparedWord {
  std::string reason;
  // Plugins before it at PreFilter. If one of them ended PreFilter, it was not asked there, and
  // would look for its state in vain.
  absl::flat_hash_set<std::string> behind{};
};

// A host that is spared pods which none of its plugins cares about.
struct SparedHost {
  std::string host_name;
  InterestedPlugin interest;
  // The plan for these pods: as if the profile had not the host's plugins.
  std::shared_ptr<ProfilePlan> without;
};

// A value. Hosts go by their names in the configuration.
struct ProfilePlan {
  AlgorithmProfile algorithm;
  // All hosts that serve some plugin of the profile; usually one. Those that take part in the
  // algorithm come first, as in `algorithm.shares`; without shares it is the first.
  std::vector<std::string> host_names;
  size_t num_algorithm_hosts() const {
    return algorithm.shares.empty() ? 1 : algorithm.shares.size();
  }
  // Whether attempts go on while the host of this index in `host_names` is away.
  bool CanDoWithout(size_t host) const;
  // Hosts in the order in which they are asked: that of their first plugins at the point.
  std::vector<PointShare> pre_enqueue;
  std::vector<PointShare> reserve;
  std::vector<PointShare> permit;
  absl::flat_hash_set<std::string> pre_bind_plugins;
  // Hosts of which a plugin of the profile may want objects written of its own accord.
  absl::flat_hash_set<std::string> object_keepers;
  std::vector<std::string> post_filter_hosts;
  // What plugins of spared hosts would say there, who come before the first of these and after.
  std::vector<SparedWord> spared_before;
  std::vector<SparedWord> spared_after;
  // By host: plugins behind which its PreFilter would not have come; see SparedWord. In parallel
  // with others it did all the same.
  std::map<std::string, absl::flat_hash_set<std::string>> pre_filter_behind;
  // Plugins at PostFilter that are at PreEnqueue, too: in their name a preemptor stays out of the
  // queue until the evictions of its victims have begun.
  std::vector<std::string> preemption_gates;
  // How far the shim's own check of placements goes.
  GuardScope guard;
  // The host that sort keys come from; empty: the order is priority, then time, which is
  // PrioritySort's.
  std::string sort_host;
  // Events that may help pods which a plugin rejected.
  queue::SchedulingQueue::WakeUpEvents wake_up_events;
  std::vector<SparedHost> spared;

  // The plan for a pod: this one, or one without hosts that are spared the pod. Pure.
  const ProfilePlan* For(const v1alpha1::Pod& pod, const DeviceClassResources& devices) const;
};

// The plans of all profiles. A new one takes the place of the profile's last, also where it is for
// spared pods: attempts that are under way point to it.
//
// Threading: thread-compatible.
class PlanBook {
 public:
  void Set(ProfilePlan plan);
  // Null: the profile has none.
  const ProfilePlan* Find(const std::string& profile) const;
  const ProfilePlan* For(const std::string& profile, const v1alpha1::Pod& pod,
                         const DeviceClassResources& devices) const;
  // By profile.
  const std::map<std::string, ProfilePlan>& all() const { return plans_; }

 private:
  void KeepInPlace(const std::string& path, ProfilePlan* plan);

  std::map<std::string, ProfilePlan> plans_;
  std::map<std::string, std::shared_ptr<ProfilePlan>> without_;  // by profile/host/…
};

// Whether any of the plugins is interested in the pod; see plugin_host.proto, Interest. Pure.
bool AnyConcerns(const std::vector<InterestedPlugin>& plugins, const v1alpha1::Pod& pod,
                 const DeviceClassResources& devices);
bool AnyConcerns(const std::vector<PointShare>& shares, const v1alpha1::Pod& pod,
                 const DeviceClassResources& devices);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_PROFILE_PLAN_H_
