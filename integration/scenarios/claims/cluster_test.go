// Package claims_test tests device claims on a real API server with the real controller for claims. See README.md.
package claims_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/devices"
	controlplane "outboard.dev/integration/control_plane"
)

var against = flag.String("against", "outboard", "the scheduler under test: outboard, or kube-scheduler to check the tests themselves")

const (
	driver   = "device.example.com"
	extended = "example.com/accelerator"
	patience = 40 * time.Second
	pause    = 50 * time.Millisecond // poll interval
	// No device is free, or none that the pod may use.
	noDevices = "cannot allocate all claims"
)

// cluster is a control plane with a scheduler, and the helpers of tests in one namespace of it.
type cluster struct {
	*testing.T
	*controlplane.ControlPlane
	client    kubernetes.Interface
	outboard  *controlplane.Outboard // nil with kube-scheduler
	namespace string
}

// newCluster starts a control plane and a scheduler that serves claims.
func newCluster(t *testing.T, options controlplane.OutboardOptions) *cluster {
	t.Helper()
	if controlplane.IsOlder() {
		t.Skip("not all older API servers serve resource.k8s.io/v1")
	}
	outboard := *against == "outboard"
	if outboard {
		if _, err := controlplane.OutboardDirectory(); err != nil {
			t.Fatal(err)
		}
		if _, err := controlplane.ClaimsHostProgram(); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{T: t, ControlPlane: controlplane.ForTest(t, controlplane.Options{Controllers: controlplane.ClaimControllers, Audit: true})}
	var err error
	if c.client, err = c.Client(); err != nil {
		t.Fatal(err)
	}
	options.Config.Text = "podMaxBackoffSeconds: 1\n"
	if outboard {
		c.outboard, err = c.StartOutboard(t.Context(), options)
	} else {
		_, err = c.StartKubeScheduler(t.Context(), options.Config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// in is the cluster for a subtest, with its own namespace and nodes, each with this many devices.
func (c *cluster) in(t *testing.T, nodes, devicesOfEach int) *cluster {
	t.Helper()
	copied := *c
	copied.T, copied.namespace = t, strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	copied.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: copied.namespace}})
	for i := range nodes {
		node := controlplane.FakeNode(i)
		node.Name = copied.node(i)
		node.Labels = map[string]string{corev1.LabelHostname: node.Name, "story": copied.namespace}
		copied.create(node)
		if devicesOfEach > 0 {
			copied.create(copied.slice(node.Name, devicesOfEach))
		}
	}
	copied.create(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: copied.namespace}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}}})
	t.Cleanup(copied.clear)
	return &copied
}

func (c *cluster) node(i int) string { return fmt.Sprintf("%s-%d", c.namespace, i) }

func (c *cluster) slice(node string, count int) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}}
	for i := range count {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("device-%d", i)})
	}
	return slice
}

func (c *cluster) requests(count int64) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "devices",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: c.namespace, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}}}}
}

func (c *cluster) claim(name string, count int64) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: c.requests(count)}
}

func (c *cluster) template(name string, count int64) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: c.requests(count)}}
}

// pod requests 100m; it runs only on the subtest's nodes.
func (c *cluster) pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeSelector: map[string]string{"story": c.namespace},
		Containers: []corev1.Container{{Name: "main", Image: "example.com/app",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}}}
}

// with adds a claim to the pod, by name or, with template set, from a template.
func with(pod *corev1.Pod, claim string, template bool) *corev1.Pod {
	reference := corev1.PodResourceClaim{Name: claim}
	if template {
		reference.ResourceClaimTemplateName = &claim
	} else {
		reference.ResourceClaimName = &claim
	}
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, reference)
	resources := &pod.Spec.Containers[0].Resources
	resources.Claims = append(resources.Claims, corev1.ResourceClaim{Name: claim})
	return pod
}

func (c *cluster) create(object any) {
	c.Helper()
	ctx, options := c.Context(), metav1.CreateOptions{}
	var err error
	switch object := object.(type) {
	case *corev1.Namespace:
		_, err = c.client.CoreV1().Namespaces().Create(ctx, object, options)
	case *corev1.Node:
		_, err = c.client.CoreV1().Nodes().Create(ctx, object, options)
	case *corev1.Pod:
		_, err = c.client.CoreV1().Pods(c.namespace).Create(ctx, object, options)
	case *resourcev1.ResourceSlice:
		_, err = c.client.ResourceV1().ResourceSlices().Create(ctx, object, options)
	case *resourcev1.DeviceClass:
		_, err = c.client.ResourceV1().DeviceClasses().Create(ctx, object, options)
	case *resourcev1.ResourceClaim:
		_, err = c.client.ResourceV1().ResourceClaims(c.namespace).Create(ctx, object, options)
	case *resourcev1.ResourceClaimTemplate:
		_, err = c.client.ResourceV1().ResourceClaimTemplates(c.namespace).Create(ctx, object, options)
	default:
		err = fmt.Errorf("no client for %T", object)
	}
	if err != nil {
		c.Fatal(err)
	}
}

