package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"strings"
	"sync/atomic"
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

var claimsKills = flag.Int("claims.kills", 3, "number of kills of each process while pods with claims come and go")

const (
	deviceNodes    = 20
	devicesOfNode  = 4
	deviceDriver   = "device.example.com"
	deviceResource = "example.com/accelerator"
	// Number of pods that the load keeps. Together they request more devices than exist, so that some always wait.
	mostWithClaims = 80
)

// TestProcessesAreKilledUnderClaims kills the shim and both hosts, in turns and at random moments, while pods with
// claims of every kind are created and deleted. A dead process may have made decisions that it did not write, or
// writes whose answers it did not see. Still no device is allocated twice, no claim is lost, no claim stays reserved
// for a deleted pod, and at the end every device can be allocated.
func TestProcessesAreKilledUnderClaims(t *testing.T) {
	t.Parallel()
	if controlplane.IsOlder() {
		t.Skip("not all older API servers serve resource.k8s.io/v1")
	}
	c := controlplane.ForTest(t, controlplane.Options{Controllers: controlplane.ClaimControllers})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	victims := startClaimsScheduler(t, c)
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	load := &claimsLoad{client: client, random: rand.New(rand.NewSource(seed))}
	if err := load.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var binds atomic.Int64
	ended := make(chan error, 2)
	go func() { ended <- countBinds(ctx, client, &binds) }()
	go func() { ended <- load.run(ctx) }()
	moments := rand.New(rand.NewSource(seed + 1))
	for i := range *claimsKills * len(victims) {
		enough := binds.Load() + 1 + int64(moments.Intn(20))
		awaitClaims(t, fmt.Sprintf("pods are bound after %d kills", i), func() string { return fewer(binds.Load(), enough) })
		time.Sleep(time.Duration(moments.Intn(200)) * time.Millisecond) // A random moment.
		victim := victims[i%len(victims)]
		victim.process().Kill()
		time.Sleep(time.Duration(moments.Intn(500)) * time.Millisecond) // The absence itself.
		if err := victim.start(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills of each of %d processes, %d binds", *claimsKills, len(victims), binds.Load())
	checkClaims(t, c, client, load)
}

func fewer(have, want int64) string {
	if have >= want {
		return ""
	}
	return fmt.Sprintf("%d binds, want %d", have, want)
}

// victim is a process to kill, and how to restart it.
type victim struct {
	process func() *controlplane.Process
	start   func() error
}

func startClaimsScheduler(t *testing.T, c *controlplane.ControlPlane) []victim {
	t.Helper()
	config := controlplane.SchedulerConfig{Text: "podMaxBackoffSeconds: 1\n"}
	if *against == "kube-scheduler" {
		k, err := c.StartKubeScheduler(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		return []victim{{func() *controlplane.Process { return k.Process }, k.Start}}
	}
	if _, err := controlplane.ClaimsHostProgram(); err != nil {
		t.Fatal(err)
	}
	o, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{Config: config, Claims: true})
	if err != nil {
		t.Fatal(err)
	}
	return []victim{
		{func() *controlplane.Process { return o.Shim }, o.StartShim},
		{func() *controlplane.Process { return o.ClaimsHost }, o.StartClaimsHost},
		{func() *controlplane.Process { return o.Host }, o.StartHost},
	}
}

// awaitClaims polls until look finds no fault.
func awaitClaims(t *testing.T, what string, look func() string) {
	t.Helper()
	fault := ""
	for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Millisecond) { // Poll interval.
		if fault = look(); fault == "" {
			return
		}
	}
	t.Fatalf("%s: %s", what, fault)
}

// countBinds counts pods that it sees with a node, until the context ends.
func countBinds(ctx context.Context, client kubernetes.Interface, binds *atomic.Int64) error {
	seen := map[string]bool{}
	for ctx.Err() == nil {
		// The API server ends the watch of a client that is slow for a moment; the new watch starts with the present
		// pods.
		watch, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for event := range watch.ResultChan() {
			if pod, isPod := event.Object.(*corev1.Pod); isPod && pod.Spec.NodeName != "" && !seen[string(pod.UID)] {
				seen[string(pod.UID)] = true
				binds.Add(1)
			}
		}
		watch.Stop()
	}
	return nil
}

// claimsLoad creates and deletes pods with claims. Not safe for concurrent use.
type claimsLoad struct {
	client kubernetes.Interface
	random *rand.Rand
	pods   []string
	// groups counts the pods that share a claim, by the claim's name; the claim is deleted with the last pod.
	groups map[string]int
	of     map[string]string // claims, by pod
	made   int
}

func (l *claimsLoad) prepare(ctx context.Context) error {
	l.groups, l.of = map[string]int{}, map[string]string{}
	if _, err := l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := controlplane.CreateFakeNodes(ctx, l.client, deviceNodes); err != nil {
		return err
	}
	name := deviceResource
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "devices"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &name,
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", deviceDriver)}}}}}
	if _, err := l.client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return err
	}
	for count := range 2 {
		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("take-%d", count+1)},
			Spec: resourcev1.ResourceClaimTemplateSpec{Spec: requestDevices(int64(count + 1))}}
		if _, err := l.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, template, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return controlplane.InParallel(ctx, 10, deviceNodes, func(ctx context.Context, i int) error {
		node := controlplane.FakeNode(i).Name
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
			Driver: deviceDriver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}}
		for j := range devicesOfNode {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("device-%d", j)})
		}
		_, err := l.client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
		return err
	})
}

