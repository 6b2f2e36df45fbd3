// Package guide_test does what a plugin author does, with the package for authors: plugins as shared objects are
// added, changed and removed while a running shim schedules pods.
package guide_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	patience = time.Minute
	// The limit for a change, from the saved source to pods scheduled by it, on two cores; and the part of it after
	// the compiler.
	changeBudget, swapBudget = time.Minute, 2 * time.Second
)

type author struct {
	*testing.T
	client    kubernetes.Interface
	outboard  *controlplane.Outboard
	bin       string // of the package
	source    string // the plugin's folder
	directory string // the host's --plugin-dir
	pods      int
}

// packaged is the folder that `./dev package` made.
func packaged(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("OUTBOARD_PACKAGE")
	if folder == "" {
		t.Fatal("OUTBOARD_PACKAGE is not set: it names the unpacked package (./dev test guide makes one)")
	}
	return folder
}

func (a *author) run(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(a.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	return string(out), err
}

func (a *author) must(program string, args ...string) string {
	a.Helper()
	out, err := a.run(program, args...)
	if err != nil {
		a.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return out
}

func (a *author) build() { a.must("cmake", "--build", filepath.Join(a.source, "build")) }

func (a *author) plugin(args ...string) (string, error) {
	args = append([]string{"plugin"}, args...)
	return a.run(filepath.Join(a.bin, "outboard"), append(args, "--into", a.directory, "--server", strings.TrimPrefix(a.outboard.URL(), "http://"))...)
}

func (a *author) install(args ...string) (string, error) {
	return a.plugin(append([]string{"install", filepath.Join(a.source, "build", "price_score.so")}, args...)...)
}

// edit replaces an existing text in a file of the plugin.
func (a *author) edit(file, old, new string) {
	a.Helper()
	path := filepath.Join(a.source, file)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		a.Fatalf("%s: missing %q (%v)", path, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, new)), 0o600); err != nil {
		a.Fatal(err)
	}
}

// configure changes the shim's configuration, which the shim reloads by itself.
func (a *author) configure(change func(string) string) {
	a.Helper()
	path := a.outboard.ConfigFile()
	text, err := os.ReadFile(path)
	if err != nil {
		a.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(text))), 0o600); err != nil {
		a.Fatal(err)
	}
}

// place creates a pod and returns its node.
func (a *author) place() string {
	a.Helper()
	a.pods++
	name := fmt.Sprintf("pod-%05d", a.pods)
	pods := a.client.CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}}}
	if _, err := pods.Create(a.Context(), pod, metav1.CreateOptions{}); err != nil {
		a.Fatal(err)
	}
	for until := time.Now().Add(patience); time.Now().Before(until); {
		got, err := pods.Get(a.Context(), name, metav1.GetOptions{})
		if err != nil {
			a.Fatal(err)
		}
		if got.Spec.NodeName != "" {
			return got.Spec.NodeName
		}
	}
	a.Fatalf("%s has no node after %v; end of the shim's log:\n%s", name, patience, a.outboard.Shim.LogTail())
	return ""
}

// placedOn waits until pods go to this node.
func (a *author) placedOn(node string) {
	a.Helper()
	got := ""
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if got = a.place(); got == node {
			return
		}
	}
	a.Fatalf("pods go to %s, not to %s, after %v", got, node, patience)
}

