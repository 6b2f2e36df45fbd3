package extender_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	controlplane "outboard.dev/integration/control_plane"
)

// keptState is a cluster whose kube-scheduler lets Outboard bind, with the plugins of outboard-binds.yaml.
type keptState struct {
	cluster
	objects dynamic.Interface
}

// TestPluginsKeepStateBehindKubeScheduler: kube-scheduler's pods are pods of the extender's profile for plugins that
// keep objects, wait for a gang, or count what pods use.
func TestPluginsKeepStateBehindKubeScheduler(t *testing.T) {
	t.Parallel()
	c := keptState{cluster: cluster{ControlPlane: controlplane.ForTest(t, controlplane.Options{})}}
	var err error
	if c.client, err = c.Client(); err != nil {
		t.Fatal(err)
	}
	if c.objects, err = c.Dynamic(); err != nil {
		t.Fatal(err)
	}
	if err := c.ApplyCustomResources(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.addNode(t, "n1", "r1")
	c.addNode(t, "n2", "r2")
	c.addNode(t, "n3", "r2")
	address := controlplane.FreeAddress(t)
	c.startBindingShim(t, address)
	c.startSchedulerThatBinds(t, address)
	t.Run("TrainingJobPlacement", c.testTrainingJobPlacement)
	t.Run("Gang", c.testGang)
	t.Run("StaticIP", c.testStaticIP)
	t.Run("Licence", c.testLicence)
}

func (c keptState) apply(t *testing.T, manifest string) {
	t.Helper()
	if err := c.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}

func (c keptState) addNode(t *testing.T, name, rack string) {
	t.Helper()
	c.apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {topology.kubernetes.io/rack: %s}},
status: {capacity: &n {cpu: "4", memory: 16Gi, pods: "110"}, allocatable: *n}}`, name, rack))
}

// startBindingShim starts Outboard with outboard-binds.yaml. A bind may wait for 8 s.
func (c keptState) startBindingShim(t *testing.T, address string) {
	t.Helper()
	scheduler, shim := shimConfig(t, "outboard-binds.yaml", address, "extender", "customResources")
	shim["extender"].(map[string]any)["bindDeadline"] = "8s"
	c.runShim(t, shim, controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{Text: scheduler}})
}

// startSchedulerThatBinds starts the real kube-scheduler with kube-scheduler-binds.yaml.
func (c keptState) startSchedulerThatBinds(t *testing.T, address string) {
	t.Helper()
	c.runKubeScheduler(t, "kube-scheduler-binds.yaml", func(extender map[string]any) { extender["urlPrefix"] = "http://" + address })
}

// cpuPod is a pod without a schedulerName, so of kube-scheduler; one of three CPUs fits a node.
func cpuPod(name, cpu string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/train:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
}

func (c keptState) get(t *testing.T, pod string) *corev1.Pod {
	t.Helper()
	got, err := c.client.CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// awaitObject waits until `wrong` finds nothing in the custom resource.
func (c keptState) awaitObject(t *testing.T, resource schema.GroupVersionResource, namespace, name string, wrong func(*unstructured.Unstructured) string) {
	t.Helper()
	await(t, func() error {
		got, err := c.objects.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if why := wrong(got); why != "" {
			return fmt.Errorf("%s %s: %s: %v", resource.Resource, name, why, got.Object)
		}
		return nil
	})
}

// awaitNodeWithEvents waits until the pod is bound, and makes an event about once a second: kube-scheduler retries a
// pod that an extender rejected only on events that it sees itself.
func (c keptState) awaitNodeWithEvents(t *testing.T, pod string) {
	t.Helper()
	polls := 0
	await(t, func() error {
		if got := c.get(t, pod); got.Spec.NodeName == "" {
			if polls++; polls%50 == 0 {
				patch := fmt.Sprintf(`{"metadata":{"labels":{"polls":"%d"}}}`, polls)
				if _, err := c.client.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
					return err
				}
			}
			return fmt.Errorf("pod %s is pending: %+v", pod, got.Status.Conditions)
		}
		return nil
	})
}

// testTrainingJobPlacement: the object's pinned rack decides where the job's pods go, and its status names them.
func (c keptState) testTrainingJobPlacement(t *testing.T) {
	c.apply(t, `{apiVersion: accelerator.sched.io/v1alpha1, kind: TrainingJobPlacement, metadata: {name: llama, namespace: default},
spec: {jobID: llama, domain: {level: topology.kubernetes.io/rack, value: r2}}}`)
	pods := []string{"llama-0", "llama-1"}
	var nodes []string
	for _, pod := range pods {
		c.create(t, cpuPod(pod, "3", map[string]string{"training-job-id": "llama"}))
		c.awaitNode(t, pod, "any")
		nodes = append(nodes, c.get(t, pod).Spec.NodeName)
	}
	slices.Sort(nodes)
	if !slices.Equal(nodes, []string{"n2", "n3"}) {
		t.Errorf("the job's pods are on %v, not on the nodes of its rack", nodes)
	}
	c.awaitObject(t, controlplane.CustomResources()[0], "default", "llama", func(object *unstructured.Unstructured) string {
		placements, _, _ := unstructured.NestedSlice(object.Object, "status", "placements")
		for _, placement := range placements {
			entry, _ := placement.(map[string]any)
			if name, _ := entry["pod"].(string); !slices.Contains(pods, name) || entry["node"] != c.get(t, name).Spec.NodeName {
				return fmt.Sprintf("unexpected placement %v", entry)
			}
		}
		if len(placements) != len(pods) {
			return fmt.Sprintf("%d placements, not %d", len(placements), len(pods))
		}
		return ""
	})
	for _, pod := range pods {
		c.remove(t, pod)
	}
}

// testGang: with room for two of three members none is bound, and the error names the gang; with a third node all are.
func (c keptState) testGang(t *testing.T) {
	occupant := cpuPod("occupant", "3", nil)
	occupant.Spec.NodeName = "n1"
	c.create(t, occupant)
	members := []string{"member-0", "member-1", "member-2"}
	for _, member := range members {
		c.create(t, cpuPod(member, "3", map[string]string{
			"pod-group.scheduling.sigs.k8s.io/name": "ring", "pod-group.scheduling.sigs.k8s.io/min-available": "3",
		}))
	}
	messages := func() (all []string) {
		for _, member := range members {
			pod := c.get(t, member)
			if pod.Spec.NodeName != "" {
				t.Fatalf("%s is on %s, and there is no room for the whole gang", member, pod.Spec.NodeName)
			}
			for _, condition := range pod.Status.Conditions {
				all = append(all, condition.Message)
			}
		}
		return all
	}
	// One member finds no room; the wait of another at /bind ends without it.
	await(t, func() error {
		all := strings.Join(messages(), "\n")
		for _, want := range []string{"Insufficient cpu", `gang "ring"`} {
			if !strings.Contains(all, want) {
				return fmt.Errorf("no condition has %q: %s", want, all)
			}
		}
		return nil
	})
	c.addNode(t, "n4", "r1")
	for _, member := range members {
		c.awaitNode(t, member, "any")
	}
	for _, pod := range append(members, "occupant") {
		c.remove(t, pod)
	}
}

// testStaticIP: a pod's reservation is written before its bind, and the next pod gets the only IP after it.
func (c keptState) testStaticIP(t *testing.T) {
	c.apply(t, `{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPPool, metadata: {name: rack-1},
spec: {cidr: 10.9.0.0/24, ranges: [10.9.0.1], nodeSelector: {topology.kubernetes.io/rack: r1}, releasePolicy: OnDelete}}`)
	create := func(name string) {
		pod := cpuPod(name, "1", nil)
		pod.Annotations = map[string]string{"outboard/static-ip": "true"}
		c.create(t, pod)
	}
	awaitReservation := func(name string) {
		c.awaitObject(t, controlplane.CustomResources()[2], "", "10-9-0-1", func(object *unstructured.Unstructured) string {
			pod := c.get(t, name)
			owner, _, _ := unstructured.NestedString(object.Object, "spec", "owner", "podUID")
			node, _, _ := unstructured.NestedString(object.Object, "spec", "node")
			if owner != string(pod.UID) || node != pod.Spec.NodeName {
				return fmt.Sprintf("it is not of pod %s (%s) on node %q", name, pod.UID, pod.Spec.NodeName)
			}
			return ""
		})
	}
	create("db-0")
	c.awaitNodeWithEvents(t, "db-0") // The shim sees the pool by a watch of its own.
	awaitReservation("db-0")
	create("db-1")
	c.awaitReason(t, "db-1", "no free static IP in a pool that node can serve")
	c.remove(t, "db-0")
	c.awaitNodeWithEvents(t, "db-1")
	awaitReservation("db-1")
	c.remove(t, "db-1")
}

// testLicence: the only licence is in use until its pod goes.
func (c keptState) testLicence(t *testing.T) {
	labels := map[string]string{"licence.outboard/solver": "1"}
	c.create(t, cpuPod("solver-0", "1", labels))
	c.awaitNode(t, "solver-0", "any")
	c.create(t, cpuPod("solver-1", "1", labels))
	c.awaitReason(t, "solver-1", "insufficient licences of solver: need 1, available 0")
	c.remove(t, "solver-0")
	c.awaitNodeWithEvents(t, "solver-1")
	c.remove(t, "solver-1")
}
