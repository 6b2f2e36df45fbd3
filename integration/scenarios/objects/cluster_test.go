// Package objects_test tests the plugins that write custom resources, on a real API server. See README.md.
package objects_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	namespace = "default"
	scheduler = "keeper"
	patience  = 40 * time.Second
	pause     = 50 * time.Millisecond // poll interval

	customResources = `
customResources:
- {resource: trainingjobplacements.v1alpha1.accelerator.sched.io, verbs: [create, update, updateStatus, delete]}
- {resource: staticippools.v1alpha1.accelerator.sched.io}
- {resource: staticipreservations.v1alpha1.accelerator.sched.io, verbs: [create, update, updateStatus, delete]}
`
)

var placements, pools, reservations = controlplane.CustomResources()[0], controlplane.CustomResources()[1], controlplane.CustomResources()[2]

// profiles returns a configuration with one profile for each name.
func profiles(names ...string) string {
	text := "podMaxBackoffSeconds: 1\nprofiles:\n"
	for _, name := range names {
		text += fmt.Sprintf(`- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: TrainingJobPlacement, weight: 100}, {name: StaticIP}]}}
  pluginConfig:
  - {name: TrainingJobPlacement, args: {levels: [fabric, rack], retention: 3s}}
  - {name: StaticIP, args: {releaseAfter: 1s, scaledDownAfter: 3s}}
`, name)
	}
	return text
}

// cluster is a control plane with nodes, and the helpers of tests.
type cluster struct {
	*testing.T
	*controlplane.ControlPlane
	client  kubernetes.Interface
	objects dynamic.Interface
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	if _, err := controlplane.OutboardDirectory(); err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, ControlPlane: controlplane.ForTest(t, controlplane.Options{})}
	var err error
	if c.client, err = c.Client(); err != nil {
		t.Fatal(err)
	}
	if c.objects, err = c.Dynamic(); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		c.apply(fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: n%d, labels: {fabric: f%d, rack: r%d}},
