package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Zones are the zones that FakeNode spreads nodes over.
var Zones = []string{"zone-a", "zone-b", "zone-c"}

// FakeNode returns the i-th of a series of equal nodes: 4 CPUs, 32Gi, 110 pods, one of three zones.
func FakeNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%05d", i)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:            name,
			corev1.LabelTopologyZone:        Zones[i%len(Zones)],
			"topology.kubernetes.io/region": "region-1",
		}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// CreateFakeNodes creates the nodes 0..n-1.
func CreateFakeNodes(ctx context.Context, client kubernetes.Interface, n int) error {
	return InParallel(ctx, 30, n, func(ctx context.Context, i int) error {
		_, err := client.CoreV1().Nodes().Create(ctx, FakeNode(i), metav1.CreateOptions{})
		return err
	})
}
