package testcluster_test

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	prometheusoperator "outboard.dev/integration/prometheus_operator"
	testcluster "outboard.dev/integration/test_cluster"
)

// With NetworkPolicies enforced, the installation with the most of them works, and its pods accept only the connections
// that docs/operations names.
func TestNetworkPolicies(t *testing.T) {
	images := imageArchives(t)
	c := testcluster.ForTest(t, testcluster.Options{Nodes: 2, Images: images})
	if err := prometheusoperator.ApplyResources(t.Context(), c.ControlPlane); err != nil {
		t.Fatal(err)
	}
	i := newInstallation(t, c, "outboard-scheduler", "deployment/outboard-host", "deployment/outboard-shim")
	i.createSecrets()
	i.kubectl("apply", "-k", filepath.Join(i.root, "deploy", "kustomize", "mtls-monitored"))
	i.kubectl("create", "namespace", "monitoring")
	other, monitoring := i.idlePod("default"), i.idlePod("monitoring")
	i.rolledOut()
	shim, host := i.podOf("shim"), i.podOf("host")
	// Without enforcement all is open: the checks below can fail.
	for _, port := range []int{10271, 10273} {
		if err := c.Connect(t.Context(), other, host.Status.PodIP, port); err != nil {
			t.Fatalf("before policies are enforced: %v", err)
		}
	}

	if err := c.EnforcePolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	apiServer, kubelet := server.Hostname(), c.Nodes[0].Address.String()
	if shim.Spec.NodeName == c.Nodes[0].Name { // A pod may always call its own node.
		kubelet = c.Nodes[1].Address.String()
	}
	for _, connection := range []struct {
		what    string
		from    *corev1.Pod
		to      string
		port    int
		allowed bool
	}{
		{"Prometheus reads the shim's metrics", monitoring, shim.Status.PodIP, 10270, true},
		{"Prometheus reads the host's metrics", monitoring, host.Status.PodIP, 10273, true},
		{"Prometheus reads the metrics of the host for claims", monitoring, host.Status.PodIP, 10274, true},
		{"Prometheus calls no host", monitoring, host.Status.PodIP, 10271, false},
		{"other pods do not read the shim's pages", other, shim.Status.PodIP, 10270, false},
		{"other pods do not read the host's metrics", other, host.Status.PodIP, 10273, false},
		{"other pods call no host", other, host.Status.PodIP, 10271, false},
		{"other pods call no host for claims", other, host.Status.PodIP, 10275, false},
		{"other pods call the API server", other, apiServer, 6443, true},
		{"other pods call kubelets", other, kubelet, 10250, true},
		{"a shim calls hosts", shim, host.Status.PodIP, 10271, true},
		{"a shim calls hosts for claims", shim, host.Status.PodIP, 10275, true},
		{"a shim calls the API server", shim, apiServer, 6443, true},
		{"a shim calls no kubelet", shim, kubelet, 10250, false},
		{"a host calls no API server", host, apiServer, 6443, false},
		{"a host calls no shim", host, shim.Status.PodIP, 10270, false},
	} {
		i.eventually(connection.what, func(ctx context.Context) error { // kube-router applies changes some time later.
			if err := c.Connect(ctx, connection.from, connection.to, connection.port); (err == nil) != connection.allowed {
				return fmt.Errorf("to %s:%d, want allowed %v: %w", connection.to, connection.port, connection.allowed, err)
			}
			return nil
		})
	}
	i.timed("the first pod runs", i.runFirstPod)
	leader := i.mustLead()
	i.kubectl("delete", "pod", leader.Name, "--namespace", namespace, "--wait=false")
	i.anotherLeads(leader)
}

// idlePod runs a pod that only runs, placed by kube-scheduler.
func (i *installation) idlePod(namespace string) *corev1.Pod {
	i.Helper()
	i.createPod(namespace, "idle", corev1.DefaultSchedulerName, nil)
	i.kubectl("wait", "pod/idle", "--namespace", namespace, "--for=condition=Ready", "--timeout", patience.String())
	pod, err := i.client.CoreV1().Pods(namespace).Get(i.Context(), "idle", metav1.GetOptions{})
	if err != nil {
		i.Fatal(err)
	}
	return pod
}

// podOf returns a running pod of a component of the installation.
func (i *installation) podOf(component string) *corev1.Pod {
	i.Helper()
	pods, err := i.client.CoreV1().Pods(namespace).List(i.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + component})
	if err != nil || len(pods.Items) == 0 {
		i.Fatalf("pods of %s: %v %v", component, pods.Items, err)
	}
	return &pods.Items[0]
}
