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
	for _, needed := range []struct{ program, source string }{
		{"containerd", "Debian package containerd"},
		{"ctr", "Debian package containerd"},
		{"containerd-shim-runc-v2", "Debian package containerd"},
		{"runc", "Debian package runc"},
		{"ip", "Debian package iproute2"},
		{"nft", "Debian package nftables"},
		{"nsenter", "Debian package util-linux"},
		{"mount", "Debian package mount"},
		{"kubectl", "a release of Kubernetes"},
	} {
		if _, err := exec.LookPath(needed.program); err != nil {
			lacks = append(lacks, fmt.Errorf("program %s not found (%s)", needed.program, needed.source))
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
