package controlplane_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

var credentialsFor = flag.Duration("credentials.for", time.Minute, "duration of the test that replaces credentials under load")

const (
	renewal     = 3 * time.Second // interval between replacements
	podInterval = 100 * time.Millisecond
	// The rights of Outboard's user of the test, for an account.
	rotatingAccount = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: rotating, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rotating}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: outboard-scheduler}
subjects: [{kind: ServiceAccount, name: rotating, namespace: default}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: rotating, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: outboard-scheduler-lease}
subjects: [{kind: ServiceAccount, name: rotating, namespace: default}]
`
)

// rotation is a shim whose credentials are replaced while it binds.
type rotation struct {
	*testing.T
	*controlplane.ControlPlane
	client  kubernetes.Interface
	serving string // the address of the shim's pages
	shim    *controlplane.Process
}

func newRotation(t *testing.T) *rotation {
	t.Helper()
	r := &rotation{T: t, ControlPlane: controlplane.ForTest(t, controlplane.Options{StrictTokens: true})}
	var err error
	if r.client, err = r.Client(); err != nil {
		t.Fatal(err)
	}
	pods := int(*credentialsFor/podInterval) + 1
	if err := controlplane.CreateFakeNodes(t.Context(), r.client, pods/50+1); err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(t.Context(), rotatingAccount); err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs a host, and a shim that gets its credentials through the arguments and the environment.
func (r *rotation) start(environment []string, arguments ...string) {
	r.Helper()
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		r.Fatal(err)
	}
	r.serving = controlplane.FreeAddress(r.T)
	socket := filepath.Join(r.Dir, "rotation.sock")
	config := filepath.Join(r.Dir, "rotation.yaml")
	r.write(config, []byte(fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {qps: 1000, burst: 1000}
leaderElection: {leaderElect: true, leaseDuration: 60s, renewDeadline: 40s, retryPeriod: 2s, resourceName: outboard-scheduler, resourceNamespace: kube-system}
profiles: [{schedulerName: %s}]
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:%s"}]
servingAddress: %q
`, ourScheduler, socket, r.serving)))
	if _, err := r.StartProcess("outboard-host", filepath.Join(bin, "outboard-host"), "--listen=unix:"+socket); err != nil {
		r.Fatal(err)
	}
	command := append(append(environment, filepath.Join(bin, "outboard-shim"), "--config", config), arguments...)
	if r.shim, err = r.StartProcess("outboard-shim", "env", command...); err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	// The shim is ready without its host; a pod created before the host is ready would count a failed attempt.
	if err := r.shim.WaitUntil(ctx, "not ready", func(context.Context) error {
		if _, err := r.page("/readyz"); err != nil {
			return err
		}
		hosts, err := controlplane.Hosts(ctx, "http://"+r.serving)
		if err == nil && !slices.ContainsFunc(hosts, func(host controlplane.HostInstance) bool { return host.State == "serving" }) {
			err = fmt.Errorf("no host serves: %v", hosts)
		}
		return err
	}); err != nil {
		r.Fatal(err)
	}
}

// page returns the body of the shim's page at a path.
func (r *rotation) page(path string) ([]byte, error) {
	response, err := http.Get("http://" + r.serving + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, text)
	}
	return text, err
}

// write replaces a file atomically.
func (r *rotation) write(file string, data []byte) {
	r.Helper()
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		r.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		r.Fatal(err)
	}
}

