package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	probeNamespace = "barrier"
	// A pod's first backoff is 1 s and ends at a full second, so after at most two: an unwanted retry has happened by
	// then.
	quietTime    = 2100 * time.Millisecond
	awaitTimeout = 20 * time.Second
)

// Stage is one control plane with one scheduler, on which scenarios are played one after another.
type Stage struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	probes  int
}

// NewStage prepares a control plane whose scheduler already runs.
func NewStage(ctx context.Context, c *controlplane.ControlPlane) (*Stage, error) {
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	dynamicClient, err := c.Dynamic()
	if err != nil {
		return nil, err
	}
	s := &Stage{client: client, dynamic: dynamicClient}
	return s, s.createNamespace(ctx, probeNamespace)
}

func (s *Stage) createNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := s.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

// Play plays one scenario and returns its transcript. It leaves no nodes and no pods.
func (s *Stage) Play(ctx context.Context, scenario *Scenario) (transcript []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.createNamespace(ctx, scenario.Name); err != nil {
		return nil, err
	}
	r, err := startRecorder(ctx, s.client, scenario.Name)
	if err != nil {
		return nil, err
	}
	for i, step := range scenario.Steps {
		if err := s.step(ctx, r, scenario.Name, &step); err != nil {
			return r.transcript(), fmt.Errorf("step %d: %w", i+1, err)
		}
		if step.Create != nil || step.Delete != nil || step.Patch != nil {
			r.touch() // Its effects take a moment to appear.
		}
	}
	if err := r.waitQuiet(ctx); err != nil {
		return r.transcript(), err
	}
	transcript = r.transcript()
	return transcript, s.clean(ctx, scenario.Name)
}

func (s *Stage) step(ctx context.Context, r *recorder, namespace string, step *Step) error {
	switch {
	case step.Create != nil:
		return s.create(ctx, namespace, step.Create)
	case step.Delete != nil:
		return s.resource(step.Delete, namespace).Delete(ctx, step.Delete.Name, deleteNow)
	case step.Patch != nil:
		return s.patch(ctx, namespace, step.Patch)
	case step.Await != nil:
		if err := poll(ctx, func() bool { return r.holds(step.Await) }); err != nil {
			return fmt.Errorf("await %+v: %w", *step.Await, err)
		}
		return nil
	default:
		return r.waitQuiet(ctx)
	}
}

var deleteNow = metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}

func (s *Stage) resource(target *Target, namespace string) dynamic.ResourceInterface {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(cmp.Or(target.APIVersion, "v1"))
	object.SetKind(target.Kind)
	return controlplane.Resource(s.dynamic, object, namespace)
}

func (s *Stage) create(ctx context.Context, namespace string, objects []Object) error {
	unseen := "" // the last node that the scheduler may not have seen yet
	for _, object := range objects {
		object := object.complete()
		if unseen != "" && object.GetKind() == "Pod" {
			if err := s.waitUntilSeen(ctx, unseen); err != nil {
				return fmt.Errorf("the scheduler does not see %s: %w", unseen, err)
			}
			unseen = ""
		}
		resource := controlplane.Resource(s.dynamic, object, namespace)
		if _, err := resource.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if object.GetKind() == "Node" {
			unseen = object.GetName()
		}
	}
	return nil
}

// waitUntilSeen lets the scheduler bind a pod that fits only this node and tolerates everything. Nodes arrive in
// order, so then the scheduler has seen all earlier nodes, too. The pod is deleted before any other is created, and
// pods arrive in order.
func (s *Stage) waitUntilSeen(ctx context.Context, node string) error {
	s.probes++
	name := fmt.Sprintf("probe-%d", s.probes)
	pods := s.client.CoreV1().Pods(probeNamespace)
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{{
						Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
					}},
				}}},
			}},
			Containers: []corev1.Container{{Name: "main", Image: "example.com/probe"}},
		},
	}
	if _, err := pods.Create(ctx, probe, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, awaitTimeout, true, func(ctx context.Context) (bool, error) {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName != "", err
	})
	if err != nil {
		return err
	}
	return pods.Delete(ctx, name, deleteNow)
}

func (s *Stage) patch(ctx context.Context, namespace string, patch *Patch) error {
	data, err := json.Marshal(patch.Patch)
	if err != nil {
		return err
	}
	var subresources []string
	if patch.Subresource != "" {
		subresources = append(subresources, patch.Subresource)
	}
	_, err = s.resource(&patch.Target, namespace).Patch(ctx, patch.Name, types.MergePatchType, data, metav1.PatchOptions{},
		subresources...)
	return err
}

func (r *recorder) waitQuiet(ctx context.Context) error {
	if err := poll(ctx, func() bool { return r.quietFor() >= quietTime }); err != nil {
		return fmt.Errorf("changes do not end: %w", err)
	}
	return nil
}

func poll(ctx context.Context, done func() bool) error {
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, awaitTimeout, true,
		func(context.Context) (bool, error) { return done(), nil })
}

// clean deletes the pods, then the nodes, so that the next scenario starts with an empty cluster. The namespace
// stays: only a controller could delete it, and names are not reused.
func (s *Stage) clean(ctx context.Context, namespace string) error {
	pods := s.client.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pod := range list.Items {
		if err := pods.Delete(ctx, pod.Name, deleteNow); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if err := s.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}
