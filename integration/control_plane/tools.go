package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
)

// Versions of the programs of a control plane. Those of Kubernetes and etcd follow go.mod.
const (
	KubernetesVersion = "v1.36.3"
	KWOKVersion       = "v0.7.0"
)

// OlderEnvironment is the environment variable that selects an older release of Kubernetes' programs (v1.33, a folder
// of control_plane/older); etcd and kwok stay the same.
const OlderEnvironment = "OUTBOARD_KUBERNETES"

// release is the source of Kubernetes' programs.
type release struct {
	version string // v1.36.3
	module  string // the folder of its go.mod
}

// current is the release of this module.
func current(root string) release {
	return release{KubernetesVersion, filepath.Join(root, "integration")}
}

// IsOlder returns whether an older release is selected.
func IsOlder() bool { return os.Getenv(OlderEnvironment) != "" }

var kubernetesRequired = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)$`)

// chosen returns the selected older release.
func chosen(root string) (release, error) {
	minor := os.Getenv(OlderEnvironment)
	all := filepath.Join(root, "integration", "control_plane", "older")
	module := filepath.Join(all, minor)
	text, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil || filepath.Base(minor) != minor {
		return release{}, fmt.Errorf("%s=%s: no such folder in %s", OlderEnvironment, minor, all)
	}
	version := kubernetesRequired.FindSubmatch(text)
	if version == nil {
		return release{}, fmt.Errorf("%s: missing requirement k8s.io/kubernetes", filepath.Join(module, "go.mod"))
	}
	return release{string(version[1]), module}, nil
}

// Tools are the paths of the programs.
type Tools struct {
	Etcd, APIServer, ControllerManager, Scheduler, KWOK string
}

// Repository returns the root of the repository above the working directory, or else above this source file.
func Repository() (string, error) {
	starts := []string{}
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		starts = append(starts, filepath.Dir(file))
	}
	for _, start := range starts {
		for dir := start; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "integration", "go.mod")); err == nil {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", errors.New("repository not found: no integration/go.mod above the working directory")
}

// ToolsDirectory returns the folder of BuildTools: $OUTBOARD_TOOLS, or a folder in the user's cache.
func ToolsDirectory() (string, error) {
	if dir := os.Getenv("OUTBOARD_TOOLS"); dir != "" {
		return filepath.Abs(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("OUTBOARD_TOOLS not set, and no cache folder: %w", err)
	}
	return filepath.Join(cache, "outboard", "tools", KubernetesVersion), nil
}

// lockTools returns the folder of the tools, which no other process changes until unlock.
func lockTools() (dir string, unlock func(), err error) {
	if dir, err = ToolsDirectory(); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	unlock, err = lockFile(filepath.Join(dir, ".lock"))
	return dir, unlock, err
}

// BuildTools builds the programs that are missing in ToolsDirectory and returns all: of the selected release, or with
// `pinned` always of the pinned one. Safe for several processes: one builds, the others wait.
func BuildTools(ctx context.Context, pinned bool, progress func(format string, args ...any)) (*Tools, error) {
	dir, unlock, err := lockTools()
	if err != nil {
		return nil, err
	}
	defer unlock()

	root, err := Repository()
	if err != nil {
		return nil, err
	}
	server := current(root)
	serverDir := dir
	if IsOlder() && !pinned {
		if server, err = chosen(root); err != nil {
			return nil, err
		}
		serverDir = filepath.Join(dir, server.version)
		if err := os.MkdirAll(serverDir, 0o755); err != nil {
			return nil, err
		}
	}
	tools := &Tools{
		Etcd:              filepath.Join(dir, "etcd"),
		APIServer:         filepath.Join(serverDir, "kube-apiserver"),
		ControllerManager: filepath.Join(serverDir, "kube-controller-manager"),
		Scheduler:         filepath.Join(serverDir, "kube-scheduler"),
		KWOK:              filepath.Join(dir, "kwok-"+KWOKVersion),
	}
	for _, wanted := range []struct {
		program string
		from    release
	}{{tools.Etcd, current(root)}, {tools.APIServer, server}, {tools.ControllerManager, server}, {tools.Scheduler, server}} {
		if isExecutable(wanted.program) {
			continue
		}
		// etcd's version follows go.mod, not Kubernetes'.
		what := filepath.Base(wanted.program)
		if wanted.program != tools.Etcd {
			what += " " + wanted.from.version
		}
		progress("building %s (the first time takes minutes)", what)
		if err := goBuild(ctx, root, wanted.program, wanted.from); err != nil {
			return nil, err
		}
	}
	if err := goInstall(ctx, tools.KWOK, "sigs.k8s.io/kwok/cmd/kwok@"+KWOKVersion, progress); err != nil {
		return nil, err
	}
	return tools, nil
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// goBuild builds the command of cmd/ with the program's name, from the modules of the release.
func goBuild(ctx context.Context, root, program string, from release) error {
	partial := program + ".partial"
	defer os.Remove(partial)
	// The version that the programs report; a build from a module sets none.
	const version = "k8s.io/component-base/version."
	minor := strings.Split(strings.TrimPrefix(from.version, "v"), ".")
	ldflags := fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s -X %sgitTreeState=clean",
		version, from.version, version, minor[0], version, minor[1], version)
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", ldflags, "-o", partial,
		filepath.Join(root, "integration", "control_plane", "cmd", filepath.Base(program), "main.go"))
	cmd.Dir = from.module
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", filepath.Base(program), err, out)
	}
	return os.Rename(partial, program)
}

func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}
