package soak

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

// kind is a kind of fault. `do` returns false if there was nothing to be done, for example because another fault has
// the process.
type kind struct {
	name   string
	weight int
	ends   ending
	do     func(ctx context.Context, c *cluster, random *rand.Rand) bool
}

// ending is what a fault may end. The parts of a piece have ever fewer of them, so that processes live long enough to
// compare their memory: shims from the second part on, hosts in the third.
type ending int

const (
	nothing ending = iota
	aHost
	aShim // or takes the lease away from it
)

var kinds = []kind{
	{"host killed", 14, aHost, onReplica(0.7, killHost)},
	{"host stopped", 8, nothing, onReplica(0.7, func(ctx context.Context, c *cluster, r *replica, random *rand.Rand) bool {
		return stop(ctx, r.Host, logUniform(random, 0.1, 2))
	})},
	{"host stopped for long", 1, aShim, onReplica(0.7, func(ctx context.Context, c *cluster, r *replica, random *rand.Rand) bool {
		return stop(ctx, r.Host, logUniform(random, 2, 20))
	})},
	{"host replaced", 12, aHost, onReplica(0.8, replaceHost)},
	{"successor crashes in its warm-up", 3, nothing, onReplica(0.8, faultySuccessor("crash-in-warm-up"))},
	{"successor answers wrongly in the shadow", 3, nothing, onReplica(0.9, faultySuccessor("wrong-in-shadow"))},
	{"successor fails one call in a hundred", 3, nothing, onReplica(0.9, faultySuccessor("one-percent"))},
	{"successor floods the shim", 3, nothing, onReplica(0.8, faultySuccessor("flood"))},
	{"leader's shim killed", 4, aShim, onReplica(1, killShim)},
	{"standby's shim killed", 6, aShim, onReplica(0, killShim)},
	{"shim stopped", 10, nothing, onReplica(0.7, func(ctx context.Context, c *cluster, r *replica, random *rand.Rand) bool {
		return stop(ctx, r.Shim, logUniform(random, 0.1, 2))
	})},
	{"shim stopped for long", 3, aShim, onReplica(0.8, func(ctx context.Context, c *cluster, r *replica, random *rand.Rand) bool {
		return stop(ctx, r.Shim, logUniform(random, 2, 20))
	})},
	{"lease deleted", 3, aShim, deleteLease},
	{"lease taken by another client", 2, aShim, takeLease},
	{"API server stopped", 4, nothing, func(ctx context.Context, c *cluster, random *rand.Rand) bool {
		return c.stopAPIServer(ctx, logUniform(random, 0.05, 0.5))
	}},
	{"API server stopped for long", 1, aShim, func(ctx context.Context, c *cluster, random *rand.Rand) bool {
		return c.stopAPIServer(ctx, logUniform(random, 0.5, 8))
	}},
	{"API server killed", 1, aShim, killAPIServer},
	{"etcd's history compacted", 6, nothing, func(ctx context.Context, c *cluster, _ *rand.Rand) bool {
		return c.record.compact(ctx, c.etcd) == nil
	}},
	{"pods recreated under their names", 10, nothing, recreatePods},
	{"pods bound by another client", 10, nothing, bindPods},
	{"node deleted and created again", 10, nothing, recreateNode},
	{"50 nodes changed", 4, nothing, changeNodes},
}

// generator draws faults from the seed. The same seed draws the same kinds, victims and times; when they happen, and
// in which state of the cluster, differs from run to run.
type generator struct {
	*cluster
	random *rand.Rand
	mean   time.Duration // between two faults
	most   func() ending // what may end now
}

// run draws faults until the context ends, and returns when the last one is over.
func (g *generator) run(ctx context.Context) {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	var group sync.WaitGroup
	defer group.Wait()
	few := make(chan struct{}, 4) // at a time
	for {
		pause := time.Duration(float64(g.mean) * g.random.ExpFloat64())
		draw := g.random.IntN(total)
		own := rand.New(rand.NewPCG(g.random.Uint64(), g.random.Uint64()))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		var k kind
		for _, k = range kinds {
			if draw -= k.weight; draw < 0 {
				break
			}
		}
		if k.ends > g.most() {
			continue
		}
		few <- struct{}{}
		group.Go(func() {
			defer func() { <-few }()
			if k.do(context.WithoutCancel(ctx), g.cluster, own) {
				g.count(k.name, 1)
			}
		})
	}
}

