// Package mutants breaks rules of plugins one at a time, to check that parity notices.
package mutants

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"outboard.dev/integration/parity/generate"
	"sigs.k8s.io/yaml"
)

//go:embed mutants.yaml
var list []byte

// Mutant is one edit of one file.
type Mutant struct {
	Name string `json:"name"`
	// File is relative to the root of the repository.
	File    string `json:"file"`
	Find    string `json:"find"`
	Replace string `json:"replace"`
	// Features are the features of the cases that notice the mutant; see generate.ParseFeatures.
	Features string `json:"features"`
}

// Load returns all mutants.
func Load() ([]Mutant, error) {
	var mutants []Mutant
	if err := yaml.UnmarshalStrict(list, &mutants); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, mutant := range mutants {
		if seen[mutant.Name] {
			return nil, fmt.Errorf("two mutants are called %s", mutant.Name)
		}
		seen[mutant.Name] = true
		if _, err := generate.ParseFeatures(mutant.Features); err != nil {
			return nil, fmt.Errorf("%s: %w", mutant.Name, err)
		}
	}
	return mutants, nil
}

// Check returns an error if the mutant cannot be applied to the tree at root, or changes nothing.
func (m *Mutant) Check(root string) error {
	_, err := m.text(root)
	return err
}

// Apply edits the tree at root and returns a function that reverts the edit.
func (m *Mutant) Apply(root string) (undo func() error, err error) {
	text, err := m.text(root)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, m.File)
	if err := os.WriteFile(path, []byte(strings.Replace(text, m.Find, m.Replace, 1)), 0o644); err != nil {
		return nil, err
	}
	return func() error { return os.WriteFile(path, []byte(text), 0o644) }, nil
}

func (m *Mutant) text(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.Name, err)
	}
	if count := strings.Count(string(data), m.Find); count != 1 {
		return "", fmt.Errorf("%s: the text to replace occurs %d times in %s, want once", m.Name, count, m.File)
	}
	if m.Find == m.Replace {
		return "", fmt.Errorf("%s changes nothing", m.Name)
	}
	return string(data), nil
}
