package faults

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

var starvedFor = flag.Duration("machines.starved", 12*time.Second, "how long the leader gets almost no CPU")

// The machine has no memory left while pods are created: the kernel kills the host, and later the shim. A new process
// starts clean; no pod is lost, bound twice or put on a full node.
func TestNoMemoryLeft(t *testing.T) {
	t.Parallel()
	groups := map[string]controlGroup{}
	for _, program := range []string{"outboard-host", "outboard-shim"} {
		groups[program] = newControlGroup(t, "memory")
		groups[program].set(t, "memory.limit_in_bytes", 256<<20)
	}
	// The kernel selects the process with the highest score.
	begin := func(program string) string {
		return startsAfter(t, groups[program].enter()+"\necho 1000 >/proc/self/oom_score_adj", program)
	}
	c, client, outboard := startForSockets(t, controlplane.OutboardOptions{
		HostProgram: begin("outboard-host"), ShimCommand: []string{begin("outboard-shim")}})
	stop := createSteadily(t, client, "memory")
	for _, victim := range []struct {
		program string
		process *controlplane.Process
		start   func() error
	}{{"outboard-host", outboard.Host, outboard.StartHost}, {"outboard-shim", outboard.Shim, outboard.StartShim}} {
		group := groups[victim.program]
		before := boundNow(t, client)
		within(t, 20*time.Second, "pods are bound", func() error { return unbound(t, client, before+100) })
		// It fills the group, and is killed after the victim.
		neighbour := exec.Command("/bin/sh", "-c", group.enter()+"\nexec dd if=/dev/zero of=/dev/null bs=1G count=1")
		_ = neighbour.Run()
		select {
		case <-victim.process.Exited():
		case <-time.After(10 * time.Second):
			t.Fatalf("%s was not killed", victim.program)
		}
		if err := victim.process.Err(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("%s: %v, want a kill by the kernel", victim.program, victim.process.Err())
		}
		t.Logf("%s: the kernel killed %d processes of its group", victim.program, group.number(t, "memory.oom_control", "oom_kill "))
		if err := victim.start(); err != nil {
			t.Fatal(err)
		}
		if err := outboard.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	total := stop()
	within(t, 30*time.Second, "all are bound", func() error { return unbound(t, client, total) })
	waitForEvents(t.Context(), t, client)
	report, err := checker.Check(t.Context(), c.EtcdURL, client)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if faults := report.Faults() - report.NoEvent; faults > 0 { // A shim that dies between a bind and its event loses the event.
		t.Errorf("%d faults", faults)
	}
}

// The leader gets 2 % of a CPU for some time. It keeps its lease, or loses it in time: no bind arrives that the lease
// does not cover, and all pods are bound, by it or by the other replica.
func TestNoCPULeft(t *testing.T) {
	t.Parallel()
	group := newControlGroup(t, "cpu")
	r := startReplicas(t)
	leader := r.bindingLeader()
	shim := r.replicas[leader].Shim
	before := waitedForCPU(t, shim.PID())
	group.set(t, "cpu.cfs_quota_us", 2000)
	group.set(t, "cgroup.procs", int64(shim.PID()))
	time.Sleep(*starvedFor) // The shortage itself.
	waited := waitedForCPU(t, shim.PID()) - before
	group.set(t, "cpu.cfs_quota_us", -1)
	if waited < *starvedFor/4 {
		t.Errorf("it waited %v for a CPU in %v: the test is void", waited, *starvedFor)
	}
	began := time.Now()
	if r.leadsOn(leader, began) {
		t.Logf("%s kept its lease; its threads waited %v for a CPU", leader, waited)
	} else {
		t.Logf("%s gave up its lease; the other one bound %.2f s later; its threads waited %v for a CPU", leader, r.takenOver(leader, began).Seconds(), waited)
		r.startAgain(leader)
	}
	r.finish(true)
}

// waitedForCPU returns how long the process' threads, all together, were ready to run and did not: because of their
// group's limit, or because other processes had the CPUs.
func waitedForCPU(t *testing.T, pid int) (waited time.Duration) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("no thread of process %d: %v", pid, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // The thread has ended.
		}
		var ran, ready int64
		if _, scan := fmt.Sscan(string(text), &ran, &ready); err != nil || scan != nil {
			t.Fatalf("%s: %q: %v, %v", file, text, err, scan)
		}
		waited += time.Duration(ready)
	}
	return waited
}
