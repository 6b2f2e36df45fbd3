package faults

import (
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

var (
	handovers = flag.Int("failover.handovers", 4, "number of SIGTERMs to the leader")
	kills     = flag.Int("failover.kills", 2, "number of kills of the leader")
	stops     = flag.Int("failover.stops", 2, "number of SIGSTOPs of the leader")
	hangs     = flag.Int("failover.hangs", 1, "number of SIGSTOPs of the leader's host")
)

const (
	leaseName = "outboard-scheduler"
	// The lease's durations as in deploy/: the defaults.
	leaseDuration, renewDeadline = 15 * time.Second, 10 * time.Second

	podsASecond = 20
	podLife     = time.Minute // A waiting pod must live longer than two takeovers in a row.
	// Room for the 1,200 pods that live at a time, and for the bursts beside them: rounds take 2.5 s, every second
	// one has a burst, so twelve fall into a pod's life.
	failoverNodes, podsOnANode = 1000, 4
	burst                      = 150
)

// replicas are two shims with a host each, like two pods of the sidecar layout, with one lease.
type replicas struct {
	*testing.T
	*controlplane.ControlPlane
	client kubernetes.Interface
	trail  *trail
	// How long after a renewal the API server may receive a bind.
	latestBind time.Duration
	// So many requests may be later: each stop may catch one between the check of the lease and its way to the kernel,
	// where no client can take it back.
	caught   int
	replicas map[string]*controlplane.Outboard // by user
	load     *load
}

func startReplicas(t *testing.T) *replicas {
	t.Helper()
	// The lease is checked when the request is sent; one more second for its way.
	return startReplicasWith(t, replicaOptions{latestBind: renewDeadline + time.Second})
}

type replicaOptions struct {
	text       string        // a part of the configuration
	latestBind time.Duration // after the last renewal
	// server returns where a replica reaches the API server; nil: at its own address.
	server func(c *controlplane.ControlPlane, user string) string
}

func startReplicasWith(t *testing.T, options replicaOptions) *replicas {
	t.Helper()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no fence")
	}
	c := controlplane.ForTest(t, controlplane.Options{Audit: true})
	r := &replicas{T: t, ControlPlane: c, trail: followTrail(t, c), latestBind: options.latestBind, replicas: map[string]*controlplane.Outboard{}}
	var err error
	if r.client, err = c.Client(); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), r.client, failoverNodes); err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"replica-a", "replica-b"} {
		if err := c.LetSchedule(t.Context(), user); err != nil {
			t.Fatal(err)
		}
		server := ""
		if options.server != nil {
			server = options.server(c, user)
		}
		r.replicas[user], err = c.StartOutboard(t.Context(), controlplane.OutboardOptions{
			Config: controlplane.SchedulerConfig{LeaderElect: true, QPS: 1000, Text: options.text}, Name: "-" + user, User: user,
			APIServer: server,
		})
		if err != nil {
			t.Fatal(err)
		}
		r.waitUntilWarm(user)
	}
	r.load = startLoad(t, r.client)
	return r
}

// waitUntilWarm waits until the replica has all objects and a host that has them, too.
func (r *replicas) waitUntilWarm(user string) {
	r.Helper()
	replica := r.replicas[user]
	if err := replica.WaitReady(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.eventually("a host serves "+user, func() (bool, error) {
		hosts, err := replica.Hosts(r.Context())
		return err == nil && slices.ContainsFunc(hosts, func(host controlplane.HostInstance) bool { return host.State == "serving" }), nil
	})
}

func (r *replicas) eventually(what string, reached func() (bool, error)) {
	r.Helper()
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) { // Poll interval.
		done, err := reached()
		if err != nil {
			r.Fatalf("%s: %v", what, err)
		}
		if done {
			return
		}
	}
	r.Fatalf("not within %v: %s", patience, what)
}

// bindingLeader waits for the next bind and returns its user.
func (r *replicas) bindingLeader() string {
	r.Helper()
	begin, leader := time.Now(), ""
	r.eventually("a pod is bound by the leader", func() (bool, error) {
		var err error
		if leader, err = r.trail.leader(); err != nil || leader == "" {
			return false, err
		}
		bind, err := r.trail.firstBind(leader, false, begin)
		return bind != nil, err
	})
	return leader
}

