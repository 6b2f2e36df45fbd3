// Command extender measures the cost of an HTTP extender for the real kube-scheduler, as the mean of its
// scheduling_algorithm_duration over a number of pods. Arrangements: no extender; one in Go that decodes, accepts
// everything and encodes; Outboard, which filters and scores with all default plugins, with names only and with full
// nodes; and the same profile inside Outboard, whose histogram has the same name. Both extenders run all the time,
// the arrangements take turns on one control plane, and ratios are within a turn.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

var (
	sizes   = flag.String("nodes", "1000,5000", "numbers of nodes, separated by commas; one part of the table each")
	pods    = flag.Int("pods", 200, "number of measured pods in each run, after a quarter as many unmeasured ones")
	runs    = flag.Int("runs", 3, "number of measurements of each arrangement; they take turns")
	check   = flag.Bool("check", false, "exit with 1 if Outboard costs more than --limit times the extender that does nothing")
	limit   = flag.Float64("limit", 1.1, "see --check")
	doServe = flag.String("serve", "", "only serve the extender that does nothing, at this address")
)

// An arrangement schedules the pods.
type arrangement struct {
	name string
	// The extender; empty: none. Without namesOnly kube-scheduler sends it full nodes.
	extender string
	byName   bool
	inside   bool // Outboard schedules the pods itself
}

const (
	doesNothing = "Go, does nothing"
	ours        = "Outboard"
	namespace   = "bench"
)

var arrangements = []arrangement{
	{name: "no extender"},
	{name: "names: " + doesNothing, extender: doesNothing, byName: true},
	{name: "names: " + ours, extender: ours, byName: true},
	{name: "full nodes: " + doesNothing, extender: doesNothing},
	{name: "full nodes: " + ours, extender: ours},
	{name: "the profile inside Outboard", inside: true},
}

func main() {
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	work := run
	if *doServe != "" {
		work = func(context.Context) error { return serve(*doServe) }
	}
	if err := work(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench extender:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	fmt.Printf("kube-scheduler's scheduling_algorithm_duration, mean of %d pods, median of %d runs, arrangements in turns; %d CPUs. The extender's profile, and the one\n"+
		"inside Outboard, has all default plugins. Ratios: Outboard to the extender that does nothing, in the same run.\n\n", *pods, *runs, runtime.NumCPU())
	fmt.Println("| nodes | arrangement | ms a pod | of all runs | ratio | of that in Outboard: filter, prioritize |\n|---|---|---:|---|---:|---|")
	missed := false
	for _, text := range strings.Split(*sizes, ",") {
		nodes, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("--nodes: %w", err)
		}
		means, within, err := measureSize(ctx, nodes)
		if err != nil {
			return err
		}
		for i, arrangement := range arrangements {
			ratio, inside := "", ""
			if arrangement.extender == ours {
				// The arrangement before it is the same with the extender that does nothing.
				all := make([]float64, *runs)
				for run := range all {
					all[run] = means[i][run] / means[i-1][run]
				}
				ratio = fmt.Sprintf("%.2f", median(all))
				missed = missed || median(all) > *limit
				inside = fmt.Sprintf("%.2f, %.2f", median(within[i]["filter"]), median(within[i]["prioritize"]))
			}
			fmt.Printf("| %d | %s | %.2f | %s | %s | %s |\n", nodes, arrangement.name, median(means[i]), list(means[i]), ratio, inside)
		}
	}
	if *check && missed {
		return fmt.Errorf("a ratio is above %.2f", *limit)
	}
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func list(values []float64) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprintf("%.2f", value)
	}
	return strings.Join(texts, " ")
}

// measureSize returns the mean, in milliseconds, of every arrangement in every run, and the part of it inside
// Outboard's extender, by verb: from the complete body to the answer.
func measureSize(ctx context.Context, nodes int) (means [][]float64, within []map[string][]float64, err error) {
	c, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer c.Stop()
	client, err := c.Client()
	if err != nil {
		return nil, nil, err
	}
	if err := controlplane.CreateFakeNodes(ctx, client, nodes); err != nil {
		return nil, nil, err
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return nil, nil, err
	}
	addresses, err := controlplane.FreeAddresses(2)
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	urls := map[string]string{doesNothing: "http://" + addresses[0], ours: "http://" + addresses[1]}
	if _, err := c.StartProcess("does-nothing", self, "--serve", addresses[0]); err != nil {
		return nil, nil, err
	}
	outboard, err := c.StartOutboard(ctx, controlplane.OutboardOptions{
		Config: controlplane.SchedulerConfig{Text: "profiles: [{schedulerName: outboard-scheduler}]"},
		Shim:   fmt.Sprintf("extender: {address: %q, profile: outboard-scheduler}", addresses[1]),
	})
	if err != nil {
		return nil, nil, err
	}
	means = make([][]float64, len(arrangements))
	for range arrangements {
		within = append(within, map[string][]float64{})
	}
	for range *runs {
		for i, arrangement := range arrangements {
			mean, taken, err := measure(ctx, c, client, outboard, arrangement, urls)
			if err != nil {
				return nil, nil, fmt.Errorf("%d nodes, %s: %w", nodes, arrangement.name, err)
			}
			means[i] = append(means[i], mean)
			for verb, milliseconds := range taken {
				within[i][verb] = append(within[i][verb], milliseconds)
			}
		}
	}
	return means, within, nil
}

