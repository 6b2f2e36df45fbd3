package testcluster

import (
	"context"
	"testing"
)

// ForTest starts a cluster that ends with the test. If the test fails, the logs are kept and their path is logged. Skips
// the test on a machine that cannot run kubelets, and says why.
func ForTest(t testing.TB, options Options) *Cluster {
	t.Helper()
	if err := Missing(); err != nil {
		t.Skip(err)
	}
	if options.ControlPlane.Progress == nil {
		options.ControlPlane.Progress = t.Logf
	}
	c, err := Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("failed" + c.keepLogs())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