// takenOver waits for the first bind by a replica other than the leader, and returns the time until it.
func (r *replicas) takenOver(leader string, since time.Time) time.Duration {
	r.Helper()
	var first *bindRequest
	r.eventually("the standby binds a pod", func() (_ bool, err error) {
		first, err = r.trail.firstBind(leader, true, since)
		return first != nil, err
	})
	return first.answered.Sub(since)
}

// startAgain restarts an ended replica as the standby.
func (r *replicas) startAgain(user string) {
	r.Helper()
	replica := r.replicas[user]
	<-replica.Shim.Exited()
	select {
	case <-replica.Host.Exited():
		if err := replica.StartHost(); err != nil {
			r.Fatal(err)
		}
	default:
	}
	if err := replica.StartShim(); err != nil {
		r.Fatal(err)
	}
	r.waitUntilWarm(user)
}

// atAnyMoment sleeps for a random time, longer than the interval between two renewals or two checks of the lease, so
// that a round begins at a random moment between them.
func atAnyMoment() { time.Sleep(rand.N(2500 * time.Millisecond)) }

// finish ends the load, and checks the whole history.
func (r *replicas) finish(eventsMayBeLost bool) {
	r.Helper()
	created := r.load.stop(r.T)
	waitForEvents(r.Context(), r.T, r.client)
	report, err := checker.Check(r.Context(), r.EtcdURL, r.client)
	if err != nil {
		r.Fatal(err)
	}
	r.Log(report)
	if report.Binds != created || report.PodsEver != created {
		r.Errorf("%d pods were created, %d are in the history, %d were bound", created, report.PodsEver, report.Binds)
	}
	faults := report.Faults()
	if eventsMayBeLost { // A process that dies between a bind and its event loses the event, as kube-scheduler does.
		faults -= report.NoEvent
	}
	if faults > 0 {
		r.Errorf("%d faults", faults)
	}
	verdict, err := r.trail.checkBinds(r.Context(), r.EtcdURL)
	if err != nil {
		r.Fatal(err)
	}
	r.Logf("%d bind requests in %d terms, answers other than 201 (by code): %v; the latest arrived %.2f s after its lease renewal",
		verdict.binds, verdict.terms, verdict.otherAnswers, append(verdict.ages, 0)[0].Seconds())
	// A request that was about to be written when the process was stopped is written when the process continues; a
	// client cannot exclude that.
	r.Logf("binds by a deposed leader: %d requests rejected by the API server, %d applied", len(verdict.lateRequests)-verdict.lateTaken, len(verdict.lateEffects))
	for _, late := range verdict.lateRequests {
		r.Log("a request by a deposed leader: ", late)
	}
	for _, late := range verdict.lateEffects {
		r.Error("a bind by a deposed leader: ", late)
	}
	if verdict.lateTaken > 0 {
		r.Errorf("%d requests by a deposed leader were applied", verdict.lateTaken)
	}
	late := 0
	for late < len(verdict.ages) && verdict.ages[late] > r.latestBind {
		late++
	}
	if late > r.caught {
		r.Errorf("%d binds arrived later than %v after the last renewal, want at most %d: %v", late, r.latestBind, r.caught, verdict.ages[:late])
	}
}

// tell logs the figures of a kind of round, and returns the 99th percentile and the maximum.
func tell(t *testing.T, kind string, took []time.Duration) (p99, most time.Duration) {
	t.Helper()
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	rank := func(percent int) time.Duration { return took[(len(took)*percent+99)/100-1] }
	t.Logf("%s: n %d, p50 %.2f s, p99 %.2f s, max %.2f s; load averages at the end %s", kind, len(took), rank(50).Seconds(), rank(99).Seconds(),
		took[len(took)-1].Seconds(), loadAverage(t))
	return rank(99), took[len(took)-1]
}

