// Package gangs plays storms of gangs on a real API server. See README.md.
package gangs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

var (
	howMany = flag.Int("gangs", 40, "total number of gangs")
	seed    = flag.Uint64("seed", 1, "seed of the random choices; timing is not reproducible")
)

const (
	namespace  = "gangs"
	nodes      = 6
	gpusOfNode = 8
	gpu        = corev1.ResourceName("nvidia.com/gpu")
	drivers    = 8
	largest    = 16
	// A gang may wait for others to end, for hosts to restart, and for backoffs.
	patience = 3 * time.Minute
	pause    = 100 * time.Millisecond // poll interval

	profile = `
podMaxBackoffSeconds: 1
profiles:
- schedulerName: gangs
  plugins:
    multiPoint: {enabled: [{name: AtomicReplicaCoordinator}], disabled: [{name: DefaultPreemption}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}
    postFilter: {enabled: [{name: Coscheduling}]}
  pluginConfig:
  - {name: AtomicReplicaCoordinator, args: {timeoutSeconds: 5, podGroupTimeoutSeconds: 5}}
`
	shim = `
customResources: [{resource: podgroups.v1alpha1.scheduling.x-k8s.io}]
replacement: {shadowCycles: 5, shadowTimeout: 2s, keepWarm: 10s}
`
	// As scheduler-plugins ships it, without the fields that are not used here.
	podGroups = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podgroups.scheduling.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"}
spec:
  group: scheduling.x-k8s.io
  names: {kind: PodGroup, listKind: PodGroupList, plural: podgroups, singular: podgroup}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pod-groups}
rules: [{apiGroups: [scheduling.x-k8s.io], resources: [podgroups], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pod-groups}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pod-groups}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + controlplane.OutboardUser + `}]
`
)

var podGroup = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

type storm struct {
	client  kubernetes.Interface
	objects dynamic.Interface
	judge   *judge
	// Counters of the run.
	placed, deleted, members atomic.Int64
}

func TestGangStorm(t *testing.T) {
	t.Parallel()
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := c.Dynamic()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), podGroups); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(patience); ; time.Sleep(pause) {
		_, err := objects.Resource(podGroup).List(t.Context(), metav1.ListOptions{})
		if err == nil {
			break
		}
		if time.Now().After(limit) {
			t.Fatal(err)
		}
	}
	for i := range nodes {
		node := controlplane.FakeNode(i)
		node.Status.Capacity[corev1.ResourceCPU] = resource.MustParse("64")
		node.Status.Capacity[gpu] = *resource.NewQuantity(gpusOfNode, resource.DecimalSI)
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &storm{client: client, objects: objects, judge: newJudge()}
	if err := s.judge.start(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		Config: controlplane.SchedulerConfig{Text: profile}, Shim: shim, SocketDirectory: true,
	})
	if err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	over := make(chan struct{})
	var hosts int
	var disturbing sync.WaitGroup
	disturbing.Go(func() { hosts = disturb(t, outboard, over) })
	err = controlplane.InParallel(t.Context(), drivers, *howMany, s.drive)
	if err != nil {
		t.Error(err)
		describe(t, client, outboard)
	}
	close(over)
	disturbing.Wait()
	for _, complaint := range s.judge.complaints() {
		t.Error(complaint)
	}
	select {
	case <-outboard.Shim.Exited():
		t.Errorf("the shim ended:\n%s", outboard.Shim.LogTail())
	default:
	}
	t.Logf("%d gangs with %d pods: %d placed, %d deleted before; %d more host processes, every second one after its predecessor was killed; %.1f s",
		*howMany, s.members.Load(), s.placed.Load(), s.deleted.Load(), hosts, time.Since(began).Seconds())
}

// describe logs what the API server has and what the shim says of it: a storm cannot be repeated.
func describe(t *testing.T, client kubernetes.Interface, outboard *controlplane.Outboard) {
	list, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Log(err)
		return
	}
	for _, pod := range list.Items {
		t.Logf("pod %s, uid %s, version %s: node %q, phase %s, conditions %v",
			pod.Name, pod.UID, pod.ResourceVersion, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Conditions)
	}
	for _, page := range []string{"/queue?limit=100", "/metrics"} {
		response, err := http.Get(outboard.URL() + page)
		if err != nil {
			t.Log(err)
			continue
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		t.Logf("%s: %v\n%s", page, err, text)
	}
}

