package parity

import (
	"strings"
	"testing"

	"outboard.dev/integration/parity/generate"
)

const (
	unresolvable  = "UnschedulableAndUnresolvable "
	unschedulable = "Unschedulable "
)

// reasons are all reasons of the default plugins for a node, except NodeName's: a pod that names its node is not
// pending.
var reasons = []string{
	unresolvable + "NodeUnschedulable: node(s) were unschedulable",
	unresolvable + "TaintToleration: node(s) had untolerated taint(s)",
	unresolvable + "NodeAffinity: node(s) didn't match Pod's node affinity/selector",
	unresolvable + "NodeAffinity: node(s) didn't match scheduler-enforced node affinity",
	unresolvable + ": node(s) didn't satisfy plugin(s) [NodeAffinity]",
	unschedulable + "NodePorts: node(s) didn't have free ports for the requested pod ports",
	unschedulable + "NodeResourcesFit: Too many pods",
	unschedulable + "NodeResourcesFit: Insufficient cpu",
	unschedulable + "NodeResourcesFit: Insufficient memory",
	unschedulable + "NodeResourcesFit: Insufficient ephemeral-storage",
	unresolvable + "NodeResourcesFit: Insufficient cpu",
	unresolvable + "NodeResourcesFit: Insufficient memory",
	unresolvable + "NodeResourcesFit: Insufficient ephemeral-storage",
	unresolvable + "NodeResourcesFit: Insufficient example.com/licence",
	unresolvable + "NodeResourcesFit: Insufficient hugepages-1Gi",
	unschedulable + "VolumeRestrictions: node(s) had no available disk",
	unschedulable + "VolumeRestrictions: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
	unschedulable + "NodeVolumeLimits: node(s) exceed max volume count",
	unresolvable + "VolumeBinding: node(s) didn't find available persistent volumes to bind",
	unresolvable + "VolumeBinding: node(s) didn't match PersistentVolume's node affinity",
	unresolvable + "VolumeBinding: node(s) did not have enough free storage",
	unresolvable + "VolumeBinding: node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
	unresolvable + "VolumeZone: node(s) had no available volume zone",
	unschedulable + "PodTopologySpread: node(s) didn't match pod topology spread constraints",
	unresolvable + "PodTopologySpread: node(s) didn't match pod topology spread constraints (missing required label)",
	unresolvable + "InterPodAffinity: node(s) didn't match pod affinity rules",
	unschedulable + "InterPodAffinity: node(s) didn't match pod anti-affinity rules",
	unschedulable + "InterPodAffinity: node(s) didn't satisfy existing pods anti-affinity rules",
	unresolvable + "NodeDeclaredFeatures: node(s) didn't match Pod's required features",
}

// messages are the messages of pods rejected before any node is examined.
var messages = []string{"waiting for scheduling gates: [", "no nodes available to schedule pods", "pod affinity terms conflict",
	"pod has unbound immediate PersistentVolumeClaims", "is being deleted", "bound to non-existent persistentvolume",
	"waiting for ephemeral volume controller to create", "was not created for pod", "persistentvolumeclaim \"no-such-claim\" not found",
	// Of DynamicResources, where DefaultPreemption does not run.
	". not found"}

// Cases that exercise nothing would always agree. The minimums are for 2,000 clusters, and lower in proportion for
// fewer. The oracle's own cross-checks run here, too.
func TestCasesCoverEveryRule(t *testing.T) {
	// Also with -short: forty clusters are too few.
	count := int(*seedCount)
	r := set{generate.All, count}.run(t)
	totals, covered := r.totals, r.covered
	t.Log(totals)
	least := func(what string, got int, want float64) {
		t.Helper()
		if float64(got) < want {
			t.Errorf("%s: %d, want at least %.0f", what, got, want)
		}
	}
	share := float64(count) / 2000
	least("verdicts", totals.Verdicts, 1_000_000*share)
	least("pods with a choice of two nodes or more, but not of all", covered.Choices, float64(covered.Pods)/2)
	least("searches cut short", covered.CutShort, 500*share)
	least("pods narrowed to named nodes", covered.Narrowed, 200*share)
	least("pods that preempt", covered.Preemptions, 500*share)
	least("victims that a budget protects", covered.Violations, 50*share)
	for _, reason := range reasons {
		least(reason, covered.Reasons[reason], 500*share)
	}
	rejections := 0
	for _, nodes := range covered.Rejections {
		rejections += nodes
	}
	for _, plugin := range []string{"NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
		"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "NodeDeclaredFeatures"} {
		least("nodes rejected by "+plugin, covered.Rejections[plugin], float64(rejections)/100)
	}
	for _, plugin := range []string{"NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "TaintToleration", "NodeAffinity",
		"PodTopologySpread", "InterPodAffinity"} {
		least("pods whose scores differ by "+plugin, covered.Decided[plugin], 2000*share)
	}
	for _, text := range messages {
		pods := 0
		for message, n := range covered.Messages {
			if strings.Contains(message, text) {
				pods += n
			}
		}
		least(text, pods, 50*share)
	}
}

// Small full clusters test preemption: 20,000 of them must take minutes only.
func TestDenseCasesPreempt(t *testing.T) {
	count := seeds(*denseSeeds)
	r := set{generate.Preemption, count}.run(t)
	covered := r.covered
	t.Log(r.totals, "; pods that preempt:", covered.Preemptions, ", victims:", covered.Victims, ", of these protected:", covered.Violations)
	if covered.Preemptions < 8*count || covered.Victims < 15*count || covered.Violations < count {
		t.Errorf("%d pods preempt, with %d victims, %d of them protected by a budget", covered.Preemptions, covered.Victims, covered.Violations)
	}
}
