package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	namespace  = "size"
	creators   = 30 // concurrent clients
	gpusOfNode = 8
	gpusInUse  = 4 // of each node, by pods that exist from the start
	driver     = "gpu.nvidia.com"
	class      = "gpu.nvidia.com"
	template   = "one-gpu"
)

// cluster creates objects as large as those of a real cluster: as kubelets, the GPU operator and controllers write them.
type cluster struct {
	client kubernetes.Interface
	size   size
	node   *corev1.Node // GPU Feature Discovery's record of a DGX H100
	job    types.UID    // the pods' owner; without one the garbage collector deletes them
}

func newCluster(client kubernetes.Interface, of size) (*cluster, error) {
	root, err := controlplane.Repository()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(root, "integration/publishers/recorded/gpu_nodes.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		node := &corev1.Node{}
		if err := decoder.Decode(node); errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: no node dgx-h100", file)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if node.Name == "dgx-h100" {
			return &cluster{client: client, size: of, node: node}, nil
		}
	}
}

// createJob creates the pods' owner; no controller of Jobs runs.
func (c *cluster) createJob(ctx context.Context) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: c.newPod("", 1).Spec}}}
	job, err := c.client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{})
	if err == nil {
		c.job = job.UID
	}
	return err
}

func nodeName(i int) string { return fmt.Sprintf("gpu-node-%05d", i) }

// newNode is a node with 50 images, the most that a kubelet reports, the conditions of kubelet and node problem detector,
// and annotations of a network plugin and of Node Feature Discovery.
func (c *cluster) newNode(i int) *corev1.Node {
	node := c.node.DeepCopy()
	node.Name = nodeName(i)
	maps.Copy(node.Labels, map[string]string{corev1.LabelHostname: node.Name, corev1.LabelTopologyZone: controlplane.Zones[i%len(controlplane.Zones)],
		corev1.LabelTopologyRegion: "region-1", corev1.LabelInstanceTypeStable: "p5.48xlarge", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		"fabric.topograph.run/tier-0": fmt.Sprintf("leaf-%d", i/16), "fabric.topograph.run/tier-1": fmt.Sprintf("spine-%d", i/128)})
	for f := range 40 {
		node.Labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-cpuid.FEATURE%02d", f)] = "true"
	}
	node.Annotations = map[string]string{
		"nfd.node.kubernetes.io/feature-labels":                  strings.Repeat("cpu-cpuid.AVX512BITALG,", 60),
		"csi.volume.kubernetes.io/nodeid":                        fmt.Sprintf(`{"ebs.csi.aws.com":"i-%017d"}`, i),
		"projectcalico.org/IPv4Address":                          fmt.Sprintf("10.%d.%d.7/16", i/250, i%250),
		"volumes.kubernetes.io/controller-managed-attach-detach": "true",
	}
	node.Spec.ProviderID = fmt.Sprintf("aws:///us-east-1a/i-%017d", i)
	status := &node.Status
	for _, amounts := range []corev1.ResourceList{status.Capacity, status.Allocatable} {
		amounts[corev1.ResourceCPU], amounts[corev1.ResourceMemory], amounts[corev1.ResourcePods] = resource.MustParse("192"), resource.MustParse("2Ti"), resource.MustParse("110")
		amounts[corev1.ResourceEphemeralStorage] = resource.MustParse("7Ti")
	}
	now := metav1.Now()
	for _, condition := range []corev1.NodeConditionType{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "GpuXidError", "KernelDeadlock", "ReadonlyFilesystem"} {
		value := corev1.ConditionFalse
		if condition == corev1.NodeReady {
			value = corev1.ConditionTrue
		}
		status.Conditions = append(status.Conditions, corev1.NodeCondition{Type: condition, Status: value, Reason: "AsExpected",
			Message: "kubelet is posting ready status", LastHeartbeatTime: now, LastTransitionTime: now})
	}
	status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.7", i/250, i%250)}, {Type: corev1.NodeHostName, Address: node.Name}}
	for image := range 50 {
		name := fmt.Sprintf("registry.example.com/team-%d/image-%d", image%7, image)
		status.Images = append(status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("%s@sha256:%064d", name, image), name + ":2026.11." + fmt.Sprint(image)}, SizeBytes: int64(image) << 28})
	}
	return node
}

// newPod is a pod of a training job.
func (c *cluster) newPod(name string, gpus int) *corev1.Pod {
	main := corev1.Container{Name: "main", Image: "registry.example.com/team-1/image-1:2026.11.1", Command: []string{"torchrun", "--nproc-per-node=1", "train.py"},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("8Gi")}, Limits: corev1.ResourceList{}}}
	if gpus > 0 {
		amount := *resource.NewQuantity(int64(gpus), resource.DecimalSI)
		main.Resources.Requests["nvidia.com/gpu"], main.Resources.Limits["nvidia.com/gpu"] = amount, amount
	}
	for i := range 25 {
		main.Env = append(main.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%02d", i), Value: strings.Repeat("value-", 8)})
	}
	sidecar := corev1.Container{Name: "metrics", Image: "registry.example.com/team-2/image-2:2026.11.2", Args: []string{"--listen=:9090", "--interval=15s"},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace,
			Labels: map[string]string{"app": "training", "team": fmt.Sprint("team-", len(name)%7), "pod-template-hash": "5c9d8b6f4", "app.kubernetes.io/managed-by": "platform",
				"batch.kubernetes.io/job-name": "job", "batch.kubernetes.io/controller-uid": string(c.job)},
			Annotations: map[string]string{"k8s.v1.cni.cncf.io/network-status": strings.Repeat(`{"name":"eth0","interface":"eth0","ips":["10.0.0.1"]},`, 4),
				"prometheus.io/scrape": "true", "example.com/commit": strings.Repeat("0123456789", 4)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: c.job, Controller: new(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{main, sidecar}, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(0)),
			Tolerations: []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}},
	}
	for i := range 6 {
		volume := fmt.Sprint("volume-", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: "/mnt/" + volume})
	}
	return pod
}

