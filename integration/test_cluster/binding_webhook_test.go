package testcluster_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	certmanager "outboard.dev/integration/cert_manager"
	testcluster "outboard.dev/integration/test_cluster"
)

// The shipped webhook beside kube-scheduler, with both ways to a certificate that docs/beside-kube-scheduler.md has, and
// with NetworkPolicies enforced: the API server asks the leader's pod about the binds of others, also after the leader has
// changed. This API server resolves the Service to the leader's EndpointSlice; others call the Service's address, so that
// must lead to the leader, too.
func TestTheBindingWebhook(t *testing.T) {
	images := imageArchives(t)
	c := testcluster.ForTest(t, testcluster.Options{Nodes: 2, Images: images})
	if err := certmanager.Start(t.Context(), c.ControlPlane, t.Logf); err != nil {
		t.Fatal(err)
	}
	if err := c.EnforcePolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func(*installation){
		"beside-kube-scheduler": func(i *installation) {
			script := exec.CommandContext(i.Context(), filepath.Join(i.root, "deploy/kustomize/components/binding-webhook/certificate.sh"), namespace)
			script.Env = append(script.Environ(), "KUBECONFIG="+c.AdminKubeconfig)
			if out, err := script.CombinedOutput(); err != nil {
				i.Fatalf("certificate.sh: %v\n%s", err, out)
			}
		},
		"beside-kube-scheduler-certified": func(*installation) {}, // cert-manager does all.
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t, c, "outboard-scheduler", "deployment/outboard-shim")
			i.kubectl("apply", "-k", filepath.Join(i.root, "deploy", "kustomize", name))
			prepare(i)
			i.timed("all pods are ready", i.rolledOut)
			service, err := i.client.CoreV1().Services(namespace).Get(t.Context(), "outboard-leader", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.ReachService(t.Context(), service.Spec.ClusterIP); err != nil {
				t.Fatal(err)
			}
			i.leaderAnswersAt(service.Spec.ClusterIP)
			// Each bind of others needs an answer from now on, so a pod that runs proves that there was one.
			i.kubectl("patch", "validatingwebhookconfiguration", "outboard-bindings.outboard-system", "--type=json",
				"-p", `[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}]`)
			i.asksAboutOthersBinds("first")
			leader := i.mustLead()
			i.kubectl("delete", "pod", leader.Name, "--namespace", namespace, "--wait=false")
			i.anotherLeads(leader)
			i.leaderAnswersAt(service.Spec.ClusterIP)
			i.asksAboutOthersBinds("second")
			deleted(name)(i)
			i.leavesNothing()
		})
	}
}

// leaderAnswersAt: at the Service's address a server answers that the webhook's authority trusts.
func (i *installation) leaderAnswersAt(address string) {
	i.Helper()
	i.eventually("the Service's address", func(ctx context.Context) error { // kube-proxy follows the EndpointSlice.
		webhook, err := i.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "outboard-bindings."+namespace, metav1.GetOptions{})
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(webhook.Webhooks[0].ClientConfig.CABundle)
		dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Second}, Config: &tls.Config{RootCAs: roots, ServerName: "outboard-leader." + namespace + ".svc"}}
		connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, "10272"))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// asksAboutOthersBinds: a pod of kube-scheduler runs; another scheduler's bind to a node that Outboard has filled is denied,
// and its bind of the same pod to the other node is applied.
func (i *installation) asksAboutOthersBinds(prefix string) {
	i.Helper()
	nodes, err := i.client.CoreV1().Nodes().List(i.Context(), metav1.ListOptions{})
	if err != nil {
		i.Fatal(err)
	}
	most := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(nodes.Items[0].Status.Allocatable.Memory().Value()*6/10, resource.BinarySI)}
	small, ours, theirs := prefix+"-small", prefix+"-ours", prefix+"-theirs"
	i.createPod("default", small, "default-scheduler", nil)
	i.runs(small)
	i.createPod("default", ours, i.scheduler, most)
	i.runs(ours)
	pod, err := i.client.CoreV1().Pods("default").Get(i.Context(), ours, metav1.GetOptions{})
	if err != nil {
		i.Fatal(err)
	}
	full, free := pod.Spec.NodeName, nodes.Items[0].Name
	if free == full {
		free = nodes.Items[1].Name
	}
	i.createPod("default", theirs, "another-scheduler", most)
	bind := func(ctx context.Context, node string) error {
		return i.client.CoreV1().Pods("default").Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: theirs},
			Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
	}
	err = bind(i.Context(), full)
	if err == nil || !strings.Contains(err.Error(), `admission webhook "bindings.outboard.dev" denied the request`) {
		i.Errorf("a bind of %s to %s, which %s has filled: %v", theirs, full, ours, err)
	}
	i.Log(err)
	if err := bind(i.Context(), free); err != nil {
		i.Error(err)
	}
	i.runs(theirs)
	i.kubectl("delete", "pods", small, ours, theirs, "--force")
}
