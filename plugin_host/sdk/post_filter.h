// PostFilter: what can be done for a pod that fits nowhere. For plugins that make pods leave.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_POST_FILTER_H_
#define OUTBOARD_PLUGIN_HOST_SDK_POST_FILTER_H_

#include <vector>

#include "plugin_host/sdk/attempt.h"
#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/verdict.h"

namespace outboard::sdk {

// What if other pods were on a node? One node at a time:
//
//   dry_run.Begin(slot);                      // the node as it is
//   dry_run.RemovePod(*victim);               // … without this pod
//   if (dry_run.Filter().ok()) …              // would the attempt's pod fit now?
//
// From Begin to End (or the next Begin) the cluster's views show the node so changed, and plugins'
// states are copies which AddPod and RemovePod change. Afterwards everything is as before. Copy the
// node's list of pods before the first change.
//
// Threading: within the call of PostFilter.
// Lifetime:  within the call.
// Errors:    a verdict ERROR, in kube-scheduler's words, where a plugin fails. Then end the node.
class DryRun {
 public:
  virtual ~DryRun() = default;
  // What PreFilter or Filter said of a node in this attempt; nodes that were not judged are
  // UNSCHEDULABLE_AND_UNRESOLVABLE.
  virtual Code CodeOf(Slot slot) const = 0;

  virtual void Begin(Slot slot) = 0;
  virtual void End() = 0;
  // The pod is on the node, or was taken off by RemovePod.
  virtual Verdict RemovePod(PodRecord& pod) = 0;
  virtual Verdict AddPod(PodRecord& pod) = 0;
  // The profile's Filter plugins on the node, with and without the pods nominated to it: the first
  // rejection.
  virtual Verdict Filter() = 0;
};

// A node on which the pod would fit once the victims are gone.
struct PreemptionCandidate {
  Slot slot = kNoSlot;
  std::vector<const PodRecord*> victims;  // The most important first.
  // Pods on any node that leave with these, for without these they are of no use. The dry run knows
  // nothing of them.
  std::vector<const PodRecord*> companions;
  int budget_violations = 0;  // Evictions of either that break a PodDisruptionBudget.
};

// Beside the verdict of PostFilter.
struct PostFilterAnswer {
  // Best first. With SUCCESS; empty: nothing has to leave.
  std::vector<PreemptionCandidate> candidates;
  // With a rejection: no node is to be kept in mind for the pod any more.
  bool clear_nomination = false;
};

class PostFilterPlugin {
 public:
  virtual ~PostFilterPlugin() = default;
  // Once an attempt, after PreFilter or Filter left no node. SUCCESS and
  // UNSCHEDULABLE_AND_UNRESOLVABLE end the round, after UNSCHEDULABLE the next plugin is asked.
  virtual Verdict PostFilter(const Attempt& attempt, DryRun& dry_run,
                             PostFilterAnswer* answer) const = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_POST_FILTER_H_
