package deploy_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	certmanager "outboard.dev/integration/cert_manager"
	controlplane "outboard.dev/integration/control_plane"
	prometheusoperator "outboard.dev/integration/prometheus_operator"
)

const patience = time.Minute

// warnings are the API server's warnings about accepted objects.
type warnings struct {
	mutex sync.Mutex
	said  []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.said = append(w.said, text)
}

type cluster struct {
	*controlplane.ControlPlane
	*testing.T
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	warnings *warnings
	// mountSecrets fills the folders of the Secrets of hosts and shims; by default with a new authority's certificates.
	mountSecrets func(host, shim, serverName string) error
	hosts        *networkHosts // once they were started
	shims        []*controlplane.Process
	// The two documents of the configuration of the shim that was started last.
	scheduler, shim map[string]any
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterOf(t, controlplane.Options{ControllerManager: true})
}

func newClusterOf(t *testing.T, options controlplane.Options) *cluster {
	t.Helper()
	c := &cluster{T: t, warnings: &warnings{}, ControlPlane: controlplane.ForTest(t, options), mountSecrets: controlplane.WriteHostSecrets}
	restConfig, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.WarningHandler = c.warnings
	if c.client, err = kubernetes.NewForConfig(restConfig); err != nil {
		t.Fatal(err)
	}
	if c.dynamic, err = dynamic.NewForConfig(restConfig); err != nil {
		t.Fatal(err)
	}
	return c
}

// apply is `kubectl apply --server-side`. It returns the resulting objects.
func (c *cluster) apply(all []*unstructured.Unstructured, dryRun ...string) []*unstructured.Unstructured {
	c.Helper()
	var applied []*unstructured.Unstructured
	for _, object := range all {
		got, err := controlplane.Resource(c.dynamic, object, "").Apply(c.Context(), object.GetName(), object,
			metav1.ApplyOptions{FieldManager: "deploy", DryRun: dryRun})
		if err != nil {
			c.Fatalf("%s: %v", key(object), err)
		}
		applied = append(applied, got)
	}
	if len(c.warnings.said) > 0 {
		c.Errorf("the API server warns: %q", c.warnings.said)
	}
	return applied
}

func (c *cluster) eventually(check func() error) {
	c.Helper()
	c.within(patience, check)
}

func (c *cluster) within(limit time.Duration, check func() error) {
	c.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) { // Poll interval.
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			c.Fatal(err)
		}
	}
}

// bring applies an installation: namespaces first and without dry run, because a dry run of the others needs them.
func (c *cluster) bring(all []*unstructured.Unstructured) {
	c.Helper()
	namespaces := slices.DeleteFunc(slices.Clone(all), func(object *unstructured.Unstructured) bool { return object.GetKind() != "Namespace" })
	if len(namespaces) == 0 {
		c.Fatal("no Namespace")
	}
	c.apply(namespaces)
	c.apply(all, metav1.DryRunAll)
	c.apply(all)
}

// The API server accepts the objects of kustomize and the chart, and enforces the restricted Pod Security Standard:
// the controllers can create their pods.
func TestTheAPIServerTakesIt(t *testing.T) {
	t.Parallel()
	for _, i := range installations(t) {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			if i.name == "ai-scheduler" {
				if err := c.ApplyCustomResources(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasSuffix(i.name, "monitored") {
				if err := prometheusoperator.ApplyResources(t.Context(), c.ControlPlane); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasSuffix(i.name, "-certified") {
				if err := certmanager.ApplyResources(t.Context(), c.ControlPlane); err != nil {
					t.Fatal(err)
				}
			}
			all := kustomized(t, i.name)
			c.bring(all)
			before := map[string]string{}
			for _, object := range c.apply(all) {
				before[key(object)] = version(object)
			}
			// For the server the chart's objects are the same, too: applying them changes nothing.
			for _, object := range c.apply(withoutHash(templated(t, i, namespace))) {
				if before[key(object)] != version(object) {
					t.Errorf("%s differs in the chart", key(object))
				}
			}
			want := 0
			for _, object := range all {
				if object.GetKind() == "Deployment" {
					replicas, _, err := unstructured.NestedFloat64(object.Object, "spec", "replicas") // YAML numbers are float64.
					if err != nil {
						t.Fatal(err)
					}
					want += int(replicas)
				}
			}
			c.eventually(func() error {
				pods, err := c.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
				if err == nil && len(pods.Items) != want {
					events, _ := c.client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "type=Warning"})
					err = fmt.Errorf("%d of %d pods; %v", len(pods.Items), want, events)
				}
				return err
			})
			c.refusesOthers()
			c.credentials()
			if i.name == "sidecar" {
				c.takesExamples("first-pod.yaml", "opt-in.yaml")
				c.takesACanary(all)
			}
			if i.name == "ai-scheduler" {
				c.takesExamples("opt-in-gang.yaml")
				c.takesADay()
				for _, scheduler := range comparedSchedulers {
					c.bring(kustomized(t, comparison(scheduler)))
				}
			}
		})
	}
}

