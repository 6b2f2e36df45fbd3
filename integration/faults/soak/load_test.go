package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

const (
	namespaces = 160
	cohortSize = 100 // pods of a namespace, which are deleted together
	creators   = 12
	// More pods do not wait at a time: else most of the room would be taken by waiting pods.
	mostWaiting = 1500
)

// load creates pods as fast as they are bound (or at a rate), so that a share of the nodes' room is always used:
// a place that is used twice shows as an overcommitted node, a place that is never freed leaves pods without a node.
// When all pods of a namespace are bound and the room is short, they are deleted together.
//
// Safe for concurrent use.
type load struct {
	client kubernetes.Interface
	etcd   *clientv3.Client
	most   int // pods that may exist at a time
	rate   int // pods a second; 0: no limit

	group sync.WaitGroup

	mutex   sync.Mutex
	changed *sync.Cond
	ended   bool
	names   int // given out
	began   time.Time
	alive   int // names given out, without deleted pods
	free    []string
	cohorts map[string]*cohort // by namespace
	order   []*cohort          // from the oldest to the one being filled
	pending map[string]time.Time
	failed  error
}

type cohort struct {
	namespace string
	issued    int // names given out
	returned  int // of which created
	pods      map[string]bool
	unbound   int
	deleting  bool
	held      int // not to be deleted: a pod is being recreated
}

func newLoad(client kubernetes.Interface, etcd *clientv3.Client, most, rate int) *load {
	l := &load{client: client, etcd: etcd, most: most, rate: rate, cohorts: map[string]*cohort{}, pending: map[string]time.Time{}}
	l.changed = sync.NewCond(&l.mutex)
	for i := range namespaces {
		l.free = append(l.free, fmt.Sprintf("soak-%03d", i))
	}
	return l
}

func (l *load) start(ctx context.Context) error {
	if err := controlplane.InParallel(ctx, creators, namespaces, func(ctx context.Context, i int) error {
		_, err := l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.free[i]}}, metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	l.began = time.Now()
	for range creators {
		l.group.Go(func() { l.create(ctx) })
	}
	l.group.Go(func() { l.clear(ctx) })
	return nil
}

// end ends the creation; pods stay.
func (l *load) end() error {
	l.mutex.Lock()
	l.ended = true
	l.changed.Broadcast()
	l.mutex.Unlock()
	l.group.Wait()
	return l.failed
}

func (l *load) create(ctx context.Context) {
	for {
		namespace, name, ok := l.next()
		if !ok {
			return
		}
		err := insist(ctx, func(ctx context.Context) error {
			_, err := l.client.CoreV1().Pods(namespace).Create(ctx, newPod(name), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) { // Created by the attempt before, whose answer was lost.
				return nil
			}
			return err
		})
		l.mutex.Lock()
		if err != nil && l.failed == nil {
			l.failed = fmt.Errorf("create pod %s/%s: %w", namespace, name, err)
		}
		l.cohorts[namespace].returned++
		l.mutex.Unlock()
	}
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "main", Image: "example.com/app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("100Mi"),
				}},
			}},
		},
	}
}

// next waits for room and for the rate, and returns the next pod's name; false: the load has ended.
func (l *load) next() (namespace, name string, ok bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for !l.ended && (l.alive >= l.most || len(l.pending) >= mostWaiting || l.rate > 0 && l.names >= int(time.Since(l.began).Seconds()*float64(l.rate)) || !l.open()) {
		l.changed.Wait()
	}
	if l.ended || l.failed != nil {
		return "", "", false
	}
	filling := l.order[len(l.order)-1]
	filling.issued++
	l.names++
	l.alive++
	return filling.namespace, fmt.Sprintf("pod-%07d", l.names), true
}

// open returns whether there is a cohort to be filled; the caller holds the mutex.
func (l *load) open() bool {
	if len(l.order) > 0 && l.order[len(l.order)-1].issued < cohortSize {
		return true
	}
	if len(l.free) == 0 {
		return false
	}
	c := &cohort{namespace: l.free[0], pods: map[string]bool{}}
	l.free = l.free[1:]
	l.cohorts[c.namespace] = c
	l.order = append(l.order, c)
	return true
}

