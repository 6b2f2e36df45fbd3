package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

const (
	ourScheduler  = "outboard-scheduler"
	gangScheduler = "gang-scheduler"
	patience      = time.Minute
)

// Both schedulers run on one cluster, as after an installation: kube-scheduler for pods without a schedulerName,
// Outboard for its own.
const ourConfiguration = `
profiles:
- schedulerName: outboard-scheduler
- schedulerName: gang-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: AtomicReplicaCoordinator
`

// cluster is shared by the subtests.
type cluster struct {
	*controlplane.ControlPlane
	client   kubernetes.Interface
	kube     *controlplane.KubeScheduler
	outboard *controlplane.Outboard
}

func TestOutboardBesideKubeScheduler(t *testing.T) {
	t.Parallel()
	if _, err := controlplane.OutboardDirectory(); err != nil {
		t.Fatal(err)
	}
	c := &cluster{ControlPlane: controlplane.ForTest(t, controlplane.Options{ControllerManager: true, KWOK: true})}
	var err error
	if c.client, err = c.Client(); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), c.client, 5); err != nil {
		t.Fatal(err)
	}
	if c.kube, err = c.StartKubeScheduler(t.Context(), controlplane.SchedulerConfig{}); err != nil {
		t.Fatal(err)
	}
	c.outboard, err = c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		Config: controlplane.SchedulerConfig{Text: ourConfiguration, LeaderElect: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("health", c.testHealth)
	t.Run("volumes", c.testVolumes)
	t.Run("deployments", c.testDeployments)
	t.Run("explain", c.testExplain)
	t.Run("queue", c.testQueue)
	t.Run("lease", c.testLease)
	t.Run("metrics", c.testMetrics)
	t.Run("gang", c.testGang)
	report, err := checker.Check(t.Context(), c.EtcdURL, c.client)
	if err != nil {
		t.Fatal(err)
	}
	if report.Faults() > 0 {
		t.Errorf("%v", report)
	}
	t.Log(report)
}

func (c *cluster) testHealth(t *testing.T) {
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/metrics"} {
		response, err := http.Get(c.outboard.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %s", path, response.Status)
		}
	}
}

// testDeployments gives each scheduler a Deployment. Together they almost fill the nodes.
func (c *cluster) testDeployments(t *testing.T) {
	const replicas = 40
	for _, scheduler := range []string{corev1.DefaultSchedulerName, ourScheduler} {
		labels := map[string]string{"app": scheduler}
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: scheduler},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(replicas)),
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(scheduler, "200m")},
			},
		}
		if _, err := c.client.AppsV1().Deployments("default").Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, scheduler := range []string{corev1.DefaultSchedulerName, ourScheduler} {
		var pods []corev1.Pod
		eventually(t, func(ctx context.Context) error {
			pods = c.pods(ctx, t, "app="+scheduler)
			running := 0
			for _, pod := range pods {
				if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning {
					running++
				}
			}
			if running != replicas {
				return fmt.Errorf("%d of %d pods of %s are Running", running, replicas, scheduler)
			}
			return nil
		})
		for _, pod := range pods {
			eventually(t, func(ctx context.Context) error { return c.scheduledBy(ctx, &pod, scheduler) })
		}
	}
}

// attempt is one attempt in the output of `outboard explain -o json`.
type attempt struct {
	Node            string
	SnapshotVersion int64
	FeasibleNodes   int
	PlacedTogether  bool
	Filter, Scores  map[string]any
}

