package soak

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"outboard.dev/integration/bench/checker"
)

// TestBindsAfterThefts: which binds count as unfenced, by what happened to the lease before.
func TestBindsAfterThefts(t *testing.T) {
	const a, b, other = "replica-a", "replica-b", "admin"
	takes := func(user string) func(*record) { return func(r *record) { r.lease(user, user) } }
	deleted := func(r *record) { r.lease("", "") }
	released := func(user string) func(*record) { return func(r *record) { r.lease("", user) } }
	longAgo := func(r *record) {
		for _, t := range r.thefts {
			t.at = t.at.Add(-2 * theftGrace)
		}
	}
	stoppedMeanwhile := func(r *record) {
		for _, t := range r.thefts {
			t.stopped = 2 * theftGrace
		}
	}
	for name, test := range map[string]struct {
		happens              []func(*record)
		unfenced, afterTheft int // of one bind by replica-b
	}{
		"leads":                                {[]func(*record){takes(b)}, 0, 0},
		"never led":                            {nil, 1, 0},
		"another leads":                        {[]func(*record){takes(b), released(b), takes(a)}, 1, 0},
		"stolen":                               {[]func(*record){takes(b), deleted}, 0, 1},
		"stolen, taken by another replica":     {[]func(*record){takes(b), deleted, takes(a)}, 0, 1},
		"stolen twice":                         {[]func(*record){takes(b), deleted, takes(a), deleted}, 0, 1},
		"stolen long ago":                      {[]func(*record){takes(b), deleted, longAgo}, 1, 0},
		"stolen from another only":             {[]func(*record){takes(a), deleted}, 1, 0},
		"stolen before the API server stopped": {[]func(*record){takes(b), deleted, longAgo, stoppedMeanwhile}, 0, 1},
		"had it again and released it":         {[]func(*record){takes(b), deleted, takes(b), released(b)}, 1, 0},
		"overwritten by another client":        {[]func(*record){takes(b), takes(other)}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := &record{load: newLoad(nil, nil, 0, 0), thefts: map[string]*theft{}, result: &Result{Waits: Histogram{}}, lastBind: time.Now()}
			for _, happens := range test.happens {
				happens(r)
			}
			r.bound(checker.Bind{Pod: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "default", Annotations: map[string]string{writerAnnotation: b}},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
					{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second))}}},
			}})
			if r.result.Unfenced != test.unfenced || r.result.AfterTheft != test.afterTheft {
				t.Errorf("%d unfenced and %d after a theft, not %d and %d: %v", r.result.Unfenced, r.result.AfterTheft, test.unfenced, test.afterTheft, r.result.Examples)
			}
		})
	}
}