func loadAverage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// A pod of the sidecar layout is deleted: both its processes get SIGTERM. The lease is released, and the standby
// acquires it at its next check. Every second round has a burst before, so that many binds and events are in flight.
func TestHandover(t *testing.T) {
	r := startReplicas(t)
	var took []time.Duration
	for i := range *handovers {
		leader := r.bindingLeader()
		atAnyMoment()
		if i%2 == 1 {
			r.load.burst(t)
		}
		begin := time.Now()
		r.signal(leader, syscall.SIGTERM)
		took = append(took, r.takenOver(leader, begin))
		t.Logf("%s handed over within %.2f s", leader, took[len(took)-1].Seconds())
		for _, process := range r.replicas[leader].Processes() {
			<-process.Exited()
		}
		r.startAgain(leader)
	}
	if p99, _ := tell(t, "handover", took); p99 > 3*time.Second {
		t.Errorf("99th percentile %v, want at most 3 s", p99)
	}
	r.finish(false)
}

// A standby whose host is absent does not acquire the lease for a while: pods wait for its host without a failed
// attempt, and a third replica could take over meanwhile.
func TestTheLeaseWaitsForAHost(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	leader := r.bindingLeader()
	standby := "replica-a"
	if leader == standby {
		standby = "replica-b"
	}
	replica := r.replicas[standby]
	replica.Host.Kill()
	<-replica.Host.Exited()
	r.signal(leader, syscall.SIGTERM)
	r.eventually(standby+" leaves the lease to others", func() (bool, error) {
		return strings.Contains(replica.Shim.LogTail(), leaseName+" is free; leaving it to other replicas"), nil
	})
	returned := time.Now()
	if err := replica.StartHost(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s binds %.2f s after the start of its host", standby, r.takenOver(leader, returned).Seconds())
	r.startAgain(leader)
	r.finish(false)
	events, err := r.client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		t.Errorf("%s: %s", event.Regarding.Name, event.Note)
	}
}

// A leader whose host stays absent releases the lease to the replica with a host, and exits, so that it restarts as
// the standby.
func TestALeaderWithoutAHostHandsOver(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	leader := r.bindingLeader()
	replica := r.replicas[leader]
	began := time.Now()
	replica.Host.Kill()
	<-replica.Host.Exited()
	took := r.takenOver(leader, began)
	t.Logf("%s handed over %.2f s after the end of its host", leader, took.Seconds())
	if took > 35*time.Second {
		t.Errorf("it took %v, want 30 s and a hand-over", took)
	}
	<-replica.Shim.Exited()
	if !strings.Contains(replica.Shim.LogTail(), "leaderelection released: no usable plugin host") {
		t.Errorf("%s does not say why it ended: %s", leader, replica.Shim.LogTail())
	}
	r.startAgain(leader)
	r.finish(false)
}

