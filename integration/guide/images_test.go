package guide_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	imageConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: NodeScore, weight: 100}]}}
`
	// One node is the better one for both templates.
	imageNode = `apiVersion: v1
kind: Node
metadata: {name: %s, labels: {node-score/price: "%s"}, annotations: {node-score/datasets: "%s"}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
`
	imagePod = `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, annotations: {node-score/dataset: laion}}
spec: {containers: [{name: main, image: app}]}
`
)

// The Dockerfiles that `outboard new plugin` writes build images whose host decides, and runs as an unprivileged
// user.
func TestTheImages(t *testing.T) {
	if os.Getenv("DOCKER_HOST") == "" {
		t.Fatal("no Docker daemon: run with integration/guide/with_docker.sh (./dev test guide does)")
	}
	a := &author{T: t, bin: filepath.Join(packaged(t), "bin")}
	outboard := filepath.Join(a.bin, "outboard")
	// The network's settings for pip go into the base image, under the name in the Dockerfiles.
	base := "FROM outboard-guide-base\n"
	folder := t.TempDir()
	if certificates := os.Getenv("PIP_CERT"); certificates != "" {
		text, err := os.ReadFile(certificates)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, "pip.crt"), string(text))
		base += "COPY pip.crt /pip.crt\nENV PIP_CERT=/pip.crt\n"
	}
	write(t, filepath.Join(folder, "Dockerfile"), base)
	a.must("docker", "build", "--tag", "debian:bookworm-slim", folder)

	// The built-in plugins, in case the image has only its own.
	sockets := t.TempDir()
	for _, open := range []string{filepath.Dir(sockets), sockets} {
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	builtin := exec.CommandContext(t.Context(), filepath.Join(a.bin, "outboard-host"), "--listen", "unix:"+sockets+"/builtin.sock")
	if err := builtin.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = builtin.Process.Kill(); _ = builtin.Wait() })
	files := t.TempDir()
	write(t, filepath.Join(files, "config.yaml"), imageConfig)
	write(t, filepath.Join(files, "cluster.yaml"), fmt.Sprintf(imageNode, "worse", "3", "imagenet")+fmt.Sprintf(imageNode, "better", "1", "laion"))
	write(t, filepath.Join(files, "pods.yaml"), imagePod)

	for language, host := range map[string]string{"cpp": "main", "python": "node-score"} {
		t.Run(language, func(t *testing.T) {
			a := &author{T: t, bin: a.bin, source: filepath.Join(t.TempDir(), "node_score")}
			a.must(outboard, "new", "plugin", "NodeScore", "--language", language, "--dir", a.source)
			a.must("cp", packaged(t)+".tar.gz", a.source)
			began := time.Now()
			a.must("docker", "build", "--network=host", "--tag", "node-score-"+language, a.source)
			t.Logf("docker build: %.0f s", time.Since(began).Seconds())
			id := strings.TrimSpace(a.must("docker", "run", "--detach", "--network=none", "--read-only", "--tmpfs", "/tmp", "--cap-drop=ALL",
				"--volume", sockets+":/run/outboard/hosts", "node-score-"+language))
			t.Cleanup(func() { _ = exec.Command("docker", "rm", "--force", id).Run() })
			socket := ""
			for until := time.Now().Add(patience); socket == "" && time.Now().Before(until); {
				if found, _ := filepath.Glob(filepath.Join(sockets, host+"@*.sock")); len(found) == 1 {
					socket = found[0]
				}
			}
			if socket == "" {
				t.Fatalf("the host has no socket:\n%s", a.must("docker", "logs", id))
			}
			if user := strings.TrimSpace(a.must("docker", "inspect", "--format", "{{.Config.User}}", id)); user != "65532:65532" {
				t.Errorf("it runs as %q", user)
			}
			hosts := []string{"--host", "unix:" + socket}
			if language == "python" {
				hosts = append([]string{"--host", "unix:" + sockets + "/builtin.sock"}, hosts...)
			}
			out := a.must(outboard, append([]string{"simulate", "--cluster", filepath.Join(files, "cluster.yaml"), "--pods", filepath.Join(files, "pods.yaml"),
				"--config", filepath.Join(files, "config.yaml"), "-o", "json"}, hosts...)...)
			if !strings.Contains(out, `"node":"better"`) || !strings.Contains(out, `"NodeScore":`) {
				t.Errorf("the image's plugin has not decided:\n%s\n%s", out, a.must("docker", "logs", id))
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
