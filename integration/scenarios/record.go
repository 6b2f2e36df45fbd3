package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	controlplane "outboard.dev/integration/control_plane"
)

// recorder records one namespace: every state of each pod, and the events.
type recorder struct {
	mu      sync.Mutex
	pods    map[types.UID]*podRecord
	events  map[string]*eventsv1.Event
	changed time.Time
}

type podRecord struct {
	pod     *corev1.Pod
	states  []string // as in the transcript; equal neighbours are merged
	deleted bool
}

// startRecorder records until ctx ends.
func startRecorder(ctx context.Context, client kubernetes.Interface, namespace string) (*recorder, error) {
	r := &recorder{pods: map[types.UID]*podRecord{}, events: map[string]*eventsv1.Event{}, changed: time.Now()}
	pods := cache.NewSharedInformer(
		cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything()), &corev1.Pod{}, 0)
	events := cache.NewSharedInformer(
		cache.NewListWatchFromClient(client.EventsV1().RESTClient(), "events", namespace, fields.Everything()),
		&eventsv1.Event{}, 0)
	for _, informer := range []cache.SharedInformer{pods, events} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    r.seen,
			UpdateFunc: func(_, object any) { r.seen(object) },
			DeleteFunc: r.gone,
		}); err != nil {
			return nil, err
		}
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, events.HasSynced) {
		return nil, ctx.Err()
	}
	return r, nil
}

func (r *recorder) seen(object any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = time.Now()
	switch object := object.(type) {
	case *eventsv1.Event:
		r.events[object.Name] = object
	case *corev1.Pod:
		record := r.pods[object.UID]
		if record == nil {
			record = &podRecord{}
			r.pods[object.UID] = record
		}
		record.pod = object
		state := podState(object)
		if n := len(record.states); n == 0 || record.states[n-1] != state {
			record.states = append(record.states, state)
		}
	}
}

func (r *recorder) gone(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = time.Now()
	if pod, ok := object.(*corev1.Pod); ok && r.pods[pod.UID] != nil {
		r.pods[pod.UID].deleted = true
	}
}

// touch restarts the quiet time.
func (r *recorder) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = time.Now()
}

// quietFor returns the time since the last change.
func (r *recorder) quietFor() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.changed)
}

// holds returns whether the awaited state is reached.
func (r *recorder) holds(a *Await) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, record := range r.pods {
		if record.pod.Name != a.Pod || record.deleted {
			continue
		}
		switch {
		case a.Bound:
			return record.pod.Spec.NodeName != "" && r.count(uid, "Scheduled") > 0
		case a.Unschedulable:
			return conditionReason(record.pod) == corev1.PodReasonUnschedulable && r.count(uid, "FailedScheduling") > 0
		case a.Gated:
			return conditionReason(record.pod) == corev1.PodReasonSchedulingGated
		default:
			return r.count(uid, "FailedScheduling") >= a.Failures
		}
	}
	return false
}

func (r *recorder) count(uid types.UID, reason string) int {
	n := 0
	for _, event := range r.events {
		if event.Regarding.UID != uid || event.Reason != reason {
			continue
		}
		n++
		if event.Series != nil {
			n += int(event.Series.Count) - 1
		}
	}
	return n
}

func conditionReason(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason
		}
	}
	return ""
}

// podState returns all that a scheduler writes into a pod, without times.
func podState(pod *corev1.Pod) string {
	nominated := pod.Status.NominatedNodeName
	if controlplane.IsOlder() && pod.Spec.NodeName != "" {
		nominated = "" // Since 1.35 the API server clears it with the bind.
	}
	parts := []string{fmt.Sprintf("node=%q nominated=%q", pod.Spec.NodeName, nominated)}
	// Conditions are a set by type; their order after a patch has no meaning.
	byType := func(a, b corev1.PodCondition) int { return strings.Compare(string(a.Type), string(b.Type)) }
	for _, c := range slices.SortedFunc(slices.Values(pod.Status.Conditions), byType) {
		parts = append(parts, fmt.Sprintf("%s=%s reason=%q message=%q observedGeneration=%s times=%s", c.Type, c.Status,
			c.Reason, c.Message, observedGeneration(c), present("transition", c.LastTransitionTime, "probe", c.LastProbeTime)))
	}
	return strings.Join(parts, " | ")
}

// observedGeneration returns the condition's generation of the pod. Older API servers (1.33) do not set it, so with
// them it is not compared.
func observedGeneration(condition corev1.PodCondition) string {
	if controlplane.IsOlder() {
		return "not compared"
	}
	return strconv.FormatInt(condition.ObservedGeneration, 10)
}

func present(pairs ...any) string {
	var names []string
	for i := 0; i < len(pairs); i += 2 {
		if t := pairs[i+1].(metav1.Time); !t.IsZero() {
			names = append(names, pairs[i].(string))
		}
	}
	return strings.Join(names, "+")
}

// transcript returns the record as sorted lines, without names and times that differ between two equal runs.
func (r *recorder) transcript() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, record := range r.pods {
		for i, state := range record.states {
			lines = append(lines, fmt.Sprintf("pod %s state %d: %s", record.pod.Name, i+1, state))
		}
		if record.deleted {
			lines = append(lines, fmt.Sprintf("pod %s was deleted", record.pod.Name))
		}
	}
	for _, event := range r.events {
		lines = append(lines, r.eventLine(event))
	}
	slices.Sort(lines)
	return lines
}

// withNames replaces the UIDs of pods by their names.
func (r *recorder) withNames(note string) string {
	for uid, record := range r.pods {
		note = strings.ReplaceAll(note, string(uid), "<uid of "+record.pod.Name+">")
	}
	return note
}

func (r *recorder) eventLine(event *eventsv1.Event) string {
	regarding := event.Regarding
	uid, version := "unknown", "absent"
	if record := r.pods[regarding.UID]; record != nil && record.pod.Name == regarding.Name {
		uid = "the pod's"
	}
	if regarding.ResourceVersion != "" {
		version = "present"
	}
	instance := "other"
	if strings.HasPrefix(event.ReportingInstance, event.ReportingController+"-") {
		instance = "controller-host"
	}
	name := "other"
	if strings.HasPrefix(event.Name, regarding.Name+".") {
		name = "pod.suffix"
	}
	return fmt.Sprintf("event for %s %s %s/%s: %s %s %s %q | by %s, instance %s, name %s, uid %s, version %s, fieldPath %q, "+
		"related %t, series %t, eventTime %t, deprecated source %q count %d times %s",
		regarding.APIVersion, regarding.Kind, regarding.Namespace, regarding.Name,
		event.Type, event.Reason, event.Action, r.withNames(event.Note), event.ReportingController, instance, name, uid, version,
		regarding.FieldPath, event.Related != nil, event.Series != nil, !event.EventTime.IsZero(),
		event.DeprecatedSource.Component, event.DeprecatedCount,
		present("first", event.DeprecatedFirstTimestamp, "last", event.DeprecatedLastTimestamp))
}
