package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

// Log lines cannot be written: the disk is full, or the pipe's reader stopped. Pods are bound as before, lines are
// dropped and counted, and the first line that is written again says how many are missing.
func TestLogLinesThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	metrics := controlplane.FreeAddress(t)
	disk, pipe := filepath.Join(t.TempDir(), "disk"), filepath.Join(t.TempDir(), "pipe")
	tmpfs(t, disk, "size=1m")
	log, filler := filepath.Join(disk, "log"), filepath.Join(disk, "filler")
	c, client, outboard := startForSockets(t, controlplane.OutboardOptions{
		SocketDirectory: true, ShimArgs: []string{"--v", "2"}, HostArgs: []string{"--metrics-address", metrics}})
	startBoth := func(line string) {
		t.Helper()
		outboard.Shim.Stop(10 * time.Second)
		outboard.Host.Kill()
		outboard.SetHostProgram(startsAfter(t, line, "outboard-host"), "--metrics-address", metrics, "--v", "4")
		outboard.SetShimCommand(startsAfter(t, line, "outboard-shim"))
		if err := errors.Join(outboard.StartHost(), outboard.StartShim(), outboard.WaitReady(t.Context())); err != nil {
			t.Fatal(err)
		}
		onlyServing(t, outboard)
	}
	bindWhileTheyDrop := func(prefix string) {
		t.Helper()
		stop := createSteadily(t, client, prefix)
		for _, url := range []string{outboard.URL(), "http://" + metrics} {
			within(t, 20*time.Second, url+" drops lines", func() error { return dropsLines(t, url, 50) })
		}
		waitForBoundBy(t, client, stop())
	}

	startBoth("exec 2>>'" + log + "'")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	bindWhileTheyDrop("disk")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	stop := createSteadily(t, client, "room")
	within(t, 10*time.Second, "the log says how many lines are missing", func() error {
		return contains(log, "log lines before this one were dropped")
	})
	waitForBoundBy(t, client, stop())

	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(pipe, os.O_RDWR, 0) // Never read; without it the programs' opens would wait.
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	startBoth("exec 2>>'" + pipe + "'")
	fill(t, pipe)
	bindWhileTheyDrop("pipe")
	checkSockets(t, c, client)
}

