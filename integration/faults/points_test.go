package faults

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

var (
	pointsEach = flag.Int("points.each", 1, "how often the shim is killed at each fail point")
	pointsOnly = flag.String("points.only", "", "fail points to kill at, separated by commas; empty: all")
)

const (
	// The lease is renewed every second.
	pointsConfig = `
leaderElection: {leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 1s}
podMaxBackoffSeconds: 1
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: AtomicReplicaCoordinator}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}
    postFilter: {enabled: [{name: Coscheduling}]}
`
	// Limit for one kill, from the start of the shim.
	pointPatience = 40 * time.Second
)

// failPoint is a point of shim/fail_point.h.
type failPoint struct {
	name string
	// The process is killed at a random passing up to this one: early if the load seldom leads there.
	most int
	// cause makes the shim pass the point; nil: the load does.
	cause func(*pointsRun) error
}

// The order is that of a pod's way. TestPointsAreKnown compares the list with the sources.
var failPoints = []failPoint{
	{name: "snapshot_piece_sent", most: 1},
	{name: "changes_sent", most: 40},
	{name: "pod_popped", most: 40},
	{name: "before_cycle", most: 40},
	{name: "cycle_answered", most: 40},
	{name: "cycle_checked", most: 40},
	{name: "pod_assumed", most: 40},
	{name: "before_reserve", most: 4},
	{name: "reserved", most: 4},
	{name: "permit_answered", most: 8},
	{name: "permit_wait_began", most: 4},
	{name: "permit_wait_ended", most: 4},
	{name: "before_effect", most: 2},
	{name: "effect_written", most: 2},
	{name: "before_pre_bind", most: 2},
	{name: "pre_bind_answered", most: 2},
	{name: "bind_decided", most: 40},
	{name: "before_bind_request", most: 40},
	{name: "before_fence_check", most: 40},
	{name: "write_allowed", most: 40},
	{name: "bind_written", most: 40},
	{name: "bind_answered", most: 40},
	{name: "before_scheduled_event", most: 40},
	{name: "scheduled_event_queued", most: 40},
	{name: "event_written", most: 40},
	{name: "before_unreserve", most: 1},
	{name: "unreserved", most: 1},
	{name: "pod_requeued", most: 8},
	{name: "before_status_patch", most: 8},
	{name: "status_patched", most: 8},
	{name: "pod_nominated", most: 2},
	{name: "before_eviction", most: 4},
	{name: "victim_marked", most: 2},
	{name: "victim_deleted", most: 2},
	{name: "before_lease_renewal", most: 2},
	{name: "lease_renewed", most: 2},
	{name: "lease_lost", most: 1, cause: (*pointsRun).takeLease},
	{name: "host_promoted", most: 1, cause: (*pointsRun).replaceHost},
}

// pointsProgram returns the shim that was built with fail points.
func pointsProgram(t *testing.T) string {
	t.Helper()
	directory := os.Getenv("OUTBOARD_FAIL_POINTS_BIN")
	if directory == "" {
		root, err := controlplane.Repository()
		if err != nil {
			t.Fatal(err)
		}
		directory = filepath.Join(root, "build", "fail_points", "bin")
	}
	program := filepath.Join(directory, "outboard-shim")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("no shim with fail points: %v; run ./dev test cluster, or cmake --preset fail_points and "+
			"ninja -C build/fail_points outboard-shim, or set OUTBOARD_FAIL_POINTS_BIN", err)
	}
	return program
}

