package faults

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/faults/proxy"
)

const (
	leaderService = "outboard-leader"
	leaseHome     = "kube-system" // the namespace of the tests' lease, and so of the Service
	// What the replicas write as their address: the proxy that plays the Service uses the port only.
	podIP = "192.0.2.7"
)

// Two replicas and kube-scheduler fill the same nodes. The API server asks the leader about kube-scheduler's binds,
// through a Service that the leader makes lead to itself, and the leader is killed on the way.
//
//   - Fail: no bind ever overcommits a node. kube-scheduler's pods wait until the other replica leads.
//   - Ignore: kube-scheduler's binds proceed at once, unchecked until then.
func TestTheWebhookFollowsTheLeader(t *testing.T) {
	t.Parallel()
	t.Run("Fail", func(t *testing.T) {
		w := startWebhook(t, admissionregistrationv1.Fail)
		w.fillAndKillTheLeader()
		if report := w.check(); report.Overcommitted > 0 {
			t.Errorf("%d overcommitted nodes", report.Overcommitted)
		}
		// The lease ends 15 s after its last renewal; then the slice is written, and pods leave their backoff (10 s). On a
		// busy machine the other replica may lose the lease as well, and then the same lasts once more.
		limit := time.Minute * time.Duration(1+w.restarts)
		if waited := w.longestPause(); waited > limit {
			t.Errorf("kube-scheduler bound nothing for %v, more than %v", waited, limit)
		}
	})
	t.Run("Ignore", func(t *testing.T) {
		w := startWebhook(t, admissionregistrationv1.Ignore)
		w.fillAndKillTheLeader()
		w.t.Logf("%d overcommitted nodes", w.check().Overcommitted)
		// The lease has not expired yet.
		if after := w.firstBindAfterKill(); after > renewDeadline {
			t.Errorf("kube-scheduler's first bind without a leader came after %v", after)
		}
	})
}

// webhook is the shipped webhook on a control plane with two replicas.
type webhook struct {
	t        *testing.T
	c        *controlplane.ControlPlane
	client   kubernetes.Interface
	replicas map[int32]*controlplane.Outboard // by the port of /admit
	killed   time.Time
	restarts int // of the other replica
}

