package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const gangSize = 4

// gangs are groups of pods of which all but one wait at Permit while the host is replaced; the last comes afterwards. Judged by
// what the API server says.
type gangs struct {
	client kubernetes.Interface

	whole   int // bound, all of them, in time
	across  int // of which all but one had a node reserved before the host was replaced
	partial int // had a bound member while one was missing
	late    int // were not all bound a second after the last member was created
}

// begin creates all but one member of gang i.
func (g *gangs) begin(ctx context.Context, i int) error {
	for member := range gangSize - 1 {
		if err := g.create(ctx, i, member); err != nil {
			return err
		}
	}
	return nil
}

func (g *gangs) create(ctx context.Context, i, member int) error {
	pod := newPod(fmt.Sprintf("gang-%04d-%d", i, member))
	pod.Labels = map[string]string{"job-name": gangName(i)}
	pod.Annotations = map[string]string{"outboard/min-replicas": strconv.Itoa(gangSize)}
	_, err := g.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func gangName(i int) string { return fmt.Sprintf("gang-%04d", i) }

func (g *gangs) members(ctx context.Context, i int) (pods []corev1.Pod, bound, reserved int, err error) {
	list, err := g.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "job-name=" + gangName(i)})
	if err != nil {
		return nil, 0, 0, err
	}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" {
			bound++
		}
		// Written when it begins to wait.
		if pod.Status.NominatedNodeName != "" {
			reserved++
		}
	}
	return list.Items, bound, reserved, nil
}

// complete creates the missing member of gang i, and waits until all are bound, or it is too late.
func (g *gangs) complete(ctx context.Context, i int) error {
	_, bound, reserved, err := g.members(ctx, i)
	if err != nil {
		return err
	}
	if bound > 0 {
		g.partial++
	}
	if reserved == gangSize-1 {
		g.across++
	}
	if err := g.create(ctx, i, gangSize-1); err != nil {
		return err
	}
	limit := time.Now().Add(tooLate)
	for {
		pods, bound, _, err := g.members(ctx, i)
		if err != nil {
			return err
		}
		if bound == gangSize {
			g.whole++
			for _, pod := range pods {
				if err := g.client.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
					return err
				}
			}
			return nil
		}
		if time.Now().After(limit) {
			g.late++ // And if it never is, its members are lost, which the checker sees.
			return nil
		}
		if err := sleepUntil(ctx, time.Now().Add(20*time.Millisecond)); err != nil {
			return err
		}
	}
}
