package faults

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

var hostileAll = flag.Bool("hostile.all", false, "hosts with all faults at once, instead of some")

// Hosts that flood, read nothing, answer nothing, answer garbage or answer without end serve a profile each; another
// profile has a sound host, and huge pods. A hundred slow clients keep the pages busy. The shim and the sound host
// have 512 MiB. Pods of the sound profile are bound, and `outboard hosts` names the others; once these are replaced,
// their pods are bound, too.
func TestHostileHosts(t *testing.T) {
	t.Parallel()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no host")
	}
	const limit = 512 << 20
	hosts := []struct{ fault, plugin string }{
		{"silent", "NodeName"}, {"undecodable", "NodeUnschedulable"}, {"answers-without-end", "TaintToleration"},
		{"flood", "VolumeRestrictions"},
		{"deaf", "NodePorts"}, {"late", "NodeAffinity"}, {"flapping", "VolumeZone"}, {"wrong-count", "NodeVolumeLimits"},
		{"score-out-of-range", "PodTopologySpread"}, {"unknown-node", "InterPodAffinity"}, {"another-attempt", "VolumeBinding"},
	}
	if !*hostileAll {
		hosts = hosts[:4]
	}
	// A program that starts a faulty host at a lower priority: they send as fast as they can, and the control plane needs
	// the CPUs, too. Not much lower: where other tests run they must receive the cluster, and a flood must reach the shim's
	// limit, which is per second.
	patient := filepath.Join(t.TempDir(), "faulty_host.sh")
	if err := os.WriteFile(patient, fmt.Appendf(nil, "#!/bin/sh\nexec nice -n 5 '%s' \"$@\"\n", BuildFaultyHost(t)), 0o700); err != nil {
		t.Fatal(err)
	}
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	shimMemory, hostMemory := newControlGroup(t, "memory"), newControlGroup(t, "memory")
	for _, group := range []controlGroup{shimMemory, hostMemory} {
		group.set(t, "memory.limit_in_bytes", limit)
	}
	c := controlplane.ForTest(t, controlplane.Options{})
	start := func(name, program string, args ...string) *controlplane.Process {
		t.Helper()
		process, err := c.StartProcess("host-"+name, program, append([]string{"--listen", "unix:" + filepath.Join(c.Dir, name+".sock")}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return process
	}
	var config strings.Builder
	config.WriteString("podMaxBackoffSeconds: 1\nprofiles:\n")
	options := controlplane.OutboardOptions{ShimCommand: []string{startsAfter(t, shimMemory.enter(), "outboard-shim")}}
	profile := func(scheduler, host, plugin string) {
		fmt.Fprintf(&config, "- schedulerName: %s\n  plugins: {multiPoint: {disabled: [{name: '*'}, {name: NotServed}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: %s}]}}\n",
			scheduler, plugin)
		options.Hosts = append(options.Hosts, map[string]any{"name": host, "address": "unix:" + filepath.Join(c.Dir, host+".sock")})
	}
	profile("default-scheduler", "sound", "NodeResourcesFit")
	metrics := controlplane.FreeAddress(t)
	start("sound", startsAfter(t, hostMemory.enter(), "outboard-host"), "--plugins", "NodeResourcesFit,PrioritySort,DefaultBinder",
		"--metrics-address", metrics)
	enemies := map[string]*controlplane.Process{}
	for _, host := range hosts {
		profile(host.fault, host.fault, host.plugin)
		enemies[host.fault] = start(host.fault, patient, "--host", filepath.Join(directory, "outboard-host"), "--fault", host.fault,
			"--", "--plugins", host.plugin)
	}
	options.Config.Text = config.String()
	client, outboard := startOn(t, c, options)

	// The hostile hosts' profiles check no room on nodes, and may put all their pods on one.
	roomForAll(t, client)
	const each = 20
	for _, host := range hosts {
		for i := range each {
			createFor(t, client, host.fault, fmt.Sprintf("%s-%d", host.fault, i))
		}
	}
	stop := createSteadily(t, client, "sound")
	huge := createHuge(t, client)
	for _, address := range []string{strings.TrimPrefix(outboard.URL(), "http://"), metrics} {
		for i := range 100 {
			connectSlowly(t, address, i%2 == 0)
		}
	}
	for _, host := range hosts {
		more := each
		within(t, 40*time.Second, "`outboard hosts` names "+host.fault, func() error {
			// One call may have placed all before.
			createFor(t, client, host.fault, fmt.Sprintf("%s-%d", host.fault, more))
			more++
			for _, one := range hostsOf(t, outboard) {
				if one.Host == host.fault && (one.Failures > 0 || strings.Contains(one.Why, "its last one ended because")) {
					t.Logf("%s: %s, %d failures, %q", one.Host, one.State, one.Failures, one.Why)
					return nil
				}
			}
			return fmt.Errorf("it does not: %+v", hostsOf(t, outboard))
		})
	}
	for _, url := range []string{outboard.URL(), "http://" + metrics} {
		within(t, 10*time.Second, url+" answers although clients are slow", func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := controlplane.Scrape(ctx, url+"/metrics")
			return err
		})
	}
	total := stop()
	began := time.Now()
	within(t, 30*time.Second, "the sound profile's pods are bound", func() error { return unbound(t, client, total) })
	t.Logf("%d pods of the sound profile were bound, %d of them huge; the last %v after its creation", total, huge, time.Since(began))

	for _, host := range hosts {
		enemies[host.fault].Kill()
		start(host.fault, filepath.Join(directory, "outboard-host"), "--plugins", host.plugin)
	}
	within(t, time.Minute, "pods are bound once their hosts are sound", func() error {
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err == nil && slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" }) {
			err = fmt.Errorf("some of %d are not", len(list.Items))
		}
		return err
	})
	checkSockets(t, c, client)
	for name, group := range map[string]controlGroup{"shim": shimMemory, "host": hostMemory} {
		peak, killed := group.number(t, "memory.max_usage_in_bytes", ""), group.number(t, "memory.oom_control", "oom_kill ")
		t.Logf("%s: at most %d MiB", name, peak>>20)
		if peak >= limit || killed > 0 {
			t.Errorf("%s had %d bytes at most, and the kernel killed it %d times; the limit is %d bytes", name, peak, killed, limit)
		}
	}
}

