package upstream

import "slices"

// Reasons for which a test of upstream's is not run. A test that is skipped for none of them fails.
var Reasons = map[string]string{
	"plugin":    "a plugin that exists in the test's process only",
	"gate":      "feature gates that are not at their default of v1.36",
	"internals": "looks at, or puts something into, the inside of the scheduler in its process",
	"extender":  "an HTTP extender, which is not served",
	"hints off": "says what is requeued without queueing hints",
	"mock":      "replaces a library of the scheduler's in the test's process",
}

type skipRule struct{ Test, Reason, Why string }

// neutralRule: in these tests the plugin of the test's own lets every pod pass, and is left out.
type neutralRule struct{ Test, Plugin string }

// rules go into the copy as JSON. Names are regular expressions for whole names.
var rules = struct {
	Skip    []skipRule
	Neutral []neutralRule
	// OtherGates are those with which, or without which, tests demand the same of a scheduler.
	OtherGates []string
}{
	Skip: []skipRule{
		{"TestPreferNominatedNode/.*", "internals", "nominates the pod in the scheduler's memory as it is popped"},
		{"TestNodeDeclaredFeaturesFilter/pod_with_feature_requirement_.*", "mock", "a feature that only this process knows"},
	},
	Neutral: []neutralRule{
		// It lets a thousand pods pass in these.
		{`TestPreemption/(basic_pod_preemption|preemption_is_performed_to_satisfy_anti-affinity|` +
			`preemption_is_not_performed_when_anti-affinity_is_not_satisfied)_\(.*`, "filter-plugin"},
	},
	OtherGates: []string{
		// Without them the API server drops the fields that they are about when a pod is created, so the scheduler's side says nothing.
		"MatchLabelKeysInPodAffinity", "MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge",
		"NodeInclusionPolicyInPodTopologySpread",
		// The API server's alone.
		"ClearingNominatedNodeNameAfterBinding",
		// They say in which thread kube-scheduler writes, and its tests demand the same either way.
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
