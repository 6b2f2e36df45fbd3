package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The component: pods of Outboard select its nodes, and no other scheduler's pods tolerate their taint.
func TestOnlyOutboardFillsItsNodePool(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.apply(kustomized(t, "components/node-pool"))
	const pool = "outboard.dev/pool"
	create := func(scheduler string, selector map[string]string, tolerations ...corev1.Toleration) error {
		_, err := c.client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec: corev1.PodSpec{SchedulerName: scheduler, NodeSelector: selector, Tolerations: tolerations,
				Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	selects := map[string]string{pool: "main"}
	tolerates := corev1.Toleration{Key: pool, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	denied := func(what string, err error) error {
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), what) {
			return nil
		}
		return fmt.Errorf("want a denial with %q: %v", what, err)
	}
	// The API server sees a new policy a moment later.
	c.eventually(func() error { return denied("need the nodeSelector", create("outboard-scheduler", nil, tolerates)) })
	if err := denied("may tolerate the taint", create(corev1.DefaultSchedulerName, nil, tolerates)); err != nil {
		t.Error(err)
	}
	if err := denied("may tolerate the taint", create(corev1.DefaultSchedulerName, selects, tolerates)); err != nil {
		t.Error(err)
	}
	if err := create("outboard-scheduler", selects, tolerates); err != nil {
		t.Errorf("a pod of the pool: %v", err)
	}
	if err := create(corev1.DefaultSchedulerName, nil); err != nil {
		t.Errorf("another scheduler's pod: %v", err)
	}
	if err := create(corev1.DefaultSchedulerName, nil, corev1.Toleration{Operator: corev1.TolerationOpExists}); err != nil {
		t.Errorf("a pod that tolerates all taints, as of a DaemonSet: %v", err)
	}

	// A toleration that is added later.
	c.pod("later", corev1.DefaultSchedulerName, "", "1")
	later, err := c.client.CoreV1().Pods("default").Get(t.Context(), "later", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	later.Labels = map[string]string{"a": "b"}
	if later, err = c.client.CoreV1().Pods("default").Update(t.Context(), later, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("a change of labels: %v", err)
	}
	later.Spec.Tolerations = append(later.Spec.Tolerations, tolerates)
	_, err = c.client.CoreV1().Pods("default").Update(t.Context(), later, metav1.UpdateOptions{})
	if err := denied("may tolerate the taint", err); err != nil {
		t.Error(err)
	}
}
