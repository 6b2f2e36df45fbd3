package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	controlplane "outboard.dev/integration/control_plane"
)

// Containers may share the folder of sockets; a probe checks the host of its own container. A PID namespace stands
// for a container.
func TestAProbeIsAboutItsOwnContainersHost(t *testing.T) {
	t.Parallel()
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	program, folder := filepath.Join(directory, "outboard-host"), t.TempDir()
	listen := "unix:" + folder + "/main@{instance}.sock"
	host, err := controlplane.StartProcess(folder, "host", program, "--listen", listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Kill)
	probe := func(ctx context.Context, elsewhere bool, listen string) (string, error) {
		command := exec.CommandContext(ctx, program, "--probe", "--listen", listen)
		if elsewhere {
			command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		}
		out, err := command.CombinedOutput()
		return string(out), err
	}
	eventually(t, func(ctx context.Context) error {
		out, err := probe(ctx, false, listen)
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	})
	out, err := probe(t.Context(), true, listen)
	if errors.Is(err, syscall.EPERM) {
		t.Skip("no right to create a PID namespace")
	}
	if err == nil || !strings.Contains(out, "of other containers") {
		t.Errorf("a probe in another container: %v\n%s", err, out)
	}
	// An explicit socket is probed regardless of its container.
	sockets, err := filepath.Glob(filepath.Join(folder, "main@*.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets: %v %v", sockets, err)
	}
	if out, err := probe(t.Context(), true, "unix:"+sockets[0]); err != nil {
		t.Errorf("a probe of one socket: %v\n%s", err, out)
	}
}
