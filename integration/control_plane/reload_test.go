package controlplane_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

// reloading is a shim in a "pod" whose configuration a test changes.
type reloading struct {
	*controlplane.Outboard
	client     kubernetes.Interface
	good, kept string
	pods       int
}

func startReloading(t *testing.T, socketDirectory bool) *reloading {
	t.Helper()
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ApplyCustomResources(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 3); err != nil {
		t.Fatal(err)
	}
	// No scheduler places the pod that the shim believes to be its own.
	own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shim-0", Namespace: "default"}, Spec: podSpec("none", "1m")}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "kept.yaml")
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		ShimPrefix:      []string{"env", "POD_NAME=shim-0", "POD_NAMESPACE=default"},
		ShimArgs:        []string{"--last-good-config", kept},
		Shim:            "verbosity: 1",
		SocketDirectory: socketDirectory,
	})
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(outboard.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	return &reloading{Outboard: outboard, client: client, good: string(good), kept: kept}
}

// write replaces the file at once, as the kubelet does.
func (r *reloading) write(t *testing.T, text string) {
	t.Helper()
	next := r.ConfigFile() + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, r.ConfigFile()); err != nil {
		t.Fatal(err)
	}
}

// bind lets the shim place a pod.
func (r *reloading) bind(t *testing.T) {
	t.Helper()
	r.pods++
	if err := bindOne(t.Context(), r.client, fmt.Sprintf("reload-%03d", r.pods)); err != nil {
		t.Fatal(err)
	}
}

func (r *reloading) shows(t *testing.T, path, part string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL()+path, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		page, err := io.ReadAll(answer.Body)
		if err != nil || !strings.Contains(string(page), part) {
			return fmt.Errorf("%s does not show %q: %v\n%s", path, part, err, page)
		}
		return nil
	})
}

// hasEvent waits for an event about the shim's own pod.
func (r *reloading) hasEvent(t *testing.T, reason, part string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		own, err := r.client.CoreV1().Pods("default").Get(ctx, "shim-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		events, err := r.client.EventsV1().Events("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == reason && event.Regarding.UID == own.UID && strings.Contains(event.Note, part) {
				return nil
			}
		}
		return fmt.Errorf("no event %s about shim-0 with %q", reason, part)
	})
}

// A refused file shows everywhere, and pods are placed meanwhile; `outboard config diff` says what a file would change.
func TestARefusedConfigurationIsVisible(t *testing.T) {
	t.Parallel()
	r := startReloading(t, false)
	r.bind(t)
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	diff := func(text string) (int, string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), filepath.Join(directory, "outboard"), "config", "diff", file, "--server",
			strings.TrimPrefix(r.URL(), "http://"))
		out, err := command.CombinedOutput()
		if command.ProcessState == nil {
			t.Fatal(err)
		}
		return command.ProcessState.ExitCode(), string(out)
	}
	changed := strings.Replace(r.good, "verbosity: 1", "verbosity: 2", 1)
	broken := strings.Replace(r.good, "verbosity: 1", "verbositty: 2", 1)
	if code, out := diff(r.good); code != 0 || out != "" {
		t.Errorf("diff with the file that runs: exit code %d\n%s", code, out)
	}
	if code, out := diff(changed); code != 1 || !strings.Contains(out, "\n-verbosity: 1\n+verbosity: 2\n") {
		t.Errorf("diff with another file: exit code %d\n%s", code, out)
	}
	if code, out := diff(broken); code != 2 || !strings.Contains(out, "verbositty: unknown field") {
		t.Errorf("diff with a broken file: exit code %d\n%s", code, out)
	}

	r.write(t, broken)
	r.shows(t, "/metrics", "\noutboard_config_last_reload_successful 0\n")
	r.shows(t, "/readyz?verbose", "[+]configuration ok: the file was refused at ")
	r.hasEvent(t, "ConfigurationRefused", "verbositty: unknown field; did you mean verbosity?")
	r.bind(t)
	r.write(t, changed)
	r.shows(t, "/metrics", "\noutboard_config_last_reload_successful 1\n")
	r.hasEvent(t, "ConfigurationLoaded", "loaded ")
}

// Custom resources come and go while pods are placed. A file with a resource that the shim may not list is refused.
func TestCustomResourcesAreReloaded(t *testing.T) {
	t.Parallel()
	r := startReloading(t, false)
	r.bind(t)
	with := func(resource string) string { return r.good + "\ncustomResources: [{resource: " + resource + "}]\n" }
	r.write(t, with("staticippools.v1alpha1.accelerator.sched.io"))
	r.shows(t, "/metrics", `outboard_informer_lists_total{reason="start",resource="staticippools.accelerator.sched.io"} 1`)
	r.hasEvent(t, "ConfigurationLoaded", "loaded ")
	r.shows(t, "/configz", "staticippools.v1alpha1.accelerator.sched.io")
	r.bind(t)

	r.write(t, with("roles.v1.rbac.authorization.k8s.io"))
	r.hasEvent(t, "ConfigurationRefused", "roles.v1.rbac.authorization.k8s.io was not listed within 30s")
	r.shows(t, "/configz", "staticippools.v1alpha1.accelerator.sched.io")
	r.bind(t)

	// Also a kind that every shim watches: its objects stay.
	r.write(t, with("deviceclasses.v1.resource.k8s.io"))
	r.shows(t, "/metrics", "\noutboard_config_last_reload_successful 1\n")
	r.shows(t, "/metrics", `outboard_informer_lists_total{reason="start",resource="deviceclasses.resource.k8s.io"} 2`)
	r.write(t, strings.Replace(r.good, "leaderElection:", "podMaxBackoffSeconds: 20\nleaderElection:", 1))
	r.hasEvent(t, "ConfigurationLoaded", "fields that wait for a restart: podMaxBackoffSeconds")
	r.bind(t)
}

// A start with a bad file runs on the configuration that served last.
func TestAStartWithABadFileRunsOnTheLastGoodConfiguration(t *testing.T) {
	t.Parallel()
	// With a socket directory the shim waits a while for a host that serves the plugin that is missing.
	for _, socketDirectory := range []bool{false, true} {
		t.Run(fmt.Sprintf("socketDirectory=%t", socketDirectory), func(t *testing.T) { startWithBadFiles(t, socketDirectory) })
	}
}

func startWithBadFiles(t *testing.T, socketDirectory bool) {
	t.Parallel()
	r := startReloading(t, socketDirectory)
	r.bind(t)
	eventually(t, func(context.Context) error {
		_, err := os.Stat(r.kept)
		return err
	})
	for _, broken := range []string{
		strings.Replace(r.good, "verbosity: 1", "verbositty: 1", 1),
		strings.Replace(r.good, "leaderElection:", "profiles:\n- plugins: {filter: {enabled: [{name: NoSuchPlugin}]}}\nleaderElection:", 1),
	} {
		r.Shim.Kill()
		r.write(t, broken)
		if err := r.StartShim(); err != nil {
			t.Fatal(err)
		}
		if err := r.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.bind(t)
		r.shows(t, "/metrics", "\noutboard_config_last_reload_successful 0\n")
		r.shows(t, "/readyz?verbose", "running on the last good configuration, "+r.kept)
		r.hasEvent(t, "ConfigurationRefused", "running on the last good configuration")
	}
}
