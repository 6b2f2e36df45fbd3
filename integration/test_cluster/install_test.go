package testcluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	certmanager "outboard.dev/integration/cert_manager"
	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/operations"
	testcluster "outboard.dev/integration/test_cluster"
)

const (
	namespace = "outboard-system"
	// hostName is in the hosts' certificate.
	hostName = "outboard-host.outboard-system.svc"
	// patience is long because the machine may be busy; the log has the durations.
	patience = 10 * time.Minute
)

// The shipped images as archives of `docker save`. Only by order, because they take long to build.
func imageArchives(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("OUTBOARD_IMAGE_ARCHIVES")
	if dir == "" {
		t.Skip("OUTBOARD_IMAGE_ARCHIVES does not name a folder of `./dev images`; ./dev accept install sets it")
	}
	archives := []string{}
	for _, name := range []string{"outboard-shim", "outboard-host", "outboard-claims-host"} {
		archive := filepath.Join(dir, name+".tar.gz")
		if _, err := os.Stat(archive); err != nil {
			t.Fatalf("%v; OUTBOARD_SAVE_IMAGES=1 ./dev images writes it", err)
		}
		archives = append(archives, archive)
	}
	return archives
}

// installation is an installed Outboard and its users.
type installation struct {
	*testing.T
	cluster   *testcluster.Cluster
	client    kubernetes.Interface
	root      string
	workloads []string // its Deployments and StatefulSets
	scheduler string
	pods      int // created so far
}

func newInstallation(t *testing.T, c *testcluster.Cluster, scheduler string, workloads ...string) *installation {
	t.Helper()
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	root, err := controlplane.Repository()
	if err != nil {
		t.Fatal(err)
	}
	return &installation{T: t, cluster: c, client: client, root: root, workloads: workloads, scheduler: scheduler}
}

// A day of each installation: installed, used, upgraded, its leader's pod deleted, its node drained, removed.
func TestInstall(t *testing.T) {
	images := imageArchives(t)
	began := time.Now()
	c := testcluster.ForTest(t, testcluster.Options{Nodes: 2, Images: images, DNS: true})
	t.Logf("2 nodes with the images are Ready after %v", time.Since(began).Round(time.Second))
	if err := certmanager.Start(t.Context(), c.ControlPlane, t.Logf); err != nil {
		t.Fatal(err)
	}
	if err := c.EnforcePolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []struct {
		name            string
		workloads       []string
		install, remove func(*installation)
	}{
		{"sidecar", []string{"deployment/outboard-shim"}, applied("sidecar"), deleted("sidecar")},
		{"mtls-certified", []string{"deployment/outboard-host", "deployment/outboard-shim"}, applied("mtls-certified"), deleted("mtls-certified")},
		{"helm", []string{"deployment/outboard-shim"}, (*installation).installWithHelm, (*installation).uninstallWithHelm},
	} {
		t.Run(kind.name, func(t *testing.T) {
			i := newInstallation(t, c, "outboard-scheduler", kind.workloads...)
			kind.install(i)
			i.livesADay()
			kind.remove(i)
			i.kubectl("delete", "pods", "--all", "--namespace", "default", "--timeout", patience.String())
			i.leavesNothing()
		})
	}
}

func applied(name string) func(*installation) {
	return func(i *installation) {
		i.timed("kubectl apply -k, and all pods are ready", func() {
			i.kubectl("apply", "-k", filepath.Join(i.root, "deploy", "kustomize", name))
			i.rolledOut()
		})
	}
}

func deleted(name string) func(*installation) {
	return func(i *installation) {
		i.timed("kubectl delete -k", func() {
			i.kubectl("delete", "-k", filepath.Join(i.root, "deploy", "kustomize", name), "--ignore-not-found", "--timeout", patience.String())
		})
	}
}

// installWithHelm installs the chart for a small cluster, after others that it removes: for a large cluster, and with
// mutual TLS.
func (i *installation) installWithHelm() {
	i.helmInstalls("size=large")
	i.helmUninstalls()
	i.helmInstalls("mode=mtls,certManager.enabled=true")
	i.helmUninstalls()
	i.helmInstalls("size=small")
}

func (i *installation) helmInstalls(values string) {
	i.timed("helm install --set "+values, func() {
		i.helm("install", "outboard", filepath.Join(i.root, "deploy", "chart", "outboard"), "--create-namespace", "--set", values, "--wait")
	})
	i.timed("helm test", func() { i.helm("test", "outboard") })
}

func (i *installation) helmUninstalls() {
	i.timed("helm uninstall", func() { i.helm("uninstall", "outboard", "--wait") })
}

func (i *installation) uninstallWithHelm() {
	i.helmUninstalls()
	i.kubectl("delete", "namespace", namespace, "--timeout", patience.String())
}

