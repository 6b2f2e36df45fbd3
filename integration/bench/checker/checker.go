// Package checker checks a scheduler's work afterwards, from etcd's history and the API alone. It shares no code with
// any scheduler.
package checker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	resourcehelper "k8s.io/component-helpers/resource"

	"outboard.dev/integration/bench/history"
)

// Report counts the findings. The first six numbers describe; the others are faults and must be zero.
type Report struct {
	PodsNow     int `json:"podsNow"`     // pods that exist
	PodsEver    int `json:"podsEver"`    // pod UIDs in the history
	Binds       int `json:"binds"`       // times that a pod's nodeName was set after its creation
	Nodes       int `json:"nodes"`       // nodes that exist
	Events      int `json:"events"`      // events of any kind
	FullestNode int `json:"fullestNode"` // most pods that a node ever had

	Unbound        int      `json:"unbound"`            // pods that exist without a node
	BoundTwice     int      `json:"boundTwice"`         // UIDs whose nodeName was set more than once, or changed
	UnknownNode    int      `json:"unknownNode"`        // binds to a node that did not exist
	Overcommitted  int      `json:"overcommitted"`      // binds after which a node held more than its allocatable
	NoEvent        int      `json:"noEvent"`            // bound pods without a Scheduled event
	SeveralEvents  int      `json:"severalEvents"`      // bound pods with more than one Scheduled event
	EventOfUnbound int      `json:"eventOfUnbound"`     // Scheduled events for pods that were not bound
	EventWrongNode int      `json:"eventWrongNode"`     // Scheduled events whose text names another node
	HistoryDiffers int      `json:"historyDiffers"`     // pods whose node differs between the API and etcd's history
	Examples       []string `json:"examples,omitempty"` // the first of each kind of fault, in words

	Overcommits []Overcommit `json:"-"` // each bind that `overcommitted` counts, once
}

// Overcommit is a bind after which its node held more than its allocatable, in etcd's order of binds, with the other
// pods of the node.
type Overcommit struct {
	Pod, Scheduler, Node string // the pod as namespace/name
	Beside               []string
}

// Faults is the sum of all faults.
func (r *Report) Faults() int {
	return r.Unbound + r.BoundTwice + r.UnknownNode + r.Overcommitted + r.NoEvent + r.SeveralEvents + r.EventOfUnbound +
		r.EventWrongNode + r.HistoryDiffers
}

// String returns one line, and one more line for each example of a fault.
func (r *Report) String() string {
	line := fmt.Sprintf("%d pods, %d binds, %d nodes (at most %d pods on one): %d unbound, %d bound twice, "+
		"%d overcommitted, %d on unknown nodes, %d without a Scheduled event, %d with several, %d other faults",
		r.PodsEver, r.Binds, r.Nodes, r.FullestNode, r.Unbound, r.BoundTwice, r.Overcommitted, r.UnknownNode, r.NoEvent,
		r.SeveralEvents, r.EventOfUnbound+r.EventWrongNode+r.HistoryDiffers)
	return strings.Join(append([]string{line}, r.Examples...), "\n  ")
}

func (r *Report) fault(counter *int, format string, args ...any) {
	*counter++
	if *counter <= 3 { // One kind must not hide the others, nor what a test says after the report.
		r.Examples = append(r.Examples, fmt.Sprintf(format, args...))
	}
}

// Check reads etcd's whole history and the API's present state. The history must not be compacted, and nothing may
// write pods or nodes meanwhile.
func Check(ctx context.Context, etcdURL string, client kubernetes.Interface) (*Report, error) {
	replay := NewReplay()
	if err := history.Replay(ctx, etcdURL, NodePrefix, PodPrefix, endMark, replay.Apply); err != nil {
		return nil, fmt.Errorf("etcd's history: %w", err)
	}
	if err := replay.ComparePods(ctx, client); err != nil {
		return nil, err
	}
	report := replay.Report()
	return report, checkEvents(ctx, client, replay, report)
}

// ComparePods compares the pods with those of the API: nothing may write pods meanwhile.
func (r *Replay) ComparePods(ctx context.Context, client kubernetes.Interface) error {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	report := r.report
	report.PodsNow = len(pods.Items)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" {
			report.fault(&report.Unbound, "%s/%s is not bound", pod.Namespace, pod.Name)
		}
		if seen := r.pods[pod.UID]; seen == nil || seen.node != pod.Spec.NodeName {
			report.fault(&report.HistoryDiffers, "%s/%s: on %q now, but not in the history", pod.Namespace, pod.Name,
				pod.Spec.NodeName)
		}
	}
	return nil
}

