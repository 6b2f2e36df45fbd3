// Package load creates pods at a steady rate on a real API server, and measures the time from creation to bound.
package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// stay is the lifetime of a bound pod; then its room is free for others.
const stay = 20 * time.Second

// Load is a steady stream of pods. Safe for concurrent use.
type Load struct {
	client    kubernetes.Interface
	namespace string
	rate      int
	newPod    func(name string) *corev1.Pod
	cancel    context.CancelFunc
	done      sync.WaitGroup

	mu      sync.Mutex
	created map[string]time.Time
	seen    map[string]time.Time // bound
	failed  error
}

// Start creates `rate` pods a second in the existing namespace, until End. newPod is NewPod or a function that
// modifies its pods.
func Start(ctx context.Context, client kubernetes.Interface, namespace string, rate int, newPod func(name string) *corev1.Pod) *Load {
	ctx, cancel := context.WithCancel(ctx)
	l := &Load{client: client, namespace: namespace, rate: rate, newPod: newPod, cancel: cancel,
		created: map[string]time.Time{}, seen: map[string]time.Time{}}
	watching := make(chan struct{})
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		l.fail(l.watch(ctx, watching))
		cancel()
	}()
	select {
	case <-watching:
	case <-ctx.Done(): // It has already failed.
	}
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		l.fail(l.create(ctx))
	}()
	return l
}

func (l *Load) fail(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
}

// create makes pods at the rate, each at its time, independent of the others.
func (l *Load) create(ctx context.Context) error {
	var under sync.WaitGroup
	defer under.Wait()
	began := time.Now()
	for i := 0; ; i++ {
		if err := SleepUntil(ctx, began.Add(time.Duration(i)*time.Second/time.Duration(l.rate))); err != nil {
			return nil
		}
		name := fmt.Sprintf("pod-%06d", i)
		l.mu.Lock()
		l.created[name] = time.Now()
		l.mu.Unlock()
		under.Add(1)
		go func() {
			defer under.Done()
			// The end does not cancel it: every counted pod must be created.
			l.fail(insist(context.WithoutCancel(ctx), func(ctx context.Context) error {
				_, err := l.client.CoreV1().Pods(l.namespace).Create(ctx, l.newPod(name), metav1.CreateOptions{})
				if apierrors.IsAlreadyExists(err) { // Created by the attempt before, whose answer was lost.
					return nil
				}
				return err
			}))
		}()
	}
}

// insist retries after a lost connection, which happens on a busy machine.
func insist(ctx context.Context, try func(context.Context) error) (err error) {
	for range 20 {
		if err = try(ctx); err == nil {
			return nil
		}
		if ended := SleepUntil(ctx, time.Now().Add(100*time.Millisecond)); ended != nil {
			return ended
		}
	}
	return err
}

// watch records when pods are bound, and deletes them after `stay`. The API server may end a watch at any time.
func (l *Load) watch(ctx context.Context, watching chan<- struct{}) error {
	for began := false; ctx.Err() == nil; began = true {
		var watcher watch.Interface
		if err := insist(ctx, func(ctx context.Context) error {
			options := metav1.ListOptions{FieldSelector: "spec.nodeName!="}
			list, err := l.client.CoreV1().Pods(l.namespace).List(ctx, options)
			if err != nil {
				return err
			}
			for i := range list.Items {
				l.see(ctx, &list.Items[i])
			}
			options.ResourceVersion = list.ResourceVersion
			watcher, err = l.client.CoreV1().Pods(l.namespace).Watch(ctx, options)
			return err
		}); err != nil {
			return err
		}
		if !began {
			close(watching)
		}
		for event := range watcher.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				l.see(ctx, pod)
			}
		}
		watcher.Stop()
	}
	return nil
}

func (l *Load) see(ctx context.Context, pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, seen := l.seen[pod.Name]
	_, ours := l.created[pod.Name]
	if !ours || seen {
		return
	}
	l.seen[pod.Name] = time.Now()
	time.AfterFunc(stay, func() {
		if ctx.Err() != nil {
			return
		}
		l.fail(insist(ctx, func(ctx context.Context) error {
			err := l.client.CoreV1().Pods(l.namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}))
	})
}

// End stops creating and waits until every pod is bound.
func (l *Load) End(ctx context.Context) error {
	const patience = 2 * time.Minute
	limit := time.Now().Add(patience)
	for {
		l.mu.Lock()
		missing, failed := len(l.created)-len(l.seen), l.failed
		l.mu.Unlock()
		// The creator runs until the end; newer pods are not waited for.
		if failed != nil || missing <= l.rate/10 || time.Now().After(limit) {
			break
		}
		if err := SleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return err
		}
	}
	l.cancel()
	l.done.Wait()
	return errors.Join(l.failed, l.waitForAll(ctx, limit))
}

// waitForAll waits until the pods that exist are bound.
func (l *Load) waitForAll(ctx context.Context, limit time.Time) error {
	for {
		pending, err := l.client.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
		if err != nil {
			return err
		}
		if len(pending.Items) == 0 || time.Now().After(limit) {
			return nil // The checker counts the rest as lost.
		}
		if err := SleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return err
		}
	}
}

// Latency is the time from a pod's creation until it was seen bound.
type Latency struct {
	Created time.Time
	Took    time.Duration
}

// Latencies returns those of all pods seen bound so far, in no order.
func (l *Load) Latencies() (all []Latency) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, created := range l.created {
		// Missing pods are among the last; the checker reports lost pods.
		if seen, ok := l.seen[name]; ok {
			all = append(all, Latency{Created: created, Took: seen.Sub(created)})
		}
	}
	return all
}

// NewPod is one of the load's pods.
func NewPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("100Mi"),
				}},
			}},
		},
	}
}

// Quantile sorts the values. Without values it is 0.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

// SleepUntil returns early, with an error, when the context ends.
func SleepUntil(ctx context.Context, when time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(when)):
		return nil
	}
}
