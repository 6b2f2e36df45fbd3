package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

// measure takes one measurement on its own control plane.
func measure(ctx context.Context, contender string, config controlplane.SchedulerConfig, work workload) (*Result, error) {
	options := controlplane.Options{Progress: say}
	if work.claims {
		options.Controllers = controlplane.ClaimControllers
	}
	c, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	result, err := measureOn(ctx, c, contender, config, work)
	if err == nil && !*keepLogs {
		c.Stop()
		return result, nil
	}
	if kept, keepErr := c.StopKeepingLogs(); keepErr == nil {
		say("logs of %s: %s", contender, kept)
	}
	return result, err
}

func measureOn(ctx context.Context, c *controlplane.ControlPlane, contender string, config controlplane.SchedulerConfig,
	work workload,
) (*Result, error) {
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	if err := controlplane.CreateFakeNodes(ctx, client, work.nodes); err != nil {
		return nil, err
	}
	if err := createSurroundings(ctx, client); err != nil {
		return nil, err
	}
	if err := work.createDevices(ctx, client); err != nil {
		return nil, err
	}
	if work.initialOnNodes {
		if err := createOnNodes(ctx, client, work); err != nil {
			return nil, err
		}
	}
	watcher, err := newPodWatcher(ctx, client)
	if err != nil {
		return nil, err
	}
	var scheduler controlplane.Scheduler
	started := []time.Time{}
	var before snapshot
	foreign := foreignLoad(c)
	end := func() error { return nil }
	if *backlog {
		if started, err = createPods(ctx, client, "pod", work.measured, work.measuredPod); err != nil {
			return nil, err
		}
		if scheduler, err = start(ctx, c, contender, config, work); err != nil {
			return nil, err
		}
	} else {
		if scheduler, err = start(ctx, c, contender, config, work); err != nil {
			return nil, err
		}
		if !work.initialOnNodes {
			if _, err = createPods(ctx, client, "initial", work.initial, work.initialPod); err != nil {
				return nil, err
			}
			if err := watcher.waitFor(ctx, "initial", work.initial); err != nil {
				return nil, err
			}
			if err := waitForEvents(ctx, client, work.initial); err != nil {
				return nil, err
			}
		}
		if before, err = takeSnapshot(ctx, c, scheduler); err != nil {
			return nil, err
		}
		end = work.begin(ctx, client)
		if work.atATime > 0 {
			started, err = createInTurns(ctx, client, watcher, work)
		} else {
			started, err = createPods(ctx, client, "pod", work.measured, work.measuredPod)
		}
		if err != nil {
			return nil, err
		}
	}
	err = watcher.waitFor(ctx, "pod", work.measured)
	if err := errors.Join(err, end()); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, scheduler.Processes()[0].LogTail())
	}
	// Scheduled; for a preempting pod also FailedScheduling and its victims' Preempted.
	events := work.measured
	if work.victims > 0 {
		events *= 2 + work.victims
	}
	if !*backlog && !work.initialOnNodes {
		events += work.initial
	}
	if err := waitForEvents(ctx, client, events); err != nil {
		return nil, err
	}
	after, err := takeSnapshot(ctx, c, scheduler)
	if err != nil {
		return nil, err
	}
	result := evaluate(contender, started, watcher.boundAt("pod", work.measured), before, after)
	if result.ForeignLoad, err = foreign(); err != nil {
		return nil, err
	}
	scheduler.Stop()
	// The checker must not count pods that never get a node.
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := client.CoreV1().Pods(extraNamespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return nil, err
	}
	if result.Check, err = checker.Check(ctx, c.EtcdURL, client); err != nil {
		return nil, err
	}
	result.Devices, err = work.checkDevices(ctx, c, client)
	return result, err
}

