package prometheusoperator

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The CustomResourceDefinitions are of the version of the operator, and Prometheus has the version that it is said to have.
func TestVersions(t *testing.T) {
	for file, want := range map[string]string{
		"operator/go.mod":   Module + " " + Version + " //",
		"prometheus/go.mod": prometheusModule + " " + prometheusVersion + " //",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not require %q", file, want)
		}
	}
	// v0.313.5 is 3.13.5.
	var minor, patch int
	if _, err := fmt.Sscanf(prometheusVersion, "v0.3%d.%d", &minor, &patch); err != nil || prometheusRelease != fmt.Sprintf("3.%d.%d", minor, patch) {
		t.Errorf("%s is not %s", prometheusVersion, prometheusRelease)
	}
}
