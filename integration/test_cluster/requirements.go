package testcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Missing returns an error that names all that this machine lacks for a cluster, or nil.
func Missing() error {
	lacks := []error{}
	if os.Geteuid() != 0 {
		lacks = append(lacks, errors.New("root is required: nodes have namespaces, mounts and control groups of their own"))
	}
	for _, needed := range []struct{ program, debian string }{
		{"containerd", "containerd"},
		{"ctr", "containerd"},
		{"containerd-shim-runc-v2", "containerd"},
		{"runc", "runc"},
		{"ip", "iproute2"},
		{"nft", "nftables"},
		{"nsenter", "util-linux"},
		{"mount", "mount"},
	} {
		if _, err := exec.LookPath(needed.program); err != nil {
			lacks = append(lacks, fmt.Errorf("program %s not found (Debian package %s)", needed.program, needed.debian))
		}
	}
	for path, why := range map[string]string{
		"/dev/kmsg":      "a kubelet reads the kernel's messages from it",
		"/sys/fs/cgroup": "no control groups are mounted",
	} {
		if _, err := os.Stat(path); err != nil {
			lacks = append(lacks, fmt.Errorf("%w: %s", err, why))
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("this machine cannot run kubelets: %w", errors.Join(lacks...))
}