// foreignLoad starts to measure the CPU share of other programs; the returned function ends the measurement.
func foreignLoad(c *controlplane.ControlPlane) func() (float64, error) {
	begin := time.Now()
	machineBefore, err1 := controlplane.MachineCPU()
	ownBefore, err2 := c.CPU()
	return func() (float64, error) {
		machine, err3 := controlplane.MachineCPU()
		own, err4 := c.CPU()
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return 0, err
		}
		foreign := (machine - machineBefore) - (own - ownBefore)
		return max(0, foreign.Seconds()) / time.Since(begin).Seconds() / float64(runtime.NumCPU()), nil
	}
}

const benchNamespace = "bench"

func createSurroundings(ctx context.Context, client kubernetes.Interface) error {
	for _, name := range []string{benchNamespace, extraNamespace} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: importantClass}, Value: 10}
	_, err := client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
	return err
}

// begin starts the background activity of the measurement; the returned function ends it and returns its error.
func (w *workload) begin(ctx context.Context, client kubernetes.Interface) (end func() error) {
	if w.meanwhile == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.meanwhile(ctx, client) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func benchPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "bench"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:  "main",
			Image: "registry.k8s.io/pause:3.10",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("500Mi"),
			}},
		}}},
	}
}

// createOnNodes creates the initial pods, on the nodes in turn.
func createOnNodes(ctx context.Context, client kubernetes.Interface, work workload) error {
	_, err := createPods(ctx, client, "initial", work.initial, func(i int) *corev1.Pod {
		pod := work.initialPod(i)
		pod.Spec.NodeName = controlplane.FakeNode(i % work.nodes).Name
		return pod
	})
	return err
}

func podName(prefix string, i int) string { return fmt.Sprintf("%s-%05d", prefix, i) }

// createPods returns the time of each create request.
func createPods(ctx context.Context, client kubernetes.Interface, prefix string, n int, template func(int) *corev1.Pod,
) ([]time.Time, error) {
	started := make([]time.Time, n)
	return started, controlplane.InParallel(ctx, *creators, n, func(ctx context.Context, i int) error {
		pod := template(i)
		pod.Name = podName(prefix, i)
		started[i] = time.Now()
		_, err := client.CoreV1().Pods(benchNamespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

func start(ctx context.Context, c *controlplane.ControlPlane, contender string, config controlplane.SchedulerConfig, work workload,
) (controlplane.Scheduler, error) {
	switch contender {
	case "kube-scheduler":
		return c.StartKubeScheduler(ctx, config)
	case "outboard":
		return c.StartOutboard(ctx, controlplane.OutboardOptions{Config: config, Claims: work.claims})
	default:
		kubeconfig, err := c.Kubeconfig("system:kube-scheduler") // The same rights and the same API priority.
		if err != nil {
			return nil, err
		}
		process, err := c.StartProcess("bind-at-once", *ceiling, "--kubeconfig", kubeconfig, "--victims", strconv.Itoa(work.victims))
		return ceilingProcess{process}, err
	}
}

// ceilingProcess wraps the program that binds at once as a scheduler without metrics.
type ceilingProcess struct{ process *controlplane.Process }

func (ceilingProcess) Name() string { return "bind-at-once" }
func (p ceilingProcess) Processes() []*controlplane.Process {
	return []*controlplane.Process{p.process}
}
func (p ceilingProcess) Stop() { p.process.Stop(5 * time.Second) }
func (ceilingProcess) Metrics(context.Context) (map[string]*dto.MetricFamily, error) {
	return nil, nil
}

func buildCeiling(ctx context.Context) (program string, remove func(), err error) {
	root, err := controlplane.Repository()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "outboard-bench-")
	if err != nil {
		return "", nil, err
	}
	program = filepath.Join(dir, "bind-at-once")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./bench/bind_at_once")
	cmd.Dir = filepath.Join(root, "integration")
	if out, err := cmd.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", nil, fmt.Errorf("go build bind_at_once: %w\n%s", err, out)
	}
	return program, func() { os.RemoveAll(dir) }, nil
}