// logUniform draws seconds so that each order of magnitude is equally likely.
func logUniform(random *rand.Rand, from, to float64) time.Duration {
	return time.Duration(float64(time.Second) * from * math.Pow(to/from, random.Float64()))
}

// onReplica draws the leader with a probability, or else the standby, and holds its mutex meanwhile.
func onReplica(leads float64, do func(context.Context, *cluster, *replica, *rand.Rand) bool) func(context.Context, *cluster, *rand.Rand) bool {
	return func(ctx context.Context, c *cluster, random *rand.Rand) bool {
		leader := c.record.leader()
		victim := c.replicas[leader]
		if victim == nil { // The lease is free, or another client holds it.
			return false
		}
		if random.Float64() >= leads {
			for user, r := range c.replicas {
				if user != leader {
					victim = r
				}
			}
		}
		if !victim.mutex.TryLock() {
			return false
		}
		defer victim.mutex.Unlock()
		return do(ctx, c, victim, random)
	}
}

func killHost(ctx context.Context, c *cluster, r *replica, random *rand.Rand) bool {
	if r.Host.HasEnded() {
		return false
	}
	r.Host.Kill()
	if random.IntN(2) == 0 {
		time.Sleep(logUniform(random, 0.05, 2)) // Its absence; then restartEnded starts it.
	}
	return true
}

func killShim(ctx context.Context, c *cluster, r *replica, random *rand.Rand) bool {
	if r.Shim.HasEnded() {
		return false
	}
	r.Shim.Kill()
	if random.IntN(4) == 0 {
		r.Host.Kill()
	}
	return true
}

// stop stops a process for a while.
func stop(ctx context.Context, p *controlplane.Process, pause time.Duration) bool {
	if !signal(p, syscall.SIGSTOP) {
		return false
	}
	time.Sleep(pause) // The pause itself.
	signal(p, syscall.SIGCONT)
	return true
}

// replaceHost starts a new instance of the host beside the serving one, and stops that once the new one serves.
func replaceHost(ctx context.Context, c *cluster, r *replica, _ *rand.Rand) bool {
	predecessor := r.Host
	if predecessor.HasEnded() || r.Shim.HasEnded() {
		return false
	}
	started := time.Now()
	r.SetHostProgram("")
	if err := r.StartHost(); err != nil {
		c.Error(err)
		return false
	}
	for limit := started.Add(10 * time.Second); time.Now().Before(limit) && !r.Shim.HasEnded(); time.Sleep(20 * time.Millisecond) { // Poll interval.
		if r.instance(ctx, started) == "serving" {
			// It exits by itself once it has drained.
			go predecessor.Stop(10 * time.Second)
			return true
		}
	}
	// The standby has no cycles to compare, and the leader has none without pods or an API server: then it is a kill.
	predecessor.Kill()
	c.count("host killed before its successor served", 1)
	return false
}

// faultySuccessor starts a faulty instance beside the serving one for a while.
func faultySuccessor(fault string) func(context.Context, *cluster, *replica, *rand.Rand) bool {
	return func(ctx context.Context, c *cluster, r *replica, random *rand.Rand) bool {
		good := r.Host
		if good.HasEnded() || r.Shim.HasEnded() {
			return false
		}
		directory, err := controlplane.OutboardDirectory()
		if err != nil {
			c.Error(err)
			return false
		}
		r.hosts++
		build := fmt.Sprintf("%s-%d", fault, r.hosts)
		r.SetHostProgram(c.faultyHost, "--host", filepath.Join(directory, "outboard-host"), "--fault", fault, "--digest", build)
		err = r.StartHost()
		bad := r.Host
		r.Host = good
		r.SetHostProgram("")
		if err != nil {
			c.Error(err)
			return false
		}
		defer os.Remove(filepath.Join(r.SocketDirectory(), "default@"+build+".sock"))
		defer bad.Kill()
		for limit := time.Now().Add(6 * time.Second); time.Now().Before(limit) && !r.Shim.HasEnded() && !bad.HasEnded(); time.Sleep(50 * time.Millisecond) { // Poll interval.
			hosts, _ := r.Hosts(ctx)
			for _, host := range hosts {
				if host.BuildDigest == build && host.State == "quarantined" {
					return true
				}
			}
		}
		return true
	}
}