// testExplain queries, as a user would, why a pod of the Deployment has its node, and a pod that does not exist.
func (c *cluster) testExplain(t *testing.T) {
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	explain := func(pod string, flags ...string) (string, error) {
		arguments := append([]string{"explain", "pod", pod, "--server", strings.TrimPrefix(c.outboard.URL(), "http://")}, flags...)
		out, err := exec.CommandContext(t.Context(), filepath.Join(directory, "outboard"), arguments...).CombinedOutput()
		return string(out), err
	}
	// A single pod: hosts place many waiting pods in one batch, without details of single nodes.
	alone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "explained", Namespace: "default", Labels: map[string]string{"app": "explained"}},
		Spec: podSpec(ourScheduler, "10m")}
	if _, err := c.client.CoreV1().Pods("default").Create(t.Context(), alone, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.client.CoreV1().Pods("default").Delete(context.Background(), alone.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	}()
	var pod corev1.Pod
	eventually(t, func(ctx context.Context) error {
		pod = c.pods(ctx, t, "app=explained")[0]
		return c.scheduledBy(ctx, &pod, ourScheduler)
	})
	name := pod.Namespace + "/" + pod.Name
	table, err := explain(name)
	if err != nil || !strings.Contains(table, "scheduled on "+pod.Spec.NodeName) {
		t.Errorf("explain %s, which is on %s: %v\n%s", name, pod.Spec.NodeName, err, table)
	}
	newest := func(pod string) attempt {
		text, err := explain(pod, "-o", "json")
		var all struct{ Attempts []attempt }
		if err := errors.Join(err, json.Unmarshal([]byte(text), &all)); err != nil || len(all.Attempts) == 0 {
			t.Fatalf("explain %s -o json: %v\n%s", pod, err, text)
		}
		return all.Attempts[0]
	}
	single := newest(name)
	reported := len(single.Filter) + len(single.Scores)
	if len(single.Scores) == 0 {
		reported++ // A single feasible node is selected without scores.
	}
	if single.Node != pod.Spec.NodeName || single.SnapshotVersion == 0 || reported != 5 {
		t.Errorf("the newest attempt does not list all 5 nodes: %+v", single)
	}
	// The Deployment's pods were placed in batches: the attempt has the node, the time and the number of nodes.
	for _, pod := range c.pods(t.Context(), t, "app="+ourScheduler) {
		one := newest(pod.Namespace + "/" + pod.Name)
		reported := len(one.Filter) + max(1, len(one.Scores))
		if one.Node != pod.Spec.NodeName || one.SnapshotVersion == 0 || one.FeasibleNodes == 0 || one.PlacedTogether == (reported == 5) {
			t.Errorf("the newest attempt at %s, which is on %s: %+v", pod.Name, pod.Spec.NodeName, one)
		}
	}
	if out, err := explain("default/missing"); err == nil || !strings.Contains(out, "default/missing") {
		t.Errorf("explain of a pod that does not exist: %v\n%s", err, out)
	}
}

// testQueue queries a pod that fits nowhere, before and after an event that might have helped it.
func (c *cluster) testQueue(t *testing.T) {
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	spec := podSpec(ourScheduler, "100")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "too-big", Namespace: "default"}, Spec: spec}
	if _, err := c.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.client.CoreV1().Pods("default").Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	}()
	eventually(t, func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, filepath.Join(directory, "outboard"), "queue", "default/too-big", "-o", "json",
			"--server", strings.TrimPrefix(c.outboard.URL(), "http://")).Output()
		if err != nil {
			return err
		}
		var queue struct {
			Counts map[string]int
			Pods   []struct {
				Where, LastEvent     string
				Attempts             int
				UnschedulablePlugins []string
			}
			Hosts []struct{ SentVersion, AcknowledgedVersion int64 }
		}
		if err := json.Unmarshal(out, &queue); err != nil {
			return err
		}
		if len(queue.Pods) != 1 || len(queue.Hosts) != 1 || queue.Hosts[0].AcknowledgedVersion == 0 {
			return fmt.Errorf("%s", out)
		}
		if p := queue.Pods[0]; p.Where != "unschedulable" || p.Attempts == 0 || p.LastEvent == "" || queue.Counts["unschedulable"] == 0 ||
			!slices.Equal(p.UnschedulablePlugins, []string{"NodeResourcesFit"}) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}

// scheduledBy checks that a pod has one Scheduled event of this scheduler.
func (c *cluster) scheduledBy(ctx context.Context, pod *corev1.Pod, scheduler string) error {
	events, err := c.client.EventsV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "reason=Scheduled,regarding.name=" + pod.Name,
	})
	if err != nil {
		return err
	}
	if len(events.Items) != 1 {
		return fmt.Errorf("%s has %d Scheduled events", pod.Name, len(events.Items))
	}
	event := events.Items[0]
	note := fmt.Sprintf("Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, pod.Spec.NodeName)
	if event.ReportingController != scheduler || event.Note != note || event.Action != "Binding" {
		return fmt.Errorf("the event of %s is from %s: %s %q", pod.Name, event.ReportingController, event.Action, event.Note)
	}
	return nil
}

