package objects_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	kills   = 32
	numSets = 4
	numJobs = 4
	most    = 6 // pods of each
)

// pods lists the namespace's pods, directly from the API server.
func pods(c *cluster) []corev1.Pod {
	c.Helper()
	list, err := c.client.CoreV1().Pods(namespace).List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return list.Items
}

// faults compares all objects with the pods. Each pod that requests an IP has exactly one reservation, in use by it;
// no others exist. Each job has one object, which matches its pods. Objects of the jobs in `gone` must not exist.
func faults(c *cluster, pods []corev1.Pod, gone []string) string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	reserved, err := list[reservation](c.Context(), c, reservations)
	if err != nil {
		return err.Error()
	}
	kept, err := list[placement](c.Context(), c, placements)
	if err != nil {
		return err.Error()
	}
	users := map[string][]string{} // IPs by uid
	for _, r := range reserved {
		users[r.Status.PodUID] = append(users[r.Status.PodUID], r.Spec.IP)
		if r.Status.Phase != "InUse" || r.Status.PodUID != r.Spec.Owner.PodUID || r.DeletionTimestamp != nil {
			add("reservation %s: %+v %+v", r.Name, r.Spec, r.Status)
		}
	}
	jobs := map[string][]corev1.Pod{}
	asking := 0
	for _, pod := range pods {
		if pod.Annotations["outboard/static-ip"] == "true" {
			asking++
			if len(users[string(pod.UID)]) != 1 {
				add("pod %s (%s) has the IPs %v", pod.Name, pod.UID, users[string(pod.UID)])
			}
			for _, r := range reserved {
				if r.Spec.Owner.PodUID == string(pod.UID) && (r.Spec.Owner.Pod != pod.Name || r.Spec.Node != pod.Spec.NodeName) {
					add("pod %s is on %s: %+v", pod.Name, pod.Spec.NodeName, r.Spec)
				}
			}
		}
		if job := pod.Labels["training-job-id"]; job != "" {
			jobs[job] = append(jobs[job], pod)
		}
	}
	if len(reserved) != asking {
		add("%d reservations, %d pods that request one", len(reserved), asking)
	}
	for _, p := range kept {
		want := map[string]string{}
		for _, pod := range jobs[p.Spec.JobID] {
			want[pod.Name+" "+string(pod.UID)] = pod.Spec.NodeName
		}
		got := map[string]string{}
		for _, placed := range p.Status.Placements {
			got[placed.Pod+" "+placed.UID] = placed.Node
		}
		if !maps.Equal(want, got) || p.Status.Pods != len(want) {
			add("placement %s has %v, the pods %v", p.Name, got, want)
		}
		delete(jobs, p.Spec.JobID)
		if slices.Contains(gone, p.Spec.JobID) {
			add("placement %s still exists", p.Name)
		}
	}
	for job := range jobs {
		add("missing placement of job %s", job)
	}
	if len(all) > 6 {
		all = append(all[:6], fmt.Sprintf("and %d more", len(all)-6))
	}
	return strings.Join(all, "\n")
}

// workload plays the controllers of StatefulSets and jobs: pods are created, deleted and recreated, sets are scaled.
type workload struct {
	*cluster
	random   *rand.Rand
	sets     []*appsv1.StatefulSet
	replicas []int
	next     int // a job's pods get a new name each time
}

