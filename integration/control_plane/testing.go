package controlplane

import (
	"context"
	"os"
	"testing"
)

// ForTest starts a control plane that ends with the test. If the test fails, the logs are kept and their path is
// logged.
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

// FreeAddress returns an address of 127.0.0.1 with an unused port.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := FreeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}