// load creates pods until the returned function is called, so that there are cycles to compare.
func (a *author) load() (stop func()) {
	ctx, cancel := context.WithCancel(a.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("load-%s-%05d", a.Name(), i)},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}}}
			pod.Name = strings.ToLower(strings.ReplaceAll(pod.Name, "/", "-"))
			if _, err := a.client.CoreV1().Pods("load").Create(ctx, pod, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
				a.Errorf("create a pod for the comparison: %v", err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

func start(t *testing.T) *author {
	t.Helper()
	a := &author{T: t, bin: filepath.Join(packaged(t), "bin"), source: filepath.Join(t.TempDir(), "price_score"), directory: t.TempDir()}
	t.Setenv("OUTBOARD_BIN", a.bin)
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	a.client = client
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "load"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 3); err != nil {
		t.Fatal(err)
	}
	// Room for every pod of this test, and prices.
	for i, price := range []string{"3", "1", "2"} {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"price-score/price":%q}},"status":{"allocatable":{"pods":"20000"}}}`, price)
		for _, sub := range []string{"", "status"} {
			subresources := []string{}
			if sub != "" {
				subresources = append(subresources, sub)
			}
			if _, err := client.CoreV1().Nodes().Patch(t.Context(), controlplane.FakeNode(i).Name, types.MergePatchType, []byte(patch),
				metav1.PatchOptions{}, subresources...); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.outboard, err = c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		Config:          controlplane.SchedulerConfig{Text: "profiles:\n- schedulerName: default-scheduler\n  plugins:\n    multiPoint: {enabled: []}\n"},
		SocketDirectory: true, HostArgs: []string{"--plugin-dir", a.directory},
		Shim: "replacement: {shadowCycles: 20, shadowTimeout: 5s, keepWarm: 2s}",
	})
	if err != nil {
		t.Fatal(err)
	}
	a.must(filepath.Join(a.bin, "outboard"), "new", "plugin", "PriceScore", "--language", "cpp", "--dir", a.source)
	a.must("cmake", "-S", a.source, "-B", filepath.Join(a.source, "build"), "-DCMAKE_PREFIX_PATH="+packaged(t), "-DBUILD_TESTING=OFF")
	a.build()
	return a
}

func TestAnAuthorsDay(t *testing.T) {
	a := start(t)
	defer a.load()()
	shim, host := a.outboard.Shim.PID(), a.outboard.Host.PID()

	if said, err := a.install(); err != nil {
		t.Fatalf("outboard plugin install: %v\n%s", err, said)
	}
	a.configure(func(text string) string {
		return strings.Replace(text, "enabled: []", "enabled: [{name: PriceScore, weight: 100}]", 1)
	})
	a.placedOn("node-00001") // the cheapest

	t.Run("a change", func(t *testing.T) {
		began := time.Now()
		a.edit("price_score.cc", "/*reverse=*/true", "/*reverse=*/false")
		a.build()
		built := time.Now()
		said, err := a.install()
		if err != nil {
			t.Fatalf("outboard plugin install: %v\n%s", err, said)
		}
		swapped := time.Now()
		node := a.place()
		if node != "node-00000" {
			t.Errorf("a pod went to %s, not to the most expensive node, after the command had reported that the new build serves", node)
		}
		t.Logf("from the saved source to pods scheduled by it: %.1f s, of which %.2f s after the compiler\n%s",
			swapped.Sub(began).Seconds(), swapped.Sub(built).Seconds(), said)
		if swapped.Sub(began) > changeBudget || swapped.Sub(built) > swapBudget {
			t.Errorf("limits: %v and %v", changeBudget, swapBudget)
		}
		if !strings.Contains(said, "20 of 20 pods would have got another node") {
			t.Errorf("the comparison did not report that all pods go elsewhere:\n%s", said)
		}
	})

	t.Run("a build that does not answer", func(t *testing.T) {
		before := digests(t, a.directory)
		a.edit("price_score.cc", `#include "absl/strings/numbers.h"`, "#include \"absl/strings/numbers.h\"\n#include \"absl/time/clock.h\"")
		a.edit("price_score.cc", "if (!limit.has_value()) return sdk::Verdict::Success();", "absl::SleepFor(absl::Seconds(2));")
		a.build()
		said, err := a.install()
		if err == nil || !strings.Contains(said, "quarantined: in the shadow") || !strings.Contains(said, "is restored") {
			t.Errorf("a build that hangs was accepted: %v\n%s", err, said)
		}
		if after := digests(t, a.directory); after != before {
			t.Errorf("the directory has changed: %q, was %q", after, before)
		}
		a.placedOn("node-00000")
	})

	t.Run("an object of another release", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "price_score.so")
		object, err := os.ReadFile(filepath.Join(a.directory, "price_score.so"))
		if err != nil {
			t.Fatal(err)
		}
		other := strings.Replace(string(object), "abi=1 ", "abi=0 ", 1)
		if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := a.plugin("install", path)
		if err == nil || !strings.Contains(said, "price_score.so: it was built for abi=0, this host is abi=1") {
			t.Errorf("an object of another release was accepted: %v\n%s", err, said)
		}
		// The same without the command: the host rejects the object and keeps running.
		if err := os.WriteFile(filepath.Join(a.directory, "stray.so"), []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		a.eventually("refused, nothing has changed: stray.so: it is not in SHA256SUMS")
		a.warned("warning: --plugin-dir " + a.directory + ": refused, nothing has changed: stray.so: it is not in SHA256SUMS")
		if err := os.Remove(filepath.Join(a.directory, "stray.so")); err != nil {
			t.Fatal(err)
		}
		a.placedOn("node-00000")
	})

	t.Run("it goes", func(t *testing.T) {
		if said, err := a.plugin("remove", "price_score.so"); err == nil || !strings.Contains(said, "is restored") {
			t.Errorf("a plugin that the configuration enables was removed: %v\n%s", err, said)
		}
		a.configure(func(text string) string {
			return strings.Replace(text, "enabled: [{name: PriceScore, weight: 100}]", "enabled: []", 1)
		})
		a.unscored()
		if said, err := a.plugin("remove", "price_score.so"); err != nil {
			t.Errorf("outboard plugin remove: %v\n%s", err, said)
		}
		a.place()
	})

	if a.outboard.Shim.PID() != shim || a.outboard.Host.PID() != host {
		t.Error("a process was restarted")
	}
	// Old instances and their objects are unloaded.
	for until := time.Now().Add(patience); ; {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", host))
		if err != nil {
			t.Fatalf("the host has ended: %v\n%s", err, a.outboard.Host.LogTail())
		}
		if !strings.Contains(string(maps), "/memfd:price_score.so") {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("objects are still loaded after %v:\n%s", patience, a.outboard.Host.LogTail())
		}
	}
}

