package controlplane_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	controlplane "outboard.dev/integration/control_plane"
)

const readerRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-reader}
rules:
- nonResourceURLs: [/metrics, /hosts]
  verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
`

// pages is a shim that serves HTTPS.
type pages struct {
	*testing.T
	*controlplane.ControlPlane
	client    kubernetes.Interface
	outboard  *controlplane.Outboard
	address   string
	cert, key string
}

// servePages starts a control plane without controllers, and Outboard with a certificate from files.
func servePages(t *testing.T, options controlplane.OutboardOptions) *pages {
	t.Helper()
	if _, err := controlplane.OutboardDirectory(); err != nil {
		t.Fatal(err)
	}
	address := controlplane.FreeAddress(t)
	p := &pages{T: t, ControlPlane: controlplane.ForTest(t, controlplane.Options{}), address: address}
	p.cert, p.key = filepath.Join(p.Dir, "pages.crt"), filepath.Join(p.Dir, "pages.key")
	p.renew("pages-0")
	client, err := p.Client()
	if err != nil {
		t.Fatal(err)
	}
	p.client = client
	if err := p.Apply(t.Context(), readerRole); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"reader", "stranger"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := p.client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	options.Shim += fmt.Sprintf("\nsecureServing: {address: %q, certFile: %q, keyFile: %q, clientCAFile: %q}", address, p.cert, p.key, filepath.Join(p.Dir, "ca.crt"))
	p.outboard, err = p.StartOutboard(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// renew replaces both files one after the other, not atomically.
func (p *pages) renew(name string) {
	p.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		p.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		p.Fatal(err)
	}
	p.write(p.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	p.write(p.key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))
}

func (p *pages) write(file string, data []byte) {
	p.Helper()
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		p.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		p.Fatal(err)
	}
}

func (p *pages) token(account string) string {
	p.Helper()
	token, err := p.client.CoreV1().ServiceAccounts("default").CreateToken(p.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return token.Status.Token
}

// get sends a request over a new connection. It returns the status, the body and the name in the certificate.
func (p *pages) get(path, token string, certificates ...tls.Certificate) (int, string, string, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, "https://"+p.address+path, nil)
	if err != nil {
		return 0, "", "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return 0, "", "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), response.TLS.PeerCertificates[0].Subject.CommonName, err
}

func (p *pages) wants(path, token string, status int, part string, certificates ...tls.Certificate) {
	p.Helper()
	got, body, _, err := p.get(path, token, certificates...)
	if err != nil || got != status || !strings.Contains(body, part) {
		p.Errorf("GET %s: %d %v, want %d with %q\n%.300s", path, got, err, status, part, body)
	}
}

// Pages need authorization by the API server; health does not.
func TestSecureServing(t *testing.T) {
	t.Parallel()
	p := servePages(t, controlplane.OutboardOptions{})
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		p.wants(path, "", http.StatusOK, "ok")
		p.wants(path, "no token", http.StatusOK, "ok")
	}
	reader, stranger := p.token("reader"), p.token("stranger")
	p.wants("/metrics", reader, http.StatusOK, "\nscheduler_pending_pods{")
	p.wants("/metrics", stranger, http.StatusForbidden, `User \"system:serviceaccount:default:stranger\" cannot get path \"/metrics\"`)
	p.wants("/configz", reader, http.StatusForbidden, `cannot get path \"/configz\"`)
	p.wants("/metrics", "", http.StatusUnauthorized, "Unauthorized")
	p.wants("/metrics", reader+"x", http.StatusUnauthorized, "Unauthorized")
	_, body, _, _ := p.get("/metrics", "")
	var status metav1.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil || status.Kind != "Status" || status.Reason != metav1.StatusReasonUnauthorized || status.Code != 401 {
		t.Errorf("not a Status: %v\n%s", err, body)
	}
	p.wants("/configz", "", http.StatusOK, "KubeSchedulerConfiguration", p.certificate("admin"))
	if _, err := p.Kubeconfig("jane"); err != nil {
		t.Fatal(err)
	}
	p.wants("/metrics", "", http.StatusForbidden, `User \"jane\" cannot get path \"/metrics\"`, p.certificate("jane"))
	t.Run("commands", p.testCommands)
	t.Run("rotation", p.testRotation)
	t.Run("no API server", p.testNoAPIServer)
}

