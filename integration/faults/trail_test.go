package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	controlplane "outboard.dev/integration/control_plane"
)

// bindRequest is an answered POST of pods/binding.
type bindRequest struct {
	user, pod          string
	code               int
	received, answered time.Time // by the API server's clock
}

// leaseWrite is a successful create or update of the lease.
type leaseWrite struct {
	user, holder       string // holder: empty if the user released the lease
	received, answered time.Time
}

// trail is the API server's audit log about binds and the lease; every replica has its own user.
//
// Safe for concurrent use.
type trail struct {
	mutex  sync.Mutex
	log    *controlplane.AuditFollower
	binds  []bindRequest
	writes []leaseWrite
}

func followTrail(t *testing.T, c *controlplane.ControlPlane) *trail {
	t.Helper()
	log, err := c.FollowAudit()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return &trail{log: log}
}

// update reads new events; the caller holds the mutex.
func (r *trail) update() error {
	events, err := r.log.Next()
	if err != nil {
		return err
	}
	for _, event := range events {
		object := event.ObjectRef
		switch {
		case object == nil:
		case object.Resource == "pods" && object.Subresource == "binding":
			r.binds = append(r.binds, bindRequest{event.User.Username, object.Name, event.ResponseStatus.Code, event.Received, event.Answered})
		case object.Resource == "leases" && (event.Verb == "create" || event.Verb == "update") && event.ResponseStatus.Code/100 == 2:
			var lease coordinationv1.Lease
			if err := json.Unmarshal(event.RequestObject, &lease); err != nil {
				return fmt.Errorf("the audit log's lease: %w", err)
			}
			if lease.Name != leaseName {
				continue // The API server has leases, too.
			}
			holder := ""
			if lease.Spec.HolderIdentity != nil {
				holder = *lease.Spec.HolderIdentity
			}
			r.writes = append(r.writes, leaseWrite{event.User.Username, holder, event.Received, event.Answered})
		}
	}
	return nil
}

// firstBind finds the first successful bind after a moment, by this user, or with `other` by any user but this one.
func (r *trail) firstBind(user string, other bool, after time.Time) (*bindRequest, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.update(); err != nil {
		return nil, err
	}
	var first *bindRequest
	for i := len(r.binds) - 1; i >= 0; i-- {
		bind := r.binds[i]
		if bind.answered.Before(after.Add(-time.Minute)) {
			break // Roughly in the order of their answers.
		}
		if (bind.user == user) != other && bind.code == 201 && bind.received.After(after) && (first == nil || bind.answered.Before(first.answered)) {
			first = &bind
		}
	}
	return first, nil
}

// renewed returns whether the user has written the lease in its own name since.
func (r *trail) renewed(user string, after time.Time) (bool, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.update(); err != nil {
		return false, err
	}
	for i := len(r.writes) - 1; i >= 0 && r.writes[i].received.After(after); i-- {
		if r.writes[i].user == user && r.writes[i].holder != "" {
			return true, nil
		}
	}
	return false, nil
}

// leader returns the user that holds the lease; empty if it is free.
func (r *trail) leader() (string, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.update(); err != nil {
		return "", err
	}
	if len(r.writes) == 0 || r.writes[len(r.writes)-1].holder == "" {
		return "", nil
	}
	return r.writes[len(r.writes)-1].user, nil
}

// verdict is the result for all binds of a test.
type verdict struct {
	binds        int             // requests
	otherAnswers map[int]int     // answers other than 201, by code
	terms        int             // changes of the lease's holder, including the first
	lateRequests []string        // binds that arrived while the user did not hold the lease
	lateTaken    int             // lateRequests with the answer 201
	lateEffects  []string        // binds applied in etcd while another user held the lease
	ages         []time.Duration // from a renewal's arrival to the arrival of each bind that relied on it, the longest first
}