// unscored waits until pods are scheduled without the plugin.
func (a *author) unscored() {
	a.Helper()
	said := ""
	for until := time.Now().Add(patience); time.Now().Before(until); {
		a.place()
		said = a.must(filepath.Join(a.bin, "outboard"), "explain", "pod", fmt.Sprintf("default/pod-%05d", a.pods),
			"--server", strings.TrimPrefix(a.outboard.URL(), "http://"))
		if !strings.Contains(said, "PriceScore") {
			return
		}
	}
	a.Fatalf("pods are still scored by PriceScore:\n%s", said)
}

// eventually waits for this text in the host's log.
func (a *author) eventually(what string) {
	a.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if strings.Contains(a.outboard.Host.LogTail(), what) {
			return
		}
	}
	a.Fatalf("missing in the host's log: %q\n%s", what, a.outboard.Host.LogTail())
}

// warned waits for this text in the output of `outboard hosts`.
func (a *author) warned(what string) {
	a.Helper()
	said, err := "", error(nil)
	for until := time.Now().Add(patience); time.Now().Before(until); {
		said, err = a.run(filepath.Join(a.bin, "outboard"), "hosts", "--server", strings.TrimPrefix(a.outboard.URL(), "http://"))
		if err == nil && strings.Contains(said, what) {
			return
		}
	}
	a.Fatalf("missing in outboard hosts: %q: %v\n%s", what, err, said)
}

func digests(t *testing.T, directory string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(directory, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
