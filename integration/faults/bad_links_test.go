package faults

import (
	"context"
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Packets between the shim and the API server get lost: all is slower, and nothing else.
func TestBadLinks(t *testing.T) {
	t.Parallel()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler does not promise all of this")
	}
	if !inNamespace(t) {
		return
	}
	c, client := startNetworks(t)
	for _, link := range []struct {
		name  string
		rules func(port string) []string
	}{
		{"lossy", func(port string) []string {
			const lose = " numgen random mod 100 < 5 counter drop"
			return []string{"tcp dport " + port + lose, "tcp sport " + port + lose}
		}},
		{"narrow", func(port string) []string {
			// A packet on loopback may have 64 KiB: a smaller burst would let none of these pass, ever.
			const excess = " limit rate over 20 kbytes/second burst 128 kbytes counter drop"
			return []string{"tcp dport " + port + excess, "tcp sport " + port + excess}
		}},
	} {
		t.Run(link.name, func(t *testing.T) {
			n := startNetwork(t, c, client, link.name, false)
			address, err := url.Parse(n.proxy.URL)
			if err != nil {
				t.Fatal(err)
			}
			filter(t, link.rules(address.Port())...)
			began := time.Now()
			if err := <-n.create(); err != nil {
				t.Fatal(err)
			}
			created := time.Since(began)
			n.allBound(patience)
			bound := time.Since(began)
			lost := filtered(t)
			filter(t)
			if lost == 0 {
				t.Error("no packet was lost: the test is void")
			}
			if lists := n.lists("pods", began); lists > 0 {
				t.Errorf("%d lists of pods, although TCP repeats what is lost", lists)
			}
			t.Logf("row 38: %d pods, created within %.1f s, bound within %.1f s; %d packets lost; load %s", n.pods, created.Seconds(), bound.Seconds(),
				lost, loadAverage(t))
		})
	}
	checkNetwork(t, c, client)
}

// etcd is killed under load, and away for a while. Later its history is compacted while the shim has no watch, and the
// API server starts without a memory of it: the shim's versions are too old, and it lists again.
func TestEtcdIsKilledAndCompacted(t *testing.T) {
	t.Parallel()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler does not promise all of this")
	}
	c, client := startNetworks(t)
	n := startNetwork(t, c, client, "etcd", false)
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{c.EtcdURL}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()

	began := time.Now()
	n.repeats = true // Creations wait for etcd, too.
	created := n.create()
	n.until(patience, "some pods are bound", func() bool { return n.binds() >= 5 })
	c.Etcd().Kill()
	killed := time.Now()
	time.Sleep(absence) // The fault.
	if err := c.StartEtcd(); err != nil {
		t.Fatal(err)
	}
	if err := <-created; err != nil {
		t.Fatal(err)
	}
	n.allBound(patience)
	t.Logf("row 39: etcd was away for %v; all pods are bound %.1f s after it was killed; load %s", absence, time.Since(killed).Seconds(), loadAverage(t))
	checkNetwork(t, c, client) // Before the history is gone.

	before := n.listsFor("expired")
	c.StopAPIServer()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// What happens now, the shim does not know.
	mark, err := etcd.Put(ctx, "/registry/outboard-compacted", "")
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if mark, err = etcd.Put(ctx, "/registry/outboard-compacted", ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := etcd.Compact(ctx, mark.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	for _, name := range []string{"0000", "0001"} { // The pods fill their nodes.
		if err := client.CoreV1().Pods(namespace).Delete(ctx, "etcd-"+name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			t.Fatal(err)
		}
		if err := n.createPod("etcd-after-" + name); err != nil {
			t.Fatal(err)
		}
	}
	n.until(patience, "a complete state, because the version is too old", func() bool { return n.listsFor("expired") > before })
	n.allBound(patience)
	t.Logf("row 39: after a compaction %v complete states, pods bound within %.1f s; %.1f s in all; load %s", n.listsFor("expired")-before,
		time.Since(started).Seconds(), time.Since(began).Seconds(), loadAverage(t))
}
