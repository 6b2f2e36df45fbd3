// Command swap replaces the plugin host again and again while pods are scheduled on a real API server, and counts what went
// wrong. Whether pods were lost, bound twice or put on a full node is judged from etcd's history (../checker); how long pods
// took is seen by a watch. Its last line is one JSON object.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

var (
	swaps    = flag.Int("swaps", 200, "how often the host is replaced")
	interval = flag.Duration("interval", 2*time.Second, "from one replacement to the next")
	nodes    = flag.Int("nodes", 1000, "number of nodes")
	bound    = flag.Int("bound", 10000, "pods that are on nodes before")
	rate     = flag.Int("rate", 160, "pods created each second")
	hostA    = flag.String("host-a", "", "a build of the host; default: the one that ./dev build made")
	hostB    = flag.String("host-b", "", "the build that takes turns with it; default: the same")
	killed   = flag.Int("killed", 3, "every so many-th predecessor is killed (SIGKILL) when its successor serves, the others are asked to end; 0: none is killed")
	keepLogs = flag.Bool("keep-logs", false, "keep the logs of the control plane, the hosts and the shim")
)

const (
	namespace = "swap"
	// Around a switch: cycles that began this long after it count as near.
	near = time.Second
	// A pod that was created this long before it is bound had an attempt that did not end, or was restarted too late.
	tooLate = time.Second
	// How long a pod stays once it is bound, so that there is room for others.
	stay = 20 * time.Second
)

// outcome is the last line.
type outcome struct {
	Swaps        int     `json:"swaps"`
	FailedCycles int     `json:"failed_cycles"` // pods that were bound later than 1 s after they were created
	HostErrors   int     `json:"host_errors"`   // attempts that ended because a host gave no answer
	Lost         int     `json:"lost"`
	Double       int     `json:"double"`
	Overcommit   int     `json:"overcommit"`
	OtherFaults  int     `json:"other_faults"`
	Pods         int     `json:"pods"`
	Near         int     `json:"pods_near_a_switch"`
	P99          float64 `json:"p99_ms"`
	NearP99      float64 `json:"near_p99_ms"`
	NearMax      float64 `json:"near_max_ms"`
	AddedP99     float64 `json:"added_p99_ms"`
	WarmUpP50    float64 `json:"warm_up_p50_ms"` // from the start of the process to its serving
}

func main() {
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	result, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench swap:", err)
		os.Exit(1)
	}
	line, err := json.Marshal(result)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench swap:", err)
		os.Exit(1)
	}
	fmt.Println(string(line))
	if result.FailedCycles+result.Lost+result.Double+result.Overcommit+result.OtherFaults > 0 {
		os.Exit(1)
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func run(ctx context.Context) (result *outcome, err error) {
	c, err := controlplane.Start(ctx, controlplane.Options{Progress: say})
	if err != nil {
		return nil, err
	}
	defer func() {
		if !*keepLogs {
			c.Stop()
			return
		}
		kept, keepErr := c.StopKeepingLogs()
		say("logs: %s", kept)
		err = errors.Join(err, keepErr)
	}()
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	if err := controlplane.CreateFakeNodes(ctx, client, *nodes); err != nil {
		return nil, err
	}
	if _, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if err := controlplane.InParallel(ctx, 30, *bound, func(ctx context.Context, i int) error {
		pod := newPod(fmt.Sprintf("bound-%06d", i))
		pod.Spec.NodeName = controlplane.FakeNode(i % *nodes).Name
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}); err != nil {
		return nil, err
	}
	outboard, err := c.StartOutboard(ctx, controlplane.OutboardOptions{
		SocketDirectory: true,
		HostProgram:     *hostA,
		Shim:            "replacement: {shadowCycles: 20, keepWarm: 1s}",
	})
	if err != nil {
		return nil, err
	}
	load := startLoad(ctx, client)
	switches, warmUps, err := replaceHosts(ctx, outboard)
	if loadErr := load.end(ctx); err == nil {
		err = loadErr
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, outboard.Shim.LogTail())
	}
	metrics, err := outboard.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	result = load.judge(switches)
	result.WarmUpP50 = quantile(warmUps, 0.5)
	for _, metric := range metrics["scheduler_schedule_attempts_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "result" && label.GetValue() == "error" {
				result.HostErrors += int(metric.GetCounter().GetValue())
			}
		}
	}
	outboard.Stop()
	report, err := checker.Check(ctx, c.EtcdURL, client)
	if err != nil {
		return nil, err
	}
	say("check: %v", report)
	result.Lost, result.Double, result.Overcommit = report.Unbound, report.BoundTwice, report.Overcommitted
	result.OtherFaults = report.Faults() - report.Unbound - report.BoundTwice - report.Overcommitted
	return result, nil
}

func newPod(name string) *corev1.Pod {
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

// replaceHosts starts one instance after the other, and returns when each came to serve, and how long it took to.
func replaceHosts(ctx context.Context, outboard *controlplane.Outboard) (switches []time.Time, warmUps []float64, err error) {
	builds := []string{*hostB, *hostA}
	began := time.Now()
	for i := range *swaps {
		if err := sleepUntil(ctx, began.Add(time.Duration(i+1)**interval)); err != nil {
			return nil, nil, err
		}
		predecessor, started := outboard.Host, time.Now()
		outboard.SetHostProgram(builds[i%2])
		if err := outboard.StartHost(); err != nil {
			return nil, nil, err
		}
		serving, err := waitUntilServing(ctx, outboard, started)
		if err != nil {
			return nil, nil, fmt.Errorf("swap %d: %w", i+1, err)
		}
		switches = append(switches, serving)
		warmUps = append(warmUps, float64(serving.Sub(started).Microseconds())/1000)
		if *killed > 0 && (i+1)%*killed == 0 {
			predecessor.Kill()
		} else {
			// It ends by itself once it has drained.
			go predecessor.Stop(30 * time.Second)
		}
		if (i+1)%20 == 0 {
			say("%d swaps; warm-up of the last: %.0f ms", i+1, warmUps[i])
		}
	}
	return switches, warmUps, nil
}

func sleepUntil(ctx context.Context, when time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(when)):
		return nil
	}
}