// version changes with the object, except for its status, which controllers write at any time.
func version(object *unstructured.Unstructured) string {
	switch object.GetKind() {
	case "Deployment", "DaemonSet", "ValidatingAdmissionPolicy", "PodDisruptionBudget", "FlowSchema":
		return fmt.Sprint("generation ", object.GetGeneration())
	case "Secret": // The token's controller fills it.
		return fmt.Sprint(object.GetLabels())
	}
	return object.GetResourceVersion()
}

// awaitsAccounts waits for the account that pods need, which the controller manager creates.
func (c *cluster) awaitsAccounts() {
	c.Helper()
	c.eventually(func() error {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(c.Context(), "default", metav1.GetOptions{})
		return err
	})
}

// takesExamples: the API server accepts files of deploy/examples.
func (c *cluster) takesExamples(files ...string) {
	c.Helper()
	c.awaitsAccounts()
	for _, file := range files {
		c.apply(objects(c, read(c, "deploy/examples/"+file)), metav1.DryRunAll)
	}
}

// takesACanary: a second install leaves the first one as it is, and has pods of its own.
func (c *cluster) takesACanary(first []*unstructured.Unstructured) {
	c.Helper()
	before := map[string]string{}
	for _, object := range c.apply(first) {
		before[key(object)] = version(object)
	}
	canary := kustomized(c, "canary")
	c.bring(canary)
	for _, object := range c.apply(first) {
		if before[key(object)] != version(object) {
			c.Errorf("the canary changes %s", key(object))
		}
	}
	c.eventually(func() error {
		pods, err := c.client.CoreV1().Pods("outboard-canary").List(c.Context(), metav1.ListOptions{})
		if err == nil && len(pods.Items) != 2 {
			err = fmt.Errorf("%d pods of the canary", len(pods.Items))
		}
		return err
	})
}

// takesADay: the API server accepts deploy/examples/day. It does not serve PodGroups.
func (c *cluster) takesADay() {
	c.Helper()
	c.awaitsAccounts()
	c.apply(objects(c, read(c, "deploy/examples/day/priority-classes.yaml")))
	files, err := filepath.Glob(path(c, "deploy/examples/day/*.yaml"))
	if err != nil {
		c.Fatal(err)
	}
	pods := 0
	for _, file := range files {
		for _, object := range objects(c, read(c, "deploy/examples/day/"+filepath.Base(file))) {
			if object.GetKind() != "Pod" {
				continue
			}
			pods++
			object.SetNamespace("default")
			c.apply([]*unstructured.Unstructured{object}, metav1.DryRunAll)
		}
	}
	if pods < 10 {
		c.Errorf("only %d pods", pods)
	}
}

// refusesOthers: a pod that is not restricted is rejected.
func (c *cluster) refusesOthers() {
	c.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "unrestricted"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app"}}}}
	_, err := c.client.CoreV1().Pods(namespace).Create(c.Context(), pod, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		c.Errorf("a pod that is not restricted, want Forbidden: %v", err)
	}
}

// credentials: no container but the shim's has a token.
func (c *cluster) credentials() {
	c.Helper()
	pods, err := c.client.CoreV1().Pods(namespace).List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	for _, pod := range pods.Items {
		tokens := map[string]bool{}
		for _, volume := range pod.Spec.Volumes {
			if volume.Projected != nil {
				tokens[volume.Name] = true
			}
		}
		for _, container := range pod.Spec.Containers {
			has := slices.ContainsFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool { return tokens[mount.Name] })
			if has != (container.Name == "shim") {
				c.Errorf("%s/%s has a token: %v", pod.Name, container.Name, has)
			}
		}
	}
}

