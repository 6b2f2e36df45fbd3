// Command swap replaces the plugin host repeatedly while pods are scheduled on a real API server, and counts
// failures. etcd's history (../checker) shows lost pods, double binds and overcommitted nodes; a watch measures the
// latency of pods; the shim's log has the durations of cycles. The last line is one JSON object.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"outboard.dev/integration/bench/checker"
	"outboard.dev/integration/bench/load"
	controlplane "outboard.dev/integration/control_plane"
)

var (
	swaps    = flag.Int("swaps", 200, "number of replacements of the host")
	baseline = flag.Duration("baseline", 30*time.Second, "time without replacements at the beginning, for comparison")
	interval = flag.Duration("interval", 2*time.Second, "from one replacement to the next")
	nodes    = flag.Int("nodes", 1000, "number of nodes")
	bound    = flag.Int("bound", 10000, "pods that are on nodes from the start")
	rate     = flag.Int("rate", 152, "pods created each second")
	killed   = flag.Int("killed", 3, "each N-th predecessor gets SIGKILL, alternately after its successor serves and while it serves itself; the others get SIGTERM; 0: none is killed")
	mostP99  = flag.Float64("most-added-p99", 0, "fail if replacements add more milliseconds to the cycles' p99; 0: any time")
	busy     = flag.Bool("busy", false, "the machine does other work, so the API server may be slow: do not fail for late gangs")
	keepLogs = flag.Bool("keep-logs", false, "keep the logs of the control plane, the hosts and the shim")
)

const (
	namespace = "swap"
	// A cycle that began within this time of a switch counts as near. With the default interval those are nearly all
	// cycles, including the start of the new process and its snapshot.
	near = time.Second
	// A pod whose first attempt began this long before it got its node had a failed attempt, or was retried too late.
	tooLate = time.Second
	// Wait after all processes have started, before the baseline.
	settle = 5 * time.Second
)

// With AtomicReplicaCoordinator at further points the members of an incomplete gang would wait before the queue, not at
// Permit, where they hold places that a new host has to know.
const config = `
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: Preference}]
    permit:
      enabled: [{name: AtomicReplicaCoordinator}]
`

