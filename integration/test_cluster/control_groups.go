package testcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const controlGroups = "/sys/fs/cgroup"

// hierarchies returns the roots of all hierarchies of control groups: one for each controller with version 1, one in all
// with version 2.
func hierarchies() ([]string, error) {
	if isVersion2() {
		return []string{controlGroups}, nil
	}
	entries, err := os.ReadDir(controlGroups)
	if err != nil {
		return nil, err
	}
	roots := []string{}
	for _, entry := range entries {
		root := filepath.Join(controlGroups, entry.Name())
		// Links, such as cpu to cpu,cpuacct, would be second names of a hierarchy.
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err == nil && entry.IsDir() {
			roots = append(roots, root)
		}
	}
	return roots, nil
}

func isVersion2() bool {
	_, err := os.Stat(filepath.Join(controlGroups, "cgroup.controllers"))
	return err == nil
}

// createControlGroup creates NAME/CHILD in every hierarchy.
func (s *slot) createControlGroup(child string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		group := root
		for _, name := range []string{s.name(), child} {
			if err := delegate(group); err != nil {
				return err
			}
			parent := group
			group = filepath.Join(group, name)
			if err := os.MkdirAll(group, 0o755); err != nil {
				return err
			}
			if err := inheritCPUs(parent, group); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate lets the children of a group of version 2 have the controllers that a kubelet requires.
func delegate(group string) error {
	if !isVersion2() {
		return nil
	}
	return os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+cpuset +cpu +memory +pids"), 0o644)
}

// inheritCPUs gives a group of the version 1 controller cpuset the CPUs and memory of its parent; without, it can have no
// process.
func inheritCPUs(parent, group string) error {
	if isVersion2() {
		return nil
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Another controller.
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(group, name), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeControlGroups removes the slot's groups, deepest first. Processes in them have been killed, but the kernel may not
// yet have removed the last ones.
func (s *slot) removeControlGroups() error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		groups := []string{}
		err := filepath.WalkDir(filepath.Join(root, s.name()), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return err
		})
		if err != nil {
			return err
		}
		slices.Reverse(groups)
		for _, group := range groups {
			if err := removeControlGroup(group); err != nil {
				return err
			}
		}
	}
	return nil
}

func removeControlGroup(group string) error {
	const patience = 10 * time.Second
	for deadline := time.Now().Add(patience); ; {
		err := os.Remove(group)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Now().After(deadline) {
			processes, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
			return fmt.Errorf("%w; processes in it: %s", err, strings.Join(strings.Fields(string(processes)), " "))
		}
		time.Sleep(20 * time.Millisecond)
	}
}