// createRunning creates a pod that runs on a node.
func (c *cluster) createRunning(ctx context.Context, i int) error {
	node, turn := i%c.size.nodes, i/c.size.nodes
	gpus := 0
	if turn < gpusInUse {
		gpus = 1
	}
	pod := c.newPod(fmt.Sprintf("running-%06d", i), gpus)
	pod.Spec.NodeName = nodeName(node)
	wanted := pod
	err := persistently(ctx, func(ctx context.Context) (err error) {
		pod, err = c.client.CoreV1().Pods(namespace).Create(ctx, wanted, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // By a request that was not answered in time.
			pod, err = c.client.CoreV1().Pods(namespace).Get(ctx, wanted.Name, metav1.GetOptions{})
		}
		return err
	})
	if err != nil {
		return err
	}
	now := metav1.Now()
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, HostIP: "10.0.0.7", StartTime: &now}
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady, "PodReadyToStartContainers"} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, Image: container.Image, Ready: true, Started: new(true),
			ImageID: "registry.example.com@sha256:" + strings.Repeat("0123456789abcdef", 4), ContainerID: "containerd://" + strings.Repeat("0123456789abcdef", 4),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}})
	}
	return persistently(ctx, func(ctx context.Context) error {
		_, err := c.client.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) { // As above: only this writes the status.
			return nil
		}
		return err
	})
}

// persistently repeats a request that an API server with too much to do has not answered, for five minutes.
func persistently(ctx context.Context, request func(ctx context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = request(ctx)
		if answer := apierrors.APIStatus(nil); errors.As(last, &answer) && !apierrors.IsTimeout(last) && !apierrors.IsServerTimeout(last) &&
			!apierrors.IsTooManyRequests(last) && !apierrors.IsInternalError(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// createDevices creates what NVIDIA's DRA driver publishes of each node, and claims that hold half of the devices.
func (c *cluster) createDevices(ctx context.Context) error {
	deviceClass := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}}}
	if _, err := c.client.ResourceV1().DeviceClasses().Create(ctx, deviceClass, metav1.CreateOptions{}); err != nil {
		return err
	}
	claims := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: template}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec()}}
	if _, err := c.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, claims, metav1.CreateOptions{}); err != nil {
		return err
	}
	return errors.Join(
		controlplane.InParallel(ctx, creators, c.size.nodes, func(ctx context.Context, i int) error {
			_, err := c.client.ResourceV1().ResourceSlices().Create(ctx, newSlice(i), metav1.CreateOptions{})
			return err
		}),
		controlplane.InParallel(ctx, creators, c.size.claims, c.createClaim))
}

func claimSpec() resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class}}}}}
}

func newSlice(i int) *resourcev1.ResourceSlice {
	node := nodeName(i)
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}}
	for gpu := range gpusOfNode {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", gpu),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": {StringValue: new("gpu")}, "architecture": {StringValue: new("Hopper")}, "brand": {StringValue: new("Nvidia")},
				"productName": {StringValue: new("NVIDIA H100 80GB HBM3")}, "uuid": {StringValue: new(fmt.Sprintf("GPU-%08d-%04d", i, gpu))},
				"cudaComputeCapability": {VersionValue: new("9.0.0")}, "cudaDriverVersion": {VersionValue: new("13.0.0")}, "driverVersion": {VersionValue: new("580.95.5")},
				"resource.kubernetes.io/pcieRoot": {StringValue: new(fmt.Sprintf("pci0000:%02d", gpu))}},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("81559Mi")}}})
	}
	return slice
}

// createClaim creates a claim that holds a device. An object that is not a pod has it, so that no controller takes it away.
func (c *cluster) createClaim(ctx context.Context, i int) error {
	claims := c.client.ResourceV1().ResourceClaims(namespace)
	claim, err := claims.Create(ctx, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("taken-%06d", i), Finalizers: []string{resourcev1.Finalizer}}, Spec: claimSpec()}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node := nodeName(i % c.size.nodes)
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: driver, Pool: node, Device: fmt.Sprint("gpu-", i/c.size.nodes)}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: "bench.example.com", Resource: "holders", Name: "holder", UID: "holder"}}
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

// schedule creates pods for Outboard, rate a second, waits until all have a node, and deletes them.
func (c *cluster) schedule(ctx context.Context, name, profile string, pods, rate int, change func(*corev1.Pod)) error {
	began := time.Now()
	labels := "burst=" + name
	err := controlplane.InParallel(ctx, creators, pods, func(ctx context.Context, i int) error {
		select {
		case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate)))): // Its turn.
		case <-ctx.Done():
			return ctx.Err()
		}
		pod := c.newPod(fmt.Sprintf("%s-%06d", name, i), 0)
		pod.Labels["burst"], pod.Spec.SchedulerName = name, profile
		change(pod)
		_, err := c.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(500 * time.Millisecond) { // Poll interval.
		waiting, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels, FieldSelector: "spec.nodeName="})
		if err != nil {
			return err
		}
		if len(waiting.Items) == 0 {
			break
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%d of %d pods (%s) have no node; one of them: %v", len(waiting.Items), pods, name, waiting.Items[0].Status.Conditions)
		}
	}
	return c.client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{LabelSelector: labels})
}
