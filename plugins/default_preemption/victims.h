// The order among pods that may have to leave, and among nodes that they could leave.
#ifndef OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_VICTIMS_H_
#define OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_VICTIMS_H_

#include <vector>

#include "plugin_host/sdk/node_table.h"
#include "plugin_host/sdk/post_filter.h"

namespace outboard::default_preemption {

// Sorts pods of one node, in the node's order, by importance: higher priority first, then the one
// that started earlier. Pods that have not started come last, and among them those that came to the
// node later first: kube-scheduler asks for the time whenever it looks at such a pod, so that of
// two the one looked at first seems the older.
void SortByImportance(std::vector<sdk::PodRecord*>* pods);

// Sorts candidates, best first: fewest broken budgets, then lowest priority of the most important
// victim, then lowest sum of priorities, then fewest victims, then the latest start of the most
// important victims; equal ones stay in order.
void SortByPreference(std::vector<sdk::PreemptionCandidate>* candidates);

}  // namespace outboard::default_preemption

#endif  // OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_VICTIMS_H_
