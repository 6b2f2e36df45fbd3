// Package compare runs a generated case through kube-scheduler's code and through `outboard simulate`, and returns
// the differences.
package compare

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	"outboard.dev/integration/parity/oracle"
)

// Difference is one difference. Node is empty for differences of the whole pod.
type Difference struct {
	Pod, What, Node  string
	Expected, Actual string
}

func (d Difference) String() string {
	where := "pod " + d.Pod
	if d.Node != "" {
		where += ", node " + d.Node
	}
	return fmt.Sprintf("%s: %s\n  kube-scheduler: %s\n  outboard:       %s", where, d.What, d.Expected, d.Actual)
}

// Totals counts the compared items.
type Totals struct {
	Clusters, Pods, Scheduled, Unschedulable, Errors int
	// Verdicts are nodes that were examined or excluded by name, Scores single weighted plugin scores.
	Verdicts, Scores int
	// FreeChoices are pods for which kube-scheduler's own choice is random; any of the best nodes is accepted.
	FreeChoices int
	// Claims are outcomes of device claims; they are compared if the other side lists effects on objects.
	Claims, ClaimsCompared int
	Differences            int
}

// Add adds other to t.
func (t *Totals) Add(other Totals) {
	t.Clusters += other.Clusters
	t.Pods += other.Pods
	t.Scheduled += other.Scheduled
	t.Unschedulable += other.Unschedulable
	t.Errors += other.Errors
	t.Verdicts += other.Verdicts
	t.Scores += other.Scores
	t.FreeChoices += other.FreeChoices
	t.Claims += other.Claims
	t.ClaimsCompared += other.ClaimsCompared
	t.Differences += other.Differences
}

func (t Totals) String() string {
	claims := ""
	if t.Claims > 0 {
		claims = fmt.Sprintf(", %d changes of claims for devices (%d compared)", t.Claims, t.ClaimsCompared)
	}
	return fmt.Sprintf("%d clusters, %d pods (%d scheduled, %d unschedulable, %d errors; %d with a random pick), "+
		"%d verdicts on nodes, %d plugin scores%s: %d differences",
		t.Clusters, t.Pods, t.Scheduled, t.Unschedulable, t.Errors, t.FreeChoices, t.Verdicts, t.Scores, claims, t.Differences)
}

// Count counts the verdicts of one case.
func Count(verdicts []oracle.Verdict) Totals {
	totals := Totals{Clusters: 1, Pods: len(verdicts)}
	for _, verdict := range verdicts {
		switch verdict.Result {
		case oracle.Scheduled:
			totals.Scheduled++
		case oracle.Unschedulable, oracle.Preempting:
			totals.Unschedulable++
		default:
			totals.Errors++
		}
		if verdict.FreeChoice != nil {
			totals.FreeChoices++
		}
		totals.Claims += len(verdict.Claims)
		totals.Verdicts += verdict.Feasible + len(verdict.Filter)
		for _, score := range verdict.Scores {
			totals.Scores += len(score.Plugins)
		}
	}
	return totals
}

// Diff lists all differences, in the order of the pods.
func Diff(expected, actual []oracle.Verdict) []Difference {
	var differences []Difference
	if names, got := order(expected, expected), order(actual, expected); !slices.Equal(names, got) {
		at := 0
		for at < min(len(names), len(got)) && names[at] == got[at] {
			at++
		}
		differences = append(differences, Difference{Pod: element(names, at), What: fmt.Sprintf("the order of pods, at position %d", at),
			Expected: element(names, at), Actual: element(got, at)})
	}
	byPod := map[string]oracle.Verdict{}
	for _, verdict := range actual {
		byPod[verdict.Pod] = verdict
	}
	says := SaysEffects(actual)
	for _, want := range expected {
		got, ok := byPod[want.Pod]
		if !ok {
			differences = append(differences, Difference{Pod: want.Pod, What: "missing pod", Expected: want.Result, Actual: "nothing"})
			continue
		}
		differences = append(differences, diffPod(want, got)...)
		// Actions that a plugin starts itself, such as PostFilter's deallocation of claims, are in no pod's line.
		if says && want.Result == oracle.Scheduled {
			differences = append(differences, diffClaims(want, got)...)
		}
	}
	return differences
}