func (c *cluster) testLease(t *testing.T) {
	leases := c.client.CoordinationV1().Leases("kube-system")
	var first metav1.MicroTime
	eventually(t, func(ctx context.Context) error {
		lease, err := leases.Get(ctx, ourScheduler, metav1.GetOptions{})
		if err != nil {
			return err
		}
		spec := lease.Spec
		if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.AcquireTime == nil {
			return fmt.Errorf("the lease is not held: %+v", spec)
		}
		if spec.LeaseDurationSeconds == nil || *spec.LeaseDurationSeconds != 15 || spec.LeaseTransitions == nil {
			return fmt.Errorf("the lease's durations differ from kube-scheduler's: %+v", spec)
		}
		first = *spec.RenewTime
		return nil
	})
	eventually(t, func(ctx context.Context) error {
		lease, err := leases.Get(ctx, ourScheduler, metav1.GetOptions{})
		if err == nil && !lease.Spec.RenewTime.After(first.Time) {
			err = fmt.Errorf("the lease was not renewed since %v", first)
		}
		return err
	})
}

// notServedYet are kube-scheduler's metrics that Outboard does not serve, with the reason.
var notServedYet = map[string]string{
	"scheduler_batch_attempts_total":                    "opportunistic batching is kube-scheduler's own",
	"scheduler_batch_cache_flushed_total":               "opportunistic batching is kube-scheduler's own",
	"scheduler_get_node_hint_duration_seconds":          "opportunistic batching is kube-scheduler's own",
	"scheduler_store_schedule_results_duration_seconds": "opportunistic batching is kube-scheduler's own",
	"scheduler_goroutines":                              "Outboard has no goroutines",
	"scheduler_plugin_execution_duration_seconds":       "plugins run in the host, which measures them itself",
}

// testMetrics compares names, types, labels and buckets with kube-scheduler's on the same cluster. Metrics without a
// sample are not served, so it needs the pods of testDeployments.
func (c *cluster) testMetrics(t *testing.T) {
	theirs, err := c.kube.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := c.outboard.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if !strings.HasPrefix(name, "scheduler_") || notServedYet[name] != "" {
			continue
		}
		compared++
		if ours[name] == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if got, want := shape(ours[name]), shape(theirs[name]); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	if compared < 10 {
		t.Errorf("only %d metrics of kube-scheduler were found", compared)
	}
}

// shape is the part of a metric that dashboards rely on.
func shape(family *dto.MetricFamily) string {
	metric := family.GetMetric()[0]
	var labels []string
	for _, label := range metric.GetLabel() {
		labels = append(labels, label.GetName())
	}
	slices.Sort(labels)
	var bounds []string
	for _, bucket := range metric.GetHistogram().GetBucket() {
		bounds = append(bounds, fmt.Sprintf("%.6g", bucket.GetUpperBound()))
	}
	return fmt.Sprintf("%s %v %v", family.GetType(), labels, bounds)
}

// testGang: eight pods that must start together, seven places; then an eighth.
func (c *cluster) testGang(t *testing.T) {
	const size = 8
	addPlace := func(i int) {
		node := controlplane.FakeNode(1000 + i)
		node.Labels["pool"] = "gang"
		node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1")
		if _, err := c.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range size - 1 {
		addPlace(i)
	}
	for i := range size {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:        fmt.Sprintf("train-%d", i),
				Labels:      map[string]string{"job-name": "train"},
				Annotations: map[string]string{"min-replicas": fmt.Sprint(size)},
			},
			Spec: podSpec(gangScheduler, "1"),
		}
		pod.Spec.NodeSelector = map[string]string{"pool": "gang"}
		if _, err := c.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	bound := func(ctx context.Context) int {
		n := 0
		for _, pod := range c.pods(ctx, t, "job-name=train") {
			if pod.Spec.NodeName != "" {
				n++
			}
		}
		return n
	}
	eventually(t, func(ctx context.Context) error {
		if n := bound(ctx); n > 0 {
			t.Fatalf("%d of %d members were bound to %d places", n, size, size-1)
		}
		events, err := c.client.EventsV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.ReportingController == gangScheduler && strings.Contains(event.Note, "Insufficient cpu") {
				return nil
			}
		}
		return fmt.Errorf("no member was rejected for lack of a node")
	})
	if n := bound(t.Context()); n > 0 {
		t.Fatalf("%d of %d members were bound to %d places", n, size, size-1)
	}
	addPlace(size - 1)
	eventually(t, func(ctx context.Context) error {
		if n := bound(ctx); n != size {
			return fmt.Errorf("%d of %d members are bound", n, size)
		}
		return nil
	})
}

func podSpec(scheduler, cpu string) corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName: scheduler,
		Containers: []corev1.Container{{
			Name: "main", Image: "example.com/app",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}},
	}
}

func (c *cluster) pods(ctx context.Context, t *testing.T, selector string) []corev1.Pod {
	t.Helper()
	list, err := c.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// eventually polls until check returns no error.
func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("after %v: %v", patience, last)
	}
}