// clear deletes the oldest pods when the room is short. It also wakes the creators for the rate.
func (l *load) clear(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	deleting := 0
	for ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond) // Poll interval.
		l.mutex.Lock()
		if l.ended {
			l.mutex.Unlock()
			return
		}
		if l.alive >= l.most*9/10 && deleting < 4 {
			for _, c := range l.order {
				if !c.deleting && c.held == 0 && c.returned == cohortSize && len(c.pods) == cohortSize && c.unbound == 0 {
					c.deleting = true
					deleting++
					group.Go(func() {
						l.delete(ctx, c)
						l.mutex.Lock()
						deleting--
						l.mutex.Unlock()
					})
					break
				}
			}
		}
		l.changed.Broadcast()
		l.mutex.Unlock()
	}
}

// delete deletes a namespace's pods in etcd: watches see the same, and a pod costs half as much of the cores, which
// the API server fills.
func (l *load) delete(ctx context.Context, c *cohort) {
	l.mutex.Lock()
	pods := slices.Collect(maps.Keys(c.pods))
	l.mutex.Unlock()
	err := insist(ctx, func(ctx context.Context) error {
		// One by one: the API server, too, changes one object in a revision.
		for _, pod := range pods {
			if _, err := l.etcd.Delete(ctx, checker.PodPrefix+c.namespace+"/"+pod); err != nil {
				return err
			}
		}
		for limit := time.Now().Add(5 * time.Second); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) { // Poll interval.
			l.mutex.Lock()
			left := len(c.pods)
			l.mutex.Unlock()
			if left == 0 {
				return nil
			}
		}
		return fmt.Errorf("pods are left in %s", c.namespace)
	})
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err != nil {
		if l.failed == nil && ctx.Err() == nil {
			l.failed = fmt.Errorf("delete pods: %w", err)
		}
		return
	}
	delete(l.cohorts, c.namespace)
	l.order = slices.DeleteFunc(l.order, func(other *cohort) bool { return other == c })
	l.free = append(l.free, c.namespace)
}

// exists, bound and deleted are called for what etcd's history says of a pod, NAMESPACE/NAME.
func (l *load) exists(pod string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	namespace, name, _ := strings.Cut(pod, "/")
	if c := l.cohorts[namespace]; c != nil {
		c.pods[name] = true
		c.unbound++
		l.pending[pod] = time.Now()
	}
}

// bound returns the time that the pod has waited.
func (l *load) bound(pod string) (time.Duration, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	since, known := l.pending[pod]
	if !known {
		return 0, false
	}
	namespace, _, _ := strings.Cut(pod, "/")
	l.cohorts[namespace].unbound--
	delete(l.pending, pod)
	return time.Since(since), true
}

func (l *load) deleted(pod string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	namespace, name, _ := strings.Cut(pod, "/")
	c := l.cohorts[namespace]
	if c == nil || !c.pods[name] {
		return
	}
	if _, isPending := l.pending[pod]; isPending {
		delete(l.pending, pod)
		c.unbound--
	}
	delete(c.pods, name)
	l.alive--
	l.changed.Broadcast()
}

// some returns up to n pending pods, drawn at random.
func (l *load) some(random *rand.Rand, n int) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	pods := slices.Sorted(maps.Keys(l.pending))
	random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	return pods[:min(n, len(pods))]
}

// waiting returns the number of pending pods and the age of the oldest.
func (l *load) waiting() (n int, longest time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, since := range l.pending {
		longest = max(longest, time.Since(since))
	}
	return len(l.pending), longest
}

// error returns why the load cannot go on.
func (l *load) error() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.failed
}

// recreate deletes a pod and creates another one of the same name.
func (l *load) recreate(ctx context.Context, pod string) (bool, error) {
	namespace, name, _ := strings.Cut(pod, "/")
	pods := l.client.CoreV1().Pods(namespace)
	l.mutex.Lock()
	_, isPending := l.pending[pod]
	c := l.cohorts[namespace]
	if !isPending || c.deleting {
		l.mutex.Unlock()
		return false, nil
	}
	c.held++
	l.alive++ // Soon less one for the deleted pod.
	l.mutex.Unlock()
	defer func() {
		l.mutex.Lock()
		c.held--
		l.mutex.Unlock()
	}()
	if err := insist(ctx, func(ctx context.Context) error {
		err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}); err != nil {
		return false, err
	}
	return true, insist(ctx, func(ctx context.Context) error {
		_, err := pods.Create(ctx, newPod(name), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// insist retries, because the API server is restarted and stopped.
func insist(ctx context.Context, try func(context.Context) error) (err error) {
	for limit := time.Now().Add(2 * time.Minute); time.Now().Before(limit); {
		attempt, cancel := context.WithTimeout(ctx, 30*time.Second)
		err = try(attempt)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond) // Pause between attempts.
	}
	return err
}
