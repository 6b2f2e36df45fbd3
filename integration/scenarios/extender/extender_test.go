// Package extender_test lets the real kube-scheduler place pods with Outboard as its HTTP extender.
package extender_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"sigs.k8s.io/yaml"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	example = "../../../deploy/examples/extender"
	patient = 30 * time.Second
	a100    = "NVIDIA-A100-SXM4-80GB"
)

// cluster is a control plane with the three nodes of the example: two with A100s at NUMA nodes 0 and 1, one with
// V100s.
type cluster struct {
	*controlplane.ControlPlane
	client kubernetes.Interface
}

func newCluster(t *testing.T) cluster {
	t.Helper()
	c := cluster{ControlPlane: controlplane.ForTest(t, controlplane.Options{})}
	var err error
	if c.client, err = c.Client(); err != nil {
		t.Fatal(err)
	}
	for i, labels := range []map[string]string{
		{"nvidia.com/gpu.product": a100, "nvidia.com/gpu.numa": "0"},
		{"nvidia.com/gpu.product": a100, "nvidia.com/gpu.numa": "1"},
		{"nvidia.com/gpu.product": "Tesla-V100-PCIE-16GB", "nvidia.com/gpu.numa": "0"},
	} {
		resources := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
			corev1.ResourcePods: resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8"),
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i+1), Labels: labels},
			Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
		}
		if _, err := c.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// documents of a file of the example.
func documents(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(example, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}

// startShim starts Outboard with the example's configuration, edited; shims of one control plane need different
// names.
func (c cluster) startShim(t *testing.T, name, address string, edit func(extender map[string]any), config controlplane.SchedulerConfig) *controlplane.Outboard {
	t.Helper()
	scheduler, shim := shimConfig(t, "outboard.yaml", address, "extender")
	if edit != nil {
		edit(shim["extender"].(map[string]any))
	}
	config.Text = scheduler
	return c.runShim(t, shim, controlplane.OutboardOptions{Config: config, Name: name})
}

// shimConfig returns the two documents of an example, for this address without TLS; of the second one only these fields.
func shimConfig(t *testing.T, file, address string, fields ...string) (scheduler string, shim map[string]any) {
	t.Helper()
	parts := documents(t, file)
	if err := yaml.Unmarshal([]byte(parts[1]), &shim); err != nil {
		t.Fatal(err)
	}
	extender := shim["extender"].(map[string]any)
	extender["address"] = address
	delete(extender, "tls")
	maps.DeleteFunc(shim, func(field string, _ any) bool { return !slices.Contains(fields, field) })
	return parts[0], shim
}

// runShim starts Outboard until the test ends.
func (c cluster) runShim(t *testing.T, shim map[string]any, options controlplane.OutboardOptions) *controlplane.Outboard {
	t.Helper()
	text, err := yaml.Marshal(shim)
	if err != nil {
		t.Fatal(err)
	}
	options.Shim, options.ShimArgs = string(text), []string{"--v=2"}
	outboard, err := c.StartOutboard(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the shim's log:\n%s", outboard.Shim.LogTail())
		}
		outboard.Stop()
	})
	return outboard
}

// startKubeScheduler starts the real kube-scheduler with the example's extender, edited.
func (c cluster) startKubeScheduler(t *testing.T, edit func(extender map[string]any)) *controlplane.KubeScheduler {
	t.Helper()
	return c.runKubeScheduler(t, "kube-scheduler.yaml", edit)
}

// runKubeScheduler starts it with a file of the example, each of whose extenders is without TLS and edited, until the
// test ends.
func (c cluster) runKubeScheduler(t *testing.T, file string, edit func(extender map[string]any)) *controlplane.KubeScheduler {
	t.Helper()
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(documents(t, file)[0]), &config); err != nil {
		t.Fatal(err)
	}
	for _, entry := range config["extenders"].([]any) {
		extender := entry.(map[string]any)
		delete(extender, "tlsConfig")
		extender["enableHTTPS"] = false
		edit(extender)
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := c.StartKubeScheduler(t.Context(), controlplane.SchedulerConfig{Text: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of kube-scheduler's log:\n%s", scheduler.Process.LogTail())
		}
		scheduler.Stop()
	})
	return scheduler
}

func gpuPod(name, model string, gpus int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/train:1",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)}},
		}}},
	}
	if model != "" {
		pod.Labels = map[string]string{"accelerator.sched.io/gpu-model": model}
	}
	return pod
}

