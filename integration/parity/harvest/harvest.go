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
	// Features is: default (of the feature gates that the package looks at all are as kube-scheduler has them by default), put to
	// default (the test says otherwise, and was not heard), what differs, unknown (the test made the plugin in another way) or
	// mocked.
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
// module that requires k8s.io/kubernetes; copied is where a copy of that goes, which is used again if it is there. Tests that fail
// because of the recorders do not matter.
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

// nameNode names the node that has no name, if there is but one: tests of one node often leave it out.
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