// SaysEffects: a program that lists effects lists those of every pod; the line of a pod without effects has no such
// field.
func SaysEffects(verdicts []oracle.Verdict) bool {
	return slices.ContainsFunc(verdicts, func(verdict oracle.Verdict) bool { return len(verdict.Effects) > 0 })
}

func diffClaims(want, got oracle.Verdict) []Difference {
	byName := func(claims []oracle.ClaimOutcome) map[string]string {
		outcomes := map[string]string{}
		for _, claim := range claims {
			outcomes[claim.Name] = claim.String()
		}
		return outcomes
	}
	var differences []Difference
	expected, actual := byName(want.Claims), byName(got.Claims)
	for _, name := range keys(expected, actual) {
		if expected[name] != actual[name] {
			differences = append(differences, Difference{Pod: want.Pod, What: "claim " + name, Expected: expected[name], Actual: actual[name]})
		}
	}
	return differences
}

// order lists pods in order, without the pods that by `expected` wait for their volumes: these end in the order in which
// a volume controller happens to serve them.
func order(verdicts, expected []oracle.Verdict) []string {
	late := map[string]bool{}
	for _, verdict := range expected {
		late[verdict.Pod] = verdict.AwaitsVolumes
	}
	var names []string
	for _, verdict := range verdicts {
		if !late[verdict.Pod] {
			names = append(names, verdict.Pod)
		}
	}
	return names
}

func element(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(end)"
}

func diffPod(want, got oracle.Verdict) []Difference {
	var differences []Difference
	add := func(node, what string, expected, actual any) {
		e, a := fmt.Sprint(expected), fmt.Sprint(actual)
		if e != a {
			differences = append(differences, Difference{Pod: want.Pod, What: what, Node: node, Expected: e, Actual: a})
		}
	}
	add("", "result", want.Result, got.Result)
	add("", "node", want.Node, got.Node)
	add("", "message", want.Message, got.Message)
	add("", "nominatedNode", want.NominatedNode, got.NominatedNode)
	add("", "victims", want.Victims, got.Victims)
	for _, node := range keys(want.Filter, got.Filter) {
		w, inWant := want.Filter[node]
		g, inGot := got.Filter[node]
		add(node, "verdict", describe(w, inWant), describe(g, inGot))
	}
	for _, node := range keys(want.Scores, got.Scores) {
		w, inWant := want.Scores[node]
		g, inGot := got.Scores[node]
		if inWant != inGot {
			add(node, "scored", inWant, inGot)
			continue
		}
		add(node, "total score", w.Total, g.Total)
		for _, plugin := range keys(w.Plugins, g.Plugins) {
			add(node, "score of "+plugin, value(w.Plugins, plugin), value(g.Plugins, plugin))
		}
	}
	return differences
}

func describe(rejection oracle.NodeRejection, present bool) string {
	if !present {
		return "not rejected"
	}
	return fmt.Sprintf("%s by %q: %q", rejection.Code, rejection.Plugin, oracle.CanonicalReasons(rejection.Reasons))
}

func value(scores map[string]int64, plugin string) string {
	if score, ok := scores[plugin]; ok {
		return fmt.Sprint(score)
	}
	return "absent"
}

// keys returns the sorted union of the keys of two maps.
func keys[V any](a, b map[string]V) []string {
	all := map[string]bool{}
	for key := range a {
		all[key] = true
	}
	for key := range b {
		all[key] = true
	}
	list := slices.Collect(maps.Keys(all))
	sort.Strings(list)
	return list
}
