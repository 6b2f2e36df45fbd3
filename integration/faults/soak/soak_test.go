package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	controlplane "outboard.dev/integration/control_plane"
)

var (
	binds      = flag.Int("soak.binds", 1500, "binds by Outboard")
	leastFault = flag.Int("soak.faults", 30, "at least so many faults")
	seed       = flag.Uint64("soak.seed", 0, "seed of the faults; 0: a random one")
	every      = flag.Duration("soak.every", 300*time.Millisecond, "mean time between two faults of processes and objects")
	rate       = flag.Int("soak.rate", 100, "pods created a second; 0: as fast as they are bound")
	name       = flag.String("soak.name", "short", "name of the piece")
	resultFile = flag.String("soak.result", "", "a file for the result, in JSON")
	kwok       = flag.Int("soak.kwok", 4, "KWOK plays the kubelet of each N-th node; 0: of none. It costs as much of the cores as a pod's bind")
)

const (
	// From then on, in shares of a piece's binds, no shim or no host ends, so that their memory can be compared.
	shimsStay, hostsStay = 0.35, 0.7
	// A leading shim grows until it remembers the events of 10,000 pods (and 4 MiB of attempts: explainMemoryMiB); a
	// host while it meets its first pods.
	warmShim, warmHost = 12000, 5000
	// The memory of a process is judged if it goes on for so many binds, and a piece must have so many that some do.
	leastLife, enoughBinds = 10000, 40000
	// Without a bind for so long, the piece fails.
	stalled = 2 * time.Minute
	// All pods must be bound so long after the last fault. Shorter than the five minutes after which the queue tries
	// each pod again, which would hide a forgotten pod.
	patience = 90 * time.Second
)

// TestSoak binds pods while everything fails at random, and checks each bind in etcd's history.
func TestSoak(t *testing.T) {
	if controlplane.IsOlder() {
		t.Skip("this API server has no MutatingAdmissionPolicy, which names the client of each bind")
	}
	result := &Result{Name: *name, Commit: os.Getenv("OUTBOARD_COMMIT"), Seed: *seed, Faults: map[string]int{}, Waits: Histogram{}}
	if result.Seed == 0 {
		result.Seed = rand.Uint64() >> 32
	}
	t.Logf("seed %d", result.Seed)
	c := startCluster(t, result)
	if err := c.load.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()

	var kubelet, drawing, sampling sync.WaitGroup
	kubeletContext, endKubelet := context.WithCancel(context.Background())
	kubelet.Go(func() { c.restartEnded(kubeletContext) })
	defer kubelet.Wait()
	defer endKubelet()
	drawingContext, endDrawing := context.WithCancel(context.Background())
	defer endDrawing()
	shimsFrom, hostsFrom := int(shimsStay*float64(*binds)), int(hostsStay*float64(*binds))
	g := &generator{cluster: c, random: rand.New(rand.NewPCG(result.Seed, 0)), mean: *every, most: func() ending {
		switch bound, _, _ := c.record.progress(); {
		case bound > hostsFrom:
			return nothing
		case bound > shimsFrom:
			return aHost
		}
		return aShim
	}}
	drawing.Go(func() { g.run(drawingContext) })
	shims := newMemory(c, func(r *replica) *controlplane.Process { return r.Shim }, warmShim)
	hosts := newMemory(c, func(r *replica) *controlplane.Process { return r.Host }, warmHost)
	sampling.Go(func() { shims.sample(drawingContext) })
	sampling.Go(func() { hosts.sample(drawingContext) })

	said := time.Now()
	for {
		time.Sleep(100 * time.Millisecond) // Poll interval.
		bound, idle, err := c.record.progress()
		if err == nil {
			err = c.load.error()
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, c.tails())
		}
		if bound >= *binds && c.counted() >= *leastFault {
			break
		}
		waiting, longest := c.load.waiting()
		if idle > stalled {
			t.Fatalf("%d pods wait, and none was bound for %v\n%s", waiting, idle, c.tails())
		}
		if time.Since(said) > 15*time.Second {
			said = time.Now()
			fmt.Printf("%4.0f s: %d bound, %.0f a second, %d faults; %d pods wait, %.1f s at most; MiB:%s%s\n", time.Since(began).Seconds(), bound,
				float64(bound)/time.Since(began).Seconds(), c.counted(), waiting, longest.Seconds(), shims.last(), hosts.last())
		}
	}
	endDrawing()
	if err := c.load.end(); err != nil {
		t.Fatal(err)
	}
	drawing.Wait()
	sampling.Wait()
	result.Seconds = time.Since(began).Seconds()
	lastFault := time.Now()
	for limit := lastFault.Add(patience); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) { // Poll interval.
		if waiting, _ := c.load.waiting(); waiting == 0 {
			break
		}
	}
	t.Logf("no pod waits %.1f s after the last fault", time.Since(lastFault).Seconds())
	endKubelet()
	kubelet.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.record.finish(ctx, c.etcd, c.client); err != nil {
		t.Fatal(err)
	}
	result.Memory, result.Short = append(shims.compare(), hosts.compare()...), *binds < enoughBinds
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	result.Load = strings.TrimSpace(string(load))
	t.Logf("%d binds in %.0f s, %d by others, %d after a theft of the lease, %d to a node deleted before; load averages %s\n%s%s\n%s", result.Binds, result.Seconds,
		result.Others, result.AfterTheft, result.GoneNode, result.Load, Header, result.Row(), result.FaultTable())
	for _, example := range result.Examples {
		t.Log(example)
	}
	if *resultFile != "" {
		if err := result.Write(*resultFile); err != nil {
			t.Fatal(err)
		}
	}
	for _, failure := range result.Failures() {
		t.Error(failure)
	}
	if t.Failed() {
		t.Log(c.tails())
	}
}
