package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// evictor makes the writes of a preempting scheduler: for the pod the nomination and the reason; for every victim its
// condition, its deletion and an event. It takes any pods of the node.
type evictor struct {
	client kubernetes.Interface
	mu     sync.Mutex
	byNode map[string][]*corev1.Pod // not evicted yet
}

func newEvictor(ctx context.Context, client kubernetes.Interface) (*evictor, error) {
	bound, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return nil, err
	}
	e := &evictor{client: client, byNode: map[string][]*corev1.Pod{}}
	for i := range bound.Items {
		pod := &bound.Items[i]
		e.byNode[pod.Spec.NodeName] = append(e.byNode[pod.Spec.NodeName], pod)
	}
	return e, nil
}

func (e *evictor) take(node string, n int) []*corev1.Pod {
	e.mu.Lock()
	defer e.mu.Unlock()
	n = min(n, len(e.byNode[node]))
	taken := e.byNode[node][:n]
	e.byNode[node] = e.byNode[node][n:]
	return taken
}

func (e *evictor) makeRoom(ctx context.Context, pod *corev1.Pod, node string) error {
	const noRoom = "0/5000 nodes are available: 5000 Insufficient cpu. preemption: 0/5000 nodes are available: 5000 Insufficient cpu."
	if err := e.patchStatus(ctx, pod, node, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: noRoom}); err != nil {
		return err
	}
	if err := record(ctx, e.client, pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", noRoom); err != nil {
		return err
	}
	for _, victim := range e.take(node, *victims) {
		if err := e.patchStatus(ctx, victim, "", corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonPreemptionByScheduler, Message: *schedulerName + ": preempting to accommodate a higher priority pod"}); err != nil {
			return err
		}
		if err := e.client.CoreV1().Pods(victim.Namespace).Delete(ctx, victim.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		if err := record(ctx, e.client, victim, pod, corev1.EventTypeNormal, "Preempted", "Preempting",
			fmt.Sprintf("Preempted by pod %s on node %s", pod.UID, node)); err != nil {
			return err
		}
	}
	return nil
}

func (e *evictor) patchStatus(ctx context.Context, pod *corev1.Pod, nominated string, condition corev1.PodCondition) error {
	condition.LastTransitionTime = metav1.Now()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   corev1.PodStatus{NominatedNodeName: nominated, Conditions: []corev1.PodCondition{condition}},
	})
	if err != nil {
		return err
	}
	_, err = e.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
