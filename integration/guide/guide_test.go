package guide_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

// The time for a user to follow the guide, including the compiler and the packages.
const guideBudget = 5 * time.Minute

// commands returns the blocks of the guide under these headings, in order.
func commands(t *testing.T, headings ...string) []string {
	t.Helper()
	root, err := controlplane.Repository()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "plugins", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	var block *strings.Builder
	heading, mark := "", ""
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case block != nil && line == "```":
			blocks = append(blocks, block.String())
			block = nil
		case block != nil:
			block.WriteString(line + "\n")
		case line == "```sh":
			if mark != "<!-- tested by: guide -->" {
				t.Errorf("plugins/README.md has untested commands under %q", heading)
			}
			for _, wanted := range headings {
				if heading == wanted {
					block = &strings.Builder{}
				}
			}
		case strings.HasPrefix(line, "#"):
			heading = line
		}
		if line != "" {
			mark = line
		}
	}
	if len(blocks) < 3 {
		t.Fatalf("plugins/README.md has only %d blocks of commands under %q", len(blocks), headings)
	}
	return blocks
}

// inContainer runs the blocks in one shell of an empty container, which prints the time before each.
func inContainer(t *testing.T, blocks []string, args ...string) (string, error) {
	t.Helper()
	script := &strings.Builder{}
	script.WriteString("set -euo pipefail\nexport DEBIAN_FRONTEND=noninteractive\n")
	for i, block := range blocks {
		fmt.Fprintf(script, "echo \"== block %d of %d, after $SECONDS s\"\nset -x\n%s{ set +x; } 2>/dev/null\n", i+1, len(blocks), block)
	}
	script.WriteString("echo \"== done after $SECONDS s\"\n")
	file := filepath.Join(t.TempDir(), "guide.sh")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{"run", "--rm", "--network=host", "--volume", file + ":/guide.sh:ro"}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL"} {
		if os.Getenv(name) != "" {
			command = append(command, "--env", name)
		}
	}
	if certificates := os.Getenv("PIP_CERT"); certificates != "" {
		command = append(command, "--env", "PIP_CERT=/pip.crt", "--volume", certificates+":/pip.crt:ro")
	}
	command = append(append(command, args...), "outboard-guide-base", "bash", "/guide.sh")
	ctx, cancel := context.WithTimeout(t.Context(), 2*guideBudget)
	defer cancel()
	var out bytes.Buffer
	docker := exec.CommandContext(ctx, "docker", command...)
	docker.Stdout, docker.Stderr = &out, &out
	err := docker.Run()
	return out.String(), err
}

func TestTheGuide(t *testing.T) {
	if os.Getenv("DOCKER_HOST") == "" {
		t.Fatal("no Docker daemon: run with integration/guide/with_docker.sh (./dev test guide does)")
	}
	packages, err := filepath.Glob(packaged(t) + ".tar.gz")
	if err != nil || len(packages) != 1 {
		t.Fatalf("no package at %s.tar.gz (%v)", packaged(t), err)
	}
	t.Setenv("OUTBOARD_BIN", filepath.Join(packaged(t), "bin"))
	for _, language := range []string{"C++", "Python"} {
		t.Run(language, func(t *testing.T) {
			c := controlplane.ForTest(t, controlplane.Options{})
			client, err := c.Client()
			if err != nil {
				t.Fatal(err)
			}
			if err := controlplane.CreateFakeNodes(t.Context(), client, 3); err != nil {
				t.Fatal(err)
			}
			outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{
				Config:          controlplane.SchedulerConfig{Text: "profiles:\n- schedulerName: default-scheduler\n  plugins:\n    multiPoint: {enabled: []}\n"},
				SocketDirectory: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			shim := outboard.Shim.PID()
			began := time.Now()
			said, err := inContainer(t, commands(t, "## From nothing", "### In "+language),
				"--volume", packages[0]+":/opt/"+filepath.Base(packages[0])+":ro",
				// One folder with the sockets, the configuration and the credentials, at the same path, which the
				// configuration names.
				"--volume", c.Dir+":"+c.Dir,
				"--env", "SHIM="+strings.TrimPrefix(outboard.URL(), "http://"), "--env", "CONFIG="+outboard.ConfigFile(),
				"--env", "HOSTS="+filepath.Join(c.Dir, "hosts"), "--env", "HOST=default", "--env", "KUBECONFIG="+c.AdminKubeconfig)
			took := time.Since(began)
			if err != nil {
				t.Fatalf("the guide's commands failed: %v\n%s\nend of the shim's log:\n%s", err, said, outboard.Shim.LogTail())
			}
			for _, line := range strings.Split(said, "\n") {
				if strings.HasPrefix(line, "== ") || strings.Contains(line, "serves, ") {
					t.Log(line)
				}
			}
			t.Logf("from an empty container to a plugin in %s that was used, changed and removed: %.0f s", language, took.Seconds())
			if took > guideBudget {
				t.Errorf("limit: %v", guideBudget)
			}
			// The original plugin places the first pod on the last node, the changed one places the second elsewhere.
			nodes := map[string]string{}
			for _, name := range []string{"first", "second"} {
				pod, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				nodes[name] = pod.Spec.NodeName
			}
			if nodes["first"] != "node-00002" || nodes["second"] == "node-00002" || nodes["second"] == "" {
				t.Errorf("pods went to %v; want the first on node-00002 and the second on another node\n%s", nodes, said)
			}
			select {
			case <-outboard.Shim.Exited():
				t.Errorf("the shim has ended:\n%s", outboard.Shim.LogTail())
			default:
			}
			if outboard.Shim.PID() != shim {
				t.Error("the shim was restarted")
			}
		})
	}
}
