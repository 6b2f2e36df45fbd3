package faults

import (
	"flag"
	"math/rand/v2"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/faults/proxy"
)

var leaderNetworks = flag.Int("networks.leader", 0, "rounds of all faults of TestLeadersNetwork; 0: one round of those that are quick")

// leaderFaults are faults of the path between a leader and the API server, at the port of the leader's proxy.
var leaderFaults = []struct {
	row   int
	name  string
	quick bool
	// stays: the leader must keep its lease.
	stays bool
	begin func(r *replicas, leader, port string, p *proxy.Proxy)
}{
	{row: 2, name: "no packets, both ways", quick: true, begin: func(r *replicas, _, port string, _ *proxy.Proxy) {
		filter(r.T, "tcp dport "+port+" counter drop", "tcp sport "+port+" counter drop")
	}},
	{row: 2, name: "answers are lost", quick: true, begin: func(r *replicas, _, port string, _ *proxy.Proxy) {
		filter(r.T, "tcp sport "+port+" counter drop")
	}},
	{row: 2, name: "requests are lost", begin: func(r *replicas, _, port string, _ *proxy.Proxy) {
		filter(r.T, "tcp dport "+port+" counter drop")
	}},
	{row: 1, name: "connections are reset", begin: func(r *replicas, _, port string, _ *proxy.Proxy) {
		filter(r.T, "tcp dport "+port+" counter reject with tcp reset")
	}},
	{row: 3, name: "the API server is frozen for the leader", begin: func(r *replicas, _, _ string, p *proxy.Proxy) {
		p.Rule(func(proxy.Request) proxy.Action { return proxy.Action{Drop: true} })
	}},
	// Of 64 binds at a time each late one takes a place until the client gives it up, after 30 s.
	{row: 13, name: "one bind in twenty is answered 30 to 60 s late", stays: true, begin: func(r *replicas, _, _ string, p *proxy.Proxy) {
		p.Rule(func(request proxy.Request) proxy.Action {
			if !request.IsBind() || rand.N(20) > 0 {
				return proxy.Action{}
			}
			return proxy.Action{Name: "late", ReplyDelay: 30*time.Second + rand.N(30*time.Second)}
		})
		began := time.Now()
		r.eventually("20 binds are answered late, and 20 reads find out what became of such binds", func() (bool, error) {
			reads := p.Since(began, func(e proxy.Entry) bool { return e.Resource == "pods" && e.Verb == "get" && e.Subresource == "" })
			return p.Applied("late") >= 20 && len(reads) >= 20, nil
		})
	}},
}

// A leader is cut off from the API server in several ways, with pods coming all the time. It ends before the other
// replica leads, none of its binds arrives later, and every pod is bound once.
func TestLeadersNetwork(t *testing.T) {
	t.Parallel()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler has no fence")
	}
	if !inNamespace(t) {
		return
	}
	proxies := map[string]*proxy.Proxy{}
	r := startReplicasWith(t, replicaOptions{latestBind: renewDeadline + time.Second, server: func(c *controlplane.ControlPlane, user string) string {
		proxies[user] = startProxy(t, c, user)
		return proxies[user].URL
	}})
	for round := range max(*leaderNetworks, 1) {
		for _, fault := range leaderFaults {
			if !fault.quick && *leaderNetworks == 0 {
				continue
			}
			r.startEndedAgain()
			leader := r.bindingLeader()
			p := proxies[leader]
			address, err := url.Parse(p.URL)
			if err != nil {
				t.Fatal(err)
			}
			atAnyMoment()
			began := time.Now()
			fault.begin(r, leader, address.Port(), p)
			if fault.stays {
				if !r.leadsOn(leader, time.Now()) {
					t.Errorf("%s: %s has lost its lease", fault.name, leader)
				}
				p.Rule(nil)
				t.Logf("row %d, round %d: %s: %s leads on", fault.row, round, fault.name, leader)
				continue
			}
			took := r.takenOver(leader, began)
			r.eventually(leader+" ends", func() (bool, error) { return r.hasEnded(leader), nil })
			filter(t)
			p.Rule(nil)
			t.Logf("row %d, round %d: %s: succeeded after %.2f s; load %s", fault.row, round, fault.name, took.Seconds(), loadAverage(t))
			if took > leaseDuration+5*time.Second {
				t.Errorf("%s: it took %v, want the lease's duration and a few seconds", fault.name, took)
			}
			r.startAgain(leader)
		}
	}
	r.finish(true)
}

// The API server stops for all, longer than a lease lasts: the leader ends although no other can lead. When the server
// goes on, it may still carry out what the leader had sent in time.
func TestAPIServerIsFrozenForLongerThanALease(t *testing.T) {
	if *leaderNetworks == 0 {
		t.Skip("takes a minute; -args -networks.leader=1 runs it")
	}
	const frozen = leaseDuration + 2*time.Second
	r := startReplicasWith(t, replicaOptions{latestBind: frozen + renewDeadline})
	r.bindingLeader()
	var pods sync.WaitGroup // So many that some are being bound at any moment.
	for range 30 {
		pods.Go(func() {
			for range 5 {
				r.load.live()
			}
		})
	}
	leader := r.bindingLeader()
	began := time.Now()
	if err := syscall.Kill(-r.APIServer().PID(), syscall.SIGSTOP); err != nil {
		r.Fatal(err)
	}
	r.eventually(leader+" ends", func() (bool, error) { return r.hasEnded(leader), nil })
	ended := time.Since(began)
	if ended > renewDeadline+5*time.Second {
		r.Errorf("%s ended %v after the API server had stopped, want the renew deadline", leader, ended)
	}
	time.Sleep(max(0, frozen-ended)) // The fault.
	if err := syscall.Kill(-r.APIServer().PID(), syscall.SIGCONT); err != nil {
		r.Fatal(err)
	}
	took := r.takenOver(leader, began)
	r.Logf("row 3: the API server stopped for %v: the leader ended after %.2f s, the other one leads after %.2f s; load %s",
		frozen, ended.Seconds(), took.Seconds(), loadAverage(r.T))
	pods.Wait()
	r.finish(true)
}
