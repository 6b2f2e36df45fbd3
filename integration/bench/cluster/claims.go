package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/devices"
	controlplane "outboard.dev/integration/control_plane"
)

// The shapes are those of scheduler_perf's SchedulingWithResourceClaimTemplate and
// SteadyStateClusterResourceClaimTemplate: ten devices a node, and pods that request one each.
const (
	claimDriver    = "test-driver.cdi.k8s.io"
	claimClass     = "test-class"
	claimTemplate  = "test-claim-template"
	devicesPerNode = 10
	// Number of pods of a steady state at a time. They are deleted when all have a node.
	steadyPods = 10
)

func init() {
	workloads["claims"] = workload{
		about: "pods with a claim from a template, ten devices a node", initial: 2500, measured: 2500, nodes: 500, claims: true,
		initialPod: withClaim, measuredPod: withClaim,
	}
	for _, steady := range []struct {
		name  string
		taken func(devices int) int
	}{
		{"empty", func(int) int { return 0 }},
		{"half", func(devices int) int { return devices / 2 }},
		{"full", func(devices int) int { return devices - steadyPods }},
	} {
		workloads["claims-"+steady.name] = workload{
			about:    fmt.Sprintf("ten pods with a claim come, and go when all have a node, again and again; devices: %s", steady.name),
			measured: 1000, nodes: 500, claims: true, taken: steady.taken, atATime: steadyPods, initialPod: withClaim, measuredPod: withClaim,
		}
	}
}

func withClaim(int) *corev1.Pod {
	template := claimTemplate
	pod := benchPod("")
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "resource", ResourceClaimTemplateName: &template}}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "resource"}}}
	return pod
}

// createDevices creates slices, the class and the template, and claims that hold some of the devices from the start.
func (w *workload) createDevices(ctx context.Context, client kubernetes.Interface) error {
	if !w.claims {
		return nil
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: claimClass}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", claimDriver)}}}}}
	if _, err := client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return err
	}
	spec := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "req-0",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: claimClass}}}}}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: claimTemplate}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec}}
	if _, err := client.ResourceV1().ResourceClaimTemplates(benchNamespace).Create(ctx, template, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := controlplane.InParallel(ctx, *creators, w.nodes, func(ctx context.Context, i int) error {
		_, err := client.ResourceV1().ResourceSlices().Create(ctx, deviceSlice(controlplane.FakeNode(i).Name), metav1.CreateOptions{})
		return err
	})
	if err != nil || w.taken == nil {
		return err
	}
	return controlplane.InParallel(ctx, *creators, w.taken(w.nodes*devicesPerNode), func(ctx context.Context, i int) error {
		return w.takeDevice(ctx, client, i, spec)
	})
}

func deviceSlice(node string) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
		Driver: claimDriver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}}
	for i := range devicesPerNode {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprintf("instance-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"model": {StringValue: new("A100")}, "family": {StringValue: new("GPU")}, "driverVersion": {VersionValue: new("1.2.3")},
				"dra.example.com/numa": {IntValue: new(int64(i))},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("1Gi")}},
		})
	}
	return slice
}

// takeDevice creates a claim that holds the i-th device in turn over all nodes, so that each node loses equally many.
// It is reserved for an object that is not a pod; otherwise the controller would release it.
func (w *workload) takeDevice(ctx context.Context, client kubernetes.Interface, i int, spec resourcev1.ResourceClaimSpec) error {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: podName("taken", i), Finalizers: []string{resourcev1.Finalizer}}, Spec: spec}
	claim, err := client.ResourceV1().ResourceClaims(extraNamespace).Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node := controlplane.FakeNode(i % w.nodes).Name
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "req-0", Driver: claimDriver, Pool: node, Device: fmt.Sprintf("instance-%d", i/w.nodes)}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}},
	}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: "bench.example.com", Resource: "holders", Name: "holder", UID: "holder"}}
	_, err = client.ResourceV1().ResourceClaims(extraNamespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

// createInTurns creates pods in batches, and deletes each batch when all of it have a node.
func createInTurns(ctx context.Context, client kubernetes.Interface, watcher *podWatcher, work workload) ([]time.Time, error) {
	started := make([]time.Time, work.measured)
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	for first := 0; first < work.measured; first += work.atATime {
		count := min(work.atATime, work.measured-first)
		err := controlplane.InParallel(ctx, *creators, count, func(ctx context.Context, i int) error {
			pod := work.measuredPod(first + i)
			pod.Name = podName("pod", first+i)
			started[first+i] = time.Now()
			_, err := client.CoreV1().Pods(benchNamespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := watcher.waitForEach(ctx, "pod", first, count); err != nil {
			return nil, err
		}
		if first+count == work.measured {
			break // The checkers report the rest.
		}
		err = controlplane.InParallel(ctx, *creators, count, func(ctx context.Context, i int) error {
			return client.CoreV1().Pods(benchNamespace).Delete(ctx, podName("pod", first+i), now)
		})
		if err != nil {
			return nil, err
		}
	}
	return started, nil
}

// waitForEach waits until these pods are bound. It polls often, because the next batch follows at once.
func (w *podWatcher) waitForEach(ctx context.Context, prefix string, first, count int) error {
	missing := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		missing := 0
		for i := range count {
			if _, ok := w.bound[podName(prefix, first+i)]; !ok {
				missing++
			}
		}
		return missing
	}
	for deadline := time.Now().Add(time.Minute); missing() > 0; {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of the pods from %s on not bound after a minute", missing(), podName(prefix, first))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond): // Poll interval.
		}
	}
	return nil
}

// checkDevices checks the allocation of devices.
func (w *workload) checkDevices(ctx context.Context, c *controlplane.ControlPlane, client kubernetes.Interface) (*devices.Report, error) {
	if !w.claims {
		return nil, nil
	}
	return devices.Check(ctx, c.EtcdURL, client)
}
