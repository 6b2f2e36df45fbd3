package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	controlplane "outboard.dev/integration/control_plane"
)

// HelmVersion is the version of the module with whose code integration/deploy renders the chart.
const HelmVersion = "v3.18.6"

// ErrNoProgram reports that this machine lacks a program that readers of the guide have. Debian 12's kubectl is too old.
var ErrNoProgram = errors.New("not found on PATH")

// Programs returns the folders with what the guide's commands call: kubectl of this machine, helm, and outboard of the
// build. Builds helm at the first use, from exactly the versions in its own go.mod.
// Fails with ErrNoProgram if the machine lacks a program.
func Programs(ctx context.Context, progress func(format string, args ...any)) ([]string, error) {
	for _, program := range []string{"kubectl", "jq", "openssl", "diff"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: %s", ErrNoProgram, program)
		}
	}
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		return nil, err
	}
	tools, err := controlplane.ToolsDirectory()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(tools, "helm-"+HelmVersion)
	if _, err := os.Stat(filepath.Join(folder, "helm")); err != nil {
		progress("building helm %s (the first time takes minutes)", HelmVersion)
		if err := buildHelm(ctx, tools, folder); err != nil {
			return nil, err
		}
	}
	return []string{folder, bin}, nil
}

func buildHelm(ctx context.Context, tools, folder string) error {
	if err := os.MkdirAll(tools, 0o755); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(tools, "helm-partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	build := exec.CommandContext(ctx, "go", "install", "-ldflags", "-s -w", "helm.sh/helm/v3/cmd/helm@"+HelmVersion)
	build.Dir = tools
	build.Env = append(os.Environ(), "GOBIN="+partial)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go install helm: %w\n%s", err, out)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.Rename(filepath.Join(partial, "helm"), filepath.Join(folder, "helm"))
}
