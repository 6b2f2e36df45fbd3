// Package images_test runs the container images with Docker, beside a real control plane. See README.md.
package images_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	patience = time.Minute
	// The images' user.
	nonroot = 65532
)

// images returns the images to run, by container, with the tag in OUTBOARD_IMAGES.
func images(t *testing.T) map[string]string {
	t.Helper()
	tag := os.Getenv("OUTBOARD_IMAGES")
	if tag == "" {
		t.Skip("OUTBOARD_IMAGES is not set: it names the tag of the images that a Docker daemon has (./dev images --check builds and runs them)")
	}
	return map[string]string{"shim": "outboard-shim:" + tag, "host": "outboard-host:" + tag, "claims": "outboard-claims-host:" + tag, "node-probe": "outboard-node-probe:" + tag}
}

func tryDocker(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("docker %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := tryDocker(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// confined are the Docker flags that match the pods of deploy/. Containers share the machine's network, on whose
// loopback the API server listens.
var confined = []string{"--network=host", "--pull=never", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"}

// container is a container that runs or has run. It is removed with the test.
type container struct {
	*testing.T
	name, id string
}

func runContainer(t *testing.T, name, image string, flags []string, args ...string) *container {
	t.Helper()
	c := &container{T: t, name: name}
	c.id = docker(t, slices.Concat([]string{"run", "--detach"}, flags, []string{image}, args)...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", name, c.said("--tail=40"))
		}
		if _, err := tryDocker(context.Background(), "rm", "--force", c.id); err != nil {
			t.Log(err)
		}
	})
	return c
}

func (c *container) said(flags ...string) string {
	out, err := tryDocker(context.Background(), slices.Concat([]string{"logs"}, flags, []string{c.id})...)
	if err != nil {
		return err.Error()
	}
	return out
}

// state returns Docker's state of the container.
func (c *container) state() (state struct {
	Running, OOMKilled bool
	ExitCode           int
	Health             struct{ Status string }
}) {
	c.Helper()
	if err := json.Unmarshal([]byte(docker(c.T, "inspect", "--format", "{{json .State}}", c.id)), &state); err != nil {
		c.Fatal(err)
	}
	return state
}

// stop sends SIGTERM, as Kubernetes does, and SIGKILL after the grace period. The container must exit by itself with
// status 0.
func (c *container) stop(grace time.Duration) {
	c.Helper()
	docker(c.T, "stop", "--time="+strconv.Itoa(int(grace.Seconds())), c.id)
	if state := c.state(); state.Running || state.ExitCode != 0 {
		c.Errorf("%s ended after SIGTERM with %+v:\n%s", c.name, state, c.said("--tail=40"))
	}
}

// isConfined checks the program's restrictions from inside.
func (c *container) isConfined() {
	c.Helper()
	lines := strings.Split(docker(c.T, "exec", c.id, "cat", "/proc/1/status", "/proc/1/mounts"), "\n")
	has := func(wanted func(words []string) bool) bool {
		return slices.ContainsFunc(lines, func(line string) bool { return wanted(strings.Fields(line)) })
	}
	id := strconv.Itoa(nonroot)
	for what, wanted := range map[string]func([]string) bool{
		"user 65532":                 func(w []string) bool { return slices.Equal(w, []string{"Uid:", id, id, id, id}) },
		"group 65532":                func(w []string) bool { return slices.Equal(w, []string{"Gid:", id, id, id, id}) },
		"no capabilities":            func(w []string) bool { return slices.Equal(w, []string{"CapEff:", "0000000000000000"}) },
		"no obtainable capabilities": func(w []string) bool { return slices.Equal(w, []string{"CapBnd:", "0000000000000000"}) },
		"no new privileges":          func(w []string) bool { return slices.Equal(w, []string{"NoNewPrivs:", "1"}) },
		"a filter of system calls":   func(w []string) bool { return slices.Equal(w, []string{"Seccomp:", "2"}) },
		"a read-only root":           func(w []string) bool { return mountedAt(w, "/", "ro") },
		"sockets in memory, written": func(w []string) bool { return mountedAt(w, "/run/outboard/hosts", "rw") && w[0] == "tmpfs" },
	} {
		if !has(wanted) {
			c.Errorf("%s does not have %s:\n%s", c.name, what, strings.Join(lines, "\n"))
		}
	}
}

// mountedAt returns whether a line of /proc/PID/mounts is about the folder and has the option.
func mountedAt(words []string, folder, option string) bool {
	return len(words) > 3 && words[1] == folder && slices.Contains(strings.Split(words[3], ","), option)
}

// socketVolume creates a volume in memory and returns its name.
func socketVolume(t *testing.T, options string) string {
	t.Helper()
	volume := docker(t, "volume", "create", "--opt=type=tmpfs", "--opt=device=tmpfs", "--opt=o="+options)
	// Runs after the later-created containers are removed.
	t.Cleanup(func() {
		if _, err := tryDocker(context.Background(), "volume", "rm", volume); err != nil {
			t.Log(err)
		}
	})
	return volume
}

// sharedSockets returns the flag that gives containers of the images' user one folder of sockets, in memory.
func sharedSockets(t *testing.T) string {
	t.Helper()
	return "--mount=type=volume,volume-nocopy,target=/run/outboard/hosts,source=" + socketVolume(t, fmt.Sprintf("mode=0700,uid=%d,gid=%d,size=1m", nonroot, nonroot))
}

// eventually fails if the check has not passed within a minute.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // Poll interval.
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
