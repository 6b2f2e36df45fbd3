package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var pointsStops = flag.Int("points.stops", 2, "at how many of the points about the lease the leader is stopped")

// The lines of the shim where it matters whether the lease is held, and how often they are passed at most before the
// stop.
var leasePoints = []struct {
	name string
	most int
}{
	{"before_lease_renewal", 3},
	{"lease_renewed", 3},
	{"pod_popped", 40},
	{"cycle_answered", 40},
	{"pod_assumed", 40},
	{"bind_decided", 40},
	{"before_bind_request", 40},
	{"before_fence_check", 40},
	{"write_allowed", 40},
	{"bind_written", 40},
	{"bind_answered", 40},
	{"before_scheduled_event", 40},
}

// TestLeaderIsStoppedAtEachPoint stops the leader exactly where its lease matters, until another replica leads, and has
// bound what waited. The stopped one must not write afterwards. Only at write_allowed, between the last look at the
// clock and the write, its request may still reach the API server, which refuses it: the pod is bound.
func TestLeaderIsStoppedAtEachPoint(t *testing.T) {
	t.Parallel()
	// A stopped process cannot end a request that a busy API server reads late; what counts is the next term, which finish
	// checks, too.
	const latestBind = 8 * time.Second
	program := pointsProgram(t)
	r := startReplicasWith(t, replicaOptions{text: "leaderElection: {leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 1s}\n", latestBind: latestBind})
	points := slices.Clone(leasePoints)
	rand.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	if *pointsOnly != "" {
		wanted := strings.Split(*pointsOnly, ",")
		for i := len(points) - 1; i >= 0; i-- {
			if !slices.Contains(wanted, points[i].name) {
				points = slices.Delete(points, i, i+1)
			}
		}
	}
	var took []time.Duration
	for _, point := range points[:min(len(points), *pointsStops)] {
		successor := r.bindingLeader()
		victim := "replica-a"
		if successor == victim {
			victim = "replica-b"
		}
		count := 1 + rand.IntN(point.most)
		r.replicas[victim].Shim.Kill()
		r.replicas[victim].SetShimCommand("env", fmt.Sprintf("OUTBOARD_FAIL_POINT=%s:%d:stop", point.name, count), program)
		r.startAgain(victim)
		r.replicas[successor].Shim.Stop(10 * time.Second)
		r.eventually(fmt.Sprintf("%s leads, and stops itself at %s", victim, point.name), func() (bool, error) {
			if r.hasEnded(victim) {
				return false, fmt.Errorf("it exited:\n%s", r.replicas[victim].Shim.LogTail())
			}
			return isStopped(r.replicas[victim].Shim.PID())
		})
		stopped := time.Now()
		r.startAgain(successor)
		took = append(took, r.takenOver(victim, stopped))
		r.eventually("the pods that waited are bound", func() (bool, error) {
			waiting, err := r.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName="})
			if err != nil {
				return false, err
			}
			for _, pod := range waiting.Items {
				if !pod.CreationTimestamp.After(stopped) {
					return false, nil
				}
			}
			return true, nil
		})
		if err := syscall.Kill(r.replicas[victim].Shim.PID(), syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		r.eventually(victim+" notices that its lease is lost, and exits", func() (bool, error) { return r.hasEnded(victim), nil })
		t.Logf("stopped at passing %d of %s, succeeded after %.2f s", count, point.name, took[len(took)-1].Seconds())
		r.replicas[victim].SetShimCommand()
		r.startAgain(victim)
	}
	tell(t, "takeover after a stop at a point", took)
	r.finish(true)
}

// isStopped returns whether a process is stopped by a signal.
func isStopped(pid int) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false, err
	}
	// The name, in parentheses, may contain anything.
	_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	return strings.HasPrefix(state, "T"), nil
}
