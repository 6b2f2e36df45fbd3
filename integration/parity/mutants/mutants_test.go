package mutants

import (
	"os"
	"path/filepath"
	"testing"
)

const root = "../../.."

// A mutant that no longer applies tests nothing.
func TestEveryMutantApplies(t *testing.T) {
	mutants, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 40 {
		t.Errorf("%d mutants, want at least 40", len(mutants))
	}
	for _, mutant := range mutants {
		if err := mutant.Check(root); err != nil {
			t.Error(err)
		}
	}
}

func TestApplyCanBeUndone(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "rule.cc")
	if err := os.WriteFile(path, []byte("if (a < b) return;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mutant := Mutant{Name: "rule", File: "rule.cc", Find: "a < b", Replace: "a <= b"}
	undo, err := mutant.Apply(directory)
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "if (a <= b) return;\n" {
		t.Errorf("mutated: %s", data)
	}
	if err := mutant.Check(directory); err == nil {
		t.Error("applies twice")
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "if (a < b) return;\n" {
		t.Errorf("undone: %s", data)
	}
}
