package faults

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

// The machine of a host, or the network to it, vanishes: no packet goes either way, and nothing is closed. Both sides
// notice that, and pods are bound again when it is back.
func TestAHostsMachineIsLost(t *testing.T) {
	t.Parallel()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no host")
	}
	if !inNamespace(t) {
		return
	}
	const (
		limit     = 20 * time.Second // for the shim
		hostLimit = 25 * time.Second // a ping after 10 s, an answer within 10 s, and a busy machine
	)
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 3); err != nil {
		t.Fatal(err)
	}
	address := controlplane.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	file := func(name string) string { return filepath.Join(files, name) }
	writeHostCertificates(t, c, files)
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	host, err := c.StartProcess("outboard-host-far", filepath.Join(directory, "outboard-host"), "--listen", address,
		"--tls-cert", file("host.crt"), "--tls-key", file("host.key"), "--tls-client-ca", file("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{Hosts: []map[string]any{{
		"name": "default", "address": address,
		"tls": map[string]string{"caFile": file("ca.crt"), "certFile": file("shim.crt"), "keyFile": file("shim.key")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	until := func(limit time.Duration, what string, reached func() bool) time.Duration {
		t.Helper()
		began := time.Now()
		for ; !reached(); time.Sleep(50 * time.Millisecond) { // Poll interval.
			if time.Since(began) > limit {
				t.Fatalf("not within %v: %s; the shim's log:\n%s\nthe host's:\n%s", limit, what, outboard.Shim.LogTail(), host.LogTail())
			}
		}
		return time.Since(began)
	}
	create := func(name string) {
		t.Helper()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}}}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	bound := func(name string) func() bool {
		return func() bool {
			pod, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return pod.Spec.NodeName != ""
		}
	}
	serves := func() bool {
		return slices.ContainsFunc(hostsOf(t, outboard), func(h controlplane.HostInstance) bool { return h.State == "serving" })
	}
	create("before")
	until(patience, "a pod is bound", bound("before"))
	if established(t, port) == 0 {
		t.Fatal("the host has no connection")
	}

	filter(t, "tcp dport "+port+" counter drop", "tcp sport "+port+" counter drop")
	cut := time.Now()
	create("meanwhile")
	noticed := until(limit, "the shim notices that the host is lost", func() bool { return !serves() })
	lost := waitForLine(t, outboard, "lost instance .*it has not answered a probe for")
	until(hostLimit-time.Since(cut), "the host drops the connection of a peer that answers nothing", func() bool { return established(t, port) == 0 })
	dropped := time.Since(cut)
	if bound("meanwhile")() {
		t.Error("a pod was bound without a host")
	}
	if filtered(t) == 0 {
		t.Error("no packet was dropped: the test is void")
	}

	filter(t)
	back := until(time.Minute, "the pod is bound when the network is back", bound("meanwhile"))
	t.Logf("the shim noticed it after %.1f s, the host after %.1f s; a pod was bound %.1f s after the network was back; load %s; %s",
		noticed.Seconds(), dropped.Seconds(), back.Seconds(), loadAverage(t), lost)
}

// writeHostCertificates writes the files of a host and of its shim, signed by the cluster's authority.
func writeHostCertificates(t *testing.T, c *controlplane.ControlPlane, directory string) {
	t.Helper()
	_, server, err := c.Proxied(controlplane.OutboardUser)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(server.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	shimCertificate, shimKey, err := c.ClientCertificate("outboard-shim", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	authority, _ := c.ServingAuthorities()
	for name, data := range map[string][]byte{
		"ca.crt":   authority,
		"host.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate[0]}),
		"host.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}),
		"shim.crt": shimCertificate, "shim.key": shimKey,
	} {
		if err := os.WriteFile(filepath.Join(directory, name), data, 0o600); err != nil {
			t.Fatal(fmt.Errorf("certificates: %w", err))
		}
	}
}
