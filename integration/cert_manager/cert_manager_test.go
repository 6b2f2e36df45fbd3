package certmanager

import (
	"os"
	"strings"
	"testing"
)

// The chart is of the version of the program.
func TestTheProgramIsOfTheSameVersion(t *testing.T) {
	text, err := os.ReadFile("program/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := Module + " " + Version + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("program/go.mod does not require %q", want)
	}
}

// Before the tests that need it: their other parts do not wait for minutes.
func TestTheProgramBuilds(t *testing.T) {
	if _, err := Build(t.Context(), t.Logf); err != nil {
		t.Fatal(err)
	}
}