func startWebhook(t *testing.T, policy admissionregistrationv1.FailurePolicyType) *webhook {
	t.Helper()
	c := controlplane.ForTest(t, controlplane.Options{Audit: true})
	w := &webhook{t: t, c: c, replicas: map[int32]*controlplane.Outboard{}}
	var err error
	if w.client, err = c.Client(); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), w.client, sharedNodes); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service, err := proxy.NewTCPTo(nil, w.dialLeader)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	admitBindings(t, c, service.Address, policy)
	for _, user := range []string{"replica-a", "replica-b"} {
		w.startReplica(user)
	}
	if _, err := c.StartKubeScheduler(t.Context(), controlplane.SchedulerConfig{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// startReplica gives the user the shipped right to the leader's slices.
func (w *webhook) startReplica(user string) {
	w.t.Helper()
	if err := w.c.LetSchedule(w.t.Context(), user); err != nil {
		w.t.Fatal(err)
	}
	role, err := os.ReadFile("../../deploy/kustomize/components/binding-webhook/role.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	text := strings.NewReplacer("namespace: outboard-system\n  labels", "namespace: "+leaseHome+"\n  labels",
		"name: outboard-shim-leader-endpoints", "name: leader-endpoints-"+user,
		"{kind: ServiceAccount, name: outboard-shim, namespace: outboard-system}", "{apiGroup: rbac.authorization.k8s.io, kind: User, name: "+user+"}").Replace(string(role))
	for _, object := range strings.Split(text, "\n---\n") {
		if err := w.c.Apply(w.t.Context(), object); err != nil {
			w.t.Fatal(err)
		}
	}
	_, port, err := net.SplitHostPort(controlplane.FreeAddress(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	replica, err := w.c.StartOutboard(w.t.Context(), controlplane.OutboardOptions{
		Config: controlplane.SchedulerConfig{LeaderElect: true, Text: "profiles: [{schedulerName: " + ourScheduler + "}]"}, Name: "-" + user, User: user,
		Shim: fmt.Sprintf("extender: {address: '0.0.0.0:%s', admitsBindings: true, leaderService: %s, deadline: 1s, tls: {certFile: %q, keyFile: %q}}",
			port, leaderService, filepath.Join(w.c.Dir, "server.crt"), filepath.Join(w.c.Dir, "server.key")),
		ShimPrefix: []string{"env", "POD_IPS=" + podIP},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var number int32
	if _, err := fmt.Sscan(port, &number); err != nil {
		w.t.Fatal(err)
	}
	w.replicas[number] = replica
}

// leaderPort returns the port in the Service's slice.
func (w *webhook) leaderPort(ctx context.Context) (int32, error) {
	list, err := w.client.DiscoveryV1().EndpointSlices(leaseHome).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + leaderService})
	if err != nil {
		return 0, err
	}
	if len(list.Items) != 1 || len(list.Items[0].Endpoints) != 1 || list.Items[0].Endpoints[0].Addresses[0] != podIP {
		return 0, fmt.Errorf("want one slice with one endpoint: %v", list.Items)
	}
	return *list.Items[0].Ports[0].Port, nil
}

// dialLeader plays kube-proxy: a new connection goes to the slice's endpoint.
func (w *webhook) dialLeader(ctx context.Context) (net.Conn, error) {
	port, err := w.leaderPort(ctx)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

// fillAndKillTheLeader fills the nodes, and kills the leader when a third of the places is taken.
func (w *webhook) fillAndKillTheLeader() {
	w.t.Helper()
	created := make(chan error, 1)
	go func() { created <- createForBoth(w.t.Context(), w.client, 0) }()
	waitForBound(w.t.Context(), w.t, w.client, sharedNodes*podsOnANode/3)
	former, err := w.leaderPort(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.killed = time.Now()
	w.replicas[former].Shim.Kill()
	for port, replica := range w.replicas {
		if port != former {
			defer w.keepRunning(replica)()
		}
	}
	for next := former; next == former; time.Sleep(10 * time.Millisecond) { // Poll interval.
		if time.Since(w.killed) > patience {
			w.t.Fatalf("the Service still leads to the killed replica after %v", patience)
		}
		if next, err = w.leaderPort(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	w.t.Logf("the Service leads to the other replica %.1f s after the leader was killed", time.Since(w.killed).Seconds())
	if err := <-created; err != nil {
		w.t.Fatal(err)
	}
	waitUntilFull(w.t, w.client)
}

// keepRunning restarts a shim that ends, as a kubelet does, until the function that it returns is called.
func (w *webhook) keepRunning(replica *controlplane.Outboard) (end func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-replica.Shim.Exited():
			}
			w.restarts++
			if err := replica.StartShim(); err != nil {
				w.t.Error(err)
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		w.t.Logf("the other replica was restarted %d times", w.restarts)
	}
}

func (w *webhook) check() *checker.Report {
	w.t.Helper()
	report, err := checker.Check(w.t.Context(), w.c.EtcdURL, w.client)
	if err != nil {
		w.t.Fatal(err)
	}
	report.Examples = nil // Mostly waiting pods, as expected.
	for _, one := range report.Overcommits {
		w.t.Logf("overcommitted: %+v", one)
	}
	w.t.Log(report)
	if faults := report.BoundTwice + report.UnknownNode + report.HistoryDiffers + report.EventWrongNode + report.EventOfUnbound; faults > 0 {
		w.t.Errorf("%d faults", faults)
	}
	return report
}

// othersBinds returns when the API server received kube-scheduler's binds that it applied.
func (w *webhook) othersBinds() (received []time.Time) {
	w.t.Helper()
	events, err := w.c.AuditLog("system:kube-scheduler")
	if err != nil {
		w.t.Fatal(err)
	}
	rejected := 0
	for _, event := range events {
		if event.ObjectRef == nil || event.ObjectRef.Subresource != "binding" {
			continue
		}
		if event.ResponseStatus.Code == 201 {
			received = append(received, event.Received)
		} else {
			rejected++
		}
	}
	w.t.Logf("%d binds of kube-scheduler applied, %d rejected", len(received), rejected)
	if len(received) == 0 {
		w.t.Fatal("kube-scheduler bound nothing")
	}
	slices.SortFunc(received, time.Time.Compare)
	return received
}

// firstBindAfterKill returns how long after the kill kube-scheduler's next bind arrived.
func (w *webhook) firstBindAfterKill() time.Duration {
	w.t.Helper()
	for _, received := range w.othersBinds() {
		if received.After(w.killed) {
			w.t.Logf("kube-scheduler's first bind %.2f s after the leader was killed", received.Sub(w.killed).Seconds())
			return received.Sub(w.killed)
		}
	}
	w.t.Fatal("kube-scheduler bound nothing after the leader was killed")
	return 0
}

// longestPause returns the longest time between two binds of kube-scheduler, of which the later one came after the
// kill.
func (w *webhook) longestPause() (longest time.Duration) {
	w.t.Helper()
	binds := w.othersBinds()
	for i, received := range binds[1:] {
		if received.After(w.killed) {
			longest = max(longest, received.Sub(binds[i]))
		}
	}
	if longest == 0 {
		w.t.Fatal("kube-scheduler bound nothing after the leader was killed")
	}
	w.t.Logf("kube-scheduler bound nothing for %.1f s", longest.Seconds())
	return longest
}
