package deploy_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"outboard.dev/integration/bench/checker"
	"outboard.dev/integration/bench/load"
	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/faults"
)

// Pods a second meanwhile.
const replacementRate = 40

// What docs/operations/replace-hosts.md shows: `kubectl set image` of the Deployment outboard-host, with the real
// Deployment controller, under load. A good build takes over, pod by pod. A build that fails in the comparison, and one
// that fails while it serves, stop the update; the old build serves, and `kubectl rollout undo` removes the new one. The
// shim that leads may end meanwhile: the other replica begins with the old build, too.
func TestKubectlReplacesHosts(t *testing.T) {
	t.Parallel()
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	c := newClusterOf(t, controlplane.Options{ControllerManager: true, KWOK: true})
	if err := controlplane.CreateFakeNodes(t.Context(), c.client, 50); err != nil {
		t.Fatal(err)
	}
	all := kustomized(t, "mtls")
	c.apply(all)
	// The shipped times are a minute each.
	c.kubectl("patch", "deployment/outboard-host", "--patch", `{"spec": {"minReadySeconds": 12}}`)
	c.startShim(bin, all, func(_, shim map[string]any) {
		shim["replacement"] = map[string]any{"keepWarm": "10s", "shadowTimeout": "20s"}
	})
	faulty := []string{faults.BuildFaultyHost(t), "--host", filepath.Join(bin, "outboard-host")}
	c.hosts.addPrograms(map[string][]string{
		"outboard-host:good":     append(slices.Clone(faulty), "--digest", "good"),
		"outboard-host:wrong":    append(slices.Clone(faulty), "--digest", "wrong", "--fault", "wrong-in-shadow"),
		"outboard-host:crashing": append(slices.Clone(faulty), "--digest", "crashing", "--fault", "crash-in-shadow"),
		"outboard-host:late":     append(slices.Clone(faulty), "--digest", "late", "--fault", "one-percent"),
	})
	c.rolledOut()
	c.startSecondReplica(bin)
	if got := c.kubectl("get", "pods", "--selector", "app.kubernetes.io/component=host", "--output", "wide"); strings.Count(got, "1/1") != 2 {
		t.Errorf("readiness gates:\n%s", got)
	}

	stream := load.Start(t.Context(), c.client, "default", replacementRate, func(name string) *corev1.Pod {
		pod := load.NewPod(name)
		pod.Spec.SchedulerName = "outboard-scheduler"
		return pod
	})
	began := time.Now()
	c.kubectl("set", "image", "deployment/outboard-host", "host=outboard-host:good")
	c.rolledOut()
	t.Logf("a good build: %.0f s for 2 pods", time.Since(began).Seconds())
	c.serves("good")

	for build, reasons := range map[string][]string{"wrong": {"Quarantined"}, "late": {"Quarantined"}, "crashing": {"Comparing", "NotConnected"}} {
		began := time.Now()
		c.kubectl("set", "image", "deployment/outboard-host", "host=outboard-host:"+build)
		refused := c.notReady(build, reasons)
		t.Logf("a build that is %s: not ready after %.0f s, %s: %s", build, time.Since(began).Seconds(), refused.Reason, refused.Message)
		if out, err := c.tryKubectl("rollout", "status", "deployment/outboard-host", "--timeout=1s"); err == nil {
			t.Errorf("the update goes on:\n%s", out)
		}
		c.serves("good")
		if build == "wrong" {
			c.leaderEnds("good")
		}
		c.kubectl("rollout", "undo", "deployment/outboard-host")
		c.rolledOut()
		c.serves("good")
	}

	if err := stream.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	var took []float64
	for _, pod := range stream.Latencies() {
		took = append(took, pod.Took.Seconds())
	}
	t.Logf("created to bound, s: p50 %.3f, p99 %.3f, most %.3f of %d pods", load.Quantile(took, 0.5), load.Quantile(took, 0.99), load.Quantile(took, 1), len(took))
	c.eventually(func() error { // Events follow the binds.
		report, err := checker.Check(t.Context(), c.EtcdURL, c.client)
		if err != nil {
			return err
		}
		// The load's pods are all bound by now; those of the install are not, because no kube-scheduler runs here. The
		// leader that was killed has not sent its last events: on a busy machine those of several seconds.
		faults := report.Faults() - report.Unbound - report.NoEvent
		if faults > 0 || report.NoEvent > len(took)/5 || report.Binds < len(took) {
			return fmt.Errorf("%d of %d pods were bound, or there are faults: %v", report.Binds, len(took), report)
		}
		t.Log(report)
		return nil
	})
}

