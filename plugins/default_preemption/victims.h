// The order of preemption candidates.
#ifndef OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_VICTIMS_H_
#define OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_VICTIMS_H_

#include <vector>

#include "plugin_host/sdk/post_filter.h"

namespace outboard::default_preemption {

// Sorts candidates, best first: fewest violated budgets, then lowest priority of the most important
// victim, then lowest sum of priorities, then fewest victims, then latest start of the most
// important victims; equal candidates keep their order.
void SortByPreference(std::vector<sdk::PreemptionCandidate>* candidates);

}  // namespace outboard::default_preemption

#endif  // OUTBOARD_PLUGINS_DEFAULT_PREEMPTION_VICTIMS_H_