// underLoad creates pods and calls renew periodically; afterwards every pod is bound, no bind has failed, and the API
// server has rejected old credentials.
func (r *rotation) underLoad(renew func(i int)) {
	r.Helper()
	created, renewed := 0, 0
	next := time.Now()
	pods := r.client.CoreV1().Pods("default")
	pace := time.NewTicker(podInterval)
	defer pace.Stop()
	for end := time.Now().Add(*credentialsFor); time.Now().Before(end); <-pace.C {
		if time.Now().After(next) {
			renewed++
			renew(renewed)
			next = time.Now().Add(renewal)
		}
		created++
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("loaded-%d", created)}, Spec: podSpec(ourScheduler, "1m")}
		if _, err := pods.Create(r.Context(), pod, metav1.CreateOptions{}); err != nil {
			r.Fatal(err)
		}
	}
	r.running()
	eventually(r.T, func(ctx context.Context) error {
		waiting, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
		if err == nil && len(waiting.Items) > 0 {
			err = fmt.Errorf("%d of %d pods have no node, for example: %v", len(waiting.Items), created, waiting.Items[0].Status.Conditions)
		}
		return err
	})
	r.running()
	text, err := r.page("/metrics")
	if err != nil {
		r.Fatal(err)
	}
	sum := func(pattern string) (total int) {
		for _, found := range regexp.MustCompile(`(?m)^`+pattern+` (\d+)$`).FindAllSubmatch(text, -1) {
			n, err := strconv.Atoi(string(found[1]))
			if err != nil {
				r.Fatal(err)
			}
			total += n
		}
		return total
	}
	bound, binds := sum(`outboard_binds_total\{outcome="bound"\}`), sum(`outboard_binds_total\{[^}]*\}`)
	errors, refused := sum(`scheduler_schedule_attempts_total\{[^}]*result="error"[^}]*\}`), sum(`rest_client_requests_total\{[^}]*code="401"[^}]*\}`)
	if bound != created || binds != bound || errors != 0 {
		r.Errorf("%d pods, %d binds, %d of them bound, %d attempts with an error", created, binds, bound, errors)
	}
	if refused == 0 {
		r.Error("the API server rejected no credentials: the test is void")
	}
	r.Logf("%d pods bound in %v, no bind failed; credentials replaced %d times, %d requests were rejected (401) and sent again", created, *credentialsFor, renewed, refused)
}

// running fails the test if the shim has ended. Its lease is long, so that it does not end on a busy machine.
func (r *rotation) running() {
	r.Helper()
	select {
	case <-r.shim.Exited():
		r.Fatalf("the shim has ended\n%s", r.shim.LogTail())
	default:
	}
}

// In a cluster: the token's file is replaced as by a kubelet. The old token is invalid at once, because the object
// that it is bound to is deleted.
func TestTokenIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRotation(t)
	directory := filepath.Join(r.Dir, "serviceaccount")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(r.Dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(directory, "ca.crt"), authority)
	r.write(filepath.Join(directory, "namespace"), []byte("default"))
	secrets := r.client.CoreV1().Secrets("default")
	renew := func(i int) {
		secret, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bound-%d", i)}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		token, err := r.client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "rotating", &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600)),
				BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret.Name, UID: secret.UID}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.write(filepath.Join(directory, "token"), []byte(token.Status.Token))
		if i > 0 {
			if err := secrets.Delete(t.Context(), fmt.Sprintf("bound-%d", i-1), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	renew(0)
	server, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.start([]string{"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()}, "--service-account", directory)
	r.underLoad(renew)
}

// With a kubeconfig: the client's certificate is replaced, and the old one expires within seconds. The authority of
// the API server's certificate is replaced, too: first the shim trusts both authorities, then the API server uses a
// certificate of the new one, then the shim trusts only the new one.
func TestCertificateIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRotation(t)
	file := func(name string) string { return filepath.Join(r.Dir, "rotation-"+name) }
	renew := func(i int) {
		certificate, key, err := r.ClientCertificate(controlplane.OutboardUser, 3*renewal)
		if err != nil {
			t.Fatal(err)
		}
		r.write(file("client.crt"), certificate)
		r.write(file("client.key"), key)
		current, other := r.ServingAuthorities()
		switch i % 3 {
		case 0:
			r.write(file("ca.crt"), current)
		case 1:
			r.write(file("ca.crt"), slices.Concat(current, other))
		case 2:
			if err := r.ReplaceServingAuthority(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	renew(0)
	r.write(file("kubeconfig"), []byte(fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: %q, certificate-authority: rotation-ca.crt}}]
users: [{name: u, user: {client-certificate: rotation-client.crt, client-key: rotation-client.key}}]
`, r.URL)))
	r.start(nil, "--kubeconfig", file("kubeconfig"))
	r.underLoad(renew)
}
