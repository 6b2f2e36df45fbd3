package faults

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

// A second host on a serving host's path ends with a reason, and takes nothing from the first one. When the path was
// removed, the shim goes on with the connection that it has, a new host may use the path, and it serves when the first
// one dies.
func TestASecondHostOnTheSamePath(t *testing.T) {
	t.Parallel()
	c, client, outboard := startForSockets(t, controlplane.OutboardOptions{})
	first, serving := outboard.Host, onlyServing(t, outboard)

	stop := createSteadily(t, client, "second")
	if err := outboard.StartHost(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-outboard.Host.Exited():
	case <-time.After(10 * time.Second):
		t.Fatal("the second host does not end")
	}
	const reason = "another process listens on"
	if log := outboard.Host.LogTail(); !strings.Contains(log, reason) {
		t.Errorf("the second host does not say %q: %s", reason, log)
	}
	waitForBoundBy(t, client, stop())
	if now := onlyServing(t, outboard); now != serving {
		t.Errorf("%s serves, want %s", now, serving)
	}

	stop = createSteadily(t, client, "removed")
	if err := os.Remove(filepath.Join(c.Dir, "host.sock")); err != nil {
		t.Fatal(err)
	}
	before := attempts(t, outboard, "scheduled")
	for began := time.Now(); attempts(t, outboard, "scheduled") < before+50; time.Sleep(20 * time.Millisecond) { // Poll interval.
		if time.Since(began) > 10*time.Second {
			t.Fatal("no pods are bound after the path was removed")
		}
	}
	if err := outboard.StartHost(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // Poll interval.
		if _, err := os.Stat(filepath.Join(c.Dir, "host.sock")); err == nil {
			break
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("the new host does not listen: %s", outboard.Host.LogTail())
		}
	}
	first.Kill()
	waitUntilServes(t, outboard, func(host controlplane.HostInstance) bool { return host.Instance != serving })
	waitForBoundBy(t, client, stop())
	checkSockets(t, c, client)
}

// The predecessor of a new host hangs while it drains: it was told to end, and then stopped. Its successor serves all
// pods, and the shim waits for nothing of the old one.
func TestTheOldHostHangsWhileItDrains(t *testing.T) {
	t.Parallel()
	c, client, outboard := startForSockets(t, controlplane.OutboardOptions{SocketDirectory: true})
	old, serving := outboard.Host, onlyServing(t, outboard)
	stop := createSteadily(t, client, "drain")
	if err := outboard.StartHost(); err != nil {
		t.Fatal(err)
	}
	waitUntilServes(t, outboard, func(host controlplane.HostInstance) bool { return host.Instance != serving })
	failed := attempts(t, outboard, "error")
	// A stopped process sees the SIGTERM when it goes on; so it must not hold anything up before.
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTERM} {
		if err := syscall.Kill(-old.PID(), signal); err != nil {
			t.Fatal(err)
		}
	}
	before := attempts(t, outboard, "scheduled")
	for began := time.Now(); attempts(t, outboard, "scheduled") < before+300; time.Sleep(20 * time.Millisecond) { // Poll interval.
		if time.Since(began) > 40*time.Second {
			t.Fatal("no pods are bound after the old host hung")
		}
	}
	waitForBoundBy(t, client, stop())
	if got := attempts(t, outboard, "error") - failed; got > 0 {
		t.Errorf("%v attempts had no answer", got)
	}
	old.Kill()
	if now := onlyServing(t, outboard); now == serving {
		t.Errorf("%s serves again", now)
	}
	checkSockets(t, c, client)
}

func startForSockets(t *testing.T, options controlplane.OutboardOptions) (*controlplane.ControlPlane, kubernetes.Interface, *controlplane.Outboard) {
	t.Helper()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no host")
	}
	c := controlplane.ForTest(t, controlplane.Options{})
	client, outboard := startOn(t, c, options)
	return c, client, outboard
}

// startOn starts Outboard on a control plane, with nodes and a namespace.
func startOn(t *testing.T, c *controlplane.ControlPlane, options controlplane.OutboardOptions) (kubernetes.Interface, *controlplane.Outboard) {
	t.Helper()
	outboard, err := c.StartOutboard(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return client, outboard
}

// waitUntilServes waits until an instance serves for which `wanted` is true.
func waitUntilServes(t *testing.T, outboard *controlplane.Outboard, wanted func(controlplane.HostInstance) bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(20 * time.Millisecond) { // Poll interval.
		for _, host := range hostsOf(t, outboard) {
			if host.State == "serving" && wanted(host) {
				return
			}
		}
	}
	t.Fatalf("the wanted instance does not serve: %v", hostsOf(t, outboard))
}

func checkSockets(t *testing.T, c *controlplane.ControlPlane, client kubernetes.Interface) {
	t.Helper()
	waitForEvents(t.Context(), t, client)
	report, err := checker.Check(t.Context(), c.EtcdURL, client)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if report.Faults() > 0 {
		t.Errorf("%d faults", report.Faults())
	}
}
