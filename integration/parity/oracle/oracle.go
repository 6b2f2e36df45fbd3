package oracle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	testclock "k8s.io/utils/clock/testing"
)

// Input is a cluster and the pods to place on it.
type Input struct {
	Cluster *Objects
	// Pods are the pods to place; pods with a node belong to the cluster in whichever file they are.
	Pods   *Objects
	Config *schedulerapi.KubeSchedulerConfiguration
	// Choose, if set, selects among equally good nodes where kube-scheduler's own choice is random. It gets the pod's
	// namespace/name and the nodes, and returns one of them; any other result means the first of them by name.
	Choose func(pod string, nodes []string) string
}

func init() {
	// Victims are deleted before PostFilter returns, so that the order of effects is comparable; and every pod runs
	// all plugins, without hints from the previous pod.
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		string(features.SchedulerAsyncPreemption): false,
		string(features.OpportunisticBatching):    false,
	}); err != nil {
		panic(err)
	}
}

// Run places all pods, with one attempt each, in the order of the scheduling queue. The verdicts are in that order,
// except that those of pods that wait for their volumes and of gated pods come last.
func Run(ctx context.Context, in Input) ([]Verdict, error) {
	// The plugins' logs are not needed; errors are in the verdicts.
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	defer cancel()
	r, err := newRun(ctx, in)
	if err != nil {
		return nil, err
	}
	waiting, gated, err := r.enqueue(ctx)
	if err != nil {
		return nil, err
	}
	verdicts := make([]Verdict, 0, waiting+len(gated))
	var late []Verdict
	attempted := sets.New[string]()
	for attempted.Len() < waiting {
		info, err := r.sched.NextPod(r.logger)
		if err != nil {
			return nil, err
		}
		if attempted.Has(name(info.Pod)) {
			// An event requeued it. It had its attempt.
			if err := r.sched.SchedulingQueue.AddUnschedulableIfNotPresent(r.logger, info, r.sched.SchedulingQueue.SchedulingCycle()); err != nil {
				return nil, err
			}
			continue
		}
		attempted.Insert(name(info.Pod))
		verdict, err := r.schedule(ctx, info)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", name(info.Pod), err)
		}
		if verdict.AwaitsVolumes {
			late = append(late, verdict)
		} else {
			verdicts = append(verdicts, verdict)
		}
	}
	return append(append(verdicts, late...), gated...), nil
}

// run is kube-scheduler's own queue, cache, snapshot and frameworks, none of them started. Informers hold the objects
// of manifests and placements and deliver no events, except those of claims, slices and device classes (makeStill).
type run struct {
	sched     *scheduler.Scheduler
	informers informers.SharedInformerFactory
	client    *fake.Clientset
	clock     *testclock.FakeClock
	snapshot  *cache.Snapshot
	logger    klog.Logger
	config    *schedulerapi.KubeSchedulerConfiguration
	choose    func(string, []string) string
	pending   []*v1.Pod
	claims    *claimServer
}

func newRun(ctx context.Context, in Input) (*run, error) {
	r := &run{client: &fake.Clientset{}, clock: testclock.NewFakeClock(time.Unix(1_700_000_000, 0)), logger: klog.FromContext(ctx),
		config: in.Config, choose: in.Choose}
	r.informers = scheduler.NewInformerFactory(r.client, 0)
	makeStill(r.informers)
	if err := r.serveClaims(); err != nil {
		return nil, err
	}
	recorder := func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	var err error
	r.sched, err = scheduler.New(ctx, r.client, r.informers, nil, recorder,
		scheduler.WithComponentConfigVersion(in.Config.TypeMeta.APIVersion),
		scheduler.WithProfiles(in.Config.Profiles...),
		scheduler.WithPercentageOfNodesToScore(in.Config.PercentageOfNodesToScore),
		scheduler.WithClock(r.clock),
		// With one worker the order of feasible nodes, and so sampling and ties, are reproducible.
		scheduler.WithParallelism(1))
	if err != nil {
		return nil, err
	}
	for _, profile := range r.sched.Profiles {
		snapshot, ok := profile.SnapshotSharedLister().(*cache.Snapshot)
		if !ok {
			return nil, fmt.Errorf("unexpected snapshot type %T", profile.SnapshotSharedLister())
		}
		r.snapshot = snapshot
	}
	return r, r.fill(in)
}

