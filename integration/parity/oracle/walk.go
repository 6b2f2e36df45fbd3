package oracle

import (
	"context"
	"fmt"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// walk is what one attempt saw: every node's verdict and every score.
type walk struct {
	preFilter *fwk.Status
	feasible  []fwk.NodeInfo
	rejected  map[string]*fwk.Status
	// outside is the status of nodes that a PreFilter plugin ruled out by name, and outsiders are these nodes.
	outside   *fwk.Status
	outsiders []string
	scores    []fwk.NodePluginScores
	// unordered: kube-scheduler examined the nodes in the order of a Go map.
	unordered bool
}

func (r *run) walk(ctx context.Context, profile framework.Framework, pod *v1.Pod) (*walk, error) {
	w := &walk{rejected: map[string]*fwk.Status{}}
	all, err := r.snapshot.List()
	if err != nil || len(all) == 0 {
		return w, err
	}
	state := framework.NewCycleState()
	narrowed, status, plugins := profile.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		w.preFilter = status
		return w, nil
	}
	nodes := all
	if !narrowed.AllNodes() {
		nodes = nil
		for _, info := range all {
			if narrowed.NodeNames.Has(info.Node().Name) {
				nodes = append(nodes, info)
			} else {
				w.outsiders = append(w.outsiders, info.Node().Name)
			}
		}
		w.outside = fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(plugins)))
		w.unordered = len(nodes) > 1
	}
	if w.unordered && r.wanted(profile, len(nodes)) < len(nodes) {
		return nil, fmt.Errorf("a sample of %d nodes in random order cannot be reproduced", len(nodes))
	}
	err = r.filter(ctx, profile, state, pod, nodes, w)
	r.start = (r.start + len(w.feasible) + len(w.rejected)) % len(all)
	if err != nil || len(w.feasible) < 2 || !profile.HasScorePlugins() {
		// SchedulePod meets the same error and reports it.
		return w, nil
	}
	if status := profile.RunPreScorePlugins(ctx, state, pod, w.feasible); !status.IsSuccess() {
		return w, nil
	}
	w.scores, status = profile.RunScorePlugins(ctx, state, pod, w.feasible)
	if !status.IsSuccess() {
		w.scores = nil
	}
	return w, nil
}

// filter examines nodes from the rotating start until one more than enough are feasible.
func (r *run) filter(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo, w *walk) error {
	wanted := r.wanted(profile, len(nodes))
	for i := range nodes {
		info := nodes[(r.start+i)%len(nodes)]
		status := profile.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
		switch {
		case status.Code() == fwk.Error:
			return status.AsError()
		case !status.IsSuccess():
			w.rejected[info.Node().Name] = status
		case len(w.feasible) == wanted:
			return nil
		default:
			w.feasible = append(w.feasible, info)
		}
	}
	return nil
}

// wanted is the number of feasible nodes after which kube-scheduler stops looking.
func (r *run) wanted(profile framework.Framework, nodes int) int {
	if !profile.HasScorePlugins() {
		return 1
	}
	if nodes < 100 {
		return nodes
	}
	percentage := int32(0)
	if own := profile.PercentageOfNodesToScore(); own != nil {
		percentage = *own
	} else if global := r.config.PercentageOfNodesToScore; global != nil {
		percentage = *global
	}
	if percentage == 0 {
		percentage = max(50-int32(nodes)/125, 5)
	}
	return max(nodes*int(percentage)/100, 100)
}

func (w *walk) fill(verdict *Verdict) {
	verdict.Feasible, verdict.Examined = len(w.feasible), len(w.feasible)+len(w.rejected)
	for node, status := range w.rejected {
		verdict.Filter[node] = rejection(status)
	}
	for _, node := range w.outsiders {
		verdict.Filter[node] = rejection(w.outside)
	}
	for _, node := range w.scores {
		score := NodeScore{Total: node.TotalScore, Plugins: map[string]int64{}}
		for _, plugin := range node.Scores {
			score.Plugins[plugin.Name] = plugin.Score
		}
		verdict.Scores[node.Name] = score
	}
}

func rejection(status *fwk.Status) NodeRejection {
	return NodeRejection{Code: status.Code().String(), Plugin: status.Plugin(), Reasons: CanonicalReasons(status.Reasons())}
}

// best returns the nodes with the highest total, sorted by name.
func (w *walk) best() []string {
	var nodes []string
	var total int64
	for _, node := range w.scores {
		if len(nodes) == 0 || node.TotalScore > total {
			nodes, total = nil, node.TotalScore
		}
		if node.TotalScore == total {
			nodes = append(nodes, node.Name)
		}
	}
	if w.scores == nil {
		for _, info := range w.feasible {
			nodes = append(nodes, info.Node().Name)
		}
	}
	sort.Strings(nodes)
	return nodes
}

// agrees checks the walk against what SchedulePod did for a pod that it placed.
func (w *walk) agrees(result scheduler.ScheduleResult) error {
	if result.FeasibleNodes != len(w.feasible) || result.EvaluatedNodes != len(w.feasible)+len(w.rejected) {
		return fmt.Errorf("kube-scheduler found %d feasible of %d evaluated nodes, the walk %d of %d",
			result.FeasibleNodes, result.EvaluatedNodes, len(w.feasible), len(w.feasible)+len(w.rejected))
	}
	if best := w.best(); !slices.Contains(best, result.SuggestedHost) {
		return fmt.Errorf("kube-scheduler chose %q, the walk's best are %v", result.SuggestedHost, best)
	}
	return nil
}

// agreesWithFitError checks the walk against the diagnosis of a pod that SchedulePod refused.
func (w *walk) agreesWithFitError(fitError *framework.FitError) error {
	statuses := fitError.Diagnosis.NodeToStatus
	if w.preFilter != nil {
		if fitError.Diagnosis.PreFilterMsg != w.preFilter.Message() {
			return fmt.Errorf("PreFilter says %q, then %q", fitError.Diagnosis.PreFilterMsg, w.preFilter.Message())
		}
		return nil
	}
	if statuses.Len() != len(w.rejected) || len(w.feasible) != 0 {
		return fmt.Errorf("kube-scheduler rejected %d nodes, the walk %d and found %d feasible",
			statuses.Len(), len(w.rejected), len(w.feasible))
	}
	for node, status := range w.rejected {
		theirs := rejection(statuses.Get(node))
		if ours := rejection(status); ours.Code != theirs.Code || ours.Plugin != theirs.Plugin ||
			!slices.Equal(ours.Reasons, theirs.Reasons) {
			return fmt.Errorf("node %s: kube-scheduler says %v, the walk %v", node, theirs, ours)
		}
	}
	return nil
}
