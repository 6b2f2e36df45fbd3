package claims_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

func TestClaims(t *testing.T) {
	t.Parallel()
	c := newCluster(t, controlplane.OutboardOptions{Claims: true})
	for _, story := range []struct {
		name string
		tell func(*testing.T, *cluster)
	}{
		{"FromTemplates", fromTemplates}, {"Shared", shared}, {"ExtendedResource", extendedResource}, {"MadeLater", madeLater},
		{"AllocatedElsewhere", allocatedElsewhere}, {"DevicesComeAndGo", devicesComeAndGo}, {"ClassComesLater", classComesLater},
		{"LeftByAnAttemptBefore", leftByAnAttemptBefore},
	} {
		t.Run(story.name, func(t *testing.T) { story.tell(t, c) })
	}
	c.check()
	nothingIsDenied(t, c)
}

// One pod more than there are devices; it gets the device of the first deleted pod.
func fromTemplates(t *testing.T, c *cluster) {
	c = c.in(t, 3, 2)
	c.create(c.template("one", 1))
	names, had := []string{}, map[string]string{}
	for i := range 6 {
		names = append(names, fmt.Sprintf("pod-%d", i))
		c.create(with(c.pod(names[i]), "one", true))
	}
	c.awaitBound(names...)
	for _, name := range names {
		result := c.holds(name, c.made(name), 1)[0]
		device := result.Pool + "/" + result.Device
		if had[device] != "" {
			t.Errorf("%s and %s have %s", had[device], name, device)
		}
		had[device] = name
	}
	c.create(with(c.pod("late"), "one", true))
	c.create(c.pod("without"))
	c.awaitBound("without")
	c.awaitWaiting("late", noDevices)
	first := c.holds("pod-0", c.made("pod-0"), 1)[0]
	c.delete("pod-0")
	c.awaitBound("late")
	if got := c.holds("late", c.made("late"), 1)[0]; got.Pool != first.Pool || got.Device != first.Device {
		t.Errorf("the late pod has %v, the free device was %v", got, first)
	}
}

// Pods that share a claim go to the node of its device; when the last is deleted the claim can be allocated again.
func shared(t *testing.T, c *cluster) {
	c = c.in(t, 3, 1)
	c.create(c.claim("shared", 1))
	names := []string{"a", "b", "c"}
	for _, name := range names {
		c.create(with(c.pod(name), "shared", false))
	}
	c.awaitBound(names...)
	for _, name := range names {
		c.holds(name, "shared", 1)
	}
	if got := c.getClaim("shared").Status.ReservedFor; len(got) != 3 {
		t.Errorf("reserved for %v", got)
	}
	c.delete(names...)
	c.await("the claim is free again", func() string {
		if claim := c.getClaim("shared"); claim.Status.Allocation != nil {
			return fmt.Sprintf("reserved for %v", claim.Status.ReservedFor)
		}
		return ""
	})
	c.create(with(c.pod("again"), "shared", false))
	c.awaitBound("again")
	c.holds("again", "shared", 1)
}

// A class provides a resource: the pod names no claim, and gets one.
func extendedResource(t *testing.T, c *cluster) {
	c = c.in(t, 2, 2)
	name := extended
	c.create(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "accelerators"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &name,
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}}})
	for pod, asks := range map[string]corev1.ResourceName{"explicit": extended, "implicit": "deviceclass.resource.kubernetes.io/accelerators"} {
		p := c.pod(pod)
		two := corev1.ResourceList{asks: resource.MustParse("2")}
		resources := &p.Spec.Containers[0].Resources
		resources.Requests[asks], resources.Limits = two[asks], two
		c.create(p)
		c.awaitBound(pod)
		status := c.get(pod).Status.ExtendedResourceClaimStatus
		if status == nil {
			t.Fatalf("pod %s has no claim in its status", pod)
		}
		results := c.holds(pod, status.ResourceClaimName, 2)
		claim := c.getClaim(status.ResourceClaimName)
		if claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
			t.Errorf("annotations %v", claim.Annotations)
		}
		owner := metav1.GetControllerOf(claim)
		if owner == nil || owner.Name != pod || owner.UID != c.get(pod).UID {
			t.Errorf("owner %v", owner)
		}
		want := []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: string(asks), RequestName: results[0].Request}}
		if !slices.Equal(status.RequestMappings, want) {
			t.Errorf("mappings %v, want %v", status.RequestMappings, want)
		}
	}
	claim := c.get("explicit").Status.ExtendedResourceClaimStatus.ResourceClaimName
	c.delete("explicit")
	c.await("the claim is deleted with its pod", func() string {
		_, err := c.client.ResourceV1().ResourceClaims(c.namespace).Get(t.Context(), claim, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("it still exists (%v)", err)
	})
}

