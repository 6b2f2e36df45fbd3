package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// NetworkPluginsVersion is that of the plugins of a pod network, which nodes run besides programs of Kubernetes.
const NetworkPluginsVersion = "v1.9.1"

// NodeTools are the paths of the programs of nodes with kubelets. They are always of the pinned release.
type NodeTools struct {
	Kubelet, KubeProxy string
	// NetworkPlugins is a folder with the plugins ptp, host-local and loopback.
	NetworkPlugins string
}

// BuildNodeTools is BuildTools for the programs of nodes.
func BuildNodeTools(ctx context.Context, progress func(format string, args ...any)) (*NodeTools, error) {
	dir, unlock, err := lockTools()
	if err != nil {
		return nil, err
	}
	defer unlock()
	root, err := Repository()
	if err != nil {
		return nil, err
	}
	tools := &NodeTools{
		Kubelet:        filepath.Join(dir, "kubelet"),
		KubeProxy:      filepath.Join(dir, "kube-proxy"),
		NetworkPlugins: filepath.Join(dir, "network-plugins-"+NetworkPluginsVersion),
	}
	for _, program := range []string{tools.Kubelet, tools.KubeProxy} {
		if isExecutable(program) {
			continue
		}
		progress("building %s %s (the first time takes minutes)", filepath.Base(program), KubernetesVersion)
		if err := goBuild(ctx, root, program, current(root)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"main/ptp", "main/loopback", "ipam/host-local"} {
		program := filepath.Join(tools.NetworkPlugins, path.Base(name))
		module := "github.com/containernetworking/plugins/plugins/" + name + "@" + NetworkPluginsVersion
		if err := goInstall(ctx, program, module, progress); err != nil {
			return nil, err
		}
	}
	return tools, nil
}

// InstallTool builds a program from its module, PATH@VERSION, into a folder of ToolsDirectory, unless it exists. What
// its project sets when it links a release, such as a version, is given as the linker's PACKAGE.VARIABLE=VALUE.
func InstallTool(ctx context.Context, folder, module string, progress func(format string, args ...any), variables ...string) (program string, err error) {
	dir, unlock, err := lockTools()
	if err != nil {
		return "", err
	}
	defer unlock()
	name, _, _ := strings.Cut(path.Base(module), "@")
	program = filepath.Join(dir, folder, name)
	return program, goInstall(ctx, program, module, progress, variables...)
}

// BuildTool builds a package as a file of ToolsDirectory, in a folder of this repository that is a Go module of its own:
// ".", or a package of a required module. Go rebuilds it only after a change. Flags are those of `go build`.
func BuildTool(ctx context.Context, name, folder, pkg string, progress func(format string, args ...any), flags ...string) (program string, err error) {
	dir, unlock, err := lockTools()
	if err != nil {
		return "", err
	}
	defer unlock()
	root, err := Repository()
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, name)
	if !isExecutable(program) {
		progress("building %s (the first time takes minutes)", name)
	}
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-trimpath", "-ldflags", "-s -w"}, flags...), "-o", program, pkg)...)
	cmd.Dir = filepath.Join(root, folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %s: %w\n%s", folder, err, out)
	}
	return program, nil
}

// goInstall builds a program outside this module, from exactly the versions in its own go.mod, unless it exists.
func goInstall(ctx context.Context, program, module string, progress func(format string, args ...any), variables ...string) error {
	if isExecutable(program) {
		return nil
	}
	progress("building %s", module)
	dir := filepath.Dir(program)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	bin, err := os.MkdirTemp(dir, "partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	flags := "-s -w"
	for _, variable := range variables {
		flags += " -X " + variable
	}
	cmd := exec.CommandContext(ctx, "go", "install", "-ldflags", flags, module)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOBIN="+bin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go install %s: %w\n%s", module, err, out)
	}
	name, _, _ := strings.Cut(path.Base(module), "@")
	return os.Rename(filepath.Join(bin, name), program)
}