const leaseNamespace = "kube-system"

func deleteLease(ctx context.Context, c *cluster, _ *rand.Rand) bool {
	return c.client.CoordinationV1().Leases(leaseNamespace).Delete(ctx, leaseName, metav1.DeleteOptions{}) == nil
}

// takeLease writes a lease in another holder's name, who never renews it, and sometimes releases it.
func takeLease(ctx context.Context, c *cluster, random *rand.Rand) bool {
	leases := c.client.CoordinationV1().Leases(leaseNamespace)
	write := func(holder string) bool {
		lease, err := leases.Get(ctx, leaseName, metav1.GetOptions{})
		if err != nil {
			return false
		}
		now := metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.AcquireTime, lease.Spec.RenewTime = &holder, &now, &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err == nil
	}
	if !write("another-client") {
		return false
	}
	if random.IntN(2) == 0 {
		time.Sleep(logUniform(random, 0.1, 2)) // While it holds the lease.
		if c.record.leader() == "admin" {
			write("")
		}
	}
	return true
}

func (c *cluster) stopAPIServer(ctx context.Context, pause time.Duration) bool {
	if !c.apiServer.TryLock() {
		return false
	}
	defer c.apiServer.Unlock()
	c.record.apiServerStops()
	defer c.record.apiServerGoesOn()
	return stop(ctx, c.APIServer(), pause)
}

func killAPIServer(ctx context.Context, c *cluster, _ *rand.Rand) bool {
	if !c.apiServer.TryLock() {
		return false
	}
	defer c.apiServer.Unlock()
	c.APIServer().Kill()
	if err := c.StartAPIServer(ctx); err != nil {
		c.Error(err)
	}
	return true
}

func recreatePods(ctx context.Context, c *cluster, random *rand.Rand) (done bool) {
	for _, pod := range c.load.some(random, 1+random.IntN(10)) {
		recreated, err := c.load.recreate(ctx, pod)
		if err != nil {
			c.Errorf("recreate %s: %v", pod, err)
		}
		done = done || recreated
	}
	return done
}

// bindPods binds pending pods as another scheduler does, while Outboard decides about them.
func bindPods(ctx context.Context, c *cluster, random *rand.Rand) (done bool) {
	for _, pod := range c.load.some(random, 1+random.IntN(10)) {
		namespace, name, _ := strings.Cut(pod, "/")
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Target: corev1.ObjectReference{Kind: "Node", Name: othersNode}}
		if c.other.CoreV1().Pods(namespace).Bind(ctx, binding, metav1.CreateOptions{}) == nil {
			done = true
		}
	}
	return done
}

func recreateNode(ctx context.Context, c *cluster, random *rand.Rand) bool {
	i := random.IntN(nodes)
	if c.client.CoreV1().Nodes().Delete(ctx, controlplane.FakeNode(i).Name, metav1.DeleteOptions{}) != nil {
		return false
	}
	time.Sleep(logUniform(random, 0.02, 5)) // Its absence.
	err := insist(ctx, func(ctx context.Context) error {
		err := c.createNode(ctx, i)
		if apierrors.IsAlreadyExists(err) { // An earlier answer was lost.
			return nil
		}
		return err
	})
	if err != nil {
		c.Errorf("create a node again: %v", err)
	}
	return true
}

func changeNodes(ctx context.Context, c *cluster, random *rand.Rand) (done bool) {
	for range 50 {
		name := controlplane.FakeNode(random.IntN(nodes)).Name
		done = c.patchNode(ctx, name, fmt.Sprint(random.Uint32())) == nil || done
	}
	return done
}
