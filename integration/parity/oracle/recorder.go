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
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// recorder is a profile's framework that records its answers: every node's verdict and every score of one attempt.
type recorder struct {
	framework.Framework
	pod *v1.Pod

	preFilter *fwk.Status
	// narrowed are the nodes to which PreFilter plugins limit the search, and narrowers these plugins.
	narrowed  *fwk.PreFilterResult
	narrowers sets.Set[string]
	examined  []string
	rejected  map[string]*fwk.Status
	failed    bool
	// scored are the nodes that passed, if scoring began; scores is nil if it failed.
	scored []fwk.NodeInfo
	scores []fwk.NodePluginScores
	// unordered: kube-scheduler examined the nodes in the order of a Go map.
	unordered bool
}

func newRecorder(profile framework.Framework, pod *v1.Pod) *recorder {
	return &recorder{Framework: profile, pod: pod, rejected: map[string]*fwk.Status{}}
}

func (r *recorder) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	narrowed, status, plugins := r.Framework.RunPreFilterPlugins(ctx, state, pod)
	// The scheduler later adds plugins to this set.
	r.narrowed, r.preFilter, r.narrowers = narrowed, status, plugins.Clone()
	return narrowed, status, plugins
}

func (r *recorder) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	status := r.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
	node := info.Node().Name
	r.examined = append(r.examined, node)
	if status.Code() == fwk.Error {
		r.failed = true
	} else if !status.IsSuccess() {
		r.rejected[node] = status
		if len(r.examined) == 1 && node == r.pod.Status.NominatedNodeName && r.narrowers != nil && status.Plugin() != "" {
			// Read before the others: the scheduler adds the plugin to its set before it reports who narrowed the
			// search.
			r.narrowers.Insert(status.Plugin())
		}
	}
	return status
}

func (r *recorder) RunPreScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	r.scored = nodes
	return r.Framework.RunPreScorePlugins(ctx, state, pod, nodes)
}

func (r *recorder) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	scores, status := r.Framework.RunScorePlugins(ctx, state, pod, nodes)
	if status.IsSuccess() {
		// The scheduler turns the list into a heap.
		r.scores = slices.Clone(scores)
	}
	return scores, status
}

// nominatedOnly: the pod's nominated node was examined first and was feasible.
func (r *recorder) nominatedOnly() bool {
	return len(r.examined) == 1 && r.examined[0] == r.pod.Status.NominatedNodeName && len(r.rejected) == 0 && !r.failed
}

// feasible is the number of nodes that passed and could have been selected.
func (r *recorder) feasible() int {
	if r.scored != nil {
		return len(r.scored)
	}
	if len(sets.New(r.examined...)) > len(r.rejected) && !r.failed {
		return 1
	}
	return 0
}

// fill writes the record into the verdict.
func (r *recorder) fill(verdict *Verdict, snapshot *cache.Snapshot) error {
	verdict.Feasible, verdict.Examined = r.feasible(), r.feasible()+len(r.rejected)
	for node, status := range r.rejected {
		verdict.Filter[node] = rejection(status)
	}
	for _, node := range r.scores {
		score := NodeScore{Total: node.TotalScore, Plugins: map[string]int64{}}
		for _, plugin := range node.Scores {
			score.Plugins[plugin.Name] = plugin.Score
		}
		verdict.Scores[node.Name] = score
	}
	if !r.preFilter.IsSuccess() || r.narrowed.AllNodes() || r.nominatedOnly() {
		return nil
	}
	return r.fillNarrowed(verdict, snapshot)
}

// fillNarrowed adds verdicts for the nodes that PreFilter plugins excluded by not naming them.
func (r *recorder) fillNarrowed(verdict *Verdict, snapshot *cache.Snapshot) error {
	all, err := snapshot.List()
	if err != nil {
		return err
	}
	outside := fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(r.narrowers)))
	inside := 0
	for _, info := range all {
		if name := info.Node().Name; r.narrowed.NodeNames.Has(name) {
			inside++
		} else if _, examined := r.rejected[name]; !examined {
			verdict.Filter[name] = rejection(outside)
		}
	}
	r.unordered = inside > 1
	if r.unordered && !r.failed && verdict.Examined < inside {
		return fmt.Errorf("a sample of %d nodes in random order is not reproducible", inside)
	}
	return nil
}

func rejection(status *fwk.Status) NodeRejection {
	return NodeRejection{Code: status.Code().String(), Plugin: status.Plugin(), Reasons: CanonicalReasons(status.Reasons())}
}

// best returns the nodes with the highest total, sorted by name.
func (r *recorder) best() []string {
	var nodes []string
	var total int64
	for _, node := range r.scores {
		if len(nodes) == 0 || node.TotalScore > total {
			nodes, total = nil, node.TotalScore
		}
		if node.TotalScore == total {
			nodes = append(nodes, node.Name)
		}
	}
	sort.Strings(nodes)
	return nodes
}

// agrees compares the record with the result of SchedulePod for a pod that it placed.
func (r *recorder) agrees(result scheduler.ScheduleResult) error {
	if result.FeasibleNodes != r.feasible() || result.EvaluatedNodes != r.feasible()+len(r.rejected) {
		return fmt.Errorf("kube-scheduler found %d feasible of %d evaluated nodes, recorded %d of %d",
			result.FeasibleNodes, result.EvaluatedNodes, r.feasible(), r.feasible()+len(r.rejected))
	}
	if best := r.best(); r.scores != nil && !slices.Contains(best, result.SuggestedHost) {
		return fmt.Errorf("kube-scheduler chose %q, best recorded nodes %v", result.SuggestedHost, best)
	}
	return nil
}

// agreesWithFitError compares the record with the diagnosis of a pod that SchedulePod rejected.
func (r *recorder) agreesWithFitError(fitError *framework.FitError) error {
	statuses := fitError.Diagnosis.NodeToStatus
	if !r.preFilter.IsSuccess() {
		if fitError.Diagnosis.PreFilterMsg != r.preFilter.Message() {
			return fmt.Errorf("PreFilter's message is %q, then %q", fitError.Diagnosis.PreFilterMsg, r.preFilter.Message())
		}
		return nil
	}
	if statuses.Len() != len(r.rejected) || r.feasible() != 0 {
		return fmt.Errorf("kube-scheduler rejected %d nodes, recorded %d rejected and %d feasible",
			statuses.Len(), len(r.rejected), r.feasible())
	}
	return nil
}
