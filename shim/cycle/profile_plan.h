// A profile as the scheduler drives it: which host does what.
#ifndef OUTBOARD_SHIM_CYCLE_PROFILE_PLAN_H_
#define OUTBOARD_SHIM_CYCLE_PROFILE_PLAN_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "shim/cycle/algorithm.h"
#include "shim/cycle/cluster_state.h"
#include "shim/queue/scheduling_queue.h"

namespace outboard::cycle {

// A plugin at Reserve, Permit or PreEnqueue with the pods that it cares about: those in which any
// of `fields` is set; empty: all.
struct InterestedPlugin {
  std::string name;
  std::vector<std::string> fields;
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
};

// Whether any of the plugins is interested in the pod; see plugin_host.proto, Interest. Pure.
bool AnyConcerns(const std::vector<InterestedPlugin>& plugins, const v1alpha1::Pod& pod);
bool AnyConcerns(const std::vector<PointShare>& shares, const v1alpha1::Pod& pod);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_PROFILE_PLAN_H_
