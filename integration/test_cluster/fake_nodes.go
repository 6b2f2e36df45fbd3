package testcluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

// FakeNode is the key of the label and the taint of nodes without a kubelet; both have the value "true".
const FakeNode = "outboard.dev/fake-node"

// FakeNodesOnly makes the pod one for fake nodes alone.
func FakeNodesOnly(pod *corev1.PodSpec) {
	if pod.NodeSelector == nil {
		pod.NodeSelector = map[string]string{}
	}
	pod.NodeSelector[FakeNode] = "true"
	pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Key: FakeNode, Operator: corev1.TolerationOpExists})
}

// NewFakeNode is the I-th fake node.
func NewFakeNode(i int) *corev1.Node {
	node := controlplane.FakeNode(i)
	node.Labels[FakeNode] = "true"
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: FakeNode, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	return node
}

func (c *Cluster) createFakeNodes(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return controlplane.InParallel(ctx, 10, c.options.FakeNodes, func(ctx context.Context, i int) error {
		_, err := client.CoreV1().Nodes().Create(ctx, NewFakeNode(i), metav1.CreateOptions{})
		return err
	})
}
