package faults

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

// TestPodIsRecreatedWhileTheShimHoldsIt holds the shim in each phase of a pod, deletes the pod and creates one of the
// same name meanwhile. The shim must never take one for the other: each UID is bound at most once, by its own attempt,
// with its own event, and the new pod is bound at last.
func TestPodIsRecreatedWhileTheShimHoldsIt(t *testing.T) {
	t.Parallel()
	r, pause := startPaused(t, 2)
	binds := 0
	for _, phase := range []struct {
		point string
		// Whether the old pod has been bound by then.
		isBound bool
	}{
		{"pod_popped", false},            // queue
		{"cycle_answered", false},        // its node is known
		{"pod_assumed", false},           // cache
		{"before_bind_request", false},   // binder; the API server refuses the old UID
		{"bind_written", true},           // binder: sent, not answered
		{"bind_answered", true},          // binder
		{"before_scheduled_event", true}, // bound, without an event
		{"scheduled_event_queued", true}, // its event is about a pod that is gone
	} {
		t.Run(phase.point, func(t *testing.T) {
			const name = "again"
			resume := pause.start(t, phase.point)
			old := r.createPod(t, name, "100m")
			pause.wait(t)
			if phase.isBound {
				binds++
				awaitNode(t, r, name, old)
			}
			r.deletePod(t, name)
			recreated := r.createPod(t, name, "100m")
			resume()
			awaitNode(t, r, name, recreated)
			binds++
			r.deletePod(t, name)
		})
	}
	report := r.check(t)
	if report.Binds != binds {
		t.Errorf("%d binds, want %d", report.Binds, binds)
	}
}

// TestNodeIsReplacedWhileAPodIsAssumedOnIt holds the shim after it has chosen a node, and deletes the node or replaces
// it by a smaller one of the same name. The check right before the bind must see that, and the pod goes to another
// node. (After that check, only the API server could refuse the bind, and it does not look at the node.)
func TestNodeIsReplacedWhileAPodIsAssumedOnIt(t *testing.T) {
	t.Parallel()
	r, pause := startPaused(t, 0)
	const name = "assumed"
	for _, point := range []string{"cycle_checked", "pod_assumed", "bind_decided"} {
		for _, comesBack := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,comes back %v", point, comesBack), func(t *testing.T) {
				nodes := r.client.CoreV1().Nodes()
				first, second := controlplane.FakeNode(0), controlplane.FakeNode(1)
				if _, err := nodes.Create(t.Context(), first, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				resume := pause.start(t, point)
				uid := r.createPod(t, name, "2")
				pause.wait(t)
				if err := nodes.Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				if comesBack {
					smaller := controlplane.FakeNode(0)
					smaller.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1")
					if _, err := nodes.Create(t.Context(), smaller, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := nodes.Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				r.awaitSeen(t, second.Name)
				resume()
				if node := awaitNode(t, r, name, uid); node != second.Name {
					t.Errorf("the pod is on %s, want %s", node, second.Name)
				}
				r.deletePod(t, name)
				r.outboard.Shim.Kill()
				if err := nodes.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	r.check(t)
}

// pausePoint restarts a shim that holds itself at a point.
type pausePoint struct {
	run  *pointsRun
	file string
}

func startPaused(t *testing.T, nodes int) (*pointsRun, *pausePoint) {
	t.Helper()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no fail points")
	}
	r := &pointsRun{program: pointsProgram(t), c: controlplane.ForTest(t, controlplane.Options{})}
	var err error
	if r.client, err = r.c.Client(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), r.client, nodes); err != nil {
		t.Fatal(err)
	}
	r.outboard, err = r.c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		Config: controlplane.SchedulerConfig{Text: "podMaxBackoffSeconds: 1\n"}})
	if err != nil {
		t.Fatal(err)
	}
	return r, &pausePoint{r, filepath.Join(t.TempDir(), "paused")}
}

// start restarts the shim; it holds itself at the first passing of the point, until resume is called.
func (p *pausePoint) start(t *testing.T, point string) (resume func()) {
	t.Helper()
	p.run.outboard.Shim.Kill()
	p.run.outboard.SetShimCommand("env", fmt.Sprintf("OUTBOARD_FAIL_POINT=%s:1:pause:%s", point, p.file), p.run.program)
	if err := p.run.outboard.StartShim(); err != nil {
		t.Fatal(err)
	}
	if err := p.run.outboard.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(p.file); err != nil {
			t.Fatal(err)
		}
	}
}

// wait returns when the shim is at the point.
func (p *pausePoint) wait(t *testing.T) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) { // Poll interval.
		_, err := os.Stat(p.file)
		if err == nil {
			return
		}
		if !errors.Is(err, fs.ErrNotExist) || time.Since(began) > pointPatience {
			t.Fatalf("the shim did not come to the point: %v\n%s", err, p.run.outboard.Shim.LogTail())
		}
	}
}

func (r *pointsRun) createPod(t *testing.T, name, cpu string) types.UID {
	t.Helper()
	pod, err := r.client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.com/app",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod.UID
}

func (r *pointsRun) deletePod(t *testing.T, name string) {
	t.Helper()
	err := r.client.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// awaitNode waits until the pod with this UID has a node, and returns it.
func awaitNode(t *testing.T, r *pointsRun, name string, uid types.UID) string {
	t.Helper()
	for began := time.Now(); time.Since(began) < pointPatience; time.Sleep(20 * time.Millisecond) { // Poll interval.
		pod, err := r.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pod.UID != uid {
			t.Fatalf("pod %s has UID %s, want %s", name, pod.UID, uid)
		}
		if pod.Spec.NodeName != "" {
			return pod.Spec.NodeName
		}
	}
	t.Fatalf("pod %s has no node\n%s", name, r.outboard.Shim.LogTail())
	return ""
}

// awaitSeen waits until the node's creation has been delivered. The shim's informers run while its scheduling thread is
// held.
func (r *pointsRun) awaitSeen(t *testing.T, node string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pointPatience)
	defer cancel()
	watch, err := r.client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if seen, isNode := event.Object.(*corev1.Node); isNode && seen.Name == node {
			time.Sleep(500 * time.Millisecond) // For the shim's own watch, whose progress nothing shows while it is held.
			return
		}
	}
	t.Fatalf("node %s was not seen", node)
}

// check stops the shim, which writes what it still has, and checks the whole history.
func (r *pointsRun) check(t *testing.T) *checker.Report {
	t.Helper()
	r.outboard.Shim.Stop(10 * time.Second)
	report, err := checker.Check(t.Context(), r.c.EtcdURL, r.client)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	// The shim is killed between the phases, and a killed scheduler loses events.
	if faults := report.Faults() - report.NoEvent; faults > 0 {
		t.Errorf("%d faults", faults)
	}
	return report
}