func requestDevices(count int64) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "devices",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "devices", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}}}}
}

// run creates and deletes until the context ends.
func (l *claimsLoad) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.step(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond) // The rate of the load.
	}
	return nil
}

func (l *claimsLoad) step(ctx context.Context) error {
	if len(l.pods) >= mostWithClaims || len(l.pods) > 0 && l.random.Intn(3) == 0 {
		return l.remove(ctx, l.random.Intn(len(l.pods)))
	}
	switch kind := l.random.Intn(20); {
	case kind < 10:
		return l.create(ctx, "take-1", "", "")
	case kind < 14:
		return l.create(ctx, "take-2", "", "")
	case kind < 17:
		return l.create(ctx, "", "", deviceResource)
	}
	l.made++
	claim := fmt.Sprintf("shared-%d", l.made)
	object := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}, Spec: requestDevices(1)}
	if _, err := l.client.ResourceV1().ResourceClaims(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	for range 3 {
		l.groups[claim]++
		if err := l.create(ctx, "", claim, ""); err != nil {
			return err
		}
	}
	return nil
}

// create creates a pod with a claim from a template, a shared claim, or an extended resource.
func (l *claimsLoad) create(ctx context.Context, template, claim string, extended corev1.ResourceName) error {
	l.made++
	name := fmt.Sprintf("pod-%d", l.made)
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}}}
	switch {
	case template != "":
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: &template}}
	case claim != "":
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &claim}}
		l.of[name] = claim
	default:
		requests[extended] = resource.MustParse("1")
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{extended: requests[extended]}
	}
	pod.Spec.Containers[0].Resources.Requests = requests
	l.pods = append(l.pods, name)
	_, err := l.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// remove deletes a pod, bound or not, at once, because no kubelet runs.
func (l *claimsLoad) remove(ctx context.Context, i int) error {
	name := l.pods[i]
	l.pods = append(l.pods[:i], l.pods[i+1:]...)
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := l.client.CoreV1().Pods(namespace).Delete(ctx, name, now); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	claim := l.of[name]
	if claim == "" {
		return nil
	}
	delete(l.of, name)
	if l.groups[claim]--; l.groups[claim] > 0 {
		return nil
	}
	err := l.client.ResourceV1().ResourceClaims(namespace).Delete(ctx, claim, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// checkClaims deletes all pods, creates as many as there are devices, and checks the history.
func checkClaims(t *testing.T, c *controlplane.ControlPlane, client kubernetes.Interface, load *claimsLoad) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for len(load.pods) > 0 {
		if err := load.remove(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
	for range deviceNodes * devicesOfNode {
		if err := load.create(ctx, "take-1", "", ""); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	waitForBound(ctx, t, client, deviceNodes*devicesOfNode)
	t.Logf("all %d devices are allocated %.1f s after all were released", deviceNodes*devicesOfNode, time.Since(began).Seconds())
	awaitClaims(t, "nothing is left behind", func() string {
		report, err := devices.Now(ctx, client)
		if err != nil {
			return err.Error()
		}
		return strings.Join(report.Examples, "; ")
	})
	report, err := devices.Check(ctx, c.EtcdURL, client, deviceResource)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if report.Faults() > 0 || report.AtOnce > deviceNodes*devicesOfNode {
		t.Errorf("%d faults: %v", report.Faults(), report)
	}
}
