package plugins_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

// The expensive window covers the cheap one, so that the time of day does not matter.
const patientProfile = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: patient-scheduler
  plugins: {multiPoint: {enabled: [{name: CostOptimized}]}}
  pluginConfig:
  - name: CostOptimized
    args: {windows: [{from: "00:00", to: "24:00", factor: 1}, {from: "22:00", to: "06:00", factor: 0.5}]}
`

// TestAPodThatWaitsForCheapHoursGoesAtItsLatestStart: the end of the wait, which has no cluster event,
// reaches the shim's queue from the host's clock: not earlier, and not only with the queue's flush minutes later. A
// pod whose annotation is removed waits no longer.
func TestAPodThatWaitsForCheapHoursGoesAtItsLatestStart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	outboard, err := c.StartOutboard(ctx, controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{Text: patientProfile}})
	if err != nil {
		t.Fatal(err)
	}
	defer outboard.Stop()
	defer func() {
		if err := clear(context.WithoutCancel(ctx), client); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Apply(ctx, `{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: &n {cpu: "8", memory: 8Gi, pods: "110"}, allocatable: *n}}`); err != nil {
		t.Fatal(err)
	}
	create := func(name string, annotations map[string]string) {
		t.Helper()
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
			Spec:       corev1.PodSpec{SchedulerName: "patient-scheduler", Containers: []corev1.Container{{Name: "main", Image: "pause"}}},
		}
		if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	nodeOf := func(name, want string) string {
		t.Helper()
		got, err := await(ctx, client, name, want)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	latest := time.Now().Add(4 * time.Second).Truncate(time.Second)
	create("timed", map[string]string{"outboard/run-after-cheap-hours": "true", "outboard/latest-start": latest.UTC().Format(time.RFC3339)})
	create("patient", map[string]string{"outboard/run-after-cheap-hours": "true"})
	create("plain", nil)
	if got := nodeOf("plain", "n1"); got != "n1" {
		t.Fatalf("the pod without annotations: %q", got)
	}
	if got := nodeOf("timed", "n1"); got != "n1" {
		t.Fatalf("the pod whose latest start is past: %q\n%s", got, outboard.Shim.LogTail())
	}
	if now := time.Now(); now.Before(latest) {
		t.Errorf("the pod went %v before its latest start", latest.Sub(now))
	}
	patient, err := client.CoreV1().Pods("default").Get(ctx, "patient", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if patient.Spec.NodeName != "" {
		t.Fatalf("a pod without a latest start did not wait")
	}
	delete(patient.Annotations, "outboard/run-after-cheap-hours")
	if _, err := client.CoreV1().Pods("default").Update(ctx, patient, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := nodeOf("patient", "n1"); got != "n1" {
		t.Errorf("the pod without the annotation: %q\n%s", got, outboard.Shim.LogTail())
	}
}