func checkEvents(ctx context.Context, client kubernetes.Interface, replay *Replay, report *Report) error {
	scheduled := map[types.UID]int{}
	options := metav1.ListOptions{Limit: 2000}
	for {
		list, err := client.EventsV1().Events("").List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			event := &list.Items[i]
			report.Events++
			if event.Reason != "Scheduled" {
				continue
			}
			scheduled[event.Regarding.UID]++
			if event.Series != nil {
				scheduled[event.Regarding.UID] += int(event.Series.Count) - 1
			}
			checkText(event, replay.pods[event.Regarding.UID], report)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	for uid, pod := range replay.pods {
		switch n := scheduled[uid]; {
		case pod.binds > 0 && n == 0:
			report.fault(&report.NoEvent, "%s was bound to %s without a Scheduled event", pod.key, pod.node)
		case pod.binds > 0 && n > 1:
			report.fault(&report.SeveralEvents, "%s has %d Scheduled events", pod.key, n)
		}
	}
	return nil
}

func checkText(event *eventsv1.Event, pod *podHistory, report *Report) {
	if pod == nil || pod.binds == 0 {
		report.fault(&report.EventOfUnbound, "Scheduled event for %s, which was not bound", event.Regarding.Name)
		return
	}
	want := fmt.Sprintf("Successfully assigned %s to %s", pod.key, pod.node)
	if event.Note != want {
		report.fault(&report.EventWrongNode, "the Scheduled event says %q instead of %q", event.Note, want)
	}
}

// Replay is the state of pods and nodes at one revision, and the history up to it. Check replays a whole history; a
// caller that follows a history while it grows calls Apply itself. Not safe for concurrent use.
type Replay struct {
	// OnBind, if set, is called for each bind, after its check.
	OnBind func(Bind)
	// ForgetDeleted drops what is known of a pod when it is deleted, so that the memory of a long history is bounded. A
	// deleted pod cannot be bound again.
	ForgetDeleted bool

	report *Report
	pods   map[types.UID]*podHistory
	byKey  map[string]types.UID // etcd key → the UID it holds now
	nodes  map[string]*nodeState
}

// Bind is a bind in etcd's history. Pod is valid until OnBind returns.
type Bind struct {
	Pod         *corev1.Pod
	Revision    int64
	UnknownNode bool // its node did not exist
}

type podHistory struct {
	key string // namespace/name
	// scheduler is the pod's schedulerName.
	scheduler string
	node      string
	binds     int
	request   corev1.ResourceList
	holds     bool // it counts on its node
}

type nodeState struct {
	exists      bool
	allocatable corev1.ResourceList
	used        map[corev1.ResourceName]int64 // in thousandths
	pods        int
}

// NewReplay returns the state before the first revision.
func NewReplay() *Replay {
	return &Replay{report: &Report{}, pods: map[types.UID]*podHistory{}, byKey: map[string]types.UID{},
		nodes: map[string]*nodeState{}}
}

// The keys of pods and nodes in etcd begin with these.
const (
	PodPrefix  = "/registry/pods/"
	NodePrefix = "/registry/minions/"
	// endMark lies between the two prefixes, so one ordered watch sees nodes, the mark and pods.
	endMark = "/registry/outboard-checker"
)

// Report returns the findings up to now, without those that only the API shows: pods without a node, events.
func (r *Replay) Report() *Report {
	r.report.Nodes = 0
	for _, node := range r.nodes {
		if node.exists {
			r.report.Nodes++
		}
	}
	return r.report
}

// Apply applies the next event of etcd's history. Events of other keys than pods and nodes have no effect.
func (r *Replay) Apply(event *clientv3.Event) error {
	key := string(event.Kv.Key)
	isPod, isNode := strings.HasPrefix(key, PodPrefix), strings.HasPrefix(key, NodePrefix)
	if !isPod && !isNode {
		return nil
	}
	if event.Type == clientv3.EventTypeDelete {
		if isPod {
			r.podGone(key)
		} else {
			r.node(strings.TrimPrefix(key, NodePrefix)).exists = false
		}
		return nil
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(event.Kv.Value, nil, nil)
	if err != nil {
		return fmt.Errorf("%s at revision %d: %w", key, event.Kv.ModRevision, err)
	}
	switch object := object.(type) {
	case *corev1.Node:
		node := r.node(object.Name)
		node.exists, node.allocatable = true, object.Status.Allocatable
	case *corev1.Pod:
		r.podIs(key, object, event.Kv.ModRevision)
	}
	return nil
}

func (r *Replay) node(name string) *nodeState {
	node := r.nodes[name]
	if node == nil {
		node = &nodeState{used: map[corev1.ResourceName]int64{}}
		r.nodes[name] = node
	}
	return node
}

func (r *Replay) podGone(key string) {
	if pod := r.pods[r.byKey[key]]; pod != nil {
		r.release(pod)
		if r.ForgetDeleted {
			delete(r.pods, r.byKey[key])
		}
	}
	delete(r.byKey, key)
}

func (r *Replay) podIs(key string, object *corev1.Pod, revision int64) {
	pod := r.pods[object.UID]
	if pod == nil {
		pod = &podHistory{key: object.Namespace + "/" + object.Name, scheduler: object.Spec.SchedulerName, node: object.Spec.NodeName}
		r.pods[object.UID] = pod
		r.report.PodsEver++
		r.byKey[key] = object.UID
		if pod.node != "" { // Created on a node: not a scheduler's decision.
			pod.request = resourcehelper.PodRequests(object, resourcehelper.PodResourcesOptions{})
			r.occupy(pod)
		}
	}
	if pod.node != object.Spec.NodeName {
		if pod.binds++; pod.binds > 1 || pod.node != "" {
			r.report.fault(&r.report.BoundTwice, "%s moved from %q to %q at revision %d", pod.key, pod.node,
				object.Spec.NodeName, revision)
		}
		r.release(pod)
		r.report.Binds++
		pod.node = object.Spec.NodeName
		pod.request = resourcehelper.PodRequests(object, resourcehelper.PodResourcesOptions{})
		r.occupy(pod)
		unknown := r.report.UnknownNode
		r.checkRoom(pod, revision)
		if r.OnBind != nil {
			r.OnBind(Bind{Pod: object, Revision: revision, UnknownNode: r.report.UnknownNode > unknown})
		}
	}
	if object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed {
		r.release(pod)
	}
}

func (r *Replay) occupy(pod *podHistory) {
	node := r.node(pod.node)
	pod.holds = true
	node.pods++
	r.report.FullestNode = max(r.report.FullestNode, node.pods)
	for name, quantity := range pod.request {
		node.used[name] += quantity.MilliValue()
	}
}

func (r *Replay) release(pod *podHistory) {
	if !pod.holds {
		return
	}
	pod.holds = false
	node := r.node(pod.node)
	node.pods--
	for name, quantity := range pod.request {
		node.used[name] -= quantity.MilliValue()
	}
}

func (r *Replay) checkRoom(pod *podHistory, revision int64) {
	node := r.node(pod.node)
	if !node.exists {
		r.report.fault(&r.report.UnknownNode, "%s was bound to %s, which did not exist at revision %d", pod.key, pod.node,
			revision)
		return
	}
	before := r.report.Overcommitted
	if allowed := node.allocatable[corev1.ResourcePods]; int64(node.pods) > allowed.Value() {
		r.report.fault(&r.report.Overcommitted, "%s has %d pods of %s after %s at revision %d", pod.node, node.pods,
			allowed.String(), pod.key, revision)
	}
	for name := range pod.request {
		if allowed := node.allocatable[name]; node.used[name] > allowed.MilliValue() {
			r.report.fault(&r.report.Overcommitted, "%s holds %dm of %s %s after %s at revision %d", pod.node,
				node.used[name], allowed.String(), name, pod.key, revision)
		}
	}
	if r.report.Overcommitted > before {
		r.report.Overcommits = append(r.report.Overcommits, Overcommit{pod.key, pod.scheduler, pod.node, r.others(pod)})
	}
}

// others returns the other pods that count on a pod's node.
func (r *Replay) others(pod *podHistory) (keys []string) {
	for _, other := range r.pods {
		if other.holds && other.node == pod.node && other != pod {
			keys = append(keys, other.key)
		}
	}
	slices.Sort(keys)
	return keys
}
