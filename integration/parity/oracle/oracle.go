package oracle

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Input is one cluster and the pods that are to be placed on it.
type Input struct {
	Cluster *Objects
	Pending []*v1.Pod
	Config  *schedulerapi.KubeSchedulerConfiguration
	// Choose, if set, picks among equally good nodes where kube-scheduler's own pick is random. It gets the pod's
	// namespace/name and the nodes, and returns one of them; any other answer means the first of them by name.
	Choose func(pod string, nodes []string) string
}

// Run places all pods, each with one attempt, in the order of the QueueSort plugin (file order breaks ties).
// The pods' verdicts come in that order, gated pods last.
func Run(ctx context.Context, in Input) ([]Verdict, error) {
	// What plugins log is noise here; an error that matters is in a verdict.
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	defer cancel()
	r, err := newRun(ctx, in)
	if err != nil {
		return nil, err
	}
	queue, gated, err := r.sort(ctx, in.Pending)
	if err != nil {
		return nil, err
	}
	verdicts := make([]Verdict, 0, len(in.Pending))
	for _, info := range queue {
		verdict, err := r.schedule(ctx, info)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", name(info.Pod), err)
		}
		verdicts = append(verdicts, verdict)
	}
	return append(verdicts, gated...), nil
}

// run is kube-scheduler's own cache, snapshot and frameworks, with nothing started.
type run struct {
	sched    *scheduler.Scheduler
	snapshot *cache.Snapshot
	logger   klog.Logger
	config   *schedulerapi.KubeSchedulerConfiguration
	choose   func(string, []string) string
	// start shadows the scheduler's private nextStartNodeIndex; every attempt checks that the two agree.
	start int
}

func newRun(ctx context.Context, in Input) (*run, error) {
	client := fake.NewClientset()
	recorder := func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	sched, err := scheduler.New(ctx, client, scheduler.NewInformerFactory(client, 0), nil, recorder,
		scheduler.WithComponentConfigVersion(in.Config.TypeMeta.APIVersion),
		scheduler.WithProfiles(in.Config.Profiles...),
		scheduler.WithPercentageOfNodesToScore(in.Config.PercentageOfNodesToScore),
		// With one worker the order of feasible nodes, and so sampling and ties, are reproducible.
		scheduler.WithParallelism(1))
	if err != nil {
		return nil, err
	}
	r := &run{sched: sched, logger: klog.FromContext(ctx), config: in.Config, choose: in.Choose}
	for _, node := range in.Cluster.Nodes {
		sched.Cache.AddNode(r.logger, node)
	}
	for _, pod := range in.Cluster.Pods {
		// The scheduler's informer does not ask for finished pods.
		if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
			continue
		}
		if err := sched.Cache.AddPod(r.logger, pod); err != nil {
			return nil, fmt.Errorf("running pod %s: %w", name(pod), err)
		}
	}
	for _, profile := range sched.Profiles {
		snapshot, ok := profile.SnapshotSharedLister().(*cache.Snapshot)
		if !ok {
			return nil, fmt.Errorf("snapshot is a %T", profile.SnapshotSharedLister())
		}
		r.snapshot = snapshot
	}
	return r, nil
}

// sort splits gated pods off and orders the others as the scheduling queue would.
func (r *run) sort(ctx context.Context, pending []*v1.Pod) ([]*framework.QueuedPodInfo, []Verdict, error) {
	var queue []*framework.QueuedPodInfo
	var gated []Verdict
	first := time.Unix(1_700_000_000, 0)
	for i, pod := range pending {
		profile, ok := r.sched.Profiles[pod.Spec.SchedulerName]
		if !ok {
			return nil, nil, fmt.Errorf("pod %s: no profile %q", name(pod), pod.Spec.SchedulerName)
		}
		// NewPodInfo reports selectors that cannot be parsed and is usable nonetheless.
		podInfo, _ := framework.NewPodInfo(pod)
		info := &framework.QueuedPodInfo{PodInfo: podInfo, Timestamp: first.Add(time.Duration(i) * time.Second)}
		if status := preEnqueue(ctx, profile, pod); !status.IsSuccess() {
			verdict := newVerdict(pod)
			verdict.Result, verdict.Message = Unschedulable, status.Message()
			gated = append(gated, verdict)
			continue
		}
		queue = append(queue, info)
	}
	less := r.sched.Profiles[r.config.Profiles[0].SchedulerName].QueueSortFunc()
	sort.SliceStable(queue, func(i, j int) bool { return less(queue[i], queue[j]) })
	return queue, gated, nil
}

func preEnqueue(ctx context.Context, profile framework.Framework, pod *v1.Pod) *fwk.Status {
	for _, plugin := range profile.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			return status
		}
	}
	return nil
}

func newVerdict(pod *v1.Pod) Verdict {
	return Verdict{Pod: name(pod), Filter: map[string]NodeRejection{}, Scores: map[string]NodeScore{}, Victims: []string{}}
}

func name(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

// schedule makes one attempt: Scheduler.SchedulePod decides; a walk through the same framework collects what
// SchedulePod does not tell; both must agree.
func (r *run) schedule(ctx context.Context, info *framework.QueuedPodInfo) (Verdict, error) {
	if err := r.sched.Cache.UpdateSnapshot(r.logger, r.snapshot); err != nil {
		return Verdict{}, err
	}
	profile := r.sched.Profiles[info.Pod.Spec.SchedulerName]
	verdict := newVerdict(info.Pod)
	w, err := r.walk(ctx, profile, info.Pod)
	if err != nil {
		return Verdict{}, err
	}
	result, err := r.sched.SchedulePod(ctx, profile, framework.NewCycleState(), info)
	w.fill(&verdict)
	var fitError *framework.FitError
	switch {
	case err == nil:
		verdict.Result, verdict.Node = Scheduled, result.SuggestedHost
		if err := w.agrees(result); err != nil {
			return Verdict{}, err
		}
		if w.unordered && len(w.best()) > 1 {
			verdict.FreeChoice = w.best()
			verdict.Node = verdict.FreeChoice[0]
			if r.choose != nil {
				if node := r.choose(verdict.Pod, verdict.FreeChoice); sets.New(verdict.FreeChoice...).Has(node) {
					verdict.Node = node
				}
			}
		}
		placed := info.Pod.DeepCopy()
		placed.Spec.NodeName = verdict.Node
		if err := r.sched.Cache.AddPod(r.logger, placed); err != nil {
			return Verdict{}, err
		}
	case errors.Is(err, scheduler.ErrNoNodesAvailable):
		verdict.Result, verdict.Message = Unschedulable, err.Error()
	case errors.As(err, &fitError):
		verdict.Result, verdict.Message = Unschedulable, fitError.Error()
		if err := w.agreesWithFitError(fitError); err != nil {
			return Verdict{}, err
		}
	default:
		verdict.Result, verdict.Message = Error, err.Error()
	}
	return verdict, nil
}

// RunFiles is Run on three files, the ones that `outboard simulate` is given.
func RunFiles(ctx context.Context, cluster, pods, config string, choose func(string, []string) string) ([]Verdict, error) {
	in := Input{Choose: choose}
	var err error
	if in.Config, err = LoadConfig(config); err != nil {
		return nil, err
	}
	if in.Cluster, err = LoadObjects(cluster); err != nil {
		return nil, err
	}
	pending, err := LoadObjects(pods)
	if err != nil {
		return nil, err
	}
	in.Pending = pending.Pods
	return Run(ctx, in)
}