// The shim schedules and preempts with the shipped ServiceAccount and configuration, and none of its requests is
// denied.
func TestTheShippedRolesSuffice(t *testing.T) {
	t.Parallel()
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	for name, scheduler := range map[string]string{"sidecar": "outboard-scheduler", "ai-scheduler": "ai-scheduler"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			if name == "ai-scheduler" {
				if err := c.ApplyCustomResources(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			all := kustomized(t, name)
			c.bring(all)
			if err := controlplane.CreateFakeNodes(t.Context(), c.client, 1); err != nil {
				t.Fatal(err)
			}
			// As its kubelet labels it; the pod of `helm test` selects Linux.
			if _, err := c.client.CoreV1().Nodes().Patch(t.Context(), controlplane.FakeNode(0).Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"kubernetes.io/os":"linux"}}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			serving := c.startShim(bin, all, nil)
			for _, page := range []string{"livez", "readyz"} {
				c.eventually(func() error {
					out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "outboard-shim"), "--probe="+serving+"/"+page, "--insecure-skip-tls-verify").CombinedOutput()
					if err != nil {
						err = fmt.Errorf("--probe %s: %w\n%s", page, err, out)
					}
					return err
				})
			}
			if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "outboard-shim"), "--probe="+serving+"/nothing", "--insecure-skip-tls-verify").CombinedOutput(); err == nil {
				t.Errorf("--probe of an unknown page succeeds\n%s", out)
			}
			c.pod("small", scheduler, "", "3")
			c.eventually(func() error { return c.bound("small") })
			// A pod of higher priority preempts it: 4 CPUs a node.
			c.pod("important", scheduler, "outboard."+namespace, "3")
			c.eventually(func() error { return c.bound("important") })
			if _, err := c.client.CoreV1().Pods("default").Get(t.Context(), "small", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the victim is still there: %v", err)
			}
			c.eventually(func() error {
				events, err := c.client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Scheduled,regarding.name=important"})
				if err == nil && len(events.Items) != 1 {
					err = fmt.Errorf("%d events", len(events.Items))
				}
				return err
			})
			c.claimed(scheduler)
			c.helmTest(name)
			lease, err := c.client.CoordinationV1().Leases(namespace).Get(t.Context(), "outboard-scheduler", metav1.GetOptions{})
			if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
				t.Errorf("the lease: %v %v", lease, err)
			}
			if status, _ := c.page(serving+"/metrics", c.token("default", "prometheus")); status != http.StatusForbidden {
				t.Errorf("metrics without the shipped role: status %d", status)
			}
			if err := c.Apply(t.Context(), metricsReader); err != nil {
				t.Fatal(err)
			}
			out := ""
			c.eventually(func() error { // The denial is cached for ten seconds.
				var status int
				if status, out = c.page(serving+"/metrics", c.token("default", "prometheus")); status != http.StatusOK {
					return fmt.Errorf("metrics with the shipped role: status %d\n%s", status, out)
				}
				return nil
			})
			for _, host := range c.shim["hosts"].([]any) {
				name := host.(map[string]any)["name"].(string)
				if status, text := c.page(serving+"/metrics/hosts?host="+name, c.token("default", "prometheus")); status != http.StatusOK || !strings.Contains(text, "outboard_plugin_host_sessions{") {
					t.Errorf("the metrics of host %s with the shipped role: status %d\n%s", name, status, text)
				}
			}
			if status, _ := c.page(serving+"/metrics/hosts?host=main", c.token("default", "other")); status != http.StatusForbidden {
				t.Errorf("the host's metrics without the shipped role: status %d", status)
			}
			requests := 0
			for _, line := range strings.Split(out, "\n") {
				if strings.HasPrefix(line, "rest_client_requests_total{") {
					requests++
					if strings.Contains(line, `code="403"`) {
						t.Errorf("refused: %s", line)
					}
				}
			}
			if requests == 0 {
				t.Error("no metric of requests")
			}
			// As `kubectl exec` runs it in the shim's container.
			for _, command := range []string{"hosts", "queue"} {
				out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "outboard"), command, "--server=unix:"+c.pagesSocket()).CombinedOutput()
				if wanted := map[string]string{"hosts": "serving", "queue": "0 active"}[command]; err != nil || !strings.Contains(string(out), wanted) {
					t.Errorf("outboard %s: %v\n%s", command, err, out)
				}
			}
		})
	}
}

