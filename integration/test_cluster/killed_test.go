package testcluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The environment variable with which this program plays a run that is killed.
const playKilled = "OUTBOARD_TEST_CLUSTER_KILLED"

// A run that gets SIGKILL leaves no process, and the next start removes the rest.
func TestNothingOutlivesAKilledRun(t *testing.T) {
	if os.Getenv(playKilled) != "" {
		runUntilKilled(t)
		return
	}
	if err := Missing(); err != nil {
		t.Skip(err)
	}
	run := exec.Command(os.Args[0], "-test.run", "^TestNothingOutlivesAKilledRun$", "-test.timeout", "5m")
	run.Env = append(os.Environ(), playKilled+"=1")
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Process.Kill() })
	var s slot
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "slot %d", &s.number); err == nil {
			break
		}
		t.Log(lines.Text())
	}
	left := []string{s.folder(), filepath.Join("/sys/class/net", s.link()), filepath.Join(controlGroups, "memory", s.name())}
	if isVersion2() {
		left[2] = filepath.Join(controlGroups, s.name())
	}
	for _, path := range left {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("before the end: %v", err)
		}
	}
	run.Process.Kill()
	run.Wait()
	eventuallyNoProcess(t, s.folder())
	next, err := takeSlot()
	if err != nil {
		t.Fatal(err)
	}
	defer next.release()
	defer next.clear()
	for _, path := range left {
		if _, err := os.Stat(path); err == nil && path != next.folder() {
			t.Errorf("%s is still there", path)
		}
	}
	if entries, _ := os.ReadDir(s.folder()); len(entries) > 0 {
		t.Errorf("%s has %v", s.folder(), entries)
	}
}

// runUntilKilled opens a node with a process in it and waits for the end.
func runUntilKilled(t *testing.T) {
	s, err := takeSlot()
	if err != nil {
		t.Fatal(err)
	}
	network, err := startNetwork(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	node, err := openNode(t.Context(), network, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	// Its name has the folder, for eventuallyNoProcess; setsid, as the processes of containers.
	if err := node.Command(context.Background(), "setsid", "bash", "-c", "sleep infinity; exit", node.dir).Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("slot %d\n", s.number)
	select {}
}

func eventuallyNoProcess(t *testing.T, folder string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) { // Poll interval.
		running := ""
		processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range processes {
			if command, err := os.ReadFile(path); err == nil && strings.Contains(string(command), folder+"/") {
				running = strings.ReplaceAll(string(command), "\x00", " ")
			}
		}
		if running == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still running: %s", running)
		}
	}
}
