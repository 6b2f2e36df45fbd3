package images_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"outboard.dev/integration/bench/checker"
	"outboard.dev/integration/bench/load"
	controlplane "outboard.dev/integration/control_plane"
)

// No image contains another's program, and none was built with another's sources available.
func TestEachImageHoldsItsProgram(t *testing.T) {
	images := images(t)
	root, err := controlplane.Repository()
	if err != nil {
		t.Fatal(err)
	}
	for container, want := range map[string]struct{ programs, dockerfile, sources string }{
		"shim":       {"outboard outboard-shim", "Dockerfile.shim", "CMakeLists.txt VERSION proto logging shim cli LICENSE NOTICE"},
		"host":       {"outboard-host", "Dockerfile.host", "CMakeLists.txt VERSION proto logging plugin_host plugins LICENSE NOTICE"},
		"node-probe": {"outboard-node-probe", "Dockerfile.node-probe", "CMakeLists.txt VERSION proto logging shim plugin_host plugins node_probe LICENSE NOTICE"},
		"claims":     {"outboard-claims-host", "plugins/dynamic_resources/host/Dockerfile", "proto integration/examples/go plugins/dynamic_resources/host LICENSE NOTICE"},
	} {
		image := images[container]
		dockerfile, err := os.ReadFile(filepath.Join(root, want.dockerfile))
		if err != nil {
			t.Fatal(err)
		}
		sources := []string{}
		for _, copied := range regexp.MustCompile(`(?m)^(?:COPY|ADD) (.*) \S+$`).FindAllStringSubmatch(string(dockerfile), -1) {
			if !strings.HasPrefix(copied[1], "--from=build ") {
				sources = append(sources, copied[1])
			}
		}
		if got := strings.Join(sources, " "); got != want.sources {
			t.Errorf("%s takes %q, want %q", want.dockerfile, got, want.sources)
		}
		programs := docker(t, "run", "--rm", "--network=none", "--pull=never", "--user=root", "--entrypoint=find", image, "/", "-xdev", "-name", "outboard*", "-type", "f")
		held := strings.Fields(programs)
		slices.Sort(held)
		if want := "/usr/local/bin/" + strings.ReplaceAll(want.programs, " ", " /usr/local/bin/"); strings.Join(held, " ") != want {
			t.Errorf("%s holds %q, want %q", image, held, want)
		}
		if user := docker(t, "image", "inspect", "--format", "{{.Config.User}}", image); user != fmt.Sprintf("%d:%d", nonroot, nonroot) {
			t.Errorf("%s runs as %q, which a kubelet cannot tell from root", image, user)
		}
	}
}

// Two hosts share a folder of sockets, as during a replacement: the health check of a hanging host does not pass
// because of the other.
func TestTheHealthCheckIsAboutItsOwnContainer(t *testing.T) {
	image := images(t)["host"]
	var check []string
	if err := json.Unmarshal([]byte(docker(t, "image", "inspect", "--format", "{{json .Config.Healthcheck.Test}}", image)), &check); err != nil || check[0] != "CMD" {
		t.Fatalf("health check %q: %v", check, err)
	}
	flags := append(slices.Clone(confined), sharedSockets(t))
	hosts := []*container{runContainer(t, "one", image, flags), runContainer(t, "the other", image, flags)}
	healthy := func(c *container) error {
		_, err := tryDocker(t.Context(), slices.Concat([]string{"exec", c.id}, check[1:])...)
		return err
	}
	for _, host := range hosts {
		eventually(t, func() error { return healthy(host) })
	}
	docker(t, "kill", "--signal=STOP", hosts[0].id)
	if err := healthy(hosts[0]); err == nil {
		t.Error("a host that hangs is healthy while another one is")
	}
	if err := healthy(hosts[1]); err != nil {
		t.Errorf("a host is not healthy while another one hangs: %v", err)
	}
}

// The pod of deploy/kustomize/sidecar, run as its specification says, schedules pods and ends without errors.
func TestTheShippedPod(t *testing.T) {
	images := images(t)
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 3); err != nil {
		t.Fatal(err)
	}
	k := newKubelet(t, c, client, applyShipped(t, c, client), images)
	k.start()
	for name, container := range k.containers {
		container.isConfined()
		// A plugin host has no credentials.
		mounts := docker(t, "exec", container.id, "cat", "/proc/1/mounts")
		if has := strings.Contains(mounts, "serviceaccount"); has != (name == "shim") {
			t.Errorf("%s has a token: %v\n%s", name, has, mounts)
		}
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
	eventually(t, func() error { // Events follow the binds.
		if report, err = checker.Check(t.Context(), c.EtcdURL, client); err != nil {
			return err
		}
		if report.Binds != pods || report.Faults() > 0 {
			return fmt.Errorf("%d pods: %v", pods, report)
		}
		return nil
	})
	t.Log(report)
	// As kubectl exec runs it, without flags.
	if out := docker(t, "exec", k.containers["shim"].id, "outboard", "hosts"); !strings.Contains(out, "serving") {
		t.Errorf("outboard hosts in the shim's container:\n%s", out)
	}
	docker(t, "exec", k.containers["shim"].id, "outboard", "queue")
	if out, err := tryDocker(t.Context(), "exec", k.containers["host"].id, "ls", "/run/outboard/shim"); err == nil {
		t.Errorf("the host reaches the shim's pages: %s", out)
	}
	for i := range k.spec.Containers {
		spec := &k.spec.Containers[i]
		if err := k.probe(spec, spec.LivenessProbe); err != nil {
			t.Errorf("liveness of %s: %v", spec.Name, err)
		}
	}

	k.stop()
	lease, err := client.CoordinationV1().Leases(shippedNamespace).Get(t.Context(), "outboard-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != "" {
		t.Errorf("the lease was not released: %v", lease.Spec)
	}
}
