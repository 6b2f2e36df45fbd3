package deploy_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	certmanager "outboard.dev/integration/cert_manager"
	controlplane "outboard.dev/integration/control_plane"
)

// certified returns a cluster with cert-manager and an installation, all of whose Certificates were issued.
func certified(t *testing.T, installation string) (*cluster, []*unstructured.Unstructured) {
	t.Helper()
	c := newCluster(t)
	if err := certmanager.Start(t.Context(), c.ControlPlane, t.Logf); err != nil {
		t.Fatal(err)
	}
	all := kustomized(t, installation)
	c.bring(all)
	wanted := 0
	for _, object := range all {
		if object.GetKind() == "Certificate" {
			wanted++
			c.awaitCertificate(object.GetName())
		}
	}
	if wanted < 2 {
		t.Fatalf("%s has %d Certificates", installation, wanted)
	}
	return c, all
}

// certificate returns a Certificate and its conditions.
func (c *cluster) certificate(name string) (*unstructured.Unstructured, []any, error) {
	certificate, err := c.dynamic.Resource(certmanager.Certificates).Namespace(namespace).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	conditions, _, err := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	return certificate, conditions, err
}

// awaitCertificate waits until a Certificate is issued, and not about to be issued again.
func (c *cluster) awaitCertificate(name string) {
	c.Helper()
	c.eventually(func() error {
		_, conditions, err := c.certificate(name)
		if err != nil {
			return err
		}
		issued := false
		for _, condition := range conditions {
			is := condition.(map[string]any)
			issued = issued || is["type"] == "Ready" && is["status"] == "True"
			if is["type"] == "Issuing" && is["status"] == "True" {
				return fmt.Errorf("Certificate %s is being issued: %v", name, conditions)
			}
		}
		if !issued {
			return fmt.Errorf("Certificate %s is not Ready: %v", name, conditions)
		}
		return nil
	})
}

// renewCertificate does what `cmctl renew` does, and returns when the Certificate was issued again.
func (c *cluster) renewCertificate(name string) {
	c.Helper()
	before := c.secret(name)["tls.crt"]
	c.eventually(func() error { // The controllers write the status, too.
		certificate, conditions, err := c.certificate(name)
		if err != nil {
			return err
		}
		conditions = append(conditions, map[string]any{"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "test",
			"lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z")})
		if err := unstructured.SetNestedSlice(certificate.Object, conditions, "status", "conditions"); err != nil {
			return err
		}
		_, err = c.dynamic.Resource(certmanager.Certificates).Namespace(namespace).UpdateStatus(c.Context(), certificate, metav1.UpdateOptions{})
		return err
	})
	c.eventually(func() error {
		if bytes.Equal(c.secret(name)["tls.crt"], before) {
			return fmt.Errorf("the Secret %s has the former certificate", name)
		}
		return nil
	})
	c.awaitCertificate(name)
}

func (c *cluster) secret(name string) map[string][]byte {
	c.Helper()
	secret, err := c.client.CoreV1().Secrets(namespace).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return secret.Data
}

// mountSecret writes a Secret's files as a kubelet does: all change at once.
func (c *cluster) mountSecret(name, folder string) error {
	data, link := filepath.Join(folder, "..data"), filepath.Join(folder, "..data_tmp")
	version, err := os.MkdirTemp(folder, "..")
	if err != nil {
		return err
	}
	for file, content := range c.secret(name) {
		err := os.WriteFile(filepath.Join(version, file), content, 0o600)
		if _, missing := os.Lstat(filepath.Join(folder, file)); err == nil && missing != nil {
			err = os.Symlink(filepath.Join("..data", file), filepath.Join(folder, file))
		}
		if err != nil {
			return err
		}
	}
	if err := os.Symlink(filepath.Base(version), link); err != nil {
		return err
	}
	return os.Rename(link, data)
}

func parsedCertificate(pemText []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(pemText)
	if block == nil {
		return nil, fmt.Errorf("not PEM: %q", pemText)
	}
	return x509.ParseCertificate(block.Bytes)
}

// verifies returns nil if a peer that trusts `authority` accepts the certificate for this use, and as a server of this
// name, unless it is empty.
func verifies(certificate, authority []byte, usage x509.ExtKeyUsage, server string) error {
	parsed, err := parsedCertificate(certificate)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return fmt.Errorf("no authority: %q", authority)
	}
	_, err = parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: server, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

