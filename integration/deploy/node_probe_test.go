package deploy_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	probe           = "outboard-node-probe" // namespace, account, role and policy
	islandsKey      = "accelerator.sched.io/gpu-islands"
	podGPUsKey      = "accelerator.sched.io/pod-gpus"
	mixedIslands    = "nvlink 0,1;2;3"                           // of testdata/machines/mixed
	mixedSecondUUID = "GPU-e2d96536-baf2-58d8-af3e-63d8694984cf" // its GPU 1
)

// podResources is the kubelet's server, of the kubelet's own module.
type podResources struct {
	podresourcesv1.UnimplementedPodResourcesListerServer
}

func (podResources) List(context.Context, *podresourcesv1.ListPodResourcesRequest) (*podresourcesv1.ListPodResourcesResponse, error) {
	device := &podresourcesv1.ContainerDevices{ResourceName: "nvidia.com/gpu", DeviceIds: []string{mixedSecondUUID},
		Topology: &podresourcesv1.TopologyInfo{Nodes: []*podresourcesv1.NUMANode{{ID: 1}}}}
	container := &podresourcesv1.ContainerResources{Name: "main", Devices: []*podresourcesv1.ContainerDevices{device}, CpuIds: []int64{1, 2},
		Memory:           []*podresourcesv1.ContainerMemory{{MemoryType: "memory", Size: 1 << 30}},
		DynamicResources: []*podresourcesv1.DynamicResource{{ClaimName: "c", ClaimNamespace: "default"}}}
	return &podresourcesv1.ListPodResourcesResponse{PodResources: []*podresourcesv1.PodResources{
		{Name: "train-0", Namespace: "default", Containers: []*podresourcesv1.ContainerResources{container}},
		{Name: "web", Namespace: "default", Containers: []*podresourcesv1.ContainerResources{{Name: "main"}}}}}, nil
}

// servePodResources returns the socket of such a server.
func (c *cluster) servePodResources() string {
	c.Helper()
	socket := filepath.Join(c.Dir, "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		c.Fatal(err)
	}
	server := grpc.NewServer()
	podresourcesv1.RegisterPodResourcesListerServer(server, podResources{})
	go func() { _ = server.Serve(listener) }()
	c.Cleanup(server.Stop)
	return socket
}