// startShim runs the host and the shim as a pod would, on this machine, and returns the address of its pages. change
// may change the two documents of the shipped configuration.
func (c *cluster) startShim(bin string, all []*unstructured.Unstructured, change func(scheduler, shim map[string]any)) string {
	c.Helper()
	address := controlplane.FreeAddress(c)
	scheduler, shim := config(c, all)
	if shim["servingAddress"] != "unix:/run/outboard/shim/shim.sock" {
		c.Errorf("the shipped configuration serves plain HTTP on %v", shim["servingAddress"])
	}
	shim["servingAddress"] = "unix:" + c.pagesSocket()
	if shim["socketDirectory"] != nil {
		c.startSidecars(bin, shim)
	} else {
		c.hosts = c.startNetworkHosts(bin, shim)
		c.hosts.awaitHosts(all)
	}
	shim["secureServing"].(map[string]any)["address"] = address
	if change != nil {
		change(scheduler, shim)
	}
	c.scheduler, c.shim = scheduler, shim
	c.startReplica(bin, "shipped")
	return "https://" + address
}

// startReplica starts a shim with the configuration of c.scheduler and c.shim, which it writes into a file of this name.
func (c *cluster) startReplica(bin, name string) {
	c.Helper()
	parts := []string{}
	for _, document := range []any{c.scheduler, c.shim} {
		part, err := yaml.Marshal(document)
		if err != nil {
			c.Fatal(err)
		}
		parts = append(parts, string(part))
	}
	file := filepath.Join(c.Dir, name+".yaml")
	if err := os.WriteFile(file, []byte(strings.Join(parts, "---\n")), 0o600); err != nil {
		c.Fatal(err)
	}
	process, err := c.StartProcess("shim", filepath.Join(bin, "outboard-shim"), "--config", file, "--kubeconfig", c.tokenKubeconfig())
	if err != nil {
		c.Fatal(err)
	}
	c.shims = append(c.shims, process)
}

// startSecondReplica starts a further shim with the configuration of startShim, but for its addresses.
func (c *cluster) startSecondReplica(bin string) {
	c.Helper()
	c.shim["servingAddress"] = "unix:" + c.replicaSocket()
	c.shim["secureServing"].(map[string]any)["address"] = controlplane.FreeAddress(c)
	c.startReplica(bin, "replica")
}

// startSidecars starts the hosts of the shim's pod, with the arguments of its containers.
func (c *cluster) startSidecars(bin string, shim map[string]any) {
	c.Helper()
	sockets := filepath.Join(c.Dir, "sockets")
	if err := os.Mkdir(sockets, 0o700); err != nil {
		c.Fatal(err)
	}
	shim["socketDirectory"] = sockets
	metrics := map[string]string{} // by host
	for _, host := range shim["hosts"].([]any) {
		host, name := host.(map[string]any), host.(map[string]any)["name"].(string)
		if host["metricsAddress"] == nil {
			c.Errorf("the shipped configuration does not relay the metrics of host %s", name)
		}
		metrics[name] = controlplane.FreeAddress(c)
		host["metricsAddress"] = metrics[name]
	}
	listen := "--listen=unix:" + sockets + "/main@{instance}.sock"
	if _, err := c.StartProcess("host", filepath.Join(bin, "outboard-host"), listen, "--metrics-address="+metrics["main"]); err != nil {
		c.Fatal(err)
	}
	c.eventually(func() error {
		out, err := exec.CommandContext(c.Context(), filepath.Join(bin, "outboard-host"), "--probe", listen).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("--probe: %w\n%s", err, out)
		}
		return err
	})
	if metrics["claims"] != "" {
		c.startClaimsHost(sockets, metrics["claims"])
	}
}

// pagesSocket is what stands for the socket in the shim's container.
func (c *cluster) pagesSocket() string { return filepath.Join(c.Dir, "pages.sock") }

// replicaSocket is that of a further shim.
func (c *cluster) replicaSocket() string { return filepath.Join(c.Dir, "replica.sock") }

func (c *cluster) startClaimsHost(sockets, metrics string) {
	c.Helper()
	program, err := controlplane.ClaimsHostProgram()
	if err != nil {
		c.Fatal(err)
	}
	listen := "--listen=unix:" + sockets + "/claims@{instance}.sock"
	if _, err := c.StartProcess("claims", program, listen, "--metrics-address="+metrics); err != nil {
		c.Fatal(err)
	}
	c.eventually(func() error {
		out, err := exec.CommandContext(c.Context(), program, "--probe", listen).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("--probe: %w\n%s", err, out)
		}
		return err
	})
}

