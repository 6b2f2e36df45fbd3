// PostFilter: preemption for a pod that fits on no node.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_POST_FILTER_H_
#define OUTBOARD_PLUGIN_HOST_SDK_POST_FILTER_H_

#include <vector>

#include "plugin_host/sdk/attempt.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/verdict.h"

namespace outboard::sdk {

// Evaluates a node with other pods, one node at a time:
//
//   dry_run.Begin(slot);                      // the node as it is
//   dry_run.RemovePod(*victim);               // … without this pod
//   if (dry_run.Filter().ok()) …              // would the attempt's pod fit now?
//
// From Begin to End (or the next Begin) the cluster's views show the changed node, and AddPod and
// RemovePod update copies of plugins' states. Afterwards everything is restored. Copy the node's
// list of pods before the first change.
//
// Threading: within the call of PostFilter.
// Lifetime:  within the call.
// Errors:    a verdict ERROR with kube-scheduler's message if a plugin fails. Then call End.
class DryRun {
 public:
  virtual ~DryRun() = default;
  // The verdict of PreFilter or Filter on a node in this attempt; UNSCHEDULABLE_AND_UNRESOLVABLE
  // for nodes that were not evaluated.
  virtual Code CodeOf(Slot slot) const = 0;

  virtual void Begin(Slot slot) = 0;
  virtual void End() = 0;
  // The pod must be on the node.
  virtual Verdict RemovePod(PodRecord& pod) = 0;
  virtual Verdict AddPod(PodRecord& pod) = 0;
  // Runs the profile's Filter plugins on the node, with and without the pods nominated to it;
  // returns the first rejection.
  virtual Verdict Filter() = 0;
};

// A node on which the pod would fit once the victims are gone.
struct PreemptionCandidate {
  Slot slot = kNoSlot;
  std::vector<const PodRecord*> victims;  // The most important first.
  // Pods on any node that leave with these, because they cannot run without these. The dry run
  // ignores them. The shim accepts only members of a victim's group, by GroupOf (pod_groups.h).
  std::vector<const PodRecord*> companions;
  int budget_violations = 0;  // Evictions of both that violate a PodDisruptionBudget.
};

// In addition to the verdict of PostFilter.
struct PostFilterAnswer {
  // Best first. With SUCCESS; empty: no pod has to leave.
  std::vector<PreemptionCandidate> candidates;
  // With a rejection: clear the pod's nomination.
  bool clear_nomination = false;
};

class PostFilterPlugin {
 public:
  virtual ~PostFilterPlugin() = default;
  // Once per attempt, after PreFilter or Filter left no node. SUCCESS and
  // UNSCHEDULABLE_AND_UNRESOLVABLE end the round; after UNSCHEDULABLE the next plugin is called.
  virtual Verdict PostFilter(const Attempt& attempt, DryRun& dry_run,
                             PostFilterAnswer* answer) const = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_POST_FILTER_H_