func (w *workload) remove(ctx context.Context, name string) error {
	now := int64(0)
	err := w.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (w *workload) add(ctx context.Context, pod *corev1.Pod) error {
	_, err := w.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// step makes one change.
func (w *workload) step(ctx context.Context) error {
	i := w.random.Intn(numSets)
	switch w.random.Intn(10) {
	case 0, 1, 2, 3: // The controller creates missing pods.
		if w.replicas[i] == 0 {
			return nil
		}
		name := fmt.Sprintf("%s-%d", w.sets[i].Name, w.random.Intn(w.replicas[i]))
		return w.add(ctx, w.staticPod(name, scheduler, w.sets[i]))
	case 4: // A restart.
		return w.remove(ctx, fmt.Sprintf("%s-%d", w.sets[i].Name, w.random.Intn(most)))
	case 5:
		if w.replicas[i] < most {
			w.replicas[i]++
		}
	case 6:
		if w.replicas[i] > 0 {
			w.replicas[i]--
			return w.remove(ctx, fmt.Sprintf("%s-%d", w.sets[i].Name, w.replicas[i]))
		}
	case 7, 8:
		w.next++
		job := fmt.Sprintf("job-%d", i)
		return w.add(ctx, newPod(fmt.Sprintf("%s-%d", job, w.next), scheduler, map[string]string{"training-job-id": job}, nil, nil))
	case 9:
		list, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("training-job-id=job-%d", i)})
		if err != nil || len(list.Items) == 0 {
			return err
		}
		for _, pod := range list.Items {
			if len(list.Items) < most && w.random.Intn(3) > 0 {
				continue
			}
			if err := w.remove(ctx, pod.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// watchBinds checks at each bind that the pod has its reservation, and counts.
func watchBinds(ctx context.Context, c *cluster, binds *atomic.Int64, violations *[]string, mutex *sync.Mutex) error {
	watch, err := c.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	seen := map[string]bool{}
	for event := range watch.ResultChan() {
		pod, isPod := event.Object.(*corev1.Pod)
		if !isPod || event.Type == "DELETED" || pod.Spec.NodeName == "" || seen[string(pod.UID)] {
			continue
		}
		seen[string(pod.UID)] = true
		binds.Add(1)
		if pod.Annotations["outboard/static-ip"] != "true" {
			continue
		}
		all, err := list[reservation](ctx, c, reservations)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		if slices.ContainsFunc(all, func(r reservation) bool { return r.Spec.Owner.PodUID == string(pod.UID) }) {
			continue
		}
		// The pod may be deleted already, and another may have its IP.
		now, err := c.client.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && now.UID == pod.UID {
			mutex.Lock()
			*violations = append(*violations, fmt.Sprintf("pod %s (%s) was bound to %s without a reservation", pod.Name, pod.UID, pod.Spec.NodeName))
			mutex.Unlock()
		} else if err != nil && !apierrors.IsNotFound(err) {
			return ignoreEnd(ctx, err)
		}
	}
	return nil
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func killedAtRandomMoments(c *cluster) {
	defer c.clear()
	o := c.start(controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{Text: profiles(scheduler)}})
	c.apply(`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPPool, metadata: {name: a}, spec: {cidr: 10.9.0.0/28, nodeSelector: {rack: r0}}}`)
	c.apply(`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPPool, metadata: {name: b}, spec: {cidr: 10.9.1.0/28, nodeSelector: {rack: r1}}}`)
	seed := time.Now().UnixNano()
	c.Logf("seed %d", seed)
	w := &workload{cluster: c, random: rand.New(rand.NewSource(seed)), replicas: make([]int, numSets)}
	for i := range numSets {
		w.sets = append(w.sets, c.statefulSet(fmt.Sprintf("set%d", i)))
	}
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	var binds atomic.Int64
	var violations []string
	var mutex sync.Mutex
	ended := make(chan error, 2)
	go func() { ended <- watchBinds(ctx, c, &binds, &violations, &mutex) }()
	go func() {
		for ctx.Err() == nil {
			if err := w.step(ctx); ignoreEnd(ctx, err) != nil {
				ended <- err
				return
			}
			time.Sleep(10 * time.Millisecond) // The rate of changes.
		}
		ended <- nil
	}()
	moments := rand.New(rand.NewSource(seed + 1))
	for i := range kills {
		enough := binds.Load() + 1 + int64(moments.Intn(10))
		c.await("pods are bound again", func() string {
			if binds.Load() < enough {
				return fmt.Sprintf("%d binds after %d kills", binds.Load(), i)
			}
			return ""
		})
		time.Sleep(time.Duration(moments.Intn(200)) * time.Millisecond) // A random moment.
		var err error
		if i%2 == 0 {
			o.Shim.Kill()
			err = o.StartShim()
		} else {
			o.Host.Kill()
			err = o.StartHost()
		}
		if err != nil {
			c.Fatal(err)
		}
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			c.Fatal(err)
		}
	}
	// The controllers finish: no gaps, and one set and one job less.
	for i, set := range w.sets {
		if i == 0 {
			w.replicas[i] = 0
			if err := c.client.AppsV1().StatefulSets(namespace).Delete(c.Context(), set.Name, metav1.DeleteOptions{}); err != nil {
				c.Fatal(err)
			}
		}
		for ordinal := range most {
			name := fmt.Sprintf("%s-%d", set.Name, ordinal)
			err := w.remove(c.Context(), name)
			if ordinal < w.replicas[i] {
				err = w.add(c.Context(), w.staticPod(name, scheduler, set))
			}
			if err != nil {
				c.Fatal(err)
			}
		}
	}
	for _, pod := range pods(c) {
		if pod.Labels["training-job-id"] == "job-0" {
			c.delete(pod.Name)
		}
	}
	for _, pod := range pods(c) {
		c.awaitBound(pod.Name)
	}
	began := time.Now()
	c.await("objects match the pods", func() string { return faults(c, pods(c), []string{"job-0"}) })
	c.Logf("%d kills, %d binds; objects matched %.1f s after the last pod was bound", kills, binds.Load(), time.Since(began).Seconds())
	for _, violation := range violations {
		c.Error(violation)
	}
}