// claimed: a pod gets a device by its claim, and another one by an extended resource, with the shipped role.
func (c *cluster) claimed(scheduler string) {
	c.Helper()
	c.applyAll(`{apiVersion: v1, kind: Node, metadata: {name: devices}, status: {capacity: &n {cpu: "8", memory: 8Gi, pods: "110"}, allocatable: *n}}`,
		`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: any}, spec: {extendedResourceName: example.com/device}}`,
		`{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: devices},
spec: {driver: device.example.com, nodeName: devices, pool: {name: devices, generation: 0, resourceSliceCount: 1}, devices: [{name: device-0}, {name: device-1}]}}`,
		`{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: one, namespace: default},
spec: {spec: {devices: {requests: [{name: device, exactly: {deviceClassName: any}}]}}}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: claimed, namespace: default}, spec: {schedulerName: `+scheduler+`, tolerations: [{operator: Exists}],
containers: [{name: c, image: i, resources: {claims: [{name: device}]}}], resourceClaims: [{name: device, resourceClaimTemplateName: one}]}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: extended, namespace: default}, spec: {schedulerName: `+scheduler+`, tolerations: [{operator: Exists}],
containers: [{name: c, image: i, resources: {limits: {example.com/device: "1"}}}]}}`)
	c.eventually(func() error { return c.bound("claimed") })
	c.eventually(func() error { return c.bound("extended") })
}

// helmTest: the installed profile schedules the pod of `helm test`, which the namespace accepts.
func (c *cluster) helmTest(name string) {
	c.Helper()
	for _, i := range installations(c) {
		if i.name != name {
			continue
		}
		values := i.all(c)
		values["tests"] = map[string]any{"tolerations": []any{map[string]any{"operator": "Exists"}}}
		_, tests := release(c, values, "outboard", namespace)
		c.apply(tests)
		c.eventually(func() error {
			pod, err := c.client.CoreV1().Pods(namespace).Get(c.Context(), "outboard-test", metav1.GetOptions{})
			if err == nil && pod.Spec.NodeName == "" {
				err = fmt.Errorf("the pod of helm test has no node: %v", pod.Status.Conditions)
			}
			return err
		})
		return
	}
	c.Fatalf("no installation %s", name)
}

// metricsReader binds the shipped role to an account, as an administrator does.
const metricsReader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus-reads-outboard}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: outboard-metrics-reader.outboard-system}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: default}]
`

// token returns a token of a ServiceAccount, which is created if missing.
func (c *cluster) token(namespace, account string) string {
	c.Helper()
	accounts := c.client.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(c.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		c.Fatal(err)
	}
	token, err := accounts.CreateToken(c.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return token.Status.Token
}

// page returns status 0 and the error without an answer.
func (c *cluster) page(url, token string) (status int, body string) {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, url, nil)
	if err != nil {
		c.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// tokenKubeconfig returns a kubeconfig with a token of the shim's ServiceAccount.
func (c *cluster) tokenKubeconfig() string {
	c.Helper()
	return c.kubeconfigOf("outboard-shim", c.token(namespace, "outboard-shim"))
}

// kubeconfigOf writes a kubeconfig with a token. `name` is a part of the file's.
func (c *cluster) kubeconfigOf(name, token string) string {
	c.Helper()
	kubeconfig, err := clientcmd.LoadFromFile(c.AdminKubeconfig)
	if err != nil {
		c.Fatal(err)
	}
	for name := range kubeconfig.AuthInfos {
		kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	}
	file := filepath.Join(c.Dir, "kubeconfig-"+name)
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		c.Fatal(err)
	}
	return file
}

func (c *cluster) pod(name, scheduler, priorityClass, cpu string) {
	c.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler, PriorityClassName: priorityClass, TerminationGracePeriodSeconds: new(int64(0)),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "main", Image: "example.com/app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}},
		},
	}
	if _, err := c.client.CoreV1().Pods("default").Create(c.Context(), pod, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) bound(name string) error {
	pod, err := c.client.CoreV1().Pods("default").Get(c.Context(), name, metav1.GetOptions{})
	if err == nil && pod.Spec.NodeName == "" {
		conditions, _ := json.Marshal(pod.Status.Conditions)
		err = fmt.Errorf("%s has no node: %s", name, conditions)
	}
	return err
}