// The claim that a pod names is created after the pod, and the template after a pod of another.
func madeLater(t *testing.T, c *cluster) {
	c = c.in(t, 1, 2)
	c.create(with(c.pod("named"), "later", false))
	c.create(with(c.pod("from-template"), "later", true))
	// Neither reaches the queue, so they have no condition.
	c.create(c.pod("behind"))
	c.awaitBound("behind")
	for _, name := range []string{"named", "from-template"} {
		if pod := c.get(name); pod.Spec.NodeName != "" {
			t.Fatalf("%s is on %s", name, pod.Spec.NodeName)
		}
	}
	c.create(c.claim("later", 1))
	c.awaitBound("named")
	c.create(c.template("later", 1))
	c.awaitBound("from-template")
	c.holds("named", "later", 1)
	c.holds("from-template", c.made("from-template"), 1)
}

// A claim has a device of a node on which the pod may not run, and no pod uses it: it is deallocated and allocated
// again.
func allocatedElsewhere(t *testing.T, c *cluster) {
	c = c.in(t, 2, 1)
	c.create(c.claim("free", 1))
	claim := c.getClaim("free")
	claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
	claim, err := c.client.ResourceV1().ResourceClaims(c.namespace).Update(t.Context(), claim, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
			Request: "devices", Driver: driver, Pool: c.node(0), Device: "device-0"}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{c.node(0)}}}}}},
	}
	// Another consumer holds it until the pod exists, because the controller itself deallocates a claim without a
	// consumer.
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: "example.com", Resource: "jobs", Name: "another-job", UID: "another-job"}}
	if claim, err = c.client.ResourceV1().ResourceClaims(c.namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := with(c.pod("elsewhere"), "free", false)
	pod.Spec.NodeSelector[corev1.LabelHostname] = c.node(1)
	c.create(pod)
	c.awaitWaiting("elsewhere", "resourceclaim not available on the node")
	claim.Status.ReservedFor = nil
	if _, err = c.client.ResourceV1().ResourceClaims(c.namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.awaitBound("elsewhere")
	c.holds("elsewhere", "free", 1)
}

// Devices are tainted, tolerated, and added with a new slice.
func devicesComeAndGo(t *testing.T, c *cluster) {
	c = c.in(t, 1, 1)
	slice, err := c.client.ResourceV1().ResourceSlices().Get(t.Context(), c.node(0), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slice.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "example.com/fault", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	if slice, err = c.client.ResourceV1().ResourceSlices().Update(t.Context(), slice, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.create(c.claim("plain", 1))
	c.create(with(c.pod("plain"), "plain", false))
	c.awaitWaiting("plain", noDevices)
	tolerant := c.claim("tolerant", 1)
	tolerant.Spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	c.create(tolerant)
	c.create(with(c.pod("tolerant"), "tolerant", false))
	c.awaitBound("tolerant")
	c.holds("tolerant", "tolerant", 1)
	slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: "device-1"})
	slice.Spec.Pool.Generation++
	if _, err = c.client.ResourceV1().ResourceSlices().Update(t.Context(), slice, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.awaitBound("plain")
	if got := c.holds("plain", "plain", 1)[0].Device; got != "device-1" {
		t.Errorf("the pod has %s", got)
	}
}

func classComesLater(t *testing.T, c *cluster) {
	c = c.in(t, 1, 1)
	claim := c.claim("claim", 1)
	claim.Spec.Devices.Requests[0].Exactly.DeviceClassName = "later"
	c.create(claim)
	c.create(with(c.pod("pod"), "claim", false))
	c.awaitWaiting("pod", "request devices: device class later does not exist")
	c.create(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "later"}})
	c.awaitBound("pod")
	c.holds("pod", "claim", 1)
}