// fill adds the cluster to cache and informers, in file order, and collects the pods without a node.
func (r *run) fill(in Input) error {
	for _, objects := range []*Objects{in.Cluster, in.Pods} {
		for _, node := range objects.Nodes {
			r.sched.Cache.AddNode(r.logger, node)
		}
		for _, object := range objects.Others {
			informer, err := r.informerOf(object)
			if err != nil {
				return err
			}
			if err := store(informer, object); err != nil {
				return err
			}
		}
		for _, pod := range objects.Pods {
			// The scheduler's informer excludes finished pods.
			if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
				continue
			}
			if err := r.keep(pod); err != nil {
				return err
			}
			if pod.Spec.NodeName == "" {
				r.pending = append(r.pending, pod)
			} else if err := r.sched.Cache.AddPod(r.logger, pod); err != nil {
				return fmt.Errorf("running pod %s: %w", name(pod), err)
			}
		}
	}
	return nil
}

// keep stores a pod, or its newest version, in the informer.
func (r *run) keep(pod *v1.Pod) error {
	return r.informers.Core().V1().Pods().Informer().GetIndexer().Update(pod)
}

// enqueue queues the pending pods in file order. It returns the number of pods that wait for an attempt, and the
// verdicts of the others.
func (r *run) enqueue(ctx context.Context) (int, []Verdict, error) {
	var gated []Verdict
	for _, pod := range r.pending {
		profile, ok := r.sched.Profiles[pod.Spec.SchedulerName]
		if !ok {
			return 0, nil, fmt.Errorf("pod %s: unknown profile %q", name(pod), pod.Spec.SchedulerName)
		}
		if status := preEnqueue(ctx, profile, pod); !status.IsSuccess() {
			verdict := newVerdict(pod)
			verdict.Result, verdict.Message = Unschedulable, status.Message()
			gated = append(gated, verdict)
		}
		// Gated pods are added, too; the queue handles them.
		r.sched.SchedulingQueue.Add(ctx, pod)
		r.clock.Step(time.Second)
	}
	return len(r.pending) - len(gated), gated, nil
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

// schedule makes one attempt and records its effects on claims.
func (r *run) schedule(ctx context.Context, info *framework.QueuedPodInfo) (Verdict, error) {
	r.claims.takeWritten()
	pod := info.Pod
	verdict, err := r.attempt(ctx, info)
	if err == nil {
		err = r.recordClaims(pod, &verdict)
	}
	return verdict, err
}

// attempt makes one attempt like Scheduler.ScheduleOne: SchedulePod through a framework that records the plugins'
// answers, then assume and Reserve, or PostFilter and back to the queue. Of the binding cycle only the end is
// simulated: it succeeds at once.
func (r *run) attempt(ctx context.Context, info *framework.QueuedPodInfo) (Verdict, error) {
	if err := r.sched.Cache.UpdateSnapshot(r.logger, r.snapshot); err != nil {
		return Verdict{}, err
	}
	profile := r.sched.Profiles[info.Pod.Spec.SchedulerName]
	record := newRecorder(profile, info.Pod)
	state := framework.NewCycleState()
	verdict := newVerdict(info.Pod)
	result, err := r.sched.SchedulePod(ctx, record, state, info)
	if err := record.fill(&verdict, r.snapshot); err != nil {
		return Verdict{}, err
	}
	var fitError *framework.FitError
	switch {
	case err == nil:
		verdict.Result, verdict.Node = Scheduled, result.SuggestedHost
		if err := record.agrees(result); err != nil {
			return Verdict{}, err
		}
		if record.unordered && len(record.best()) > 1 {
			verdict.FreeChoice = record.best()
			verdict.Node = r.pick(verdict.Pod, verdict.FreeChoice)
		}
		err := r.place(ctx, profile, state, info, &verdict)
		return verdict, err
	case errors.As(err, &fitError):
		verdict.Result = Unschedulable
		if err := record.agreesWithFitError(fitError); err != nil {
			return Verdict{}, err
		}
		nomination, err := r.postFilter(ctx, profile, state, info.Pod, fitError, &verdict)
		if err != nil {
			return Verdict{}, err
		}
		verdict.Message = fitError.Error()
		return verdict, r.giveBack(ctx, profile, info, fwk.NewStatus(fwk.Unschedulable).WithError(fitError), nomination)
	case errors.Is(err, scheduler.ErrNoNodesAvailable):
		verdict.Result, verdict.Message = Unschedulable, err.Error()
		return verdict, r.giveBack(ctx, profile, info, fwk.NewStatus(fwk.UnschedulableAndUnresolvable).WithError(err), clearNomination)
	default:
		verdict.Result, verdict.Message = Error, err.Error()
		return verdict, r.giveBack(ctx, profile, info, fwk.AsStatus(err), clearNomination)
	}
}

var clearNomination = &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride}

