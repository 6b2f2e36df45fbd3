// Which events may let a pod stand with the pods that it asks for, and without those that it avoids
// or that avoid it.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_HINTS_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_HINTS_H_

#include "plugin_host/sdk/queueing_hint.h"
#include "plugins/inter_pod_affinity/pod_term.h"

namespace outboard::inter_pod_affinity {

// kube-scheduler's hints (v1.36). `rules` are the pod's, `rules_of_gone` those of a pod that went;
// null: there are none. Pure.
//
// As in kube-scheduler no namespace is looked up here: a term's namespace selector counts only
// where it matches a namespace without labels, and so every namespace.
sdk::Hint HintOf(const v1alpha1::Pod& pod, const PodRules* rules, const sdk::ObjectChange& change,
                 const PodRules* rules_of_gone);

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_HINTS_H_
