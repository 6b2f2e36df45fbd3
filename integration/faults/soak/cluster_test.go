package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/faults"
)

const (
	nodes, podsOnANode = 200, 40
	// Of the nodes' room; the rest is for pods of a node that is away.
	fill = nodes * podsOnANode * 95 / 100
	// Shorter than the defaults, so that a takeover costs less time.
	leaseDuration, renewDeadline = 6 * time.Second, 4 * time.Second
	electionConfig               = "leaderElection: {leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 1s}"
	// The leader learns of a theft of its lease when it renews it, at the latest at the renew deadline. What it has sent
	// by then takes effect before the lease would have expired: no request has a later deadline. An API server that is
	// stopped meanwhile carries out later what it has received: such time does not count.
	theftGrace = leaseDuration
	// After this time a shim should have seen that a node was deleted.
	staleNode = 5 * time.Second
	// Other clients bind pods to this node, which is large and which the scheduler does not use, so that their binds
	// take no room from it.
	othersNode = "others"
)

var users = []string{"replica-a", "replica-b"}

func isReplica(user string) bool { return slices.Contains(users, user) }

// cluster is a control plane with two replicas of Outboard, each a shim and a host, which restart like containers.
type cluster struct {
	*testing.T
	*controlplane.ControlPlane
	client, other kubernetes.Interface
	etcd          *clientv3.Client
	faultyHost    string
	replicas      map[string]*replica
	apiServer     sync.Mutex // of the fault that stops or restarts it
	load          *load
	record        *record
	result        *Result

	counting sync.Mutex // guards result.Faults
}

// replica is a shim and its hosts. The mutex is of the fault or the restart that changes its processes.
type replica struct {
	*controlplane.Outboard
	user  string
	mutex sync.Mutex
	hosts int // started
}

func startCluster(t *testing.T, result *Result) *cluster {
	t.Helper()
	c := &cluster{T: t, replicas: map[string]*replica{}, result: result, faultyHost: faults.BuildFaultyHost(t)}
	c.ControlPlane = controlplane.ForTest(t, controlplane.Options{SpareCores: true, TokenUsers: append([]string{"other"}, users...),
		KWOK: *kwok > 0, KWOKNodes: "kwok=true"})
	ctx := t.Context()
	var err error
	if c.client, err = c.Client(); err != nil {
		t.Fatal(err)
	}
	if c.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{c.EtcdURL}, DialTimeout: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.etcd.Close() })
	if err := c.Apply(ctx, writerPolicy); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.InParallel(ctx, 10, nodes, c.createNode); err != nil {
		t.Fatal(err)
	}
	large := controlplane.FakeNode(0)
	large.Name, large.Spec.Unschedulable = othersNode, true
	for resource, quantity := range large.Status.Allocatable {
		quantity.Mul(100000)
		large.Status.Allocatable[resource] = quantity
	}
	if _, err := c.client.CoreV1().Nodes().Create(ctx, large, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.other = c.clientOf("other")
	c.load = newLoad(c.client, c.etcd, fill, *rate)
	c.record = follow(t, c.EtcdURL, c.load, result)
	for _, user := range users {
		if err := c.LetSchedule(ctx, user); err != nil {
			t.Fatal(err)
		}
		outboard, err := c.StartOutboard(ctx, controlplane.OutboardOptions{
			Config: controlplane.SchedulerConfig{LeaderElect: true, Text: electionConfig}, Name: "-" + user, User: user,
			SocketDirectory: true, Shim: "{replacement: {shadowCycles: 20, keepWarm: 1s}, explainMemoryMiB: 4}",
		})
		if err != nil {
			t.Fatal(err)
		}
		c.replicas[user] = &replica{Outboard: outboard, user: user}
	}
	c.until("a replica leads, by its name", 30*time.Second, func() bool { return c.record.leader() != "" })
	return c
}

// clientOf returns a client of a user who may schedule.
func (c *cluster) clientOf(user string) kubernetes.Interface {
	c.Helper()
	if err := c.LetSchedule(c.Context(), user); err != nil {
		c.Fatal(err)
	}
	path, err := c.Kubeconfig(user)
	if err != nil {
		c.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		c.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.Fatal(err)
	}
	return client
}

func (c *cluster) createNode(ctx context.Context, i int) error {
	node := controlplane.FakeNode(i)
	if *kwok > 0 && i%*kwok == 0 {
		node.Labels["kwok"] = "true"
	}
	_, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

func (c *cluster) until(what string, limit time.Duration, reached func() bool) {
	c.Helper()
	for end := time.Now().Add(limit); !reached(); time.Sleep(20 * time.Millisecond) { // Poll interval.
		if time.Now().After(end) {
			c.Fatalf("not within %v: %s\n%s", limit, what, c.tails())
		}
	}
}

// tails returns the ends of the shims' logs.
func (c *cluster) tails() string {
	var text strings.Builder
	for _, user := range slices.Sorted(maps.Keys(c.replicas)) {
		fmt.Fprintf(&text, "%s:\n%s\n", user, c.replicas[user].Shim.LogTail())
	}
	return text.String()
}

// restartEnded is the kubelet: it restarts what has ended, until the context ends.
func (c *cluster) restartEnded(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) { // Poll interval.
		for _, r := range c.replicas {
			if !r.mutex.TryLock() {
				continue
			}
			if err := r.restartEnded(); err != nil {
				c.Error(err)
			}
			r.mutex.Unlock()
		}
	}
}

func (r *replica) restartEnded() error {
	if r.Host.HasEnded() {
		r.SetHostProgram("")
		if err := r.StartHost(); err != nil {
			return err
		}
	}
	if r.Shim.HasEnded() {
		return r.StartShim()
	}
	return nil
}

// signal sends a signal to a process; false: it has ended.
func signal(p *controlplane.Process, signal syscall.Signal) bool {
	return !p.HasEnded() && syscall.Kill(-p.PID(), signal) == nil
}

// instance returns the state of the host's instance that started after a moment; empty: there is none.
func (r *replica) instance(ctx context.Context, started time.Time) (state string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	hosts, err := r.Hosts(ctx)
	if err != nil {
		return ""
	}
	for _, host := range hosts {
		if host.Started.After(started) {
			return host.State
		}
	}
	return ""
}

// patchNode writes an annotation that no plugin reads.
func (c *cluster) patchNode(ctx context.Context, name, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"soak":%q}}}`, value)
	_, err := c.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// count counts a fault that was done.
func (c *cluster) count(kind string, n int) {
	c.counting.Lock()
	defer c.counting.Unlock()
	c.result.Faults[kind] += n
}

func (c *cluster) counted() int {
	c.counting.Lock()
	defer c.counting.Unlock()
	return c.result.TotalFaults()
}