func (c cluster) create(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := c.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// await polls until `done` returns no error.
func await(t *testing.T, done func() error) {
	t.Helper()
	end := time.Now().Add(patient)
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c cluster) awaitNode(t *testing.T, pod, node string) {
	t.Helper()
	await(t, func() error {
		got, err := c.client.CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got.Spec.NodeName == "" {
			return fmt.Errorf("pod %s is pending: %+v", pod, got.Status.Conditions)
		}
		if got.Spec.NodeName != node && node != "any" {
			t.Fatalf("pod %s went to %s, not to %s", pod, got.Spec.NodeName, node)
		}
		return nil
	})
}

// awaitReason waits until the pod's PodScheduled condition is false with `reason` in its message.
func (c cluster) awaitReason(t *testing.T, pod, reason string) {
	t.Helper()
	await(t, func() error {
		got, err := c.client.CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range got.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && strings.Contains(condition.Message, reason) {
				return nil
			}
		}
		return fmt.Errorf("pod %s: %q is not in %+v", pod, reason, got.Status.Conditions)
	})
}

func (c cluster) remove(t *testing.T, pod string) {
	t.Helper()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := c.client.CoreV1().Pods("default").Delete(t.Context(), pod, now); err != nil {
		t.Fatal(err)
	}
	await(t, func() error {
		_, err := c.client.CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("pod %s still exists (%v)", pod, err)
	})
}

// post sends a request to the extender as kube-scheduler does.
func post(ctx context.Context, client *http.Client, url string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// ask posts a request and decodes the answer.
func ask[T any](t *testing.T, url string, question any) (answer T) {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	status, got, err := post(t.Context(), http.DefaultClient, url, body)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %s (%v)", url, status, got, err)
	}
	if err := json.Unmarshal(got, &answer); err != nil {
		t.Fatalf("%s: %v\n%s", url, err, got)
	}
	return answer
}

// checkExample sends a pod of the example in one of the two forms: two nodes pass, one has the wrong model, and the
// one at NUMA node 0 is better.
func (c cluster) checkExample(t *testing.T, url string, pod *corev1.Pod, byName bool) {
	t.Helper()
	list, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	args := extenderv1.ExtenderArgs{Pod: pod}
	if byName {
		args.NodeNames = &[]string{"node-1", "node-2", "node-3", "no-such-node"}
	} else {
		stranger := list.Items[0].DeepCopy()
		stranger.Name = "no-such-node"
		args.Nodes = &corev1.NodeList{Items: append(list.Items, *stranger)}
	}
	var got extenderv1.ExtenderFilterResult
	// A shim is ready before its host is.
	await(t, func() error {
		if got = ask[extenderv1.ExtenderFilterResult](t, url+"/filter", args); got.Error != "" {
			return fmt.Errorf("filter: %s", got.Error)
		}
		return nil
	})
	var passed []string
	if byName {
		passed = *got.NodeNames
	} else {
		for _, node := range got.Nodes.Items {
			passed = append(passed, node.Name)
			if original := list.Items[len(passed)-1]; fmt.Sprint(node) != fmt.Sprint(original) {
				t.Errorf("node %s was changed:\n%v\n%v", node.Name, node, original)
			}
		}
	}
	if strings.Join(passed, " ") != "node-1 node-2" {
		t.Errorf("passed: %v", passed)
	}
	if len(got.FailedAndUnresolvableNodes) != 1 || got.FailedAndUnresolvableNodes["node-3"] != "GPU model mismatch" {
		t.Errorf("failed and unresolvable: %v", got.FailedAndUnresolvableNodes)
	}
	if len(got.FailedNodes) != 1 || got.FailedNodes["no-such-node"] == "" {
		t.Errorf("failed: %v", got.FailedNodes)
	}
	scores := map[string]int64{}
	for _, priority := range ask[extenderv1.HostPriorityList](t, url+"/prioritize", args) {
		scores[priority.Host] = priority.Score
	}
	if want := map[string]int64{"node-1": 10, "node-2": 1, "node-3": 0, "no-such-node": 0}; fmt.Sprint(scores) != fmt.Sprint(want) {
		t.Errorf("scores: %v, not %v", scores, want)
	}
}

// TestGPUModels runs the example in both forms: training-pod-1 goes to node-1.
func TestGPUModels(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	address := controlplane.FreeAddress(t)
	c.startShim(t, "", address, nil, controlplane.SchedulerConfig{})
	for _, byName := range []bool{false, true} {
		t.Run(fmt.Sprintf("nodeCacheCapable=%t", byName), func(t *testing.T) {
			// No scheduler is running yet.
			c.checkExample(t, "http://"+address, c.create(t, gpuPod("training-pod-1", a100, 8)), byName)
			scheduler := c.startKubeScheduler(t, func(extender map[string]any) {
				extender["urlPrefix"] = "http://" + address + "/"
				extender["nodeCacheCapable"] = byName
			})
			defer scheduler.Stop()
			c.awaitNode(t, "training-pod-1", "node-1")
			c.create(t, gpuPod("training-pod-2", strings.ToLower(a100), 8))
			c.awaitNode(t, "training-pod-2", "node-2")
			c.create(t, gpuPod("training-pod-3", "NVIDIA-H100-80GB-HBM3", 1))
			c.awaitReason(t, "training-pod-3", "1 GPU model mismatch")
			c.create(t, gpuPod("any-model", "", 8))
			c.awaitNode(t, "any-model", "node-3")
			for _, pod := range []string{"training-pod-1", "training-pod-2", "training-pod-3", "any-model"} {
				c.remove(t, pod)
			}
		})
	}
}

