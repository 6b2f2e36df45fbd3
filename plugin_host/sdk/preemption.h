// What plugins that make pods leave have in common: who may ask, in which order pods matter, what
// is said when nobody's leaving helps.
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

// The gate of pods whose evictions are under way: the shim keeps it, in the name of the PostFilter
// plugin that had the victims leave, and looks at the pod again when one has gone. Derive from it
// and call DeclarePreemptionGate.
//
// Threading: any. Lifetime: any. Errors: none.
class PreemptionGate : public PreEnqueuePlugin, public QueueingHintPlugin {
 public:
  // Whether evictions are under way for the pod is the shim's to know, and it never asks here.
  Verdict PreEnqueue(const PodView&, const ClusterView&, absl::Time) const override {
    return Verdict::Success();
  }
  // A pod that goes lets events count for one whose evictions are under way, but those that
  // rejected it tell whether it helps.
  Hint QueueingHint(const PodView&, const ObjectChange&) const override { return Hint::kSkip; }
};
void DeclarePreemptionGate(PluginDescriptor* descriptor);

// A rejection as all of this kind begin: `preemption: MESSAGE`.
Verdict SayPreemption(v1alpha1::Code code, absl::string_view message);

// Whether a pod was asked to leave by a scheduler, and is leaving.
bool IsLeavingForAnother(const v1alpha1::Pod& pod);

// Whether the pod may have others leave at all: SUCCESS, or the rejection to answer with. Not with
// preemptionPolicy Never, and not while earlier victims are on their way off its nominated node;
// unless the node became one that nobody's leaving helps: then it may look elsewhere.
Verdict MayPreempt(const Attempt& attempt, const DryRun& dry_run);

// Nodes that may take the pod once others have left, in node order: those that rejected it with
// UNSCHEDULABLE.
std::vector<Slot> NodesToPreemptOn(const Attempt& attempt, const DryRun& dry_run);

// Sorts pods of one node, in the node's order, by importance: higher priority first, then the one
// that started earlier. Pods that have not started come last, and among them those that came to the
// node later first: kube-scheduler asks for the time whenever it looks at such a pod, so that of
// two the one looked at first seems the older.
void SortByImportance(std::vector<PodRecord*>* pods);

// Why no node helps: how often each reason was given, and what is said of all other nodes.
//
// Threading: thread-compatible. Lifetime: a value. Errors: none.
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