// A leader whose host hangs notices that although the connection stays, and hands over.
func TestALeaderWhoseHostHangsHandsOver(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	var took []time.Duration
	for range *hangs {
		r.startEndedAgain()
		leader := r.bindingLeader()
		replica := r.replicas[leader]
		atAnyMoment()
		began := time.Now()
		if err := syscall.Kill(-replica.Host.PID(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		// Asked until then, because the process ends when it has handed over.
		r.eventually(leader+" is not ready", func() (bool, error) { return replica.Check(t.Context(), "/readyz") != nil, nil })
		t.Logf("%s is not ready %.2f s after its host was stopped", leader, time.Since(began).Seconds())
		took = append(took, r.takenOver(leader, began))
		t.Logf("%s handed over %.2f s after its host was stopped", leader, took[len(took)-1].Seconds())
		<-replica.Shim.Exited()
		if !strings.Contains(replica.Shim.LogTail(), "leaderelection released: no usable plugin host") {
			t.Errorf("%s does not say why it ended: %s", leader, replica.Shim.LogTail())
		}
		if err := syscall.Kill(-replica.Host.PID(), syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		r.startAgain(leader)
	}
	if _, most := tell(t, "handover after SIGSTOP of the host", took); most > 45*time.Second {
		t.Errorf("the longest took %v, want at most 45 s", most)
	}
	r.finish(false)
}

// A leader whose scheduling thread hangs lets its lease expire, and its liveness probe fails. What the thread hangs in
// is the configuration: a pipe without a writer.
func TestALeaderThatHangsIsSucceeded(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	leader := r.bindingLeader()
	replica := r.replicas[leader]
	config := replica.ConfigFile()
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := syscall.Mkfifo(config, 0o600); err != nil {
		t.Fatal(err)
	}
	took := r.takenOver(leader, began)
	t.Logf("%s was succeeded %.2f s after its scheduling thread hung", leader, took.Seconds())
	if took > 45*time.Second {
		t.Errorf("it took %v, want at most 45 s", took)
	}
	if err := replica.Check(t.Context(), "/livez"); err == nil || !strings.Contains(err.Error(), "[-]scheduling-thread failed") {
		t.Errorf("/livez: %v", err)
	}
	// Like a kubelet whose liveness probe failed.
	replica.Shim.Kill()
	<-replica.Shim.Exited()
	r.finish(true)
}

// The leader's pod dies: the standby waits for the lease to expire, but not longer.
func TestTakeoverFromTheDead(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	var took []time.Duration
	for range *kills {
		leader := r.bindingLeader()
		atAnyMoment()
		begin := time.Now()
		for _, process := range r.replicas[leader].Processes() {
			process.Kill()
		}
		took = append(took, r.takenOver(leader, begin))
		t.Logf("%s was succeeded after %.2f s", leader, took[len(took)-1].Seconds())
		r.startAgain(leader)
	}
	if _, most := tell(t, "takeover after kill -9", took); most > 17*time.Second {
		t.Errorf("the longest took %v, want at most 17 s", most)
	}
	r.finish(true)
}

// The leader is stopped with a burst of binds in flight, and continues when its lease may have expired: 1 to 30 s
// later, mostly around the renew deadline (10 s) and the lease's end (15 s). It must not make its pending binds.
func TestLeaderIsStopped(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	var took []time.Duration
	kept := 0
	for range *stops {
		r.startEndedAgain()
		leader := r.bindingLeader()
		atAnyMoment()
		pause := 8*time.Second + rand.N(12*time.Second)
		if rand.N(5) == 0 {
			pause = time.Second + rand.N(29*time.Second)
		}
		// It receives the whole burst at once and decides faster than the API server binds, so that requests wait in
		// it when it is stopped again.
		r.signal(leader, syscall.SIGSTOP)
		r.load.burst(t)
		r.signal(leader, syscall.SIGCONT)
		time.Sleep(rand.N(300 * time.Millisecond)) // Somewhere in the burst.
		begin := time.Now()
		r.signal(leader, syscall.SIGSTOP)
		time.Sleep(pause) // The pause itself.
		r.caught++
		goesOn := time.Now()
		r.signal(leader, syscall.SIGCONT)
		if r.leadsOn(leader, goesOn) {
			kept++
			t.Logf("%s was stopped for %.2f s, and leads on", leader, pause.Seconds())
			continue
		}
		took = append(took, r.takenOver(leader, begin))
		t.Logf("%s was stopped for %.2f s, and succeeded after %.2f s", leader, pause.Seconds(), took[len(took)-1].Seconds())
		r.startAgain(leader)
	}
	t.Logf("%d stops: the leader kept its lease %d times", *stops, kept)
	tell(t, "takeover after SIGSTOP", took)
	r.finish(true)
}

// startEndedAgain restarts shims that have exited, like a kubelet: on a busy machine the API server may not answer for as
// long as a lease lasts.
func (r *replicas) startEndedAgain() {
	r.Helper()
	for user := range r.replicas {
		if r.hasEnded(user) {
			r.startAgain(user)
		}
	}
}

func (r *replicas) hasEnded(user string) bool {
	return r.replicas[user].Shim.HasEnded()
}

// leadsOn waits until the replica has renewed its lease since, or has exited because it could not.
func (r *replicas) leadsOn(user string, since time.Time) (leads bool) {
	r.Helper()
	r.eventually(user+" renews its lease or ends", func() (bool, error) {
		if r.hasEnded(user) {
			leads = false
			return true, nil
		}
		var err error
		leads, err = r.trail.renewed(user, since)
		return leads, err
	})
	return leads
}

// signal sends a signal to both processes of a replica.
func (r *replicas) signal(user string, signal syscall.Signal) {
	r.Helper()
	for _, process := range r.replicas[user].Processes() {
		select {
		case <-process.Exited():
			r.Fatalf("%s exited unexpectedly:\n%s", process.Name, process.LogTail())
		default:
		}
		if err := syscall.Kill(-process.PID(), signal); err != nil {
			r.Fatal(err)
		}
	}
}