// A point that the list lacks would never be tested, and a name that the sources lack would never be passed.
func TestPointsAreKnown(t *testing.T) {
	root, err := controlplane.Repository()
	if err != nil {
		t.Fatal(err)
	}
	inSources := map[string]bool{}
	point := regexp.MustCompile(`OUTBOARD_FAIL_POINT\((\w+)\);|OUTBOARD_FAIL_POINT_IF\((?s:.*?),\s*(\w+)\);`)
	err = filepath.WalkDir(filepath.Join(root, "shim"), func(path string, _ fs.DirEntry, err error) error {
		isSource := strings.HasSuffix(path, ".cc") || strings.HasSuffix(path, ".h")
		if err != nil || !isSource || strings.HasSuffix(path, "_test.cc") || filepath.Base(path) == "fail_point.h" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range point.FindAllStringSubmatch(string(text), -1) {
			inSources[match[1]+match[2]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, point := range failPoints {
		listed = append(listed, point.name)
	}
	slices.Sort(listed)
	if found := slices.Sorted(maps.Keys(inSources)); !slices.Equal(found, listed) {
		t.Errorf("in the sources: %v\nlisted here:    %v", found, listed)
	}
}

// TestShimIsKilledAtEachPoint kills the shim at each point of a pod's way, one after the other, while pods of all kinds
// come and go, and starts it again at once. Afterwards every pod that still exists is bound once, the nodes can be
// filled exactly, and no node ever held more than it has.
func TestShimIsKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no fail points")
	}
	r := &pointsRun{program: pointsProgram(t)}
	r.c = controlplane.ForTest(t, controlplane.Options{Controllers: []string{"persistentvolume-binder-controller"}})
	var err error
	if r.client, err = r.c.Client(); err != nil {
		t.Fatal(err)
	}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	load := &mixedLoad{client: r.client, random: rand.New(rand.NewSource(seed + 1))}
	if err := load.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.outboard, err = r.c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		Config: controlplane.SchedulerConfig{Text: pointsConfig, LeaderElect: true}, SocketDirectory: true,
		ShimCommand: []string{r.program},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- load.run(ctx) }()
	r.outboard.Shim.Kill()
	kills, began := 0, time.Now()
	for range *pointsEach {
		for _, point := range failPoints {
			if *pointsOnly != "" && !slices.Contains(strings.Split(*pointsOnly, ","), point.name) {
				continue
			}
			r.killAt(t, point, 1+random.Intn(point.most))
			kills++
		}
	}
	t.Logf("%d kills in %.1f s", kills, time.Since(began).Seconds())
	r.releaseLease(t)
	r.outboard.SetShimCommand(r.program)
	if err := r.outboard.StartShim(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	load.finish(t)
	report, err := checker.Check(t.Context(), r.c.EtcdURL, r.client)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d gangs, %d pods with volumes; %v", load.gangs, load.volumes, report)
	// A process that dies between a bind and its event loses the event, as kube-scheduler does.
	faults := report.Unbound + report.BoundTwice + report.UnknownNode + report.Overcommitted + report.HistoryDiffers +
		report.SeveralEvents + report.EventOfUnbound + report.EventWrongNode
	if faults > 0 {
		t.Errorf("%d faults", faults)
	}
}

// pointsRun is a control plane and an Outboard whose shim has fail points.
type pointsRun struct {
	program  string
	c        *controlplane.ControlPlane
	client   kubernetes.Interface
	outboard *controlplane.Outboard
}

// killAt starts the shim and returns when it has killed itself at the point.
func (r *pointsRun) killAt(t *testing.T, point failPoint, count int) {
	t.Helper()
	r.releaseLease(t)
	r.outboard.SetShimCommand("env", fmt.Sprintf("OUTBOARD_FAIL_POINT=%s:%d:abort", point.name, count), r.program)
	if err := r.outboard.StartShim(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if point.cause != nil {
		if err := point.cause(r); err != nil {
			t.Fatalf("%s: %v", point.name, err)
		}
	}
	select {
	case <-r.outboard.Shim.Exited():
	case <-time.After(pointPatience):
		t.Fatalf("%s was not passed %d times in %v\n%s", point.name, count, pointPatience, r.outboard.Shim.LogTail())
	}
	var status *exec.ExitError
	if err := r.outboard.Shim.Err(); err != nil {
		status, _ = err.(*exec.ExitError)
	}
	if status == nil || status.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%s: the shim ended by itself: %v\n%s", point.name, r.outboard.Shim.Err(), r.outboard.Shim.LogTail())
	}
	t.Logf("killed at %s, passing %d, after %.1f s", point.name, count, time.Since(began).Seconds())
}

const pointsLease = "outboard-scheduler"

// releaseLease deletes the lease of the dead shim, so that the next one need not wait until it expires.
func (r *pointsRun) releaseLease(t *testing.T) {
	t.Helper()
	err := r.client.CoordinationV1().Leases("kube-system").Delete(t.Context(), pointsLease, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// takeLease makes another holder of the lease, as soon as the shim leads.
func (r *pointsRun) takeLease() error {
	leases := r.client.CoordinationV1().Leases("kube-system")
	ctx, cancel := context.WithTimeout(context.Background(), pointPatience)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) { // Poll interval.
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			lease, err := leases.Get(ctx, pointsLease, metav1.GetOptions{})
			if err != nil {
				return err
			}
			lease.Spec.HolderIdentity = new("another")
			now := metav1.NewMicroTime(time.Now())
			lease.Spec.RenewTime = &now
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
			return err
		})
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return ctx.Err()
}

// replaceHost starts a newer instance of the host, and ends the old one when the shim has taken the newer one.
func (r *pointsRun) replaceHost() error {
	ctx, cancel := context.WithTimeout(context.Background(), pointPatience)
	defer cancel()
	if err := r.outboard.WaitReady(ctx); err != nil {
		return err
	}
	old := r.outboard.Host
	if err := r.outboard.StartHost(); err != nil {
		return err
	}
	select {
	case <-r.outboard.Shim.Exited():
	case <-ctx.Done():
		return fmt.Errorf("the newer host was not promoted\n%s", r.outboard.Shim.LogTail())
	}
	old.Stop(10 * time.Second)
	return nil
}
