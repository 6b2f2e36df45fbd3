// Which of a trace's pods are alike.
#ifndef OUTBOARD_SHIM_SIMULATE_TRACE_LIKENESS_H_
#define OUTBOARD_SHIM_SIMULATE_TRACE_LIKENESS_H_

#include "shim/cycle/scheduler_options.h"
#include "shim/kube/objects.h"

namespace outboard::simulate::trace {

// Pods are of one kind that differ in nothing but names, their jobs' names, when they were created,
// and the run time that they declare (outboard/run-seconds), which is the amount. Members of groups
// of one size too: they come and go together here. Pods that look at other pods, at volumes or
// claims are like no other. Pure.
cycle::Likeness LikenessOf(const kube::PodObject& pod);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_SHIM_SIMULATE_TRACE_LIKENESS_H_