// A scheduler created a claim for a pod's extended resources and died before its allocation: the claim is unusable,
// and is deleted.
func leftByAnAttemptBefore(t *testing.T, c *cluster) {
	c = c.in(t, 1, 1)
	asks := corev1.ResourceName("deviceclass.resource.kubernetes.io/" + c.namespace)
	pod := c.pod("pod")
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	resources := &pod.Spec.Containers[0].Resources
	resources.Requests[asks] = resource.MustParse("1")
	resources.Limits = corev1.ResourceList{asks: resource.MustParse("1")}
	c.create(pod)
	pod = c.get("pod")
	claim := c.claim("pod-extended-resources-left", 1)
	claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	claim.Finalizers = []string{resourcev1.Finalizer}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "pod", UID: pod.UID, Controller: new(true)}}
	c.create(claim)
	pod.Spec.SchedulingGates = nil
	if _, err := c.client.CoreV1().Pods(c.namespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.await("the orphaned claim is deleted", func() string {
		_, err := c.client.ResourceV1().ResourceClaims(c.namespace).Get(t.Context(), claim.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("it still exists: %v", err)
	})
	// In kube-scheduler its deletion requeues no pod; a change of the class does.
	class, err := c.client.ResourceV1().DeviceClasses().Get(t.Context(), c.namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	class.Labels = map[string]string{"changed": "yes"}
	if _, err := c.client.ResourceV1().DeviceClasses().Update(t.Context(), class, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.awaitBound("pod")
	made := c.get("pod").Status.ExtendedResourceClaimStatus
	if made == nil || made.ResourceClaimName == claim.Name {
		t.Fatalf("the pod has %v", made)
	}
	c.holds("pod", made.ResourceClaimName, 1)
	if _, err := c.client.ResourceV1().ResourceClaims(c.namespace).Get(t.Context(), claim.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the orphaned claim still exists (%v)", err)
	}
}

// nothingIsDenied checks the API server's audit log: the roles suffice.
func nothingIsDenied(t *testing.T, c *cluster) {
	if c.outboard == nil {
		return
	}
	requests, err := c.AuditLog(controlplane.OutboardUser)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	for _, request := range requests {
		if request.ResponseStatus.Code == 403 {
			t.Errorf("denied: %s %s", request.Verb, request.RequestURI)
		}
		if request.ObjectRef != nil && request.ObjectRef.APIGroup == "resource.k8s.io" {
			asked[request.Verb+" "+request.ObjectRef.Resource+"/"+request.ObjectRef.Subresource]++
		}
	}
	t.Logf("requests about resource.k8s.io: %v", asked)
	for _, granted := range []string{"watch resourceslices/", "watch resourceclaims/", "create resourceclaims/", "delete resourceclaims/", "patch resourceclaims/",
		"patch resourceclaims/status"} {
		if asked[granted] == 0 {
			t.Errorf("granted but never requested: %s", granted)
		}
	}
}

// Without a serving host pods with claims wait, with a message; other pods are scheduled. They are bound when the
// host starts, and after it has restarted.
func TestTheHostForClaimsIsUnavailable(t *testing.T) {
	t.Parallel()
	if *against != "outboard" {
		t.Skip("kube-scheduler has no hosts")
	}
	c := newCluster(t, controlplane.OutboardOptions{ClaimsLater: true}).in(t, 2, 4)
	c.create(c.template("one", 1))
	pods := func(word string) {
		c.create(with(c.pod("claim-"+word), "one", true))
		c.create(c.pod("plain-" + word))
		c.awaitBound("plain-" + word)
	}
	pods("before")
	// The plugin of this name in the other host, or the shim, writes the message: it names the plugin or the host.
	c.awaitWaiting("claim-before", "DynamicResources", "claims")
	t.Log(c.get("claim-before").Status.Conditions)
	if err := c.outboard.StartClaimsHost(); err != nil {
		t.Fatal(err)
	}
	c.awaitBound("claim-before")
	pods("with")
	c.awaitBound("claim-with")
	c.outboard.ClaimsHost.Kill()
	pods("unavailable")
	c.awaitWaiting("claim-unavailable", "DynamicResources", "claims")
	t.Log(c.get("claim-unavailable").Status.Conditions)
	if err := c.outboard.StartClaimsHost(); err != nil {
		t.Fatal(err)
	}
	c.awaitBound("claim-unavailable")
	for _, word := range []string{"before", "with", "unavailable"} {
		c.holds("claim-"+word, c.made("claim-"+word), 1)
	}
	c.check()
}

// TestAFrozenHostForClaimsDelaysOnlyItsPods: a connected host that does not answer costs pods without claims almost
// nothing.
func TestAFrozenHostForClaimsDelaysOnlyItsPods(t *testing.T) {
	t.Parallel()
	if *against != "outboard" {
		t.Skip("kube-scheduler has no hosts")
	}
	c := newCluster(t, controlplane.OutboardOptions{Claims: true}).in(t, 2, 8)
	c.create(c.template("one", 1))
	c.create(with(c.pod("claim-before"), "one", true))
	c.awaitBound("claim-before")
	host := c.outboard.ClaimsHost.PID()
	if err := syscall.Kill(host, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(host, syscall.SIGCONT) })
	var took []time.Duration
	for i := range 12 {
		c.create(with(c.pod(fmt.Sprintf("claim-%d", i)), "one", true))
		plain := fmt.Sprintf("plain-%d", i)
		began := time.Now()
		c.create(c.pod(plain))
		c.awaitBound(plain)
		took = append(took, time.Since(began))
	}
	t.Logf("from creation to bound, of pods without claims: %v", took)
	if longest := slices.Max(took); longest > 5*time.Second {
		t.Errorf("one took %v", longest)
	}
	c.awaitWaiting("claim-0", "DynamicResources", "claims")
	t.Log(c.get("claim-0").Status.Conditions)
	if err := syscall.Kill(host, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		name := fmt.Sprintf("claim-%d", i)
		c.awaitBound(name)
		c.holds(name, c.made(name), 1)
	}
	c.check()
}
