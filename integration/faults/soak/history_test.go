package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"outboard.dev/integration/bench/checker"
	"outboard.dev/integration/bench/history"
)

const (
	leaseName = "outboard-scheduler"
	leaseKey  = "/registry/leases/kube-system/" + leaseName
	// writerAnnotation names the user who bound a pod or wrote the lease. The API server sets it (writerPolicy), with
	// the write itself, so that no bind is without a name, whatever dies.
	writerAnnotation = "soak.outboard.dev/writer"
	writerPolicy     = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: soak-writer}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [pods/binding], operations: [CREATE]}
    - {apiGroups: [coordination.k8s.io], apiVersions: [v1], resources: [leases], operations: [CREATE, UPDATE]}
  matchConditions:
  - {name: ours, expression: "request.resource.resource == 'pods' || object.metadata.name == 'outboard-scheduler'"}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "add", path: "/metadata/annotations", value: {"soak.outboard.dev/writer": request.userInfo.username}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: soak-writer}
spec: {policyName: soak-writer}
`
	endMark = "/registry/outboard-soak" // Between nodes and pods.
)

// record follows etcd's history of the lease, the nodes and the pods, in one order, while it grows. So etcd can be
// compacted up to what has been read.
//
// Safe for concurrent use.
type record struct {
	load *load

	mutex    sync.Mutex
	replay   *checker.Replay
	revision int64 // read up to here
	marked   int64 // revision of the last end mark
	err      error // why it ended early

	// The lease: who holds it, and who wrote it last. Empty: free.
	holder, writer string
	// Each replica's last theft: another client than a replica deleted or overwrote the lease while it had it. The one
	// that takes the lease next may lose it, too, before the first has learned of its loss.
	thefts    map[string]*theft
	stopBegan time.Time // since when the API server is stopped; zero: it runs
	// When nodes were deleted.
	gone map[string]time.Time

	lastBind time.Time
	result   *Result // of which it fills the part that it sees
}

type theft struct {
	at      time.Time
	stopped time.Duration // of the API server since then, in stops that are over
}

// follow starts at revision 1 and ends with the test.
func follow(t *testing.T, etcdURL string, load *load, result *Result) *record {
	r := &record{load: load, replay: checker.NewReplay(), gone: map[string]time.Time{}, thefts: map[string]*theft{}, result: result, lastBind: time.Now()}
	r.replay.ForgetDeleted = true
	r.replay.OnBind = r.bound
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := history.Follow(ctx, etcdURL, leaseKey, checker.PodPrefix, r.apply)
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.err = err
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func (r *record) apply(event *clientv3.Event) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.revision = event.Kv.ModRevision
	key, deleted := string(event.Kv.Key), event.Type == clientv3.EventTypeDelete
	if err := r.replay.Apply(event); err != nil {
		return err
	}
	if pod, isPod := strings.CutPrefix(key, checker.PodPrefix); isPod {
		switch {
		case deleted:
			r.load.deleted(pod)
		case event.IsCreate():
			r.load.exists(pod)
		}
		return nil
	}
	if node, isNode := strings.CutPrefix(key, checker.NodePrefix); isNode && deleted {
		r.gone[node] = time.Now()
	}
	switch {
	case key == endMark:
		r.marked = event.Kv.ModRevision
	case key == leaseKey && deleted:
		r.lease("", "")
	case key == leaseKey:
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(event.Kv.Value, nil, nil)
		if err != nil {
			return fmt.Errorf("%s at revision %d: %w", key, event.Kv.ModRevision, err)
		}
		lease := object.(*coordinationv1.Lease)
		holder := ""
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		r.lease(holder, lease.Annotations[writerAnnotation])
	}
	return nil
}

// lease: a replica takes the lease only when it is free or has expired. What others do with it is a theft.
func (r *record) lease(holder, writer string) {
	if !isReplica(writer) && isReplica(r.writer) {
		r.thefts[r.writer] = &theft{at: time.Now()}
	}
	if holder != "" && holder != r.holder && isReplica(writer) {
		r.result.Leaders++
	}
	if holder == "" {
		writer = ""
	}
	delete(r.thefts, writer) // It has the lease again.
	r.holder, r.writer = holder, writer
}

// apiServerStops and apiServerGoesOn say that a fault stops the API server, and has let it go on.
func (r *record) apiServerStops() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.stopBegan = time.Now()
}

func (r *record) apiServerGoesOn() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, t := range r.thefts {
		t.stopped = r.stoppedSince(t)
	}
	r.stopBegan = time.Time{}
}

// stoppedSince returns how long the API server was stopped since a theft. The caller holds the mutex.
func (r *record) stoppedSince(t *theft) time.Duration {
	if r.stopBegan.IsZero() {
		return t.stopped
	}
	return t.stopped + min(time.Since(r.stopBegan), time.Since(t.at))
}

// mayNotKnow says whether a replica's lease was stolen so shortly before the time of a bind that it may not have learned
// of it. The caller holds the mutex.
func (r *record) mayNotKnow(user string, at time.Time) bool {
	t := r.thefts[user]
	return t != nil && at.Sub(t.at)-r.stoppedSince(t) < theftGrace
}

// handled returns when the API server handled a pod's bind, as it has written it, without fractions of seconds. When
// this program reads of it is later, by as much as the machine is busy.
func handled(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Now()
}

// describeThefts says what is known of the thefts, for a failure at this time. The caller holds the mutex.
func (r *record) describeThefts(at time.Time) string {
	if len(r.thefts) == 0 {
		return "no lease was taken away"
	}
	var texts []string
	for _, user := range slices.Sorted(maps.Keys(r.thefts)) {
		t := r.thefts[user]
		texts = append(texts, fmt.Sprintf("%v after a theft from %s (the API server was stopped for %v since then)", at.Sub(t.at), user, r.stoppedSince(t)))
	}
	return strings.Join(texts, "; ")
}

// bound judges a bind. The caller holds the mutex.
func (r *record) bound(bind checker.Bind) {
	user := bind.Pod.Annotations[writerAnnotation]
	wait, known := r.load.bound(bind.Pod.Namespace + "/" + bind.Pod.Name)
	if !isReplica(user) {
		r.result.Others++
		return
	}
	if known {
		r.result.Waits.Add(float64(wait.Microseconds()) / 1000)
	}
	r.lastBind = time.Now()
	r.result.Binds++
	if bind.UnknownNode {
		r.result.GoneNode++
		if age := time.Since(r.gone[bind.Pod.Spec.NodeName]); age > staleNode {
			r.example("%s was bound to %s at revision %d, %v after the node was deleted", bind.Pod.Name, bind.Pod.Spec.NodeName, bind.Revision, age)
		}
	}
	switch {
	case r.writer == user:
	case r.mayNotKnow(user, handled(bind.Pod)):
		r.result.AfterTheft++
	default:
		r.result.Unfenced++
		r.example("%s was bound by %s at revision %d, when the lease's holder was %q, of %q; %s",
			bind.Pod.Name, user, bind.Revision, r.holder, r.writer, r.describeThefts(handled(bind.Pod)))
	}
}

func (r *record) example(format string, args ...any) {
	if len(r.result.Examples) < 20 {
		r.result.Examples = append(r.result.Examples, fmt.Sprintf(format, args...))
	}
}

// leader returns the replica that holds the lease; empty: none.
func (r *record) leader() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.writer
}

// progress returns the number of binds, the time since the last one, and the error with which the record ended.
func (r *record) progress() (binds int, idle time.Duration, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.result.Binds, time.Since(r.lastBind), r.err
}

// compact drops etcd's history up to what has been read.
func (r *record) compact(ctx context.Context, etcd *clientv3.Client) error {
	r.mutex.Lock()
	revision := r.revision
	r.mutex.Unlock()
	_, err := etcd.Compact(ctx, revision)
	return err
}

// finish reads the history to its present end, and compares it with the API. Nothing may write pods any more.
func (r *record) finish(ctx context.Context, etcd *clientv3.Client, client kubernetes.Interface) error {
	mark, err := etcd.Put(ctx, endMark, "")
	if err != nil {
		return err
	}
	for done := false; !done; time.Sleep(10 * time.Millisecond) { // Poll interval.
		r.mutex.Lock()
		done, err = r.marked >= mark.Header.Revision, r.err
		r.mutex.Unlock()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("etcd's history: %w", err)
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.replay.ComparePods(ctx, client); err != nil {
		return err
	}
	report := r.replay.Report()
	r.result.Lost, r.result.Twice, r.result.Overcommitted, r.result.Differs = report.Unbound, report.BoundTwice, report.Overcommitted, report.HistoryDiffers
	r.result.Examples = append(r.result.Examples, report.Examples...)
	return nil
}