// checkBinds looks for binds by a replica that was not the leader, in two ways.
//
//   - Requests, whatever their result: none may reach the API server after another replica's write of the lease has
//     reached it, although that write takes effect only later (both moments by the API server's clock).
//   - Effects: in etcd's order, the lease at the revision of a pod's bind must name the replica that the audit log
//     names for the bind. If the client died without an answer, it must name the only replica that requested the bind.
func (r *trail) checkBinds(ctx context.Context, etcdURL string) (*verdict, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.update(); err != nil {
		return nil, err
	}
	v := &verdict{binds: len(r.binds), otherAnswers: map[int]int{}}
	userOf := map[string]string{} // by identity
	for i, write := range r.writes {
		if write.holder != "" {
			userOf[write.holder] = write.user
		}
		if i == 0 || r.writes[i-1].user != write.user {
			v.terms++
		}
	}
	boundBy := map[string]string{} // pod → user
	// A request whose client has died has no known result, and may have been applied: pod → users.
	perhapsBy := map[string][]string{}
	for _, bind := range r.binds {
		if bind.code == 201 {
			boundBy[bind.pod] = bind.user
		} else {
			v.otherAnswers[bind.code]++
			if bind.code/100 != 4 {
				perhapsBy[bind.pod] = append(perhapsBy[bind.pod], bind.user)
			}
		}
		last := r.lastWriteBefore(bind.received)
		if last == nil || last.holder == "" || last.user != bind.user {
			if bind.code == 201 {
				v.lateTaken++
			}
			v.lateRequests = append(v.lateRequests, fmt.Sprintf("%s: %s by %s, answered with %d; the lease was last written by %+v",
				bind.received.Format(time.StampMicro), bind.pod, bind.user, bind.code, last))
			continue
		}
		v.ages = append(v.ages, bind.received.Sub(last.received))
	}
	slices.Sort(v.ages)
	slices.Reverse(v.ages)
	history, err := readOrder(ctx, etcdURL)
	if err != nil {
		return nil, err
	}
	for _, bound := range history {
		user := boundBy[bound.pod]
		if perhaps := slices.Compact(perhapsBy[bound.pod]); user == "" && len(perhaps) == 1 {
			user = perhaps[0]
		}
		if user == "" || user != userOf[bound.holder] {
			v.lateEffects = append(v.lateEffects, fmt.Sprintf("%s was bound by %q at revision %d, when %q held the lease", bound.pod, user,
				bound.revision, userOf[bound.holder]))
		}
	}
	return v, nil
}

func (r *trail) lastWriteBefore(moment time.Time) *leaseWrite {
	var last *leaseWrite
	for i := range r.writes {
		if write := &r.writes[i]; write.received.Before(moment) && (last == nil || last.received.Before(write.received)) {
			last = write
		}
	}
	return last
}

// boundPod is a pod's bind in etcd's history.
type boundPod struct {
	pod      string
	revision int64
	holder   string // of the lease at this revision
}

// readOrder reads etcd's history of the lease and of the pods, in one order. Names of pods must be unique.
func readOrder(ctx context.Context, etcdURL string) ([]boundPod, error) {
	const (
		leaseKey  = "/registry/leases/kube-system/" + leaseName
		podPrefix = "/registry/pods/" + namespace + "/"
		endMark   = "/registry/outboard-order" // between the two
	)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdURL}, DialTimeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	mark, err := client.Put(ctx, endMark, "")
	if err != nil {
		return nil, err
	}
	var order []boundPod
	holder, bound := "", map[string]bool{}
	watch := client.Watch(ctx, leaseKey, clientv3.WithRange(clientv3.GetPrefixRangeEnd(podPrefix)), clientv3.WithRev(1))
	for response := range watch {
		if err := response.Err(); err != nil {
			return nil, err
		}
		for _, event := range response.Events {
			key := string(event.Kv.Key)
			if key == endMark && event.Kv.ModRevision >= mark.Header.Revision {
				return order, nil
			}
			if event.Type == clientv3.EventTypeDelete || key != leaseKey && !strings.HasPrefix(key, podPrefix) {
				continue
			}
			object, _, err := scheme.Codecs.UniversalDeserializer().Decode(event.Kv.Value, nil, nil)
			if err != nil {
				return nil, fmt.Errorf("%s at revision %d: %w", key, event.Kv.ModRevision, err)
			}
			switch object := object.(type) {
			case *coordinationv1.Lease:
				if holder = ""; object.Spec.HolderIdentity != nil {
					holder = *object.Spec.HolderIdentity
				}
			case *corev1.Pod:
				if object.Spec.NodeName != "" && !bound[object.Name] {
					bound[object.Name] = true
					order = append(order, boundPod{object.Name, event.Kv.ModRevision, holder})
				}
			}
		}
	}
	return nil, fmt.Errorf("the watch of etcd's history ended early: %w", ctx.Err())
}
