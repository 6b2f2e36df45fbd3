package images_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	"outboard.dev/integration/bench/load"
	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/deploy"
)

const shippedNamespace = "outboard-system"

// The pod of deploy/kustomize/sidecar, run with everything that its specification says, schedules pods and ends well.
func TestTheShippedPod(t *testing.T) {
	shim, host := images(t)
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 3); err != nil {
		t.Fatal(err)
	}
	k := newKubelet(t, c, client, shippedNamespace, shippedPod(t, c, client, map[string]string{"shim": shim, "host": host}))
	k.start()
	for _, name := range []string{"shim", "host"} {
		k.containers[name].isConfined()
	}
	// A plugin host has no credentials.
	if mounts := docker(t, "exec", k.containers["host"].id, "cat", "/proc/1/mounts"); strings.Contains(mounts, "serviceaccount") {
		t.Errorf("the host has a token:\n%s", mounts)
	}

	const pods = 50
	for i := range pods {
		pod := load.NewPod(fmt.Sprintf("pod-%03d", i))
		pod.Spec.SchedulerName = "outboard-scheduler"
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var report *checker.Report
	eventually(t, func() error { // Events come after the binds.
		if report, err = checker.Check(t.Context(), c.EtcdURL, client); err != nil {
			return err
		}
		if report.Binds != pods || report.Faults() > 0 {
			return fmt.Errorf("%d pods: %v", pods, report)
		}
		return nil
	})
	t.Log(report)
	for i := range k.spec.Containers {
		spec := &k.spec.Containers[i]
		for what, probe := range map[string]*corev1.Probe{"liveness": spec.LivenessProbe, "readiness": spec.ReadinessProbe} {
			if probe == nil {
				continue
			}
			if err := k.probe(spec, probe); err != nil {
				t.Errorf("%s of %s: %v", what, spec.Name, err)
			}
		}
	}

	k.stop()
	lease, err := client.CoordinationV1().Leases(shippedNamespace).Get(t.Context(), "outboard-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != "" {
		t.Errorf("the lease was not given up: %v", lease.Spec)
	}
}

// shippedPod applies deploy/kustomize/sidecar and returns the pod of its Deployment, as the API server has it, with these images and a port of the
// machine that is free.
func shippedPod(t *testing.T, c *controlplane.ControlPlane, client kubernetes.Interface, images map[string]string) *corev1.PodSpec {
	t.Helper()
	manifests, err := deploy.Kustomized("sidecar")
	if err != nil {
		t.Fatal(err)
	}
	const shippedAddress = `address: "0.0.0.0:10270"`
	if strings.Count(manifests, shippedAddress) != 1 {
		t.Fatalf("the shipped configuration does not have %s", shippedAddress)
	}
	port := freePort(t)
	if err := c.Apply(t.Context(), strings.Replace(manifests, shippedAddress, fmt.Sprintf(`address: "127.0.0.1:%d"`, port), 1)); err != nil {
		t.Fatal(err)
	}
	// kube-controller-manager puts it into each namespace.
	authority, err := os.ReadFile(filepath.Join(c.Dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps(shippedNamespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": string(authority)},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deployment, err := client.AppsV1().Deployments(shippedNamespace).Get(t.Context(), "outboard-shim", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := &deployment.Spec.Template.Spec
	for i := range spec.Containers {
		container := &spec.Containers[i]
		if images[container.Name] == "" {
			t.Fatalf("the pod has a container %s", container.Name)
		}
		container.Image = images[container.Name]
		for j := range container.Ports {
			container.Ports[j].ContainerPort = int32(port)
		}
	}
	return spec
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
