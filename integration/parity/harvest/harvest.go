package harvest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"outboard.dev/integration/upstream/kubecopy"
)

// Prefix is the path of upstream's plugins.
const Prefix = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/"

// Packages are those of plugins that filter or score nodes.
var Packages = []string{"imagelocality", "interpodaffinity", "nodeaffinity", "nodedeclaredfeatures", "nodename", "nodeports", "noderesources",
	"nodeunschedulable", "nodevolumelimits", "podtopologyspread", "tainttoleration", "volumebinding", "volumerestrictions", "volumezone"}

// Node is a node with the pods on it.
type Node struct {
	Node *v1.Node
	Pods []*v1.Pod
}

// Case is one recorded answer of a plugin in an upstream test, with its input.
type Case struct {
	Plugin, Test string
	// Point is filter, prefilter or score.
	Point string
	// Args are the plugin's, in the format of a configuration.
	Args json.RawMessage
	// Features is: default (the feature gates that the package reads have kube-scheduler's defaults), put to default
	// (the test sets others, which were overridden), the differing gates, unknown (the test created the plugin in
	// another way) or mocked.
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
	// Scored are the nodes passed to PreScore.
	Scored []string
	Scores map[string]int64
}

// Record runs the tests of upstream's packages with recorders and returns the recordings. module is the directory of
// a Go module that requires k8s.io/kubernetes; copied is the directory of its copy, which is reused if it exists.
// Test failures caused by the recorders are ignored.
func Record(ctx context.Context, module, copied, folder string, packages []string) ([]Case, error) {
	tree, err := kubecopy.Prepare(ctx, module, copied, folder)
	if err != nil {
		return nil, err
	}
	for _, name := range packages {
		if err := instrument(tree, filepath.Join("pkg/scheduler/framework/plugins", name)); err != nil {
			return nil, err
		}
	}
	output := filepath.Join(folder, "cases.jsonl")
	arguments := []string{"-count=1"}
	for _, name := range packages {
		arguments = append(arguments, Prefix+name)
	}
	for _, gates := range []string{"as the test says", "default"} {
		tests := tree.Go(ctx, "test", arguments...)
		tests.Env = append(os.Environ(), "HARVEST_OUTPUT="+output, "HARVEST_GATES="+gates)
		log, failed := tests.CombinedOutput()
		if _, err := os.Stat(output); err != nil || bytes.Contains(log, []byte(" failed]")) || bytes.Contains(log, []byte("\npanic: ")) {
			return nil, fmt.Errorf("go test: %v\n%s", failed, log[max(0, len(log)-6000):])
		}
	}
	return read(output)
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
		c.nameNode("node")
		c.makeStorable()
		cases = append(cases, c)
	}
	return cases, scanner.Err()
}

// nameNode names the node without a name if there is only one: tests of one node often omit it.
func (c *Case) nameNode(name string) {
	unnamed := -1
	for i := range c.Nodes {
		if c.Nodes[i].Node.Name == "" && unnamed >= 0 {
			return
		} else if c.Nodes[i].Node.Name == "" {
			unnamed = i
		}
	}
	if unnamed < 0 {
		return
	}
	c.Nodes[unnamed].Node.Name = name
	if c.Target == "" {
		c.Target = name
	}
	if score, ok := c.Scores[""]; ok {
		delete(c.Scores, "")
		c.Scores[name] = score
	}
}