func (i *installation) helm(args ...string) {
	i.Helper()
	program, err := operations.HelmProgram(i.Context(), i.Logf)
	if err != nil {
		i.Fatal(err)
	}
	command := exec.CommandContext(i.Context(), program, append(args, "--namespace", namespace, "--timeout", patience.String())...)
	home := i.TempDir()
	command.Env = append(os.Environ(), "KUBECONFIG="+i.cluster.AdminKubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	if out, err := command.CombinedOutput(); err != nil {
		i.Fatalf("helm %s: %v\n%s\n%s", strings.Join(args, " "), err, out, i.kubectl("describe", "pods", "--namespace", namespace))
	}
}

func (i *installation) livesADay() {
	i.onTwoNodes()
	i.timed("the first pod runs", i.runFirstPod)
	i.isUpgraded()
	i.losesItsLeadersPod()
	i.drainsItsLeadersNode()
}

// createSecrets creates the certificates of mutual TLS, which the manifests expect.
func (i *installation) createSecrets() {
	i.kubectl("apply", "-f", filepath.Join(i.root, "deploy", "kustomize", "base", "namespace.yaml"))
	host, shim := i.TempDir(), i.TempDir()
	if err := controlplane.WriteHostSecrets(host, shim, hostName); err != nil {
		i.Fatal(err)
	}
	for name, dir := range map[string]string{"outboard-host-tls": host, "outboard-shim-tls": shim} {
		i.kubectl("create", "secret", "generic", name, "--namespace", namespace, "--from-file", dir)
	}
}

func (i *installation) kubectl(args ...string) string {
	i.Helper()
	out, err := i.cluster.Kubectl(i.Context(), args...)
	if err != nil {
		if pods, podsErr := i.cluster.Kubectl(i.Context(), "describe", "pods", "--all-namespaces"); podsErr == nil {
			i.Log(pods)
		}
		i.Fatal(err)
	}
	return out
}

func (i *installation) timed(what string, do func()) {
	i.Helper()
	began := time.Now()
	do()
	i.Logf("%s: %.1f s", what, time.Since(began).Seconds())
}

func (i *installation) eventually(what string, check func(context.Context) error) {
	i.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(i.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	}); err != nil {
		i.Fatalf("%s: %v: %v", what, err, last)
	}
}

func (i *installation) rolledOut() {
	i.Helper()
	for _, workload := range i.workloads {
		i.kubectl("rollout", "status", workload, "--namespace", namespace, "--timeout", patience.String())
	}
}

// onTwoNodes: two shims, or two hosts, are not lost together, after an update either.
func (i *installation) onTwoNodes() {
	i.Helper()
	pods, err := i.client.CoreV1().Pods(namespace).List(i.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component in (shim, host)"})
	if err != nil {
		i.Fatal(err)
	}
	nodes := map[string][]string{} // by component
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			component := pod.Labels["app.kubernetes.io/component"]
			nodes[component] = append(nodes[component], pod.Spec.NodeName)
		}
	}
	if len(nodes) != len(i.workloads) {
		i.Errorf("pods of %v, want those of %v", nodes, i.workloads)
	}
	for component, of := range nodes {
		if len(of) != 2 || of[0] == of[1] {
			i.Errorf("want two pods of component %s on two nodes:\n%s", component, i.kubectl("get", "pods", "--namespace", namespace, "--output", "wide"))
		}
	}
}

// runFirstPod runs the pod of docs/install.md. Its image is on every node: see PauseImage.
func (i *installation) runFirstPod() {
	i.kubectl("apply", "-f", filepath.Join(i.root, "deploy", "examples", "first-pod.yaml"))
	i.runs("first")
	described := i.kubectl("describe", "pod", "first")
	if !strings.Contains(described, "outboard-scheduler  Successfully assigned default/first to node-") {
		i.Errorf("not by outboard-scheduler:\n%s", described)
	}
}

// runs waits until a pod of the namespace default is Ready.
func (i *installation) runs(name string) {
	i.Helper()
	i.eventually("pod "+name, func(ctx context.Context) error {
		pod, err := i.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("phase %s on node %q", pod.Status.Phase, pod.Spec.NodeName)
	})
}

// createPod creates a pod that only runs.
func (i *installation) createPod(namespace, name, scheduler string, requests corev1.ResourceList) {
	i.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{Name: "main", Image: testcluster.PauseImage,
			Resources: corev1.ResourceRequirements{Requests: requests}}}},
	}
	if _, err := i.client.CoreV1().Pods(namespace).Create(i.Context(), pod, metav1.CreateOptions{}); err != nil {
		i.Fatal(err)
	}
}

// runPod creates a further pod for Outboard, waits until it runs and deletes it: a kubelet runs no more than 110.
func (i *installation) runPod() {
	i.Helper()
	i.pods++
	name := fmt.Sprintf("pod-%d", i.pods)
	i.createPod("default", name, i.scheduler, nil)
	i.runs(name)
	if err := i.client.CoreV1().Pods("default").Delete(i.Context(), name, *metav1.NewDeleteOptions(0)); err != nil {
		i.Fatal(err)
	}
}