// certificate returns the client certificate in the kubeconfig of a user.
func (p *pages) certificate(user string) tls.Certificate {
	p.Helper()
	kubeconfig, err := clientcmd.LoadFromFile(filepath.Join(p.Dir, "kubeconfig-"+user))
	if err != nil {
		p.Fatal(err)
	}
	info := kubeconfig.AuthInfos[user]
	pair, err := tls.X509KeyPair(info.ClientCertificateData, info.ClientKeyData)
	if err != nil {
		p.Fatal(err)
	}
	return pair
}

func (p *pages) testCommands(t *testing.T) {
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(p.token("reader")), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(program string, arguments ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, program), arguments...).CombinedOutput()
		return string(out), err
	}
	server, authority := "--server=https://"+p.address, "--certificate-authority="+p.cert
	eventuallySees(t, "a serving host in outboard hosts", func() int {
		out, err := run("outboard", "hosts", server, authority, "--token-file="+token)
		if err != nil {
			t.Fatalf("outboard hosts: %v\n%s", err, out)
		}
		return strings.Count(out, "serving")
	})
	for part, arguments := range map[string][]string{
		"see --token-file":         {"hosts", server, authority},
		"cannot get path \"/queue": {"queue", server, authority, "--token-file=" + token},
		"--certificate-authority":  {"hosts", server, "--token-file=" + token},
		"over https:// only":       {"hosts", "--server=" + p.address, "--token-file=" + token},
	} {
		if out, err := run("outboard", arguments...); err == nil || !strings.Contains(out, part) {
			t.Errorf("outboard %q: want %q, got %v\n%s", arguments, part, err, out)
		}
	}
	if out, err := run("outboard-shim", "--probe=https://"+p.address+"/readyz", "--insecure-skip-tls-verify"); err != nil {
		t.Errorf("--probe: %v\n%s", err, out)
	}
	if out, err := run("outboard-shim", "--probe=https://"+p.address+"/metrics", "--insecure-skip-tls-verify"); err == nil {
		t.Errorf("--probe without a token\n%s", out)
	}
}

// testRotation replaces the certificate while metrics are read over new connections.
func (p *pages) testRotation(t *testing.T) {
	reader := p.token("reader")
	var (
		mutex sync.Mutex
		seen  = map[string]int{}
		group sync.WaitGroup
		done  = make(chan struct{})
	)
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				status, body, name, err := p.get("/metrics", reader)
				if err != nil || status != http.StatusOK || !strings.Contains(body, "\nprocess_open_fds ") {
					t.Errorf("a scrape: %d %v", status, err)
				}
				mutex.Lock()
				seen[name]++
				mutex.Unlock()
			}
		})
	}
	for i := range 5 {
		name := fmt.Sprintf("pages-%d", i+1)
		p.renew(name)
		eventuallySees(t, name, func() int { mutex.Lock(); defer mutex.Unlock(); return seen[name] })
	}
	p.write(p.cert, []byte("nonsense"))
	eventuallySees(t, "failed reload", func() int {
		_, body, _, _ := p.get("/metrics", reader)
		return strings.Count(body, `outboard_serving_certificate_reloads_total{result="failed"}`)
	})
	close(done)
	group.Wait()
	if _, _, name, err := p.get("/livez", ""); err != nil || name != "pages-5" {
		t.Errorf("after an invalid file the certificate is %q (%v), want the last valid one", name, err)
	}
	total := 0
	for _, n := range seen {
		total += n
	}
	t.Logf("%d scrapes over new connections, by certificate: %v", total, seen)
}

func eventuallySees(t *testing.T, what string, count func() int) {
	t.Helper()
	for end := time.Now().Add(patience); count() == 0; time.Sleep(10 * time.Millisecond) { // Poll interval.
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// testNoAPIServer: without the API server pages return an error that says so; health is served.
func (p *pages) testNoAPIServer(t *testing.T) {
	known, unknown := p.token("reader"), p.token("reader")
	p.wants("/metrics", known, http.StatusOK, "")
	p.StopAPIServer()
	p.wants("/metrics", unknown, http.StatusServiceUnavailable, "API server request failed")
	p.wants("/livez", "", http.StatusOK, "ok")
	p.wants("/metrics", "", http.StatusUnauthorized, "Unauthorized")
}
