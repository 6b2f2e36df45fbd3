package harvest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Prefix is where upstream's plugins are.
const Prefix = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/"

// Packages are those of plugins that judge or score nodes.
var Packages = []string{"imagelocality", "interpodaffinity", "nodeaffinity", "nodedeclaredfeatures", "nodename", "nodeports", "noderesources",
	"nodeunschedulable", "nodevolumelimits", "podtopologyspread", "tainttoleration", "volumebinding", "volumerestrictions", "volumezone"}

// Node is a node with the pods on it.
type Node struct {
	Node *v1.Node
	Pods []*v1.Pod
}

// Case is one answer that a plugin gave in a test of upstream's, and what it was about.
type Case struct {
	Plugin, Test string
	// Point is filter, prefilter or score.
	Point string
	// Args are those of the plugin, in the form that a configuration has.
	Args json.RawMessage
	// Features is default, others (feature gates that are not the default ones) or unknown (the test made no plugin by its
	// constructor).
	Features string
	// DryRun: pods were added or removed since PreFilter.
	DryRun  bool
	Pod     *v1.Pod
	Nodes   []Node
	Objects map[string][]json.RawMessage
	// Target is the node of a filter's answer.
	Target       string
	Code, Reason string
	Reasons      []string
	// Scored are the nodes that PreScore was told of.
	Scored []string
	Scores map[string]int64
}

// Record runs the tests of upstream's packages with recorders and returns what they recorded. module is the directory of a Go
// module that requires k8s.io/kubernetes. Tests that fail because of the recorders do not matter.
func Record(ctx context.Context, module, folder string, packages []string) ([]Case, error) {
	replace := map[string]string{}
	for _, name := range packages {
		directory, err := goList(ctx, module, Prefix+name)
		if err != nil {
			return nil, err
		}
		replaced, err := overlay(directory, folder)
		if err != nil {
			return nil, err
		}
		for path, copied := range replaced {
			replace[path] = copied
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), data, 0o644); err != nil {
		return nil, err
	}
	output := filepath.Join(folder, "cases.jsonl")
	arguments := []string{"test", "-count=1", "-overlay", filepath.Join(folder, "overlay.json")}
	for _, name := range packages {
		arguments = append(arguments, Prefix+name)
	}
	tests := exec.CommandContext(ctx, "go", arguments...)
	tests.Dir, tests.Env = module, append(os.Environ(), "HARVEST_OUTPUT="+output)
	log, failed := tests.CombinedOutput()
	if bytes.Contains(log, []byte("[build failed]")) || bytes.Contains(log, []byte("[setup failed]")) {
		return nil, fmt.Errorf("go test: %w\n%s", failed, log[:min(len(log), 4000)])
	}
	return read(output)
}

func goList(ctx context.Context, module, name string) (string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", name)
	command.Dir = module
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go list %s: %w", name, err)
	}
	return strings.TrimSpace(string(output)), nil
}

func read(path string) ([]Case, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var cases []Case
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 1<<20), 256<<20)
	for scanner.Scan() {
		var c Case
		if err := json.Unmarshal(scanner.Bytes(), &c); err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, scanner.Err()
}
