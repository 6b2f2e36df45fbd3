package controlplane

import (
	"context"
	"os"
	"testing"
)

// ForTest starts a control plane that ends with the test. If the test has failed, the logs are kept and their place is
// said.
func ForTest(t testing.TB, options Options) *ControlPlane {
	t.Helper()
	if options.PodGroups && IsOlder() {
		t.Skipf("Kubernetes %s has no PodGroups", os.Getenv(OlderEnvironment))
	}
	if options.Progress == nil {
		options.Progress = t.Logf
	}
	c, err := Start(context.Background(), options)
	if err != nil {
		t.Fatalf("start a control plane: %v", err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			c.Stop()
			return
		}
		kept, err := c.StopKeepingLogs()
		t.Logf("logs of all processes: %s (%v)", kept, err)
	})
	return c
}
