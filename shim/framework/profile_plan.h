// A profile as the scheduler runs it: which host does what.
#ifndef OUTBOARD_SHIM_FRAMEWORK_PROFILE_PLAN_H_
#define OUTBOARD_SHIM_FRAMEWORK_PROFILE_PLAN_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "shim/cache/cluster_state.h"
#include "shim/framework/algorithm.h"
#include "shim/queue/scheduling_queue.h"

namespace outboard::framework {

// A field of a pod that a plugin is interested in; see plugin_host.proto, Interest. Parsed once,
// because it is checked for every pod.
struct PodField {
  PodField(const std::string& path);                           // NOLINT: a path is one
  PodField(const char* path) : PodField(std::string(path)) {}  // NOLINT

  enum class Kind {
    kUnknown,  // an unknown path: every pod has it
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

// A plugin at Reserve, Permit, PreEnqueue, PreBind, Bind or PostBind and the pods that it is
// interested in: those in which any of `fields` is set; empty: all.
struct InterestedPlugin {
  std::string name;
  std::vector<PodField> fields;
  size_t position = 0;  // among the profile's plugins at the point
};

// What one host does at a point.
struct HostExtensionPoint {
  std::string host_name;
  std::vector<InterestedPlugin> plugins;
  // Attempts continue without the host's answer here (failurePolicies).
  bool fail_open = false;

  // The plugin's position in the profile; after all others for an unknown plugin.
  size_t PositionOf(const std::string& plugin) const;
};

struct ProfilePlan;

// The PostFilter answer of a plugin whose host is skipped for the pod.
struct SkippedPostFilterStatus {
  std::string reason;
  // Plugins before it at PreFilter. If one of them ended PreFilter, this plugin did not run there
  // and has no state for PostFilter.
  absl::flat_hash_set<std::string> behind{};
};

// A host that is skipped for pods in which none of its plugins is interested.
struct SkippedHost {
  std::string host_name;
  InterestedPlugin interest;
  // The plan for these pods, as if the profile did not have the host's plugins.
  std::shared_ptr<ProfilePlan> without;
};

// A value. Hosts are identified by their names in the configuration.
struct ProfilePlan {
  AlgorithmProfile algorithm;
  // All hosts that serve a plugin of the profile; usually one. The hosts of the algorithm come
  // first, as in `algorithm.shares`; without shares it is the first host.
  std::vector<std::string> host_names;
  size_t num_algorithm_hosts() const {
    return algorithm.shares.empty() ? 1 : algorithm.shares.size();
  }
  // The host of each plugin, by the plugin's name.
  std::map<std::string, std::string> host_of;
  bool Serves(const std::string& host, const std::string& plugin) const;
  // Whether attempts continue while the host with this index in `host_names` is unavailable.
  bool CanDoWithout(size_t host) const;
  // Hosts in the order in which they are called: that of their first plugins at the point.
  std::vector<HostExtensionPoint> pre_enqueue;
  std::vector<HostExtensionPoint> reserve;
  std::vector<HostExtensionPoint> permit;
  // All plugins at PreBind: their hosts are asked if Reserve named effects of one of them.
  absl::flat_hash_set<std::string> pre_bind_plugins;
  // Those that are asked also for pods without effects.
  std::vector<HostExtensionPoint> pre_bind;
  // Plugins at Bind before DefaultBinder, one in each, in the profile's order.
  std::vector<HostExtensionPoint> bind;
  // The shim binds if all of them skip; else the bind fails then.
  bool shim_binds = true;
  std::vector<HostExtensionPoint> post_bind;
  // Hosts with a plugin of the profile that may write objects outside of an attempt.
  absl::flat_hash_set<std::string> object_writers;
  std::vector<std::string> post_filter_hosts;
  // Where groups of pods may be placed: at most one plugin; empty: the host that knows the groups
  // places them anywhere.
  std::vector<HostExtensionPoint> placement_generate;
  std::vector<HostExtensionPoint> placement_score;
  std::vector<WeightedPlugin> placement_score_plugins;  // of all hosts
  // Asked in place of postFilter about groups; empty: postFilter's plugins are asked.
  std::vector<HostExtensionPoint> pod_group_post_filter;
  // The PostFilter answers of skipped hosts' plugins, before and after the first of these hosts.
  std::vector<SkippedPostFilterStatus> skipped_before;
  std::vector<SkippedPostFilterStatus> skipped_after;
  // By host: if one of these plugins ended PreFilter, the host's own PreFilter would not have run
  // in kube-scheduler (see SkippedPostFilterStatus). Hosts run in parallel, so here it ran.
  std::map<std::string, absl::flat_hash_set<std::string>> pre_filter_behind;
  // Plugins at both PostFilter and PreEnqueue. They keep a preemptor out of the queue until the
  // evictions of its victims have begun.
  std::vector<std::string> preemption_gates;
  // The scope of the shim's own check of placements.
  cache::GuardScope guard;
  // The host that provides sort keys; empty: by priority, then time, as in PrioritySort.
  std::string sort_host;
  // Its plugin reads the pods' attempts: keys are asked for again after each attempt.
  bool sort_reads_attempts = false;
  // Events that may help pods that a plugin rejected.
  queue::SchedulingQueue::WakeUpEvents wake_up_events;
  std::vector<SkippedHost> skipped;

  // The plan for a pod: this plan, or a plan without the hosts that are skipped for the pod. Pure.
  const ProfilePlan* For(const v1beta1::Pod& pod, const cache::DeviceClassResources& devices) const;
};

// The plans of all profiles. A new plan is written over the profile's last one, also the plans
// without skipped hosts, because attempts in progress point to them.
//
// Threading: thread-compatible.
class ProfilePlanMap {
 public:
  void Set(ProfilePlan plan);
  // Null: the profile has no plan.
  const ProfilePlan* Find(const std::string& profile) const;
  const ProfilePlan* For(const std::string& profile, const v1beta1::Pod& pod,
                         const cache::DeviceClassResources& devices) const;
  // By profile.
  const std::map<std::string, ProfilePlan>& all() const { return plans_; }

 private:
  void KeepInPlace(const std::string& path, ProfilePlan* plan);

  std::map<std::string, ProfilePlan> plans_;
  std::map<std::string, std::shared_ptr<ProfilePlan>> without_;  // by profile/host/…
};

// Whether any of the plugins is interested in the pod; see plugin_host.proto, Interest. Pure.
bool AnyInterestedIn(const std::vector<InterestedPlugin>& plugins, const v1beta1::Pod& pod,
                     const cache::DeviceClassResources& devices);
bool AnyInterestedIn(const std::vector<HostExtensionPoint>& shares, const v1beta1::Pod& pod,
                     const cache::DeviceClassResources& devices);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_PROFILE_PLAN_H_