// waitUntilServing returns when the instance that started after `started` came to serve, as the shim says.
func waitUntilServing(ctx context.Context, outboard *controlplane.Outboard, started time.Time) (time.Time, error) {
	const patience = 30 * time.Second
	limit := time.Now().Add(patience)
	for {
		hosts, err := outboard.Hosts(ctx)
		if err != nil {
			return time.Time{}, err
		}
		for _, host := range hosts {
			if host.State == "serving" && host.Started.After(started) {
				return host.Since, nil
			}
		}
		if time.Now().After(limit) {
			return time.Time{}, fmt.Errorf("the new instance does not serve: %+v", hosts)
		}
		if err := sleepUntil(ctx, time.Now().Add(20*time.Millisecond)); err != nil {
			return time.Time{}, err
		}
	}
}

// load is a steady stream of pods.
type load struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	created map[string]time.Time
	seen    map[string]time.Time // bound
	failed  error
}

func startLoad(ctx context.Context, client kubernetes.Interface) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{client: client, cancel: cancel, created: map[string]time.Time{}, seen: map[string]time.Time{}}
	watching := make(chan struct{})
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		l.fail(l.watch(ctx, watching))
	}()
	<-watching
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		l.fail(l.create(ctx))
	}()
	return l
}

func (l *load) fail(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
}

// create makes pods at the rate, each in its time, whatever the others do.
func (l *load) create(ctx context.Context) error {
	var under sync.WaitGroup
	defer under.Wait()
	began := time.Now()
	for i := 0; ; i++ {
		if err := sleepUntil(ctx, began.Add(time.Duration(i)*time.Second/time.Duration(*rate))); err != nil {
			return nil
		}
		name := fmt.Sprintf("pod-%06d", i)
		l.mu.Lock()
		l.created[name] = time.Now()
		l.mu.Unlock()
		under.Add(1)
		go func() {
			defer under.Done()
			// Not cut short by the end: every pod that was counted is to be there.
			_, err := l.client.CoreV1().Pods(namespace).Create(context.WithoutCancel(ctx), newPod(name), metav1.CreateOptions{})
			l.fail(err)
		}()
	}
}

// watch notes when pods are bound, and deletes those that have been for long enough.
func (l *load) watch(ctx context.Context, watching chan<- struct{}) error {
	options := metav1.ListOptions{FieldSelector: "spec.nodeName!="}
	list, err := l.client.CoreV1().Pods(namespace).List(ctx, options)
	if err != nil {
		close(watching)
		return err
	}
	options.ResourceVersion = list.ResourceVersion
	watcher, err := l.client.CoreV1().Pods(namespace).Watch(ctx, options)
	close(watching)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-watcher.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !open || !ok {
				return fmt.Errorf("the watch ended: %v", event.Object)
			}
			l.mu.Lock()
			_, seen := l.seen[pod.Name]
			_, ours := l.created[pod.Name]
			if ours && !seen {
				l.seen[pod.Name] = time.Now()
				time.AfterFunc(stay, func() {
					if ctx.Err() == nil {
						l.fail(l.client.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}))
					}
				})
			}
			l.mu.Unlock()
		}
	}
}

// end stops creating and waits until every pod is bound.
func (l *load) end(ctx context.Context) error {
	const patience = 30 * time.Second
	limit := time.Now().Add(patience)
	for {
		l.mu.Lock()
		missing, failed := len(l.created)-len(l.seen), l.failed
		l.mu.Unlock()
		// The creator goes on until the end; what it made since is not waited for.
		if failed != nil || missing <= *rate/10 || time.Now().After(limit) {
			break
		}
		if err := sleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return err
		}
	}
	l.cancel()
	l.done.Wait()
	return errors.Join(l.failed, l.waitForAll(ctx, limit))
}

// waitForAll waits until the pods that exist are bound.
func (l *load) waitForAll(ctx context.Context, limit time.Time) error {
	for {
		pending, err := l.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
		if err != nil {
			return err
		}
		if len(pending.Items) == 0 || time.Now().After(limit) {
			return nil // What is left the checker counts as lost.
		}
		if err := sleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return err
		}
	}
}

func (l *load) judge(switches []time.Time) *outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	result := &outcome{Swaps: len(switches)}
	var all, close []float64
	for name, created := range l.created {
		seen, ok := l.seen[name]
		if !ok {
			continue // Among the last.
		}
		result.Pods++
		took := seen.Sub(created)
		millis := float64(took.Microseconds()) / 1000
		if took > tooLate {
			result.FailedCycles++
		}
		next, _ := slices.BinarySearchFunc(switches, created, time.Time.Compare)
		isNear := next > 0 && created.Sub(switches[next-1]) < near || next < len(switches) && seen.After(switches[next])
		if isNear {
			close = append(close, millis)
		} else {
			all = append(all, millis)
		}
	}
	result.Near = len(close)
	result.P99, result.NearP99, result.NearMax = quantile(all, 0.99), quantile(close, 0.99), quantile(close, 1)
	result.AddedP99 = result.NearP99 - result.P99
	return result
}

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}
