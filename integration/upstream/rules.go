package upstream

import "slices"

// Reasons for which an upstream test is not run. A test skipped without one of them fails.
var Reasons = map[string]string{
	"plugin":    "a plugin that exists only in the test's process",
	"gate":      "feature gates that are not at their default of v1.36",
	"internals": "reads or changes the internals of the scheduler in its process",
	"extender":  "an HTTP extender, which is not served",
	"hints off": "requeueing without queueing hints",
	"mock":      "replaces a library of the scheduler in the test's process",
}

type skipRule struct{ Test, Reason, Why string }

// neutralRule: in these tests the test's own plugin accepts every pod, and is omitted.
type neutralRule struct{ Test, Plugin string }

// rules are written into the copy as JSON. Names are regular expressions for whole names.
var rules = struct {
	Skip    []skipRule
	Neutral []neutralRule
	// OtherGates are gates that do not change what tests require of a scheduler.
	OtherGates []string
}{
	Skip: []skipRule{
		{"TestPreferNominatedNode/.*", "internals", "nominates the pod in the scheduler's memory as it is popped"},
		{"TestNodeDeclaredFeaturesFilter/pod_with_feature_requirement_.*", "mock", "a feature that only this process knows"},
	},
	Neutral: []neutralRule{
		// It accepts a thousand pods in these tests.
		{`TestPreemption/(basic_pod_preemption|preemption_is_performed_to_satisfy_anti-affinity|` +
			`preemption_is_not_performed_when_anti-affinity_is_not_satisfied)_\(.*`, "filter-plugin"},
	},
	OtherGates: []string{
		// Without them the API server drops the corresponding fields when a pod is created, so the scheduler's side
		// is not tested.
		"MatchLabelKeysInPodAffinity", "MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge",
		"NodeInclusionPolicyInPodTopologySpread",
		// Only for the API server.
		"ClearingNominatedNodeNameAfterBinding",
		// They select the thread in which kube-scheduler writes; its tests require the same results either way.
		"SchedulerAsyncAPICalls", "SchedulerAsyncPreemption",
	},
}

func isReason(reason string) bool { _, ok := Reasons[reason]; return ok }

func sortedReasons() []string {
	var names []string
	for name := range Reasons {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
