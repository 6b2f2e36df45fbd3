package operations

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	controlplane "outboard.dev/integration/control_plane"
)

// HelmVersion is the version of the module with whose code integration/deploy renders the chart.
const HelmVersion = "v3.18.6"

// helmKubernetesMinor is that of the client-go in its go.mod.
const helmKubernetesMinor = "33"

// ErrNoProgram reports that this machine lacks a program that readers of the guide have. Debian 12's kubectl is too old.
var ErrNoProgram = errors.New("not found on PATH")

// Programs returns the folders with what the guide's commands call: kubectl of this machine, helm, and outboard of the
// build.
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
	helm, err := HelmProgram(ctx, progress)
	if err != nil {
		return nil, err
	}
	return []string{filepath.Dir(helm), bin}, nil
}

// HelmProgram returns the path of helm, which it builds at the first use, from exactly the versions in its own go.mod.
func HelmProgram(ctx context.Context, progress func(format string, args ...any)) (string, error) {
	// As its releases are linked: without it `helm template` takes the cluster for Kubernetes 1.20, which the chart refuses.
	version := "helm.sh/helm/v3/pkg/chartutil.k8sVersion"
	return controlplane.InstallTool(ctx, "helm-"+HelmVersion, "helm.sh/helm/v3/cmd/helm@"+HelmVersion, progress,
		version+"Major=1", version+"Minor="+helmKubernetesMinor)
}