func measure(ctx context.Context, c *controlplane.ControlPlane, client kubernetes.Interface, outboard *controlplane.Outboard, what arrangement,
	urls map[string]string,
) (mean float64, taken map[string]float64, err error) {
	var scheduler controlplane.Scheduler = outboard
	name := "outboard-scheduler"
	if !what.inside {
		name = corev1.DefaultSchedulerName
		config := ""
		if what.extender != "" {
			config = fmt.Sprintf("extenders: [{urlPrefix: %q, filterVerb: filter, prioritizeVerb: prioritize, weight: 1, nodeCacheCapable: %t}]",
				urls[what.extender], what.byName)
		}
		started, err := c.StartKubeScheduler(ctx, controlplane.SchedulerConfig{Text: config})
		if err != nil {
			return 0, nil, err
		}
		defer started.Stop()
		scheduler = started
	}
	if err := place(ctx, client, name, "warm", *pods/4); err != nil {
		return 0, nil, err
	}
	sumBefore, countBefore, err := algorithm(ctx, scheduler)
	if err != nil {
		return 0, nil, err
	}
	extenderBefore, err := inExtender(ctx, outboard)
	if err != nil {
		return 0, nil, err
	}
	if err := place(ctx, client, name, "pod", *pods); err != nil {
		return 0, nil, err
	}
	sum, count, err := algorithm(ctx, scheduler)
	if err != nil {
		return 0, nil, err
	}
	inside, err := inExtender(ctx, outboard)
	if err != nil {
		return 0, nil, err
	}
	taken = map[string]float64{}
	for verb, seconds := range inside {
		taken[verb] = (seconds - extenderBefore[verb]) / float64(count-countBefore) * 1000
	}
	if count-countBefore < uint64(*pods) {
		return 0, nil, fmt.Errorf("%d pods were scheduled, not %d", count-countBefore, *pods)
	}
	return (sum - sumBefore) / float64(count-countBefore) * 1000, taken, removePods(ctx, client)
}

// inExtender reads the seconds that Outboard's extender has spent on each verb.
func inExtender(ctx context.Context, outboard *controlplane.Outboard) (map[string]float64, error) {
	families, err := outboard.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	seconds := map[string]float64{}
	for _, metric := range families["outboard_extender_request_duration_seconds"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "verb" {
				seconds[label.GetValue()] += metric.GetHistogram().GetSampleSum()
			}
		}
	}
	return seconds, nil
}

// algorithm reads the sum, in seconds, and the count of kube-scheduler's histogram; Outboard's has the same name.
func algorithm(ctx context.Context, scheduler controlplane.Scheduler) (float64, uint64, error) {
	families, err := scheduler.Metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	family := families["scheduler_scheduling_algorithm_duration_seconds"]
	if family == nil {
		return 0, 0, nil // No pod scheduled yet.
	}
	histogram := family.Metric[0].Histogram
	return histogram.GetSampleSum(), histogram.GetSampleCount(), nil
}

// place creates pods, a few at a time, and waits until all have nodes.
func place(ctx context.Context, client kubernetes.Interface, scheduler, prefix string, n int) error {
	err := controlplane.InParallel(ctx, 4, n, func(ctx context.Context, i int) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i), Labels: map[string]string{"app": "bench", "run": prefix}},
			Spec: corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("500Mi"),
				}},
			}}},
		}
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return until(ctx, func() error {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "run=" + prefix})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if pod.Spec.NodeName == "" {
				return fmt.Errorf("pod %s has no node: %+v", pod.Name, pod.Status.Conditions)
			}
		}
		return nil
	})
}

// removePods removes all pods.
func removePods(ctx context.Context, client kubernetes.Interface) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := client.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return err
	}
	return until(ctx, func() error {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(list.Items))
		}
		return err
	})
}

// until calls done five times a second, for at most three minutes, until it returns no error.
func until(ctx context.Context, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticks.C:
		}
	}
}
