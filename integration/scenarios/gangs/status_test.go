package gangs

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	statusProfile = `
podMaxBackoffSeconds: 1
profiles:
- schedulerName: gangs
  plugins: {multiPoint: {enabled: [{name: AtomicReplicaCoordinator}], disabled: [{name: DefaultPreemption}]}}
  pluginConfig: [{name: NotServed, args: {served: [spec.schedulingGroup]}}]
`
	statusShim = `
customResources:
- {resource: podgroups.v1alpha2.scheduling.k8s.io, verbs: [updateStatus]}
- {resource: podgroups.v1alpha1.scheduling.x-k8s.io, verbs: [updateStatus]}
`
	readOnlyShim = `
customResources: [{resource: podgroups.v1alpha2.scheduling.k8s.io}]
`
	// The rights that the README of AtomicReplicaCoordinator requires, beside those of the CRD's manifest.
	statusAccess = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pod-group-status}
rules:
- {apiGroups: [scheduling.k8s.io], resources: [podgroups], verbs: [get, list, watch]}
- {apiGroups: [scheduling.k8s.io, scheduling.x-k8s.io], resources: [podgroups/status], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pod-group-status}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pod-group-status}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + controlplane.OutboardUser + `}]
`
)

type statusCluster struct {
	*testing.T
	*controlplane.ControlPlane
	client  kubernetes.Interface
	objects dynamic.Interface
}

func (c *statusCluster) check(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *statusCluster) await(what string, look func() (fault string)) {
	c.Helper()
	fault := ""
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(pause) {
		if fault = look(); fault == "" {
			c.Logf("%s: after %.1f s", what, time.Since(began).Seconds())
			return
		}
	}
	c.Fatalf("%s: %s", what, fault)
}

func (c *statusCluster) addNode(i int) {
	c.Helper()
	node := controlplane.FakeNode(i)
	node.Status.Capacity[gpu] = *resource.NewQuantity(4, resource.DecimalSI)
	_, err := c.client.CoreV1().Nodes().Create(c.Context(), node, metav1.CreateOptions{})
	c.check(err)
}

// addMembers creates pods with two GPUs each, so that two fit a node.
func (c *statusCluster) addMembers(group string, number int, edit func(*corev1.Pod)) (names []string) {
	c.Helper()
	for i := range number {
		pod := gang{name: group, gpus: 2, dialect: -1}.pod(i)
		edit(pod)
		_, err := c.client.CoreV1().Pods(namespace).Create(c.Context(), pod, metav1.CreateOptions{})
		c.check(err)
		names = append(names, pod.Name)
	}
	return names
}

func (c *statusCluster) podGroup(name string) *schedulingv1alpha2.PodGroup {
	c.Helper()
	group, err := c.client.SchedulingV1alpha2().PodGroups(namespace).Get(c.Context(), name, metav1.GetOptions{})
	c.check(err)
	return group
}

func (c *statusCluster) awaitCondition(group string, status metav1.ConditionStatus, reason, part string) (found metav1.Condition) {
	c.Helper()
	c.await(fmt.Sprintf("PodGroup %s is %s", group, status), func() string {
		conditions := c.podGroup(group).Status.Conditions
		condition := apimeta.FindStatusCondition(conditions, schedulingv1alpha2.PodGroupScheduled)
		if condition == nil || condition.Status != status || condition.Reason != reason || !strings.Contains(condition.Message, part) {
			return fmt.Sprintf("%+v", conditions)
		}
		found = *condition
		return ""
	})
	return found
}

// statusOf returns the status of the object of scheduler-plugins.
func (c *statusCluster) statusOf(name string) map[string]any {
	c.Helper()
	object, err := c.objects.Resource(podGroup).Namespace(namespace).Get(c.Context(), name, metav1.GetOptions{})
	c.check(err)
	status, _, err := unstructured.NestedMap(object.Object, "status")
	c.check(err)
	return status
}

func (c *statusCluster) awaitPhase(name, phase string) {
	c.Helper()
	c.await(fmt.Sprintf("PodGroup %s is %s", name, phase), func() string {
		if status := c.statusOf(name); status["phase"] != phase {
			return fmt.Sprint(status)
		}
		return ""
	})
}

// awaitReason waits until each member has the reason for its wait in its condition and in an event.
func (c *statusCluster) awaitReason(members []string, part string) {
	c.Helper()
	c.await(members[0]+" and its siblings have the reason", func() string {
		events, err := c.client.EventsV1().Events(namespace).List(c.Context(), metav1.ListOptions{})
		c.check(err)
		inEvents := map[string]bool{}
		for _, event := range events.Items {
			if event.Reason == "FailedScheduling" && strings.Contains(event.Note, part) {
				inEvents[event.Regarding.Name] = true
			}
		}
		for _, name := range members {
			pod, err := c.client.CoreV1().Pods(namespace).Get(c.Context(), name, metav1.GetOptions{})
			c.check(err)
			said := false
			for _, condition := range pod.Status.Conditions {
				said = said || condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
					condition.Reason == corev1.PodReasonUnschedulable && strings.Contains(condition.Message, part)
			}
			if !said || !inEvents[name] {
				return fmt.Sprintf("%s: in an event: %v; %+v", name, inEvents[name], pod.Status.Conditions)
			}
		}
		return ""
	})
}

func (c *statusCluster) awaitBound(members []string) {
	c.Helper()
	c.await(members[0]+" and its siblings are bound", func() string {
		for _, name := range members {
			pod, err := c.client.CoreV1().Pods(namespace).Get(c.Context(), name, metav1.GetOptions{})
			c.check(err)
			if pod.Spec.NodeName == "" {
				return fmt.Sprintf("%s: %+v", name, pod.Status.Conditions)
			}
		}
		return ""
	})
}

