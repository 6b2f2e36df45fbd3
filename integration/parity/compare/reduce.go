package compare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"outboard.dev/integration/parity/generate"
	"outboard.dev/integration/parity/oracle"
	"sigs.k8s.io/yaml"
)

// Reproduce reduces the case as far as possible within a number of runs, and writes into directory the three files,
// both answers, and a text with the difference and the command to reproduce it.
func Reproduce(ctx context.Context, c *generate.Case, directory, outboard string, runs int) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	small := *c
	differs := func() bool {
		if runs--; runs < 0 {
			return false
		}
		scratch, err := os.MkdirTemp("", "parity-reduce-")
		if err != nil {
			return false
		}
		defer os.RemoveAll(scratch)
		outcome, err := Run(ctx, &small, scratch, outboard)
		return err == nil && outcome.Differs()
	}
	// Pods after the first difference do not matter, and often none before it does.
	small.Pending = shrink(small.Pending, func(list []map[string]any) bool { small.Pending = list; return differs() })
	small.Nodes = shrink(small.Nodes, func(list []map[string]any) bool { small.Nodes = list; return differs() })
	small.Objects = shrink(small.Objects, func(list []map[string]any) bool { small.Objects = list; return differs() })
	small.Running = shrink(small.Running, func(list []map[string]any) bool { small.Running = list; return differs() })
	outcome, err := Run(ctx, &small, directory, outboard)
	if err != nil {
		return err
	}
	if !outcome.Differs() {
		// Not reproducible in a reduced form: keep the original.
		small = *c
		if outcome, err = Run(ctx, &small, directory, outboard); err != nil {
			return err
		}
	}
	return describeOutcome(&small, outcome, directory, outboard)
}

// shrink removes halves, quarters, … of the list while fails still holds; the last list for which fails was true
// stays in place.
func shrink(list []map[string]any, fails func([]map[string]any) bool) []map[string]any {
	for size := (len(list) + 1) / 2; size >= 1 && len(list) > 0; {
		removed := false
		for start := len(list) - size; start > -size; start -= size {
			from := max(start, 0)
			candidate := append(append([]map[string]any{}, list[:from]...), list[min(start+size, len(list)):]...)
			if len(candidate) < len(list) && fails(candidate) {
				list, removed = candidate, true
			}
		}
		if !removed || size > len(list) {
			if size == 1 && !removed {
				break
			}
			size = max(size/2, 1)
		}
	}
	return list
}

func describeOutcome(c *generate.Case, outcome *Outcome, directory, outboard string) error {
	expected, err := os.Create(filepath.Join(directory, "expected.jsonl"))
	if err != nil {
		return err
	}
	defer expected.Close()
	if err := oracle.Write(expected, outcome.Expected); err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d with features %v, reduced to %d nodes, %d other objects, %d running and %d pending pods\n\n",
		c.Seed, c.Features, len(c.Nodes), len(c.Objects), len(c.Running), len(c.Pending))
	files, err := c.Write(directory)
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "%s %s\n\n", outboard, strings.Join(arguments(files), " "))
	if outcome.Failure != nil {
		fmt.Fprintf(&text, "outboard failed: %v\n", outcome.Failure)
	}
	for i, difference := range outcome.Differences {
		if i == 20 {
			fmt.Fprintf(&text, "… and %d more\n", len(outcome.Differences)-i)
			break
		}
		fmt.Fprintln(&text, difference)
	}
	if len(outcome.Differences) > 0 {
		text.WriteString(surroundings(c, outcome.Differences[0]))
	}
	return os.WriteFile(filepath.Join(directory, "difference.txt"), []byte(text.String()), 0o644)
}

// surroundings shows the pod and the node of a difference.
func surroundings(c *generate.Case, d Difference) string {
	var text strings.Builder
	show := func(objects []map[string]any, want string) {
		for _, object := range objects {
			metadata, _ := object["metadata"].(map[string]any)
			namespace, _ := metadata["namespace"].(string)
			name := fmt.Sprint(metadata["name"])
			if object["kind"] == "Pod" {
				if namespace == "" {
					namespace = "default"
				}
				name = namespace + "/" + name
			}
			if name == want {
				data, _ := yaml.Marshal(object)
				fmt.Fprintf(&text, "\n---\n%s", data)
			}
		}
	}
	show(c.Pending, d.Pod)
	show(c.Nodes, d.Node)
	return text.String()
}
