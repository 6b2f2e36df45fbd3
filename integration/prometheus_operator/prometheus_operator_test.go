package prometheusoperator

import (
	"os"
	"strings"
	"testing"
)

// The CustomResourceDefinitions are of the version of the program.
func TestTheProgramIsOfTheSameVersion(t *testing.T) {
	text, err := os.ReadFile("program/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := Module + " " + Version + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("program/go.mod does not require %q", want)
	}
}