var now = metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}

func (c *cluster) delete(pods ...string) {
	c.Helper()
	for _, name := range pods {
		if err := c.client.CoreV1().Pods(c.namespace).Delete(c.Context(), name, now); err != nil && !apierrors.IsNotFound(err) {
			c.Fatal(err)
		}
	}
}

// clear deletes the subtest's objects, so that the next one starts with an empty cluster.
func (c *cluster) clear() {
	c.Helper()
	ctx := context.WithoutCancel(c.Context())
	of := metav1.ListOptions{LabelSelector: "story=" + c.namespace}
	errs := []error{
		c.client.CoreV1().Pods(c.namespace).DeleteCollection(ctx, now, metav1.ListOptions{}),
		c.client.ResourceV1().ResourceClaims(c.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		c.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		c.client.ResourceV1().DeviceClasses().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		c.client.CoreV1().Nodes().DeleteCollection(ctx, now, of),
	}
	for _, err := range errs {
		if err != nil {
			c.Error(err)
		}
	}
}

// await polls until look finds no fault, and fails with the last one.
func (c *cluster) await(what string, look func() (fault string)) {
	c.Helper()
	fault := ""
	for began := time.Now(); time.Since(began) < patience; time.Sleep(pause) {
		if fault = look(); fault == "" {
			return
		}
	}
	c.Fatalf("%s: %s", what, fault)
}

func (c *cluster) get(name string) *corev1.Pod {
	c.Helper()
	pod, err := c.client.CoreV1().Pods(c.namespace).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return pod
}

func (c *cluster) getClaim(name string) *resourcev1.ResourceClaim {
	c.Helper()
	claim, err := c.client.ResourceV1().ResourceClaims(c.namespace).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return claim
}

func (c *cluster) awaitBound(names ...string) {
	c.Helper()
	for _, name := range names {
		c.await(name+" is to be bound", func() string {
			if pod := c.get(name); pod.Spec.NodeName == "" {
				return fmt.Sprintf("it is not: %v", pod.Status.Conditions)
			}
			return ""
		})
	}
}

// awaitWaiting waits until the pod's condition contains one of these texts.
func (c *cluster) awaitWaiting(name string, parts ...string) {
	c.Helper()
	c.await(name+" is to wait", func() string {
		pod := c.get(name)
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
				slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(condition.Message, part) }) {
				return ""
			}
		}
		return fmt.Sprintf("no condition says one of %q: %v, node %q", parts, pod.Status.Conditions, pod.Spec.NodeName)
	})
}

// made returns the name of the claim created from a pod's first template.
func (c *cluster) made(pod string) string {
	c.Helper()
	statuses := c.get(pod).Status.ResourceClaimStatuses
	if len(statuses) == 0 || statuses[0].ResourceClaimName == nil {
		c.Fatalf("pod %s has no claim: %v", pod, statuses)
	}
	return *statuses[0].ResourceClaimName
}

// holds checks a claim: this many devices of the pod's node, a reservation for the pod, the finalizer.
func (c *cluster) holds(pod, claim string, count int) []resourcev1.DeviceRequestAllocationResult {
	c.Helper()
	p, got := c.get(pod), c.getClaim(claim)
	if got.Status.Allocation == nil {
		c.Fatalf("claim %s is not allocated", claim)
	}
	results := got.Status.Allocation.Devices.Results
	if len(results) != count {
		c.Errorf("claim %s has the devices %v, want %d", claim, results, count)
	}
	for _, result := range results {
		if result.Driver != driver || result.Pool != p.Spec.NodeName {
			c.Errorf("claim %s has %v, pod %s is on %s", claim, result, pod, p.Spec.NodeName)
		}
	}
	want := resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: p.UID}
	if !slices.Contains(got.Status.ReservedFor, want) {
		c.Errorf("claim %s is reserved for %v, not for %v", claim, got.Status.ReservedFor, want)
	}
	if !slices.Contains(got.Finalizers, resourcev1.Finalizer) {
		c.Errorf("claim %s has the finalizers %v", claim, got.Finalizers)
	}
	if got.Status.Allocation.AllocationTimestamp == nil {
		c.Errorf("claim %s has no allocation time", claim)
	}
	return results
}

// check checks the whole history at the end.
func (c *cluster) check() {
	c.Helper()
	c.await("nothing is left behind", func() string {
		report, err := devices.Now(c.Context(), c.client)
		if err != nil {
			return err.Error()
		}
		if report.Faults() > 0 {
			return strings.Join(report.Examples, "; ")
		}
		return ""
	})
	report, err := devices.Check(c.Context(), c.EtcdURL, c.client, extended)
	if err != nil {
		c.Fatal(err)
	}
	c.Log(report)
	if report.Faults() > 0 || report.Allocations == 0 {
		c.Errorf("%v", report)
	}
}
