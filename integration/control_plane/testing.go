package controlplane

import (
	"context"
	"fmt"
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
	c, err := StartForTest(t, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// StartForTest is ForTest for a goroutine other than the test's, such as a subtest's.
func StartForTest(t testing.TB, options Options) (*ControlPlane, error) {
	if options.Progress == nil {
		options.Progress = t.Logf
	}
	c, err := Start(context.Background(), options)
	if err != nil {
		return nil, fmt.Errorf("start a control plane: %w", err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			c.Stop()
			return
		}
		tails := c.LogTails()
		kept, err := c.StopKeepingLogs()
		t.Logf("%slogs of all processes: %s (%v)", tails, kept, err)
	})
	return c, nil
}

// Pool lends clusters to parallel subtests, each to one at a time. It starts one only if all are lent.
type Pool[T any] struct {
	start func() (T, error)
	free  chan T
	more  chan struct{} // one for each that may still be started
}

// NewPool returns a pool of at most this many.
func NewPool[T any](most int, start func() (T, error)) *Pool[T] {
	p := &Pool[T]{start, make(chan T, most), make(chan struct{}, most)}
	for range most {
		p.more <- struct{}{}
	}
	return p
}

// Lend returns one until the test ends, which must leave it as it was.
func (p *Pool[T]) Lend(t testing.TB) T {
	t.Helper()
	var one T
	select {
	case one = <-p.free:
	default:
		select {
		case one = <-p.free:
		case <-p.more:
			var err error
			if one, err = p.start(); err != nil {
				p.more <- struct{}{}
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() { p.free <- one })
	return one
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