// disturb lets other host processes take over, and kills some serving ones, until `over` is closed.
func disturb(t *testing.T, outboard *controlplane.Outboard, over <-chan struct{}) (hosts int) {
	for {
		select {
		case <-over:
			return hosts
		case <-time.After(4 * time.Second): // The interval between disturbances.
		}
		before := outboard.Host
		if hosts%2 == 1 {
			before.Kill()
		}
		if err := outboard.StartHost(); err != nil {
			t.Error(err)
			return hosts
		}
		hosts++
	}
}

// gang is created and deleted by a driver.
type gang struct {
	name    string
	dialect int
	min     int
	gpus    int64
	members int
}

func (g gang) pod(i int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", g.name, i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"gang": g.name}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{SchedulerName: "gangs", Containers: []corev1.Container{{Name: "main", Image: "example.com/train",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: *resource.NewQuantity(g.gpus, resource.DecimalSI)}}}}},
	}
	size := fmt.Sprint(g.min)
	switch g.dialect {
	case 0:
		pod.Labels["job-name"] = g.name
		pod.Annotations["outboard/min-replicas"] = size
	case 1:
		pod.Annotations["gang.scheduling.koordinator.sh/name"] = g.name
		pod.Annotations["gang.scheduling.koordinator.sh/min-available"] = size
	case 2:
		pod.Labels["pod-group.scheduling.sigs.k8s.io/name"] = g.name
		pod.Labels["pod-group.scheduling.sigs.k8s.io/min-available"] = size
	case 3:
		pod.Labels["scheduling.x-k8s.io/pod-group"] = g.name
	}
	return pod
}

func (s *storm) drive(ctx context.Context, index int) error {
	random := rand.New(rand.NewPCG(*seed, uint64(index)))
	sizes := []int{1, 2, 2, 3, 4, 4, 5, 8, 8, 12, largest}
	g := gang{name: fmt.Sprintf("g%d", index), dialect: random.IntN(4), members: sizes[random.IntN(len(sizes))]}
	// Any of them fits the empty cluster: one shape, and at most half of all GPUs.
	g.gpus = []int64{1, 1, 2, 4}[random.IntN(4)]
	g.members = min(g.members, int(nodes*gpusOfNode/2/g.gpus))
	g.min = g.members
	if random.IntN(4) == 0 {
		g.min = max(1, g.members/2)
	}
	s.members.Add(int64(g.members))
	s.judge.expect(g.name, g.min)
	if g.dialect == 3 {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
			"metadata": map[string]any{"name": g.name}, "spec": map[string]any{"minMember": int64(g.min)}}}
		if _, err := s.objects.Resource(podGroup).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	pods := s.client.CoreV1().Pods(namespace)
	create := func(ctx context.Context, i int) error {
		_, err := pods.Create(ctx, g.pod(i), metav1.CreateOptions{})
		return err
	}
	if err := controlplane.InParallel(ctx, 4, g.members, create); err != nil {
		return err
	}
	now := int64(0)
	remove := func(ctx context.Context, i int) error {
		err := pods.Delete(ctx, fmt.Sprintf("%s-%d", g.name, i), metav1.DeleteOptions{GracePeriodSeconds: &now})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	chance := random.IntN(10)
	if chance == 0 { // The driver does not wait for this gang.
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond) // A random moment.
		s.judge.excuse(g.name)
		s.deleted.Add(1)
		return controlplane.InParallel(ctx, 4, g.members, remove)
	}
	if chance <= 3 { // A member is recreated, before or after its bind.
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		s.judge.excuse(g.name)
		member := random.IntN(g.members)
		if err := errors.Join(remove(ctx, member), create(ctx, member)); err != nil {
			return err
		}
	}
	if err := s.judge.await(ctx, g.name, g.min); err != nil {
		return err
	}
	s.placed.Add(1)
	time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond) // It runs.
	s.judge.excuse(g.name)
	return controlplane.InParallel(ctx, 4, g.members, remove)
}