status: {capacity: &n {cpu: "64", memory: 256Gi, pods: "110"}, allocatable: *n}}`, i, i/2, i/4))
	}
	return c
}

// with is the cluster for a subtest.
func (c *cluster) with(t *testing.T) *cluster {
	copied := *c
	copied.T = t
	return &copied
}

func (c *cluster) apply(manifest string) {
	c.Helper()
	if err := c.Apply(c.Context(), manifest); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) start(options controlplane.OutboardOptions) *controlplane.Outboard {
	c.Helper()
	if options.Shim == "" {
		options.Shim = customResources
	}
	o, err := c.StartOutboard(c.Context(), options)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(o.Stop)
	return o
}

// clear deletes pods, sets and custom resources.
func (c *cluster) clear() {
	c.Helper()
	ctx, now := context.WithoutCancel(c.Context()), int64(0)
	options := metav1.DeleteOptions{GracePeriodSeconds: &now}
	if err := c.client.CoreV1().Pods(namespace).DeleteCollection(ctx, options, metav1.ListOptions{}); err != nil {
		c.Error(err)
	}
	if err := c.client.AppsV1().StatefulSets(namespace).DeleteCollection(ctx, options, metav1.ListOptions{}); err != nil {
		c.Error(err)
	}
	if err := c.ClearCustomResources(ctx); err != nil {
		c.Error(err)
	}
}

// statefulSet creates only the object; the test plays the controller.
func (c *cluster) statefulSet(name string) *appsv1.StatefulSet {
	c.Helper()
	labels := map[string]string{"app": name}
	set, err := c.client.AppsV1().StatefulSets(namespace).Create(c.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return set
}

func newPod(name, schedulerName string, labels, annotations map[string]string, owner *metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Spec: corev1.PodSpec{SchedulerName: schedulerName, Containers: []corev1.Container{{Name: "c", Image: "i",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return pod
}

func ownedBy(kind, apiVersion, name string, uid types.UID) *metav1.OwnerReference {
	yes := true
	return &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: &yes}
}

// staticPod returns a pod that requests an IP.
func (c *cluster) staticPod(name, schedulerName string, set *appsv1.StatefulSet) *corev1.Pod {
	var owner *metav1.OwnerReference
	if set != nil {
		owner = ownedBy("StatefulSet", "apps/v1", set.Name, set.UID)
	}
	return newPod(name, schedulerName, nil, map[string]string{"outboard/static-ip": "true"}, owner)
}

func (c *cluster) create(pod *corev1.Pod) {
	c.Helper()
	if _, err := c.client.CoreV1().Pods(namespace).Create(c.Context(), pod, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) delete(pod string) {
	c.Helper()
	now := int64(0)
	err := c.client.CoreV1().Pods(namespace).Delete(c.Context(), pod, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		c.Fatal(err)
	}
}

// await polls until look finds no fault, and fails with the last one.
func (c *cluster) await(what string, look func() (fault string)) {
	c.Helper()
	fault := ""
	for began := time.Now(); time.Since(began) < patience; time.Sleep(pause) {
		if fault = look(); fault == "" {
			if took := time.Since(began); took > 3*time.Second {
				c.Logf("%s: after %.1f s", what, took.Seconds())
			}
			return
		}
	}
	c.Fatalf("%s: %s", what, fault)
}

func (c *cluster) awaitBound(names ...string) {
	c.Helper()
	for _, name := range names {
		c.await(name+" is to be bound", func() string {
			pod, err := c.client.CoreV1().Pods(namespace).Get(c.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if pod.Spec.NodeName == "" {
				return fmt.Sprintf("it is not: %v", pod.Status.Conditions)
			}
			return ""
		})
	}
}

func (c *cluster) awaitMessage(name, part string) {
	c.Helper()
	c.await(name+" is to wait", func() string {
		pod, err := c.client.CoreV1().Pods(namespace).Get(c.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && strings.Contains(condition.Message, part) {
				return ""
			}
		}
		return fmt.Sprintf("no condition contains %q: %v, node %q", part, pod.Status.Conditions, pod.Spec.NodeName)
	})
}

// reservation has the fields of StaticIPReservation that tests use.
type reservation struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		IP, Node, ReleasePolicy string
		Owner                   struct{ Namespace, Pod, PodUID, StatefulSet string }
	}
	Status struct {
		Phase, PodUID string
		Conditions    []metav1.Condition
	}
}

// placement has those of TrainingJobPlacement.
type placement struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		JobID  string
		Domain struct{ Level, Value string }
	}
	Status struct {
		Pods       int
		Placements []struct {
			Pod, UID, Node string
			Domains        map[string]string
		}
		Conditions []metav1.Condition
	}
}

func conditionOf(conditions []metav1.Condition, kind string) (status, message string) {
	for _, condition := range conditions {
		if condition.Type == kind {
			return string(condition.Status), condition.Message
		}
	}
	return "", ""
}

func decode[T any](object *unstructured.Unstructured) (out T, err error) {
	text, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

func list[T any](ctx context.Context, c *cluster, resource schema.GroupVersionResource) (all []T, err error) {
	found, err := c.objects.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range found.Items {
		one, err := decode[T](&found.Items[i])
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// awaitReservation waits until check finds no fault in the object of this name.
func (c *cluster) awaitReservation(name string, fault func(reservation) string) {
	c.Helper()
	c.await("reservation "+name, func() string {
		object, err := c.objects.Resource(reservations).Get(c.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		r, err := decode[reservation](object)
		if err != nil {
			return err.Error()
		}
		return fault(r)
	})
}

func (c *cluster) awaitPlacement(name string, fault func(placement) string) {
	c.Helper()
	c.await("placement "+name, func() string {
		object, err := c.objects.Resource(placements).Namespace(namespace).Get(c.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		p, err := decode[placement](object)
		if err != nil {
			return err.Error()
		}
		return fault(p)
	})
}

func (c *cluster) patch(resource schema.GroupVersionResource, ns, name, patch string, subresources ...string) error {
	_, err := c.objects.Resource(resource).Namespace(ns).Patch(c.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}

func (c *cluster) logOf(process *controlplane.Process) string {
	c.Helper()
	text, err := os.ReadFile(process.LogPath)
	if err != nil {
		c.Fatal(err)
	}
	return string(text)
}