func (c *cluster) tryKubectl(args ...string) (string, error) {
	out, err := exec.CommandContext(c.Context(), "kubectl", append([]string{"--kubeconfig", c.AdminKubeconfig, "--namespace", namespace}, args...)...).CombinedOutput()
	return string(out), err
}

func (c *cluster) kubectl(args ...string) string {
	c.Helper()
	out, err := c.tryKubectl(args...)
	if err != nil {
		c.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// rolledOut waits for the Deployment of the hosts, all pods of which are available then.
func (c *cluster) rolledOut() {
	c.Helper()
	if out, err := c.tryKubectl("rollout", "status", "deployment/outboard-host", "--timeout=3m"); err != nil {
		pods, _ := c.tryKubectl("get", "pods", "--output", "yaml")
		c.Fatalf("%v\n%s\n%s", err, out, pods)
	}
}

// serves checks which build of the host `main` serves.
func (c *cluster) serves(build string) {
	c.Helper()
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		c.Fatal(err)
	}
	c.eventually(func() error {
		serving, all, err := c.servingBuild(bin)
		if err == nil && serving != build {
			err = fmt.Errorf("build %s does not serve: %s", build, all)
		}
		return err
	})
}

// servingBuild asks the shim that leads which build of the host `main` serves, empty: none, and for the whole answer.
func (c *cluster) servingBuild(bin string) (build, all string, err error) {
	socket := c.pagesSocket()
	if len(c.shims) > 1 && c.shims[0].HasEnded() {
		socket = c.replicaSocket()
	}
	out, err := exec.CommandContext(c.Context(), filepath.Join(bin, "outboard"), "hosts", "--output=json", "--server=unix:"+socket).CombinedOutput()
	if err != nil {
		return "", "", fmt.Errorf("%w: %s", err, out)
	}
	var answer struct{ Instances []controlplane.HostInstance }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", "", err
	}
	for _, host := range answer.Instances {
		if host.Host == "main" && host.State == "serving" {
			build = host.BuildDigest
		}
	}
	return build, string(out), nil
}

// leaderEnds: the other replica leads, and schedules with this build from the beginning.
func (c *cluster) leaderEnds(build string) {
	c.Helper()
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		c.Fatal(err)
	}
	holder := func() string {
		lease, err := c.client.CoordinationV1().Leases(namespace).Get(c.Context(), "outboard-scheduler", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			c.Fatalf("the lease: %v %v", lease, err)
		}
		return *lease.Spec.HolderIdentity
	}
	former := holder()
	c.shims[0].Kill()
	began := time.Now()
	c.eventually(func() error {
		if now := holder(); now == former {
			return fmt.Errorf("%s holds the lease", now)
		}
		return nil
	})
	c.Logf("the other replica leads after %.0f s", time.Since(began).Seconds())
	// Longer than the comparison of a new build, which must not win.
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) { // Poll interval.
		if serving, all, err := c.servingBuild(bin); err != nil || serving != build {
			c.Fatalf("build %q serves, not %s: %v\n%s", serving, build, err, all)
		}
	}
}

// notReady waits until a pod with this image is not ready for one of the reasons, and returns the condition that says so.
// If it is refused, an event says so, too.
func (c *cluster) notReady(image string, reasons []string) (not corev1.PodCondition) {
	c.Helper()
	name := ""
	c.within(3*patience, func() error {
		pods, err := c.client.CoreV1().Pods(namespace).List(c.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=host"})
		if err != nil {
			return err
		}
		ready := 0
		for _, pod := range pods.Items {
			isNew := strings.HasSuffix(pod.Spec.Containers[0].Image, ":"+image)
			for _, condition := range pod.Status.Conditions {
				if condition.Type == "outboard.dev/host-ready" && isNew && condition.Status == corev1.ConditionFalse && slices.Contains(reasons, condition.Reason) {
					name, not = pod.Name, condition
				}
				if condition.Type == corev1.PodReady && !isNew && condition.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if name == "" || ready != 2 {
			return fmt.Errorf("%d pods of the old build are ready; %+v", ready, not)
		}
		return nil
	})
	if not.Reason != "Quarantined" {
		return not
	}
	c.eventually(func() error {
		events, err := c.client.EventsV1().Events(namespace).List(c.Context(), metav1.ListOptions{FieldSelector: "reason=HostRefused,regarding.name=" + name})
		if err == nil && len(events.Items) == 0 {
			err = fmt.Errorf("no event HostRefused of %s", name)
		}
		return err
	})
	return not
}
