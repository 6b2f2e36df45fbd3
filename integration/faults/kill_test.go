package faults

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

var against = flag.String("against", "outboard",
	"the program to kill: outboard, or kube-scheduler to check the test itself")

const (
	namespace = "faults"
	pods      = 2000
	// 40 pods of 100m fill a node of 4 CPUs, so all pods together fill all nodes exactly: a place that is used twice
	// shows as an overcommitted node, a forgotten place as a pod that is never bound.
	nodes = pods / 40
	// Time until the killed process is restarted.
	absence = 3 * time.Second
	// A new leader may have to wait for the old one's lease (15 s) first.
	patience = 3 * time.Minute
)

func TestHostIsKilled(t *testing.T) {
	t.Parallel()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no host")
	}
	c := controlplane.ForTest(t, controlplane.Options{})
	outboard := startOutboard(t, c, "")
	checkHost(t, outboard.Shim,
		killInTheMiddle(t, c, func() *controlplane.Process { return outboard.Host }, outboard.StartHost))
}

// One of a profile's two hosts dies; the first must sync all pods again, and the other one must still have them.
func TestOneOfTwoHostsIsKilled(t *testing.T) {
	t.Parallel()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no host")
	}
	c := controlplane.ForTest(t, controlplane.Options{})
	outboard := startOutboard(t, c, "NodePorts,InterPodAffinity,PodTopologySpread,NodeResourcesBalancedAllocation")
	checkHost(t, outboard.Shim,
		killInTheMiddle(t, c, func() *controlplane.Process { return outboard.SplitHost }, outboard.StartSplitHost))
}

func checkHost(t *testing.T, shim *controlplane.Process, report *checker.Report) {
	t.Helper()
	select {
	case <-shim.Exited():
		t.Error("the shim ended, too")
	default:
	}
	checkReport(t, report)
	if report.NoEvent > 0 || report.SeveralEvents > 0 {
		t.Error("a host writes no events, so none may be missing or duplicated")
	}
}

func TestShimIsKilled(t *testing.T) {
	t.Parallel()
	c := controlplane.ForTest(t, controlplane.Options{})
	if *against == "kube-scheduler" {
		k, err := c.StartKubeScheduler(t.Context(), controlplane.SchedulerConfig{LeaderElect: true})
		if err != nil {
			t.Fatal(err)
		}
		checkReport(t, killInTheMiddle(t, c, func() *controlplane.Process { return k.Process }, k.Start))
		return
	}
	outboard := startOutboard(t, c, "")
	checkReport(t, killInTheMiddle(t, c, func() *controlplane.Process { return outboard.Shim }, outboard.StartShim))
}

func startOutboard(t *testing.T, c *controlplane.ControlPlane, split string) *controlplane.Outboard {
	t.Helper()
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		Config: controlplane.SchedulerConfig{LeaderElect: true}, Split: split,
	})
	if err != nil {
		t.Fatal(err)
	}
	return outboard
}

// killInTheMiddle creates the pods, kills the process when a quarter of them is bound, restarts it after `absence`,
// waits until all are bound and runs the checker.
func killInTheMiddle(t *testing.T, c *controlplane.ControlPlane, victim func() *controlplane.Process, restart func() error,
) *checker.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(ctx, client, nodes); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	created := make(chan error, 1)
	go func() { created <- createPods(ctx, client) }()

	waitForBound(ctx, t, client, pods/4)
	victim().Kill()
	atKill := countBound(ctx, t, client)
	time.Sleep(absence) // The absence itself.
	atRestart := countBound(ctx, t, client)
	t.Logf("%d of %d pods were bound when %s was killed, %d when it was restarted", atKill, pods, victim().Name,
		atRestart)
	if atRestart == pods {
		t.Fatal("all pods were bound before the restart: the test is void")
	}
	if err := restart(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := <-created; err != nil {
		t.Fatal(err)
	}
	waitForBound(ctx, t, client, pods)
	t.Logf("all were bound %.1f s after the restart", time.Since(begin).Seconds())
	waitForEvents(ctx, t, client)
	report, err := checker.Check(ctx, c.EtcdURL, client)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	return report
}

// checkReport ignores missing events: a process that dies between a bind and its event loses the event, as kube-scheduler
// does.
func checkReport(t *testing.T, report *checker.Report) {
	t.Helper()
	if report.Binds != pods || report.PodsNow != pods {
		t.Errorf("%d pods, %d binds; want %d of each", report.PodsNow, report.Binds, pods)
	}
	faults := report.Unbound + report.BoundTwice + report.UnknownNode + report.Overcommitted + report.HistoryDiffers +
		report.EventOfUnbound + report.EventWrongNode
	if faults > 0 {
		t.Errorf("%d faults: %v", faults, report)
	}
	if report.FullestNode != pods/nodes {
		t.Errorf("the fullest node held %d pods, want %d", report.FullestNode, pods/nodes)
	}
}

func createPods(ctx context.Context, client kubernetes.Interface) error {
	return controlplane.InParallel(ctx, 30, pods, func(ctx context.Context, i int) error {
		_, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%04d", i)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Image: "example.com/app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("100Mi"),
				}},
			}}},
		}, metav1.CreateOptions{})
		return err
	})
}

func countBound(ctx context.Context, t *testing.T, client kubernetes.Interface) int {
	t.Helper()
	// From the API server's cache: frequent polls must not become the tested load.
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	return len(slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" }))
}

func waitForBound(ctx context.Context, t *testing.T, client kubernetes.Interface, n int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		bound := countBound(ctx, t, client)
		if bound >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d pods are bound after %v", bound, n, patience)
		}
		time.Sleep(100 * time.Millisecond) // Poll interval.
	}
}

// waitForEvents waits until there is an event for every pod, or no more arrive.
func waitForEvents(ctx context.Context, t *testing.T, client kubernetes.Interface) {
	t.Helper()
	const quiet = 3 * time.Second
	last, lastChange := -1, time.Now()
	for time.Since(lastChange) < quiet {
		list, err := client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != last {
			last, lastChange = len(list.Items), time.Now()
		}
		time.Sleep(200 * time.Millisecond) // Poll interval.
	}
}
