package controlplane

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// kube-apiserver verifies every certificate of a client again for each request. Sending the authority's certificate
// too, as OpenSSL does by default, doubles the cost of authenticating the client.
func TestTheShimSendsItsOwnCertificateAlone(t *testing.T) {
	programs, err := OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := authority.server()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan []string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names := []string{}
		for _, certificate := range r.TLS.PeerCertificates {
			names = append(names, certificate.Subject.CommonName)
		}
		select {
		case sent <- names:
		default:
		}
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	defer server.Close()

	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml")
	if err := authority.writeKubeconfig(kubeconfig, authority.pem, server.URL, "", "outboard"); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:%s/host.sock"}]
`, kubeconfig, dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	shim, err := StartProcess(dir, "outboard-shim", filepath.Join(programs, "outboard-shim"), "--config", config)
	if err != nil {
		t.Fatal(err)
	}
	defer shim.Kill()
	select {
	case names := <-sent:
		if len(names) != 1 || names[0] != "outboard" {
			t.Errorf("the shim sent certificates of %q", names)
		}
	case <-shim.Exited():
		t.Fatalf("the shim ended:\n%s", shim.LogTail())
	case <-time.After(30 * time.Second):
		t.Fatalf("no request came:\n%s", shim.LogTail())
	}
}