// probePods creates two nodes with GPUs and one without, and returns the DaemonSet's pods, bound in the nodes' order.
func (c *cluster) probePods() []corev1.Pod {
	c.Helper()
	for _, name := range []string{"gpu-1", "gpu-2", "plain"} {
		labels := "kubernetes.io/os: linux"
		if name != "plain" {
			labels += `, nvidia.com/gpu.present: "true"`
		}
		c.applyAll(fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {%s}, annotations: {example.com/other: kept}},
spec: {taints: [{key: nvidia.com/gpu, effect: NoSchedule}]}, status: {capacity: &n {cpu: "8", memory: 8Gi, pods: "110"}, allocatable: *n}}`, name, labels))
	}
	var pods []corev1.Pod
	c.eventually(func() error {
		list, err := c.client.CoreV1().Pods(probe).List(c.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) != 2 {
			err = fmt.Errorf("%d probes on two nodes with GPUs", len(list.Items))
		}
		if err == nil {
			pods = list.Items
		}
		return err
	})
	for i := range pods {
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pods[i].Name, Namespace: probe},
			Target: corev1.ObjectReference{Kind: "Node", Name: fmt.Sprintf("gpu-%d", i+1)}}
		if err := c.client.CoreV1().Pods(probe).Bind(c.Context(), binding, metav1.CreateOptions{}); err != nil {
			c.Fatal(err)
		}
	}
	return pods
}

// runProbe is one round of the program on the node, with a kubeconfig of its own and the machine `mixed`.
func (c *cluster) runProbe(node, kubeconfig, socket string) (string, error) {
	c.Helper()
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		c.Fatal(err)
	}
	command := exec.CommandContext(c.Context(), filepath.Join(bin, probe), "--once", "--node-name", node, "--kubeconfig", kubeconfig,
		"--nvidia-smi", path(c.T, "node_probe/testdata/nvidia-smi"), "--pod-resources", socket)
	command.Env = append(command.Environ(), "FAKE_NVIDIA_SMI=mixed")
	out, err := command.CombinedOutput()
	return string(out), err
}

func (c *cluster) annotations(node string) map[string]string {
	c.Helper()
	object, err := c.client.CoreV1().Nodes().Get(c.Context(), node, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return object.Annotations
}

// The component: a probe writes two annotations of its own Node, with one right, and may do nothing else.
func TestAProbeWritesOnlyToItsNode(t *testing.T) {
	t.Parallel()
	c := newClusterOf(t, controlplane.Options{ControllerManager: true, Audit: true})
	all := kustomized(t, "components/node-probe")
	c.bring(all)
	pods := c.probePods()
	c.policyIsTyped(probe)
	first, nowhere := c.boundToken(probe, probe, &pods[0]), c.boundToken(probe, probe, nil)

	nodes := guarded{probe, func(client kubernetes.Interface, node string, text []byte) error {
		_, err := client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, text, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}}
	mine := `{"metadata":{"annotations":{"` + islandsKey + `":"pcie 0","` + podGPUsKey + `":""}}}`
	// The policy is effective a moment after it is created.
	c.eventually(func() error { return nodes.denied(c.clientWith(first), "gpu-2", mine) })

	socket := c.servePodResources()
	kubeconfig := c.kubeconfigOf("probe", first)
	if out, err := c.runProbe("gpu-1", kubeconfig, socket); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := c.annotations("gpu-1")
	if got[islandsKey] != mixedIslands || got[podGPUsKey] != "default/train-0=1" || got["example.com/other"] != "kept" {
		t.Errorf("annotations after a round: %v", got)
	}
	if out, err := c.runProbe("gpu-2", kubeconfig, socket); err == nil || !strings.Contains(out, "a probe may change only its own Node, not gpu-2") {
		t.Errorf("a probe of another node: %v\n%s", err, out)
	}
	if got := c.annotations("gpu-2"); got[islandsKey] != "" {
		t.Errorf("annotations of another node: %v", got)
	}

	nodes.writesOnly(c, c.clientWith(first), c.clientWith(nowhere), "gpu-1", mine,
		`{"metadata":{"annotations":{"example.com/new":""}}}`,
		`{"metadata":{"labels":{"nvidia.com/gpu.present":null}}}`,
		`{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`,
		`{"spec":{"unschedulable":true}}`,
		`{"spec":{"taints":null}}`)
	// Other users are not concerned.
	if err := nodes.patch(c.client, "gpu-2", []byte(`{"spec":{"unschedulable":true}}`)); err != nil {
		t.Errorf("another user: %v", err)
	}
	c.usesItsRight()
}

// guarded are the objects that an admission policy guards.
type guarded struct {
	policy string
	// patch asks for a merge patch of the named one, as a dry run.
	patch func(client kubernetes.Interface, name string, text []byte) error
}

func (g guarded) denied(client kubernetes.Interface, name, text string) error {
	err := g.patch(client, name, []byte(text))
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+g.policy+"'") {
		return nil
	}
	return fmt.Errorf("%s of %s, want a denial by the policy: %v", text, name, err)
}

// writesOnly: the client may make the patch `mine` of its object, none of `others`, and none that touches what belongs to
// someone else; a token without a pod may not even make `mine`.
func (g guarded) writesOnly(c *cluster, own, nowhere kubernetes.Interface, name, mine string, others ...string) {
	c.Helper()
	if err := g.patch(own, name, []byte(mine)); err != nil {
		c.Errorf("its own annotations: %v", err)
	}
	for _, text := range append(others,
		`{"metadata":{"annotations":{"example.com/other":"changed"}}}`,
		`{"metadata":{"annotations":{"example.com/other":null}}}`,
		`{"metadata":{"annotations":null}}`,
		`{"metadata":{"finalizers":["example.com/keep"]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1d4f7c0e-0000-4000-8000-000000000001"}]}}`) {
		if err := g.denied(own, name, text); err != nil {
			c.Error(err)
		}
	}
	if err := g.denied(nowhere, name, mine); err != nil {
		c.Errorf("a token without a pod: %v", err)
	}
}

// policyIsTyped: the API server finds no mistake in the policy's expressions.
func (c *cluster) policyIsTyped(name string) {
	c.Helper()
	c.eventually(func() error {
		policy, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(c.Context(), name, metav1.GetOptions{})
		if err == nil && policy.Status.ObservedGeneration != policy.Generation {
			err = fmt.Errorf("the policy's types are not checked yet")
		}
		if err == nil && policy.Status.TypeChecking != nil && len(policy.Status.TypeChecking.ExpressionWarnings) > 0 {
			c.Errorf("the policy: %v", policy.Status.TypeChecking.ExpressionWarnings)
		}
		return err
	})
}

// usesItsRight: the role grants what the probe's requests use, and nothing else.
func (c *cluster) usesItsRight() {
	c.Helper()
	role, err := c.client.RbacV1().ClusterRoles().Get(c.Context(), probe, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	if want := (rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}}); len(role.Rules) != 1 || role.Rules[0].String() != want.String() {
		c.Errorf("the role's rules are %v", role.Rules)
	}
	events, err := c.AuditLog("system:serviceaccount:" + probe + ":" + probe)
	if err != nil {
		c.Fatal(err)
	}
	if len(events) == 0 {
		c.Error("no requests in the audit log")
	}
	if i := slices.IndexFunc(events, func(event controlplane.AuditEvent) bool {
		return event.Verb != "patch" || event.ObjectRef == nil || event.ObjectRef.Resource != "nodes" || event.ObjectRef.Subresource != ""
	}); i >= 0 {
		c.Errorf("a request other than a patch of a Node: %+v", events[i])
	}
}