// TestPodGroupStatus: groups wait with a reason in their status, and start when there is room, also in their status,
// although their host is killed and others write there.
func TestPodGroupStatus(t *testing.T) {
	t.Parallel()
	if _, err := controlplane.OutboardDirectory(); err != nil {
		t.Fatal(err)
	}
	c := &statusCluster{T: t, ControlPlane: controlplane.ForTest(t, controlplane.Options{PodGroups: true})}
	var err error
	c.client, err = c.Client()
	c.check(err)
	c.objects, err = c.Dynamic()
	c.check(err)
	c.check(c.Apply(t.Context(), podGroups))
	c.check(c.Apply(t.Context(), statusAccess))
	c.await("the custom resource is served", func() string {
		if _, err := c.objects.Resource(podGroup).List(t.Context(), metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	_, err = c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	c.addNode(0)
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{Text: statusProfile}, Shim: statusShim})
	c.check(err)
	defer outboard.Stop()

	newPodGroup := func(name string) {
		group := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: schedulingv1alpha2.PodGroupSpec{SchedulingPolicy: schedulingv1alpha2.PodGroupSchedulingPolicy{
				Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: 3}}}}
		_, err := c.client.SchedulingV1alpha2().PodGroups(namespace).Create(t.Context(), group, metav1.CreateOptions{})
		c.check(err)
	}
	inPodGroup := func(name string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} }
	}
	newPodGroup("upstream")
	for name, spec := range map[string]string{"labelled": `{minMember: 3}`, "large": `{minMember: 2, minResources: {nvidia.com/gpu: 100}}`} {
		c.check(c.Apply(t.Context(), fmt.Sprintf(
			`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: %s, namespace: %s}, spec: %s}`, name, namespace, spec)))
	}
	const why = "2 of 3 members fit; 1 Insufficient nvidia.com/gpu"
	upstream := c.addMembers("upstream", 3, inPodGroup("upstream"))
	labelled := c.addMembers("labelled", 3, func(pod *corev1.Pod) { pod.Labels["scheduling.x-k8s.io/pod-group"] = "labelled" })
	large := c.addMembers("large", 2, func(pod *corev1.Pod) { pod.Labels["scheduling.x-k8s.io/pod-group"] = "large" })
	waiting := c.awaitCondition("upstream", metav1.ConditionFalse, schedulingv1alpha2.PodGroupReasonUnschedulable, why)
	c.awaitPhase("labelled", "Pending")
	c.awaitPhase("large", "Pending")
	c.awaitReason(upstream, `gang "upstream": `+why)
	c.awaitReason(labelled, `gang "labelled": `+why)
	c.awaitReason(large, `gang "large": 4 of 100 nvidia.com/gpu are free (minResources)`)

	// Others write to the status, too; then the host is killed, and there is room.
	group := c.podGroup("upstream")
	apimeta.SetStatusCondition(&group.Status.Conditions, metav1.Condition{
		Type: schedulingv1alpha2.DisruptionTarget, Status: metav1.ConditionFalse, Reason: "Quiet"})
	_, err = c.client.SchedulingV1alpha2().PodGroups(namespace).UpdateStatus(t.Context(), group, metav1.UpdateOptions{})
	c.check(err)
	_, err = c.objects.Resource(podGroup).Namespace(namespace).Patch(t.Context(), "labelled", types.MergePatchType,
		[]byte(`{"status": {"occupiedBy": "gangs/another", "failed": 1}}`), metav1.PatchOptions{}, "status")
	c.check(err)
	outboard.Host.Kill()
	c.check(outboard.StartHost())
	c.addNode(1)
	c.addNode(2)
	c.awaitBound(upstream)
	c.awaitBound(labelled)
	scheduled := c.awaitCondition("upstream", metav1.ConditionTrue, "Scheduled", "")
	if !waiting.LastTransitionTime.Before(&scheduled.LastTransitionTime) {
		t.Errorf("scheduled at %s, although waiting since %s", scheduled.LastTransitionTime, waiting.LastTransitionTime)
	}
	if apimeta.FindStatusCondition(c.podGroup("upstream").Status.Conditions, schedulingv1alpha2.DisruptionTarget) == nil {
		t.Error("the foreign condition is lost")
	}
	c.awaitPhase("labelled", "Scheduling")
	if status := c.statusOf("labelled"); status["occupiedBy"] != "gangs/another" || status["failed"] != int64(1) {
		t.Errorf("the foreign fields are lost: %v", status)
	}
	c.awaitReason(large, "0 of 100 nvidia.com/gpu are free (minResources)")

	// A shim without write access logs that once, and schedules.
	outboard.Stop()
	reader, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		Name: "-reader", Config: controlplane.SchedulerConfig{Text: statusProfile}, Shim: readOnlyShim})
	c.check(err)
	defer reader.Stop()
	newPodGroup("later")
	later := c.addMembers("later", 3, inPodGroup("later"))
	c.awaitReason(later, `gang "later": 0 of 3 members fit`)
	c.addNode(3)
	c.addNode(4)
	c.awaitBound(later)
	if status := c.podGroup("later").Status; len(status.Conditions) > 0 {
		t.Errorf("a shim without write access wrote %+v", status)
	}
	text, err := os.ReadFile(reader.Shim.LogPath)
	c.check(err)
	const warning = "AtomicReplicaCoordinator writes nothing to podgroups.v1alpha2.scheduling.k8s.io"
	if !strings.Contains(string(text), warning) {
		t.Errorf("missing in the log: %q\n%s", warning, reader.Shim.LogTail())
	}
	if strings.Contains(string(text), "do not allow that") {
		t.Errorf("a rejected write counts as an invalid answer:\n%s", reader.Shim.LogTail())
	}
}
