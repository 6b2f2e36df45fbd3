// Shared by preempting plugins: which pods may preempt, the order of importance, the message if
// preemption does not help.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PREEMPTION_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PREEMPTION_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/queueing_hint.h"

namespace outboard::sdk {

// The gate of pods that wait for evictions: the shim keeps it in the name of the PostFilter plugin
// that chose the victims, and re-evaluates the pod when one has left. Derive from it and call
// DeclarePreemptionGate.
//
// Threading: any.
// Lifetime: any.
// Errors: none.
class PreemptionGate : public PreEnqueuePlugin, public QueueingHintPlugin {
 public:
  // Only the shim knows whether evictions are in progress; it never calls this.
  Verdict PreEnqueue(const PodView&, const ClusterView&, absl::Time) const override {
    return Verdict::Success();
  }
  // A removed pod opens the gate, but the plugins that rejected the gated pod decide whether this
  // helps.
  Hint QueueingHint(const PodView&, const ObjectChange&) const override { return Hint::kSkip; }
};
void DeclarePreemptionGate(PluginDescriptor* descriptor);

// A rejection `preemption: MESSAGE`.
Verdict SayPreemption(v1beta1::Code code, absl::string_view message);

// Whether a scheduler preempted the pod, and the pod is being deleted.
bool IsLeavingForAnother(const v1beta1::Pod& pod);

// Whether the pod may preempt: SUCCESS, or the rejection to return. Not with preemptionPolicy
// Never, and not while earlier victims are leaving its nominated node, unless preemption no longer
// helps on that node: then it may preempt elsewhere.
Verdict MayPreempt(const Attempt& attempt, const DryRun& dry_run);

// Nodes where preemption may help, in node order: nodes that rejected the pod with UNSCHEDULABLE.
std::vector<Slot> NodesToPreemptOn(const Attempt& attempt, const DryRun& dry_run);

// Sorts pods of one node, in the node's order, by importance: higher priority first, then earlier
// start. Pods that have not started come last, and among them later added ones first:
// kube-scheduler reads the clock whenever it compares such a pod, so that of two the first compared
// seems older.
void SortByImportance(std::vector<PodRecord*>* pods);

// Why no node helps: the count of each reason, and a text for all other nodes.
//
// Threading: thread-compatible.
// Lifetime: a value.
// Errors: none.
class PreemptionSummary {
 public:
  void Add(const Verdict& verdict);
  // `0/5 nodes are available: 2 Insufficient cpu, 3 Preemption is not helpful for scheduling.`
  std::string Text(size_t all_nodes) const;

 private:
  size_t nodes_ = 0;
  std::map<std::string, size_t> reasons_;
};

// Errors of several nodes as one, as kube-scheduler joins them: each text once.
std::string JoinErrors(const std::vector<std::string>& errors);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PREEMPTION_H_