// outcome is the last line of output. All times are in milliseconds.
type outcome struct {
	Swaps        int `json:"swaps"`
	Killed       int `json:"killed"`        // predecessors that were killed
	FailedCycles int `json:"failed_cycles"` // pods that got their node later than 1 s after their first attempt began
	MixedCycles  int `json:"mixed_cycles"`  // attempts whose calls went to more than one instance
	Lost         int `json:"lost"`
	Double       int `json:"double"`
	Overcommit   int `json:"overcommit"`
	OtherFaults  int `json:"other_faults"`
	Gangs        int `json:"gangs"`        // bound as a whole, within 1 s of the last member's creation
	GangsAcross  int `json:"gangs_across"` // with all but one member at Permit while the host was replaced
	PartialGangs int `json:"partial_gangs"`
	LateGangs    int `json:"late_gangs"`
	HostErrors   int `json:"host_errors"` // attempts that failed without a host's answer; their pods are retried
	// From the start of a cycle to a node, from the shim's log.
	Cycles   int     `json:"cycles"`
	P99      float64 `json:"p99_ms"` // without replacements
	Near     int     `json:"cycles_near_a_switch"`
	NearP99  float64 `json:"near_p99_ms"`
	NearMax  float64 `json:"near_max_ms"`
	AddedP99 float64 `json:"added_p99_ms"`
	// From the queue to a node; includes the wait for an absent host and for other pods.
	QueuedP99      float64 `json:"queued_p99_ms"`
	QueuedNearP99  float64 `json:"queued_near_p99_ms"`
	QueuedNearMax  float64 `json:"queued_near_max_ms"`
	QueuedAddedP99 float64 `json:"queued_added_p99_ms"`
	// From creation to bound, from the API server.
	Pods        int     `json:"pods"`
	LatePods    int     `json:"late_pods"` // bound later than 1 s after they were created
	PodP99      float64 `json:"pod_p99_ms"`
	PodNearP99  float64 `json:"pod_near_p99_ms"`
	PodNearMax  float64 `json:"pod_near_max_ms"`
	PodAddedP99 float64 `json:"pod_added_p99_ms"`
	WarmUpP50   float64 `json:"warm_up_p50_ms"` // from the start of the process to its serving
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
	faults := result.FailedCycles + result.MixedCycles + result.PartialGangs + result.Lost + result.Double + result.Overcommit + result.OtherFaults
	if !*busy {
		faults += result.LateGangs
	}
	if faults > 0 {
		os.Exit(1)
	}
	across := result.Swaps / 2
	if *busy {
		across = 1
	}
	if result.GangsAcross < across {
		fmt.Fprintf(os.Stderr, "bench swap: only %d of %d gangs waited at Permit while the host was replaced\n", result.GangsAcross, result.Swaps)
		os.Exit(1)
	}
	if *mostP99 > 0 && result.AddedP99 > *mostP99 {
		fmt.Fprintf(os.Stderr, "bench swap: replacements add %.1f ms to the cycles' p99, at most %.1f are allowed\n", result.AddedP99, *mostP99)
		os.Exit(1)
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func run(ctx context.Context) (result *outcome, err error) {
	c, err := controlplane.Start(ctx, controlplane.Options{SpareCores: true, Progress: say})
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
		pod := load.NewPod(fmt.Sprintf("bound-%06d", i))
		pod.Spec.NodeName = controlplane.FakeNode(i % *nodes).Name
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}); err != nil {
		return nil, err
	}
	builds, err := makeBuilds(c.Dir)
	if err != nil {
		return nil, err
	}
	outboard, err := c.StartOutboard(ctx, controlplane.OutboardOptions{
		Config:          controlplane.SchedulerConfig{Text: config},
		SocketDirectory: true,
		HostArgs:        builds[0],
		ShimArgs:        []string{"--v=2"},
		Shim:            "replacement: {shadowCycles: 20, keepWarm: 1s}",
	})
	if err != nil {
		return nil, err
	}
	steady := load.Start(ctx, client, namespace, *rate, load.NewPod)
	if err := load.SleepUntil(ctx, time.Now().Add(settle)); err != nil {
		return nil, err
	}
	undisturbed := time.Now()
	if err := load.SleepUntil(ctx, undisturbed.Add(*baseline)); err != nil {
		return nil, err
	}
	disturbed := time.Now()
	gangs := watchGangs(ctx, client)
	swapped, err := replaceHosts(ctx, outboard, builds, gangs)
	if loadErr := steady.End(ctx); err == nil {
		err = loadErr
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, outboard.Shim.LogTail())
	}
	metrics, err := outboard.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	cycles, mixed, err := readCycles(outboard.Shim.LogPath)
	if err != nil {
		return nil, err
	}
	pods := []sample{}
	for _, pod := range steady.Latencies() {
		pods = append(pods, sample{began: pod.Created, took: pod.Took})
	}
	result = &outcome{
		Swaps: len(swapped.switches), Killed: swapped.killed, WarmUpP50: load.Quantile(swapped.warmUps, 0.5), MixedCycles: mixed,
		Gangs: gangs.whole, GangsAcross: gangs.across, PartialGangs: gangs.partial, LateGangs: gangs.late,
		Cycles: len(cycles), Pods: len(pods),
	}
	for _, pod := range pods {
		if pod.took > tooLate {
			result.LatePods++
		}
	}
	for _, cycle := range cycles {
		if cycle.sinceFirstTry > tooLate {
			result.FailedCycles++
		}
	}
	before, close := quantilesOf(between(cycles, undisturbed, disturbed)), quantilesOf(around(cycles, swapped.switches))
	result.QueuedP99, result.QueuedNearP99, result.QueuedNearMax, result.QueuedAddedP99 = before.p99, close.p99, close.max, close.p99-before.p99
	say("from the queue to a node, ms: %+v without replacements, %+v within 1 s of one", before, close)
	alone := withoutQueue(cycles)
	before, close = quantilesOf(between(alone, undisturbed, disturbed)), quantilesOf(around(alone, swapped.switches))
	result.Near = int(close.n)
	result.P99, result.NearP99, result.NearMax, result.AddedP99 = before.p99, close.p99, close.max, close.p99-before.p99
	say("cycles, ms: %+v without replacements, %+v within 1 s of one", before, close)
	before, close = quantilesOf(between(pods, undisturbed, disturbed)), quantilesOf(around(pods, swapped.switches))
	result.PodP99, result.PodNearP99, result.PodNearMax, result.PodAddedP99 = before.p99, close.p99, close.max, close.p99-before.p99
	say("creation to bound, ms: %+v without replacements, %+v within 1 s of one", before, close)
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