// fill fills a pipe.
func fill(t *testing.T, pipe string) {
	t.Helper()
	writer, err := syscall.Open(pipe, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(writer)
	for err == nil {
		_, err = syscall.Write(writer, make([]byte, 4096))
	}
	if !errors.Is(err, syscall.EAGAIN) {
		t.Fatal(err)
	}
}

func dropsLines(t *testing.T, url string, want float64) error {
	families, err := controlplane.Scrape(t.Context(), url+"/metrics")
	if err != nil {
		return err
	}
	metric := families["outboard_log_lines_dropped_total"].GetMetric()
	if len(metric) != 1 || metric[0].GetCounter().GetValue() < want {
		return fmt.Errorf("outboard_log_lines_dropped_total: %v, want at least %v", metric, want)
	}
	return nil
}

func contains(file, text string) error {
	data, err := os.ReadFile(file)
	if err == nil && !strings.Contains(string(data), text) {
		err = fmt.Errorf("%s does not contain %q", file, text)
	}
	return err
}

// within polls until check returns no error.
func within(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // Poll interval.
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("not within %v: %s: %v", limit, what, err)
}

// The disk with the sockets has no room, and then is read-only: a new host ends and says why, the serving one serves
// on, and a shim that is restarted finds it.
func TestSocketDirectoryThatTakesNoSocket(t *testing.T) {
	t.Parallel()
	c := controlplane.ForTest(t, controlplane.Options{})
	sockets := filepath.Join(c.Dir, "hosts")
	tmpfs(t, sockets, "size=64k,nr_inodes=20")
	client, outboard := startOn(t, c, controlplane.OutboardOptions{SocketDirectory: true})
	first, serving := outboard.Host, onlyServing(t, outboard)
	newHostEnds := func(reason string) {
		t.Helper()
		if err := outboard.StartHost(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-outboard.Host.Exited():
		case <-time.After(10 * time.Second):
			t.Fatalf("the new host does not end: %s", outboard.Host.LogTail())
		}
		if log := outboard.Host.LogTail(); !strings.Contains(log, reason) {
			t.Errorf("the new host does not say %q: %s", reason, log)
		}
	}

	stop := createSteadily(t, client, "full")
	var err error
	for i := 0; err == nil; i++ {
		err = os.WriteFile(filepath.Join(sockets, fmt.Sprintf("filler-%d", i)), nil, 0o600)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	newHostEnds("No space left on device")
	if err := os.Remove(filepath.Join(sockets, "filler-0")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", sockets, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	newHostEnds("Read-only file system")
	waitForBoundBy(t, client, stop())
	outboard.Shim.Stop(10 * time.Second)
	if err := errors.Join(outboard.StartShim(), outboard.WaitReady(t.Context())); err != nil {
		t.Fatal(err)
	}
	if now := onlyServing(t, outboard); now != serving {
		t.Errorf("%s serves, want %s", now, serving)
	}
	stop = createSteadily(t, client, "restarted")
	if err := syscall.Mount("", sockets, "", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	if err := outboard.StartHost(); err != nil {
		t.Fatal(err)
	}
	waitUntilServes(t, outboard, func(host controlplane.HostInstance) bool { return host.Instance != serving })
	waitForBoundBy(t, client, stop())
	first.Kill()
	checkSockets(t, c, client)
}

// limitDescriptors sets how many file descriptors a running process may have. Those that it has stay open.
func limitDescriptors(t *testing.T, process *controlplane.Process, most int) {
	t.Helper()
	out, err := exec.Command("prlimit", "--pid", fmt.Sprint(process.PID()), fmt.Sprintf("--nofile=%d:", most)).CombinedOutput()
	if err != nil {
		t.Fatalf("prlimit: %v: %s", err, out)
	}
}

// A shim and a host that get no file descriptor any more, nor a thread, go on with what they have. When there are some
// again, the pages answer, and a new shim and a new host are connected.
func TestNoDescriptorsAndNoThreads(t *testing.T) {
	t.Parallel()
	threads := newControlGroup(t, "pids")
	c, client, outboard := startForSockets(t, controlplane.OutboardOptions{SocketDirectory: true})
	serving, first := onlyServing(t, outboard), outboard.Host
	connect := func(network, address string) {
		// A process that accepts none leaves some waiting in the kernel, and the kernel leaves the rest.
		if connection, err := net.DialTimeout(network, address, 50*time.Millisecond); err == nil {
			t.Cleanup(func() { connection.Close() })
		}
	}
	page := strings.TrimPrefix(outboard.URL(), "http://")
	socket := hostsOf(t, outboard)[0].Address

	// 3: only stdin, stdout and stderr, which it has, so none is left.
	stop := createSteadily(t, client, "host")
	limitDescriptors(t, first, 3)
	for range 50 {
		connect("unix", strings.TrimPrefix(socket, "unix:"))
	}
	outboard.Shim.Stop(10 * time.Second)
	if err := outboard.StartShim(); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "the host says that it has no descriptors", func() error {
		return contains(first.LogPath, "accept: Too many open files")
	})
	limitDescriptors(t, first, 1000)
	if err := outboard.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := onlyServing(t, outboard); now != serving {
		t.Errorf("%s serves, want %s", now, serving)
	}
	total := stop()
	within(t, 20*time.Second, "all are bound", func() error { return unbound(t, client, total) })

	stop = createSteadily(t, client, "shim")
	limitDescriptors(t, outboard.Shim, 3)
	for range 50 {
		connect("tcp", page)
	}
	if err := outboard.StartHost(); err != nil {
		t.Fatal(err)
	}
	failsToConnect := time.Now()
	before := boundNow(t, client)
	within(t, 20*time.Second, "the shim binds pods without a new descriptor", func() error {
		if now := boundNow(t, client); now < before+300 {
			return fmt.Errorf("%d pods, %d before", now, before)
		}
		return nil
	})
	if err := answers(t, outboard); err == nil {
		t.Error("the shim accepted a connection: the limit is void")
	}
	limitDescriptors(t, outboard.Shim, 1000)
	within(t, 20*time.Second, "the shim accepts again", func() error { return answers(t, outboard) })
	waitUntilServes(t, outboard, func(host controlplane.HostInstance) bool { return host.Instance != serving })
	t.Logf("the new host serves %v after it was started", time.Since(failsToConnect))
	waitForBoundBy(t, client, stop())

	// Threads: as many as both have now.
	for _, process := range []*controlplane.Process{outboard.Shim, outboard.Host} {
		threads.set(t, "cgroup.procs", int64(process.PID()))
	}
	threads.set(t, "pids.max", threads.number(t, "pids.current", ""))
	stop = createSteadily(t, client, "threads")
	for range 100 {
		connect("tcp", page)
	}
	for range 3 {
		if err := outboard.StartHost(); err != nil {
			t.Fatal(err)
		}
	}
	before = boundNow(t, client)
	within(t, 20*time.Second, "the shim binds pods without a new thread", func() error {
		if now := boundNow(t, client); now < before+300 {
			return fmt.Errorf("%d pods, %d before", now, before)
		}
		return nil
	})
	t.Logf("%d threads were refused", threads.number(t, "pids.events", "max"))
	threads.set(t, "pids.max", 10_000)
	waitForBoundBy(t, client, stop())
	within(t, 20*time.Second, "the pages answer", func() error { return answers(t, outboard) })
	checkSockets(t, c, client)
}

func boundNow(t *testing.T, client kubernetes.Interface) int {
	return countBound(t.Context(), t, client)
}

func unbound(t *testing.T, client kubernetes.Interface, total int) error {
	if bound := boundNow(t, client); bound < total {
		return fmt.Errorf("%d of %d pods", bound, total)
	}
	return nil
}

func answers(t *testing.T, outboard *controlplane.Outboard) error {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return outboard.Check(ctx, "/livez")
}
