// Package hints runs the plugins' text cases about queueing hints with kube-scheduler's own plugins.
package hints

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Case is one case of a *.case file that expects hints (plugin_host/sdk/testing/README.md describes the format).
type Case struct {
	// Where is the case's position, for messages.
	Where  string
	Args   map[string]any
	Pod    map[string]any
	Others []map[string]any
	Events map[string]Event
	// Hints by the event's name: `queue`, `skip` or `not registered`.
	Hints map[string]string
}

// Event is an event of an object, in the contract's terms.
type Event struct {
	Resource string         `yaml:"resource"`
	Action   string         `yaml:"action"`
	Old      map[string]any `yaml:"old"`
	New      map[string]any `yaml:"new"`
}

// ReadCases reads the cases of a plugin's folder that expect hints.
func ReadCases(folder string) ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(folder, "testdata", "*.case"))
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for i, one := range strings.Split(string(text), "\n==\n") {
			where := fmt.Sprintf("%s, case %d", file, i+1)
			parsed, err := parse(one)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
			if len(parsed.Hints) == 0 {
				continue
			}
			parsed.Where = where
			cases = append(cases, parsed)
		}
	}
	return cases, nil
}

func parse(text string) (Case, error) {
	given, expected, ok := strings.Cut(text, "\n--\n")
	if !ok {
		return Case{}, fmt.Errorf("missing line --")
	}
	var cluster struct {
		Args    map[string]any   `yaml:"args"`
		Pod     map[string]any   `yaml:"pod"`
		Objects []map[string]any `yaml:"objects"`
		Events  map[string]Event `yaml:"events"`
	}
	if err := yaml.Unmarshal([]byte(given), &cluster); err != nil {
		return Case{}, err
	}
	var answers struct {
		Hints map[string]string `yaml:"hints"`
	}
	if err := yaml.Unmarshal([]byte(expected), &answers); err != nil {
		return Case{}, err
	}
	return Case{Args: cluster.Args, Pod: cluster.Pod, Others: cluster.Objects, Events: cluster.Events, Hints: answers.Hints}, nil
}

// NeedsClaims returns whether the case has device classes.
func (c *Case) NeedsClaims() bool {
	for _, object := range c.Others {
		if _, ok := object["deviceClass"]; ok {
			return true
		}
	}
	return false
}
