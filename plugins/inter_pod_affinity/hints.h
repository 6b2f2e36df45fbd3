// Queueing hints: which events may make a node satisfy affinity and anti-affinity of a pod.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_HINTS_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_HINTS_H_

#include "plugin_host/sdk/queueing_hint.h"
#include "plugins/inter_pod_affinity/pod_term.h"

namespace outboard::inter_pod_affinity {

// kube-scheduler's hints (v1.36). `rules` belong to the pod, `rules_of_gone` to the deleted pod;
// null: no rules. Pure.
//
// As in kube-scheduler, this does not look up namespaces: a term's namespace selector counts only
// if it matches a namespace without labels, and therefore every namespace.
sdk::Hint HintOf(const v1beta1::Pod& pod, const PodRules* rules, const sdk::ObjectChange& change,
                 const PodRules* rules_of_gone);

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_HINTS_H_