// TestExtenderAway: without the extender kube-scheduler schedules, or not, depending on `ignorable`.
func TestExtenderAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	address := controlplane.FreeAddress(t)
	for _, ignorable := range []bool{false, true} {
		t.Run(fmt.Sprintf("ignorable=%t", ignorable), func(t *testing.T) {
			scheduler := c.startKubeScheduler(t, func(extender map[string]any) {
				extender["urlPrefix"], extender["ignorable"] = "http://"+address, ignorable
			})
			defer scheduler.Stop()
			name := fmt.Sprintf("training-%t", ignorable)
			c.create(t, gpuPod(name, "NVIDIA-H100-80GB-HBM3", 1))
			if ignorable {
				c.awaitNode(t, name, "any")
				return
			}
			c.awaitReason(t, name, "connection refused")
			c.remove(t, name)
			c.create(t, gpuPod("training", a100, 1))
			c.awaitReason(t, "training", "connection refused")
			// It continues when the extender is available.
			outboard := c.startShim(t, "", address, nil, controlplane.SchedulerConfig{})
			c.awaitNode(t, "training", "node-1")
			// Without its host the shim answers with an error that names the host.
			outboard.Host.Kill()
			await(t, func() error {
				pod := c.create(t, gpuPod("without-host", a100, 1))
				defer c.remove(t, "without-host")
				args := extenderv1.ExtenderArgs{Pod: pod, NodeNames: &[]string{"node-1"}}
				if got := ask[extenderv1.ExtenderFilterResult](t, "http://"+address+"/filter", args); !strings.Contains(got.Error, `plugin host "default"`) {
					return fmt.Errorf("error: %q", got.Error)
				}
				return nil
			})
			outboard.Stop()
		})
	}
}

// TestBadRequests: bodies that no kube-scheduler sends are rejected, and good ones are answered afterwards.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	address := controlplane.FreeAddress(t)
	c.startShim(t, "", address, nil, controlplane.SchedulerConfig{})
	url := "http://" + address
	tooLong := append([]byte(`{"Pod":"`), bytes.Repeat([]byte{' '}, 64<<20)...)
	for _, bad := range []struct {
		verb   string
		body   []byte
		status int
		says   string
	}{
		{"filter", []byte(`{"Pod":`), http.StatusBadRequest, "the request is malformed: byte 7"},
		{"filter", nil, http.StatusBadRequest, "malformed"},
		{"prioritize", []byte(`{"Pod":{"metadata":{"uid":"u"}}}`), http.StatusBadRequest, "neither Nodes nor NodeNames"},
		{"preempt", []byte(`[]`), http.StatusBadRequest, "malformed"},
		{"bind", []byte(`{"PodUID":"u"}`), http.StatusBadRequest, "has no node"},
		{"filter", tooLong, http.StatusRequestEntityTooLarge, "longer than 67108864 bytes"},
		{"scale", []byte(`{}`), http.StatusNotFound, "404"},
	} {
		status, got, err := post(t.Context(), http.DefaultClient, url+"/"+bad.verb, bad.body)
		if err != nil && bad.status == http.StatusRequestEntityTooLarge {
			continue // The connection ended during the upload: the body is not read.
		}
		if err != nil || status != bad.status || !strings.Contains(string(got), bad.says) {
			t.Errorf("%s with %.40q: %d %s (%v), not %d %s", bad.verb, bad.body, status, got, err, bad.status, bad.says)
		}
	}
	// The shim waits for an unknown pod, then reports that it is unknown.
	stranger := gpuPod("stranger", a100, 1)
	stranger.UID = types.UID("stranger")
	args := extenderv1.ExtenderArgs{Pod: stranger, NodeNames: &[]string{"node-1"}}
	if got := ask[extenderv1.ExtenderFilterResult](t, url+"/filter", args); !strings.Contains(got.Error, "is unknown") {
		t.Errorf("error: %q", got.Error)
	}
	c.checkExample(t, url, c.create(t, gpuPod("training-pod-1", a100, 8)), true)
}
