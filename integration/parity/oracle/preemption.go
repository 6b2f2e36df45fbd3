package oracle

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clienttesting "k8s.io/client-go/testing"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// postFilter runs the profile's PostFilter plugins for a pod that fits nowhere, and deletes the victims at once.
func (r *run) postFilter(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod,
	fitError *framework.FitError, verdict *Verdict) (*fwk.NominatingInfo, error) {
	if !profile.HasPostFilterPlugins() {
		return clearNomination, nil
	}
	equals, err := r.equalCandidates(ctx, profile, state, pod, fitError.Diagnosis.NodeToStatus)
	if err != nil {
		return nil, err
	}
	r.client.ClearActions()
	result, status := profile.RunPostFilterPlugins(ctx, state, pod, fitError.Diagnosis.NodeToStatus)
	fitError.Diagnosis.PostFilterMsg = status.Message()
	if result == nil {
		return nil, nil
	}
	if result.NominatedNodeName == "" {
		return result.NominatingInfo, nil
	}
	victims, ok := equals[result.NominatedNodeName]
	if !ok {
		return nil, fmt.Errorf("kube-scheduler preempts on %q, the best candidates are %v", result.NominatedNodeName, equals)
	}
	if deleted := deletions(r.client.Actions()); !slices.Equal(deleted, effects(victims)) {
		return nil, fmt.Errorf("kube-scheduler deletes %v, a dry run %v", deleted, effects(victims))
	}
	node := result.NominatedNodeName
	if len(equals) > 1 {
		for name := range equals {
			verdict.FreeChoice = append(verdict.FreeChoice, name)
		}
		sort.Strings(verdict.FreeChoice)
		node = r.pick(verdict.Pod, verdict.FreeChoice)
	}
	verdict.Result, verdict.NominatedNode = Preempting, node
	for _, victim := range equals[node].Pods {
		verdict.Victims = append(verdict.Victims, name(victim))
	}
	verdict.Violations = equals[node].NumPDBViolations
	if err := r.evict(ctx, pod, node, equals[node]); err != nil {
		return nil, err
	}
	return &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: node}, nil
}

// evict deletes the victims and removes nominations of pods of lower priority to the node. Victims that are being
// deleted stay, because the end of their deletion is unknown. Without other victims nothing is done (as with
// asynchronous preemption, the default).
func (r *run) evict(ctx context.Context, preemptor *v1.Pod, node string, victims *extenderv1.Victims) error {
	if len(effects(victims)) == 0 {
		return nil
	}
	for _, victim := range victims.Pods {
		if victim.DeletionTimestamp != nil {
			continue
		}
		if err := r.sched.Cache.RemovePod(r.logger, victim); err != nil {
			return err
		}
		if err := r.informers.Core().V1().Pods().Informer().GetIndexer().Delete(victim); err != nil {
			return err
		}
	}
	for _, info := range r.sched.SchedulingQueue.NominatedPodsForNode(node) {
		other := info.GetPod()
		if corev1helpers.PodPriority(other) < corev1helpers.PodPriority(preemptor) {
			if err := r.nominate(ctx, other, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// effects returns the deletions that a selection of victims causes, without pods that are already being deleted.
func effects(victims *extenderv1.Victims) []string {
	names := []string{}
	for _, victim := range victims.Pods {
		if victim.DeletionTimestamp == nil {
			names = append(names, name(victim))
		}
	}
	return names
}

func deletions(actions []clienttesting.Action) []string {
	names := []string{}
	for _, action := range actions {
		if deletion, ok := action.(clienttesting.DeleteAction); ok && action.GetResource().Resource == "pods" {
			names = append(names, deletion.GetNamespace()+"/"+deletion.GetName())
		}
	}
	return names
}

// equalCandidates makes DefaultPreemption's dry run and returns the candidates among which its choice would be
// random. It returns an error for a cluster in which the candidates themselves are selected at random.
func (r *run) equalCandidates(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod,
	statuses *framework.NodeToStatus) (map[string]*extenderv1.Victims, error) {
	args := r.preemptionArgs(profile.ProfileName())
	if args == nil {
		return nil, nil
	}
	plugin, err := defaultpreemption.New(ctx, args, profile, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, err
	}
	if ok, _ := plugin.PodEligibleToPreemptOthers(ctx, pod, statuses.Get(pod.Status.NominatedNodeName)); !ok {
		return nil, nil
	}
	nodes, err := statuses.NodesForStatusCode(profile.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	_, wanted := plugin.GetOffsetAndNumCandidates(int32(len(nodes)))
	budgets, err := r.informers.Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
	if err != nil {
		return nil, err
	}
	candidates, _, _ := plugin.Evaluator.DryRunPreemption(ctx, state, pod, nodes, budgets, 0, int32(len(nodes)))
	if len(candidates) > int(wanted) {
		return nil, fmt.Errorf("%d of %d candidates for preemption are dropped at random", len(candidates)-int(wanted), len(candidates))
	}
	return best(plugin.CandidatesToVictimsMap(candidates)), nil
}

func (r *run) preemptionArgs(profile string) *schedulerapi.DefaultPreemptionArgs {
	for i := range r.config.Profiles {
		if r.config.Profiles[i].SchedulerName != profile {
			continue
		}
		for _, config := range r.config.Profiles[i].PluginConfig {
			if args, ok := config.Args.(*schedulerapi.DefaultPreemptionArgs); ok {
				return args
			}
		}
	}
	return nil
}

// best keeps the candidates that are equal by all of kube-scheduler's criteria, and better than the others.
func best(candidates map[string]*extenderv1.Victims) map[string]*extenderv1.Victims {
	var names []string
	for name := range candidates {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	sort.Strings(names)
	compare := func(a, b string) int {
		x, y := candidates[a], candidates[b]
		return cmp.Or(
			cmp.Compare(x.NumPDBViolations, y.NumPDBViolations),
			cmp.Compare(corev1helpers.PodPriority(x.Pods[0]), corev1helpers.PodPriority(y.Pods[0])),
			cmp.Compare(sumOfPriorities(x), sumOfPriorities(y)),
			cmp.Compare(len(x.Pods), len(y.Pods)),
			startedAt(y).Compare(startedAt(x).Time))
	}
	first := slices.MinFunc(names, compare)
	equals := map[string]*extenderv1.Victims{}
	for _, name := range names {
		if compare(name, first) == 0 {
			equals[name] = candidates[name]
		}
	}
	return equals
}

func sumOfPriorities(victims *extenderv1.Victims) int64 {
	var sum int64
	for _, pod := range victims.Pods {
		sum += int64(corev1helpers.PodPriority(pod)) + math.MaxInt32 + 1
	}
	return sum
}

func startedAt(victims *extenderv1.Victims) *metav1.Time {
	return util.GetEarliestPodStartTime(victims)
}