// Real cert-manager issues the certificates of the installation `mtls-certified`; shim and host use them, and what it
// renews, without a restart of either. The authority keeps its key when it is renewed.
func TestCertManagerIssuesAndRenews(t *testing.T) {
	t.Parallel()
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	c, all := certified(t, "mtls-certified")
	folders := map[string]string{}
	c.mountSecrets = func(host, shim, _ string) error {
		folders["outboard-host-tls"], folders["outboard-shim-tls"] = host, shim
		return errors.Join(c.mountSecret("outboard-host-tls", host), c.mountSecret("outboard-shim-tls", shim))
	}
	if err := controlplane.CreateFakeNodes(t.Context(), c.client, 1); err != nil {
		t.Fatal(err)
	}
	c.startShim(bin, all, nil)
	c.pod("before", "outboard-scheduler", "", "1")
	c.eventually(func() error { return c.bound("before") })

	for name := range folders {
		c.renewCertificate(name)
		if err := c.mountSecret(name, folders[name]); err != nil {
			t.Fatal(err)
		}
	}
	// Hosts serve new connections with the new certificate.
	for _, address := range c.hostAddresses() {
		c.eventually(func() error { return c.servesSecret(address) })
	}
	c.pod("renewed", "outboard-scheduler", "", "1")
	c.eventually(func() error { return c.bound("renewed") })
	// New connections of the shim, because each host restarts: it presents the new certificate, as the host requires one.
	c.hosts.restart()
	c.pod("reconnected", "outboard-scheduler", "", "1")
	c.eventually(func() error { return c.bound("reconnected") })

	former := c.secret("outboard-authority")
	c.renewCertificate("outboard-authority")
	renewed := c.secret("outboard-authority")
	if !bytes.Equal(former["tls.key"], renewed["tls.key"]) {
		t.Error("the renewed authority has another key")
	}
	shim, host := c.secret("outboard-shim-tls"), c.secret("outboard-host-tls")
	if err := verifies(shim["tls.crt"], renewed["tls.crt"], x509.ExtKeyUsageClientAuth, ""); err != nil {
		t.Errorf("the renewed authority does not verify the shim's certificate: %v", err)
	}
	c.renewCertificate("outboard-host-tls")
	if err := verifies(c.secret("outboard-host-tls")["tls.crt"], shim["ca.crt"], x509.ExtKeyUsageServerAuth, "outboard-host.outboard-system.svc"); err != nil {
		t.Errorf("a shim that trusts the former authority does not accept a host's certificate of the renewed one: %v", err)
	}
	// Each is for one use only.
	if verifies(host["tls.crt"], shim["ca.crt"], x509.ExtKeyUsageClientAuth, "") == nil {
		t.Error("a host's certificate serves as a client's")
	}
	if verifies(shim["tls.crt"], host["ca.crt"], x509.ExtKeyUsageServerAuth, "") == nil {
		t.Error("a shim's certificate serves as a server's")
	}
}

// hostAddresses are those at which the pods of hosts listen.
func (c *cluster) hostAddresses() []string {
	c.Helper()
	pods, err := c.client.CoreV1().Pods(namespace).List(c.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=host"})
	if err != nil {
		c.Fatal(err)
	}
	var addresses []string
	for _, pod := range pods.Items {
		for _, argument := range pod.Spec.Containers[0].Args {
			if listen, is := strings.CutPrefix(argument, "--listen="); is {
				addresses = append(addresses, pod.Status.PodIP+listen[strings.LastIndex(listen, ":"):])
			}
		}
	}
	if len(addresses) == 0 {
		c.Fatal("no pod of a host listens")
	}
	return addresses
}

// servesSecret returns nil if a host presents the certificate of its Secret to a client with the shim's.
func (c *cluster) servesSecret(address string) error {
	c.Helper()
	shim := c.secret("outboard-shim-tls")
	pair, err := tls.X509KeyPair(shim["tls.crt"], shim["tls.key"])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(shim["ca.crt"])
	connection, err := tls.Dial("tcp", address, &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots,
		ServerName: "outboard-host.outboard-system.svc", NextProtos: []string{"h2"}})
	if err != nil {
		return err
	}
	defer connection.Close()
	want, err := parsedCertificate(c.secret("outboard-host-tls")["tls.crt"])
	if err != nil {
		return err
	}
	if !connection.ConnectionState().PeerCertificates[0].Equal(want) {
		return fmt.Errorf("the host at %s presents another certificate than its Secret's", address)
	}
	return nil
}

// The Secrets that cert-manager fills for the other installations are what the documentation says that they must contain,
// and its cainjector enters the authority in the webhook.
func TestCertManagerIssuesForTheExtender(t *testing.T) {
	t.Parallel()
	t.Run("extender-certified", func(t *testing.T) {
		t.Parallel()
		c, _ := certified(t, "extender-certified")
		server, client := c.secret("outboard-extender-tls"), c.secret("outboard-extender-client")
		if err := verifies(server["tls.crt"], client["ca.crt"], x509.ExtKeyUsageServerAuth, "outboard-extender.outboard-system.svc"); err != nil {
			t.Errorf("kube-scheduler does not accept the shim's certificate: %v", err)
		}
		if err := verifies(client["tls.crt"], server["ca.crt"], x509.ExtKeyUsageClientAuth, ""); err != nil {
			t.Errorf("the shim does not accept kube-scheduler's certificate: %v", err)
		}
	})
	t.Run("beside-kube-scheduler-certified", func(t *testing.T) {
		t.Parallel()
		c, _ := certified(t, "beside-kube-scheduler-certified")
		c.eventually(func() error {
			webhook, err := c.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "outboard-bindings."+namespace, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return verifies(c.secret("outboard-webhook-tls")["tls.crt"], webhook.Webhooks[0].ClientConfig.CABundle, x509.ExtKeyUsageServerAuth, "outboard-leader.outboard-system.svc")
		})
	})
}
