package controlplane_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

var (
	firstNodes = flag.Int("first.nodes", 200, "number of nodes that a starting shim finds")
	firstPods  = flag.Int("first.pods", 3000, "number of bound pods that a starting shim finds")
)

// A shim that starts on a running cluster with nothing to schedule gives its host the whole cluster before it is ready:
// the first pod does not carry it, and is bound at the first attempt.
func TestAHostHasTheClusterBeforeTheFirstPod(t *testing.T) {
	t.Parallel()
	nodes, pods := *firstNodes, *firstPods
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, nodes); err != nil {
		t.Fatal(err)
	}
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}},
		}
	}
	if err := controlplane.InParallel(t.Context(), 30, pods, func(ctx context.Context, i int) error {
		_, err := client.CoreV1().Pods("default").Create(ctx, pod(fmt.Sprintf("running-%d", i), controlplane.FakeNode(i%nodes).Name), metav1.CreateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %v with %d nodes and %d pods", time.Since(began).Round(time.Millisecond), nodes, pods)
	log, err := os.ReadFile(outboard.Host.LogPath)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := regexp.MustCompile(`Snapshot of session \S+ complete at version \d+ with (\d+) nodes and (\d+) pods`).FindSubmatch(log)
	if snapshot == nil {
		t.Fatalf("the shim is ready without a host that has the cluster:\n%s", log)
	}
	if string(snapshot[1]) != fmt.Sprint(nodes) || string(snapshot[2]) != fmt.Sprint(pods) {
		t.Errorf("want %d nodes and %d pods: %s", nodes, pods, snapshot[0])
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod("first", ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	eventually(t, func(ctx context.Context) error {
		first, err := client.CoreV1().Pods("default").Get(ctx, "first", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range first.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
				t.Errorf("the first attempt failed: %s: %s", condition.Reason, condition.Message)
			}
		}
		if first.Spec.NodeName == "" {
			return fmt.Errorf("not bound after %v", time.Since(began))
		}
		return nil
	})
	t.Logf("the first pod was bound after %v", time.Since(began).Round(time.Millisecond))
}
