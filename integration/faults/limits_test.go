package faults

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	controlplane "outboard.dev/integration/control_plane"
)

// startsAfter returns a script that runs a line of sh and then becomes one of Outboard's programs.
func startsAfter(t *testing.T, line, program string) string {
	t.Helper()
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), program+".sh")
	text := "#!/bin/sh\n" + line + "\nexec '" + filepath.Join(directory, program) + "' \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}

// tmpfs mounts a small file system on a folder until the test ends.
func tmpfs(t *testing.T, folder, options string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, options); err != nil {
		t.Skipf("a file system that is full needs the right to mount one: %v", err)
	}
	t.Cleanup(func() { // Its users may end later.
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// controlGroup is the folder of a control group. Only version 1 is known: each controller has its own hierarchy.
type controlGroup string

// newControlGroup is called before the control plane is started, so that all processes in the group have ended when it
// is removed.
func newControlGroup(t *testing.T, controller string) controlGroup {
	t.Helper()
	root := filepath.Join("/sys/fs/cgroup", controller)
	if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
		t.Skipf("no hierarchy of the controller %q of control groups, version 1: %v", controller, err)
	}
	folder, err := os.MkdirTemp(root, "outboard-test-")
	if err != nil {
		t.Skipf("no right to create a control group: %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(folder); err != nil {
			t.Error(err)
		}
	})
	return controlGroup(folder)
}

// enter is a line of sh with which a process enters the group.
func (g controlGroup) enter() string {
	return "echo $$ >'" + filepath.Join(string(g), "cgroup.procs") + "'"
}

func (g controlGroup) set(t *testing.T, file string, value int64) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(g), file), []byte(strconv.FormatInt(value, 10)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// number reads a file with a number, or the number behind a name in a file with a table.
func (g controlGroup) number(t *testing.T, file, name string) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(string(g), file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		value, found := strings.CutPrefix(strings.TrimSpace(line), name)
		if number, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); found && err == nil {
			return number
		}
	}
	t.Fatalf("%s has no number %q: %s", file, name, text)
	return 0
}