func roomForAll(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		node.Status.Capacity[corev1.ResourcePods] = resource.MustParse("10k")
		node.Status.Allocatable = node.Status.Capacity
		if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), &node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func createFor(t *testing.T, client kubernetes.Interface, scheduler, name string) {
	t.Helper()
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createHuge creates the largest pods that the API server admits: with one value of 1.3 MB, and with many labels (in the
// long form with as many as possible). Returns their number.
func createHuge(t *testing.T, client kubernetes.Interface) (created int) {
	t.Helper()
	const each = 5
	create := func(name string, labels int, value string) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app",
				Env: []corev1.EnvVar{{Name: "VALUE", Value: value}}}}},
		}
		for i := range labels {
			pod.Labels[fmt.Sprintf("l%d", i)] = ""
		}
		_, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	}
	for i := range each {
		if err := create(fmt.Sprintf("long-%d", i), 0, strings.Repeat("x", 1_300_000)); err != nil {
			t.Fatal(err)
		}
		created++
	}
	// The API server admits 100,000, but needs 15 s of CPU time for each such pod, which beside other tests exceeds its own timeout.
	labels := 30_000
	if *hostileAll {
		labels = 100_000
	}
	for created < 2*each {
		err := create(fmt.Sprintf("labels-%d", created), labels, "")
		switch {
		case err == nil:
			created++
		case labels > 10_000 && (apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "too large")):
			labels -= 10_000
		default:
			t.Fatal(err)
		}
	}
	t.Logf("the API server admits %d labels", labels)
	return created
}

// connectSlowly starts a request that never ends, or one whose answer is never read.
func connectSlowly(t *testing.T, address string, ends bool) {
	t.Helper()
	connection, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
	if err != nil {
		return // The kernel's queue for the server is full.
	}
	t.Cleanup(func() { connection.Close() })
	request := "GET /metrics HTTP/1.1\r\nHost: x\r\n"
	if ends {
		request += "\r\n"
	}
	if _, err := connection.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
}
