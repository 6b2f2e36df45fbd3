package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A host on the network accepts only mutual TLS, is replaced by a change of its address, and keeps serving when all
// certificates are replaced while it runs.
func TestHostsOnTheNetwork(t *testing.T) {
	t.Parallel()
	directory, err := OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	c := ForTest(t, Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := CreateFakeNodes(t.Context(), client, 3); err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	first := writeHostFiles(t, files)
	ports, err := freePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(files, name) }
	address := func(i int) string { return "127.0.0.1:" + strconv.Itoa(ports[i]) }
	start := func(i int) *Process {
		t.Helper()
		process, err := c.StartProcess(fmt.Sprintf("outboard-host-%d", i), filepath.Join(directory, "outboard-host"), "--listen", address(i),
			"--tls-cert", file("host.crt"), "--tls-key", file("host.key"), "--tls-client-ca", file("ca.crt"))
		if err != nil {
			t.Fatal(err)
		}
		return process
	}
	start(0)
	outboard, err := c.StartOutboard(t.Context(), OutboardOptions{Hosts: []map[string]any{{
		"name": "default", "address": address(0),
		"tls": map[string]string{"caFile": file("ca.crt"), "certFile": file("shim.crt"), "keyFile": file("shim.key")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	bindOne := func() error {
		pods++
		name := fmt.Sprintf("pod-%d", pods)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}}}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			return err
		}
		return within(t, 20*time.Second, func() error {
			got, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && got.Spec.NodeName == "" {
				err = fmt.Errorf("%s has no node; the shim's log:\n%s", name, outboard.Shim.LogTail())
			}
			return err
		})
	}
	serves := func(i int) error {
		return within(t, 20*time.Second, func() error {
			hosts, err := outboard.Hosts(t.Context())
			for _, host := range hosts {
				if host.State == "serving" && host.Address == address(i) {
					return nil
				}
			}
			return fmt.Errorf("%s does not serve: %+v %v", address(i), hosts, err)
		})
	}
	for _, err := range []error{serves(0), bindOne()} {
		if err != nil {
			t.Fatal(err)
		}
	}

	// A client without a certificate, or with another authority's, is rejected.
	stranger, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	if err := dialHost(t.Context(), address(0), first, first); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	for who, signer := range map[string]*authority{"without a certificate": nil, "with a stranger's certificate": stranger} {
		if err := dialHost(t.Context(), address(0), first, signer); err == nil {
			t.Errorf("the host accepts a client %s", who)
		}
	}

	// A new address in the configuration replaces the host.
	second := start(1)
	config, err := os.ReadFile(outboard.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	config = bytes.ReplaceAll(config, []byte(address(0)), []byte(address(1)))
	if err := os.WriteFile(outboard.ConfigFile(), config, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{serves(1), bindOne()} {
		if err != nil {
			t.Fatal(err)
		}
	}

	// New certificates of a new authority: the running host uses them for new connections, and so does the running
	// shim.
	renewed := writeHostFiles(t, files)
	if err := within(t, 30*time.Second, func() error { return dialHost(t.Context(), address(1), renewed, renewed) }); err != nil {
		t.Fatalf("the host does not use its new certificates: %v", err)
	}
	if err := dialHost(t.Context(), address(1), first, first); err == nil {
		t.Error("the host still accepts the old authority")
	}
	second.Kill()
	second = start(1)
	for _, err := range []error{serves(1), bindOne()} {
		if err != nil {
			t.Fatal(err)
		}
	}

	// Two instances: when one is gone, the other serves.
	if config, err = os.ReadFile(outboard.ConfigFile()); err != nil {
		t.Fatal(err)
	}
	config = bytes.ReplaceAll(config, []byte("address: "+address(1)), []byte("addresses: ['"+address(1)+"', '"+address(0)+"']"))
	if err := os.WriteFile(outboard.ConfigFile(), config, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := within(t, 20*time.Second, func() error {
		hosts, err := outboard.Hosts(t.Context())
		for _, host := range hosts {
			if host.Address == address(0) {
				return nil
			}
		}
		return fmt.Errorf("%s is unknown: %+v %v", address(0), hosts, err)
	}); err != nil {
		t.Fatal(err)
	}
	second.Kill()
	for _, err := range []error{serves(0), bindOne()} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func within(t *testing.T, limit time.Duration, check func() error) error {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) { // Poll interval.
		if err := check(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// writeHostFiles writes the certificates of a host and of a shim, of a new authority.
func writeHostFiles(t *testing.T, dir string) *authority {
	t.Helper()
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	hostCertificate, hostKey, err := a.server()
	if err != nil {
		t.Fatal(err)
	}
	shimCertificate, shimKey, err := a.client("outboard-shim")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"ca.crt": a.pem, "host.crt": hostCertificate, "host.key": hostKey, "shim.crt": shimCertificate, "shim.key": shimKey,
	} {
		// Atomically, as a mounted secret changes.
		temporary := filepath.Join(dir, name+".new")
		if err := os.WriteFile(temporary, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// dialHost succeeds if the host has a certificate of the authority and accepts one signed by `signer`; nil: no client
// certificate.
func dialHost(ctx context.Context, address string, authority, signer *authority) error {
	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	config := &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}}
	if signer != nil {
		certificate, key, err := signer.client("stranger")
		if err != nil {
			return err
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: config}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	// A rejection follows the handshake; an accepted client receives the server's settings.
	if err := connection.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	_, err = connection.Read(make([]byte, 9))
	return err
}
