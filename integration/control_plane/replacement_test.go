package controlplane_test

import (
	"context"
	"debug/elf"
	"fmt"
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

// A user replaces the plugin host, and goes back, with the commands of the README, while pods are scheduled.
func TestReplacingThePluginHost(t *testing.T) {
	t.Parallel()
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 5); err != nil {
		t.Fatal(err)
	}
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		SocketDirectory: true, Shim: "replacement: {shadowCycles: 3, keepWarm: 10m}",
	})
	if err != nil {
		t.Fatal(err)
	}
	command := func(ctx context.Context, arguments ...string) (string, error) {
		arguments = append(arguments, "--server", strings.TrimPrefix(outboard.URL(), "http://"))
		out, err := exec.CommandContext(ctx, filepath.Join(directory, "outboard"), arguments...).CombinedOutput()
		return string(out), err
	}
	states := func(ctx context.Context) (string, error) {
		hosts, err := outboard.Hosts(ctx)
		words := []string{}
		for _, host := range hosts {
			words = append(words, host.State)
		}
		return strings.Join(words, " "), err
	}
	pods := 0
	// Each poll schedules a pod, so that there are cycles to compare.
	become := func(want string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			pods++
			if err := bindOne(ctx, client, fmt.Sprintf("pod-%03d", pods)); err != nil {
				return err
			}
			if got, err := states(ctx); err != nil || got != want {
				return fmt.Errorf("hosts are %q instead of %q: %v", got, want, err)
			}
			return nil
		})
	}
	become("serving")
	outboard.SetHostProgram(anotherBuild(t, filepath.Join(directory, "outboard-host")))
	if err := outboard.StartHost(); err != nil {
		t.Fatal(err)
	}
	become("standby serving")
	hosts, err := outboard.Hosts(t.Context())
	if err != nil || hosts[1].Shadow.Cycles != 3 || hosts[1].Shadow.Placements != 0 {
		t.Errorf("the second instance was to be compared with the first for 3 cycles: %+v %v", hosts, err)
	}
	if table, err := command(t.Context(), "hosts"); err != nil || !strings.Contains(table, "(shadow: 0 of 3 pods got another node)") {
		t.Errorf("outboard hosts: %v\n%s", err, table)
	}
	if said, err := command(t.Context(), "swap", "default"); err != nil {
		t.Errorf("outboard swap: %s", said)
	}
	become("serving standby")
	if said, err := command(t.Context(), "swap", "default", hosts[1].Instance); err != nil {
		t.Errorf("outboard swap: %s", said)
	}
	if said, err := command(t.Context(), "rollback", "default"); err != nil {
		t.Errorf("outboard rollback: %s", said)
	}
	become("serving quarantined")
	if said, err := command(t.Context(), "rollback", "default"); err == nil || !strings.Contains(said, "has another build") {
		t.Errorf("a second rollback found an instance: %s", said)
	}
	if said, err := command(t.Context(), "rollback", "default", "--clear-quarantine"); err != nil {
		t.Errorf("outboard rollback --clear-quarantine: %s", said)
	}
	become("standby serving")

	// An invalid configuration changes nothing; a valid one is loaded.
	config := outboard.ConfigFile()
	good, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logged := func(what string) {
		t.Helper()
		eventually(t, func(context.Context) error {
			if !strings.Contains(outboard.Shim.LogTail(), what) {
				return fmt.Errorf("the shim has not logged %q", what)
			}
			return nil
		})
	}
	write(strings.Replace(string(good), "socketDirectory", "soketDirectory", 1))
	logged("soketDirectory: unknown field; did you mean socketDirectory?")
	become("standby serving")
	// Only the host can judge this one: it is asked before its session would end.
	write(strings.Replace(string(good), "leaderElection:", `profiles:
- schedulerName: default-scheduler
  pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]
leaderElection:`, 1))
	logged("pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]")
	become("standby serving")
	write(strings.Replace(string(good), "shadowCycles: 3", "shadowCycles: 2", 1))
	logged("Config reloaded; the new configuration is in force")
	become("standby serving")
}

// Two hosts share the profile, and each is replaced: its verdicts are compared, point by point, while pods are
// scheduled.
func TestReplacingHostsThatShareAProfile(t *testing.T) {
	t.Parallel()
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, 5); err != nil {
		t.Fatal(err)
	}
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		SocketDirectory: true, Split: "TaintToleration,NodeAffinity", Shim: "replacement: {shadowCycles: 3, shadowTimeout: 1h, keepWarm: 10m}",
	})
	if err != nil {
		t.Fatal(err)
	}
	// An instance that starts before another one serves has no instance to be compared with.
	if err := bindOne(t.Context(), client, "shared-000"); err != nil {
		t.Fatal(err)
	}
	pods := 0
	for name, start := range map[string]func() error{"default": outboard.StartHost, "split": outboard.StartSplitHost} {
		if err := start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) error {
			pods++
			if err := bindOne(ctx, client, fmt.Sprintf("shared-%03d", pods)); err != nil {
				return err
			}
			hosts, err := outboard.Hosts(ctx)
			if err != nil {
				return err
			}
			for _, host := range hosts {
				if host.Host == name && host.State == "serving" && host.Shadow.Cycles == 3 {
					if len(host.Shadow.Plugins) != 0 || host.Shadow.Placements != 0 || host.Shadow.PlacementsTold != 0 {
						t.Errorf("two instances of one build differ, or nodes were compared: %+v", host)
					}
					return nil
				}
			}
			return fmt.Errorf("no second instance of host %q serves: %+v", name, hosts)
		})
	}
}

// bindOne creates a pod and returns once it has a node.
func bindOne(ctx context.Context, client kubernetes.Interface, name string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: podSpec(corev1.DefaultSchedulerName, "1m")}
	if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	for {
		got, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil || got.Spec.NodeName != "" {
			return err
		}
	}
}

// anotherBuild returns a copy of a program with another build ID.
func anotherBuild(t *testing.T, program string) string {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	note := file.Section(".note.gnu.build-id")
	data, err := os.ReadFile(program)
	if err != nil || note == nil {
		t.Fatalf("%s has no build ID: %v", program, err)
	}
	data[note.Offset+note.Size-1]++ // The end of the note is the end of the ID.
	changed := filepath.Join(t.TempDir(), filepath.Base(program))
	if err := os.WriteFile(changed, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return changed
}
