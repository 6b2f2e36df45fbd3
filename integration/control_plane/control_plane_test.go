package controlplane_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	controlplane "outboard.dev/integration/control_plane"
)

// TestStartAndStop: the real kube-scheduler binds a pod on a control plane, rights are enforced, and Stop leaves
// nothing behind.
func TestStartAndStop(t *testing.T) {
	t.Parallel()
	c, err := controlplane.Start(t.Context(), controlplane.Options{Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := c.StartKubeScheduler(t.Context(), controlplane.SchedulerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 3); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: podSpec(corev1.DefaultSchedulerName, "1")}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		pod, err := client.CoreV1().Pods("default").Get(ctx, "p", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return new(cluster{client: client}).scheduledBy(ctx, pod, corev1.DefaultSchedulerName)
	})
	usage, err := scheduler.Process.Usage()
	if err != nil || usage.CPU < 10*time.Millisecond || usage.PeakRSS < 10<<20 {
		t.Errorf("implausible usage of kube-scheduler: %+v, %v", usage, err)
	}
	testRights(t, c)
	testPatchOfRecreatedPod(t, client)

	dir := c.Dir
	c.Stop()
	select {
	case <-scheduler.Process.Exited():
	default:
		t.Error("kube-scheduler outlived Stop")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	assertNoProcessIn(t, dir)
}

// testPatchOfRecreatedPod: the API server refuses a status patch that carries the UID of another pod. IsPodGone in
// shim/bind/api_requests.h recognizes this answer.
func testPatchOfRecreatedPod(t *testing.T, client kubernetes.Interface) {
	patch := []byte(`{"metadata":{"uid":"of-the-predecessor"},"status":{"nominatedNodeName":"n"}}`)
	_, err := client.CoreV1().Pods("default").Patch(t.Context(), "p", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != 422 || !strings.Contains(status.Status().Message, "metadata.uid: Invalid value") {
		t.Errorf("a patch with another pod's UID: %v; expected 422, metadata.uid: Invalid value", err)
	}
}

// testRights: Outboard's user has exactly the rights of its role.
func testRights(t *testing.T, c *controlplane.ControlPlane) {
	kubeconfig, err := c.Kubeconfig(controlplane.OutboardUser)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list nodes: %v", err)
	}
	if err := client.CoreV1().Nodes().Delete(t.Context(), "n", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete a node: want Forbidden, got %v", err)
	}
	_, err = client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-scheduler", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("read another scheduler's lease: want Forbidden, got %v", err)
	}
}

func assertNoProcessIn(t *testing.T, dir string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir) {
			t.Errorf("%s still runs in %s", filepath.Dir(link), dir)
		}
	}
}

// TestStartReportsWhy: the error names the program that cannot start and contains its output.
func TestStartReportsWhy(t *testing.T) {
	t.Parallel()
	c := controlplane.ForTest(t, controlplane.Options{})
	_, err := c.StartKubeScheduler(t.Context(), controlplane.SchedulerConfig{Text: "profiles: [{schedulerNme: x}]"})
	if err == nil || !strings.Contains(err.Error(), "schedulerNme") {
		t.Errorf("want an error that names the field, got %v", err)
	}
}
