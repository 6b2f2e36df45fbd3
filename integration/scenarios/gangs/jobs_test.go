package gangs

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	jobNamespace = "job-gangs"
	jobShim      = `
customResources: [{resource: jobs.v1.batch}]
`
	// The right that groups.md of AtomicReplicaCoordinator requires.
	jobAccess = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: job-gangs}
rules:
- {apiGroups: [batch], resources: [jobs], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: job-gangs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: job-gangs}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + controlplane.OutboardUser + `}]
`
)

// createJob creates an Indexed Job whose pods need two GPUs each, so that two fit a node.
func (c *statusCluster) createJob(name string, size int32, labels map[string]string) {
	c.Helper()
	mode := batchv1.IndexedCompletion
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: batchv1.JobSpec{
			Parallelism: &size, Completions: &size, CompletionMode: &mode,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				SchedulerName: "gangs",
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "main", Image: "pause",
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("2")}},
				}},
			}},
		},
	}
	_, err := c.client.BatchV1().Jobs(jobNamespace).Create(c.Context(), job, metav1.CreateOptions{})
	c.check(err)
}

// podsOf returns the Job's pods that have not ended, and how many of them are bound.
func (c *statusCluster) podsOf(job string) (pods []corev1.Pod, bound int) {
	c.Helper()
	list, err := c.client.CoreV1().Pods(jobNamespace).List(c.Context(), metav1.ListOptions{LabelSelector: "job-name=" + job})
	c.check(err)
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded || pod.DeletionTimestamp != nil {
			continue
		}
		pods = append(pods, pod)
		if pod.Spec.NodeName != "" {
			bound++
		}
	}
	return pods, bound
}

func (c *statusCluster) awaitRunning(job string, want int) {
	c.Helper()
	c.await(fmt.Sprintf("%d pods of Job %s are bound", want, job), func() string {
		if pods, bound := c.podsOf(job); len(pods) != want || bound != want {
			return fmt.Sprintf("%d of %d", bound, len(pods))
		}
		return ""
	})
}

// TestJobGangs: Jobs are gangs of their parallelism in a namespace that asks for it, without an annotation.
func TestJobGangs(t *testing.T) {
	t.Parallel()
	if _, err := controlplane.OutboardDirectory(); err != nil {
		t.Fatal(err)
	}
	c := &statusCluster{T: t, ControlPlane: controlplane.ForTest(t, controlplane.Options{Controllers: []string{"job-controller"}})}
	var err error
	c.client, err = c.Client()
	c.check(err)
	c.check(c.Apply(t.Context(), jobAccess))
	c.check(c.Apply(t.Context(), `{apiVersion: v1, kind: Namespace, metadata: {name: `+jobNamespace+`, labels: {outboard/gang: "true"}}}`))
	c.addNode(0)
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{Text: statusProfile}, Shim: jobShim})
	c.check(err)
	defer outboard.Stop()

	// Two of three would fit. A part would be bound at once; the reason comes after the search for the whole gang.
	c.createJob("train", 3, nil)
	c.await("the members of Job train have the reason", func() string {
		pods, bound := c.podsOf("train")
		if bound > 0 {
			t.Fatalf("%d of 3 members are bound", bound)
		}
		for _, pod := range pods {
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodScheduled && strings.Contains(condition.Message, `gang "train": 2 of 3 members fit`) {
					return ""
				}
			}
		}
		return fmt.Sprintf("%d pods without it", len(pods))
	})
	c.addNode(1)
	c.awaitRunning("train", 3)

	// A member fails: the Job controller replaces it after a backoff, and the new one does not wait for the others.
	pods, _ := c.podsOf("train")
	failed := pods[0].Name
	_, err = c.client.CoreV1().Pods(jobNamespace).Patch(t.Context(), failed, types.MergePatchType,
		[]byte(`{"status": {"phase": "Failed"}}`), metav1.PatchOptions{}, "status")
	c.check(err)
	c.await("the failed member has a successor with a place", func() string {
		pods, bound := c.podsOf("train")
		for _, pod := range pods {
			if pod.Name == failed {
				return "it is there yet"
			}
		}
		if bound != 3 {
			return fmt.Sprintf("%d of 3 are bound", bound)
		}
		return ""
	})

	// An elastic Job: parallelism and completions change together, as the API server requires of Indexed Jobs.
	_, err = c.client.BatchV1().Jobs(jobNamespace).Patch(t.Context(), "train", types.MergePatchType,
		[]byte(`{"spec": {"parallelism": 4, "completions": 4}}`), metav1.PatchOptions{})
	c.check(err)
	c.awaitRunning("train", 4)

	// The Job's own label excludes it: there is room for one of two.
	one := controlplane.FakeNode(2)
	one.Status.Capacity[gpu] = resource.MustParse("2")
	_, err = c.client.CoreV1().Nodes().Create(t.Context(), one, metav1.CreateOptions{})
	c.check(err)
	c.createJob("single", 2, map[string]string{"outboard/gang": "false"})
	c.await("one pod of Job single is bound", func() string {
		if pods, bound := c.podsOf("single"); len(pods) != 2 || bound != 1 {
			return fmt.Sprintf("%d of %d", bound, len(pods))
		}
		return ""
	})
}