// isUpgraded replaces all images with `kubectl set image` while pods are created one after the other. The new images have
// the same contents under another name.
func (i *installation) isUpgraded() {
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- i.setImages() }()
	var slowest time.Duration
	for first := i.pods; ; {
		created := time.Now()
		i.runPod()
		slowest = max(slowest, time.Since(created))
		select {
		case err := <-done:
			if err != nil {
				i.Fatal(err)
			}
			i.Logf("kubectl set image: %.1f s; meanwhile %d pods ran, the slowest after %.1f s", time.Since(began).Seconds(), i.pods-first, slowest.Seconds())
			i.onTwoNodes()
			return
		default:
		}
	}
}

func (i *installation) setImages() error {
	for _, workload := range i.workloads {
		containers, err := i.cluster.Kubectl(i.Context(), "get", workload, "--namespace", namespace, "--output",
			`jsonpath={range .spec.template.spec.containers[*]}{.name}={.image}{"\n"}{end}`)
		if err != nil {
			return err
		}
		set := []string{"set", "image", workload, "--namespace", namespace}
		for _, container := range strings.Fields(containers) {
			_, image, _ := strings.Cut(container, "=")
			if err := i.cluster.TagImage(i.Context(), image, image+"-next"); err != nil {
				return err
			}
			set = append(set, container+"-next")
		}
		if _, err := i.cluster.Kubectl(i.Context(), set...); err != nil {
			return err
		}
		if _, err := i.cluster.Kubectl(i.Context(), "rollout", "status", workload, "--namespace", namespace, "--timeout", patience.String()); err != nil {
			return err
		}
	}
	return nil
}

// leader returns the pod that holds the lease.
func (i *installation) leader(ctx context.Context) (*corev1.Pod, error) {
	lease, err := i.client.CoordinationV1().Leases(namespace).Get(ctx, "outboard-scheduler", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return nil, errors.New("the lease is free")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return i.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (i *installation) mustLead() *corev1.Pod {
	i.Helper()
	var pod *corev1.Pod
	i.eventually("a leader", func(ctx context.Context) (err error) { // Between two leaders the lease is free for a moment.
		pod, err = i.leader(ctx)
		return err
	})
	return pod
}

// anotherLeads waits until another pod than `before` leads and its pods run. Says also when `before` was told to end: a
// drain may have waited for a disruption budget first.
func (i *installation) anotherLeads(before *corev1.Pod) {
	i.Helper()
	began, told := time.Now(), false
	i.timed("another pod leads", func() {
		i.eventually("another leader", func(ctx context.Context) error {
			if old, err := i.client.CoreV1().Pods(namespace).Get(ctx, before.Name, metav1.GetOptions{}); !told && (apierrors.IsNotFound(err) || err == nil && old.DeletionTimestamp != nil) {
				told = true
				i.Logf("the leader's pod is being deleted: %.1f s", time.Since(began).Seconds())
			}
			now, err := i.leader(ctx)
			if err == nil && now.UID == before.UID {
				err = fmt.Errorf("%s still leads", before.Name)
			}
			return err
		})
	})
	i.timed("and a new pod runs", i.runPod)
}

func (i *installation) losesItsLeadersPod() {
	leader := i.mustLead()
	i.Logf("deleting the leader's pod %s", leader.Name)
	i.kubectl("delete", "pod", leader.Name, "--namespace", namespace, "--wait=false")
	i.anotherLeads(leader)
	i.timed("all pods are ready again", i.rolledOut)
}

func (i *installation) drainsItsLeadersNode() {
	leader := i.mustLead()
	node := leader.Spec.NodeName
	i.Logf("kubectl drain %s", node)
	began := time.Now()
	drained := make(chan error, 1)
	go func() {
		_, err := i.cluster.Kubectl(i.Context(), "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout", patience.String())
		drained <- err
	}()
	i.anotherLeads(leader)
	if err := <-drained; err != nil {
		i.Fatal(err)
	}
	i.Logf("the node is drained: %.1f s", time.Since(began).Seconds())
	i.timed("all pods are ready again", i.rolledOut)
	i.kubectl("uncordon", node)
}

// leavesNothing: no object with the install's label remains, in the cluster or in its namespace.
func (i *installation) leavesNothing() {
	left := i.kubectl("get", "clusterroles,clusterrolebindings,flowschemas,priorityclasses,namespaces",
		"--selector", "app.kubernetes.io/name=outboard", "--output", "name")
	if left != "" && !strings.Contains(left, "No resources found") {
		i.Errorf("left behind:\n%s", left)
	}
	// The kubelet removes containers some time after their pod.
	for _, node := range i.cluster.Nodes {
		i.eventually("containers on "+node.Name, func(ctx context.Context) error {
			out, err := node.Command(ctx, "ctr", "--namespace", "k8s.io", "containers", "list").CombinedOutput()
			if err == nil && strings.Contains(string(out), "outboard-") {
				err = errors.New("not removed")
			}
			if err != nil {
				err = fmt.Errorf("%w:\n%s", err, out)
			}
			return err
		})
	}
}