// pick selects one of several nodes among which kube-scheduler chooses at random.
func (r *run) pick(pod string, nodes []string) string {
	if r.choose != nil {
		if node := r.choose(pod, nodes); sets.New(nodes...).Has(node) {
			return node
		}
	}
	return nodes[0]
}

// place puts the pod on its node permanently.
func (r *run) place(ctx context.Context, profile framework.Framework, state fwk.CycleState, info *framework.QueuedPodInfo, verdict *Verdict) error {
	placed := info.Pod.DeepCopy()
	placed.Spec.NodeName = verdict.Node
	if err := r.sched.Cache.AddPod(r.logger, placed); err != nil {
		return err
	}
	r.sched.SchedulingQueue.DeleteNominatedPodIfExists(placed)
	status := profile.RunReservePluginsReserve(ctx, state, placed, verdict.Node)
	if status.IsSuccess() {
		status = r.bindClaims(ctx, profile, state, placed, verdict)
	}
	if !status.IsSuccess() {
		profile.RunReservePluginsUnreserve(ctx, state, placed, verdict.Node)
		if err := r.sched.Cache.RemovePod(r.logger, placed); err != nil {
			return err
		}
		verdict.Result, verdict.Node, verdict.Message = Error, "", status.Message()
		return r.giveBack(ctx, profile, info, status, clearNomination)
	}
	// Remaining work before the bind: device claims are done, VolumeBinding's work may not be.
	verdict.AwaitsVolumes = hasVolumeClaims(placed) && profile.RunPreBindPreFlights(ctx, state, placed, verdict.Node).IsSuccess()
	r.sched.SchedulingQueue.Done(placed.UID)
	return r.keep(placed)
}

// giveBack returns a pod without a node to the queue, and writes its nomination into its status in the informer.
func (r *run) giveBack(ctx context.Context, profile framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status,
	nomination *fwk.NominatingInfo) error {
	pod := info.Pod
	r.sched.FailureHandler(ctx, profile, info, status, nomination, r.clock.Now())
	if nomination.Mode() == fwk.ModeOverride {
		return r.nominate(ctx, pod, nomination.NominatedNodeName)
	}
	return nil
}

// nominate updates the pod's status as its watchers see it.
func (r *run) nominate(ctx context.Context, pod *v1.Pod, node string) error {
	if pod.Status.NominatedNodeName == node {
		return nil
	}
	updated := pod.DeepCopy()
	updated.Status.NominatedNodeName = node
	if err := r.keep(updated); err != nil {
		return err
	}
	r.sched.SchedulingQueue.Update(ctx, pod, updated)
	return nil
}

// RunFiles is Run on the three files of `outboard simulate`.
func RunFiles(ctx context.Context, cluster, pods, config string, choose func(string, []string) string) ([]Verdict, error) {
	in := Input{Choose: choose}
	var err error
	if in.Config, err = LoadConfig(config); err != nil {
		return nil, err
	}
	if in.Cluster, err = LoadObjects(cluster); err != nil {
		return nil, err
	}
	if in.Pods, err = LoadObjects(pods); err != nil {
		return nil, err
	}
	return Run(ctx, in)
}
