package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

// A faulty new instance of the host affects no other, while 150 pods a second are created.
func TestABadSuccessor(t *testing.T) {
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no host")
	}
	faulty := BuildFaultyHost(t)
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	c := controlplane.ForTest(t, controlplane.Options{})
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{SocketDirectory: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 200); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	good := onlyServing(t, outboard)

	for _, test := range []struct {
		fault string
		// Attempts that may end without an answer: those during which the fault happened.
		errors float64
		// The line that the log has once, and the resulting state of the successor; empty: it is removed.
		line, state string
	}{
		{"crash-in-warm-up", 0, "lost instance \\S+ \\(build \\S+\\) while it was syncing: the connection broke", ""},
		{"crash-in-shadow", 0, "lost instance \\S+ \\(build \\S+\\) while it was shadow: the connection broke", ""},
		{"wrong-in-shadow", 0, "is quarantined: in the shadow, pod \\S+: ", "quarantined"},
		{"one-percent", 1, "is quarantined: 1 calls without a usable answer within \\S+, the last: one call in a hundred fails", "quarantined"},
		{"flood", 0, "is quarantined: it pushed more than the shim takes", "quarantined"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			errorsBefore := attempts(t, outboard, "error")
			stop := createSteadily(t, client, test.fault)
			before := residentMiB(t, outboard)
			outboard.SetHostProgram(faulty, "--host", filepath.Join(directory, "outboard-host"), "--fault", test.fault)
			if err := outboard.StartHost(); err != nil {
				t.Fatal(err)
			}
			defer outboard.Host.Kill()
			line := waitForLine(t, outboard, test.line)
			created := stop()
			waitForBoundBy(t, client, created)
			serving, state := "", ""
			for _, host := range hostsOf(t, outboard) {
				if host.State == "serving" {
					serving = host.Instance
				} else if host.BuildDigest == test.fault {
					state = host.State
				}
			}
			if serving != good || state != test.state {
				t.Errorf("%s serves, and the successor is %q; want %s and %q", serving, state, good, test.state)
			}
			if got := attempts(t, outboard, "error") - errorsBefore; got > test.errors {
				t.Errorf("%v attempts had no answer, want at most %v", got, test.errors)
			}
			if got := attempts(t, outboard, "unschedulable"); got != 0 {
				t.Errorf("%v attempts found no node for a pod", got)
			}
			grown := residentMiB(t, outboard) - before
			if grown > 64 {
				t.Errorf("the shim grew by %d MiB, want at most 64", grown)
			}
			t.Logf("%d pods bound, the shim grew by %d MiB; %s", created, grown, line)
		})
	}
	log := shimLog(t, outboard)
	failed := regexp.MustCompile(`(?m)^W\d{8} (\S+) .* is parked: .*one call in a hundred fails`).FindStringSubmatch(log)
	back := regexp.MustCompile(`(?m)^I\d{8} (\S+) .* serves instead of .* was rolled back: `).FindStringSubmatch(log)
	if failed == nil || back == nil {
		t.Fatalf("no failure or no rollback in the log:\n%s", outboard.Shim.LogTail())
	}
	took := clock(t, back[1]).Sub(clock(t, failed[1]))
	t.Logf("rolled back %v after the first failure", took)
	if took < 0 || took > time.Second {
		t.Errorf("rolled back %v after the first failure, want at most 1 s", took)
	}
	report, err := checker.Check(t.Context(), c.EtcdURL, client)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if report.Unbound+report.BoundTwice+report.Overcommitted+report.UnknownNode > 0 {
		t.Error("faults")
	}
}

// residentMiB returns the most memory that the shim ever had.
func residentMiB(t *testing.T, outboard *controlplane.Outboard) int64 {
	t.Helper()
	usage, err := outboard.Shim.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return int64(usage.PeakRSS >> 20)
}

func clock(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse("15:04:05.000000", text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func shimLog(t *testing.T, outboard *controlplane.Outboard) string {
	t.Helper()
	log, err := os.ReadFile(outboard.Shim.LogPath)
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

func hostsOf(t *testing.T, outboard *controlplane.Outboard) []controlplane.HostInstance {
	t.Helper()
	hosts, err := outboard.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

func onlyServing(t *testing.T, outboard *controlplane.Outboard) string {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) { // Poll interval.
		if hosts := hostsOf(t, outboard); len(hosts) == 1 && hosts[0].State == "serving" {
			return hosts[0].Instance
		}
	}
	t.Fatal("no instance serves")
	return ""
}

func attempts(t *testing.T, outboard *controlplane.Outboard, result string) (count float64) {
	t.Helper()
	metrics, err := outboard.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range metrics["scheduler_schedule_attempts_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "result" && label.GetValue() == result {
				count += metric.GetCounter().GetValue()
			}
		}
	}
	return count
}

// waitForLine waits for a matching line in the shim's log and returns it.
func waitForLine(t *testing.T, outboard *controlplane.Outboard, pattern string) string {
	t.Helper()
	wanted := regexp.MustCompile("(?m)^.*" + pattern + ".*$")
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) { // Poll interval.
		if line := wanted.FindString(shimLog(t, outboard)); line != "" {
			return line
		}
	}
	t.Fatalf("missing in the log: %q\n%s", pattern, outboard.Shim.LogTail())
	return ""
}

// createSteadily creates 150 pods a second until stop is called, which returns their number.
func createSteadily(t *testing.T, client kubernetes.Interface, prefix string) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		ticker := time.NewTicker(time.Second / 150)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				failed <- nil
				return
			case <-ticker.C:
			}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%05d", prefix, i)},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}},
			}
			if _, err := client.CoreV1().Pods(namespace).Create(context.WithoutCancel(ctx), pod, metav1.CreateOptions{}); err != nil {
				failed <- err
				return
			}
		}
	}()
	return func() int {
		cancel()
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
		list, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
}

// waitForBoundBy waits until all pods are bound: for as long as one attempt takes, not a backoff or a flush.
func waitForBoundBy(t *testing.T, client kubernetes.Interface, want int) {
	t.Helper()
	const soon = 2 * time.Second
	limit := time.Now().Add(soon)
	for {
		bound := countBound(t.Context(), t, client)
		if bound == want {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%d of %d pods are bound %v after the last was created", bound, want, soon)
		}
		time.Sleep(50 * time.Millisecond) // Poll interval.
	}
}
