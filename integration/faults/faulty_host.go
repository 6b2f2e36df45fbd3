// Package faults kills processes during their work and checks afterwards that nothing was lost or done twice. See
// README.md.
package faults

import (
	"os/exec"
	"path/filepath"
	"testing"

	controlplane "outboard.dev/integration/control_plane"
)

// BuildFaultyHost returns the path of cmd/faulty_host's program.
func BuildFaultyHost(t testing.TB) string {
	t.Helper()
	root, err := controlplane.Repository()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "faulty_host")
	build := exec.Command("go", "build", "-o", program, "./faults/cmd/faulty_host")
	build.Dir = filepath.Join(root, "integration")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
