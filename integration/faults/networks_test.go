package faults

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/faults/proxy"
)

var (
	networkLoad = flag.Duration("networks.load", 2*time.Second, "for how long pods are created under each fault of TestNetworkFaults")
	networkAll  = flag.Bool("networks.all", false, "all faults of TestNetworkFaults, instead of those that are quick")
)

const (
	networkPodsASecond = 40
	networkPodsOnANode = 40 // of 100m: they fill a node of 4 CPUs
	// The node for binds by others; the shims of this test do not use it.
	othersNode = "others"
)

// network is a shim that reaches the API server through a proxy, with nodes of its own that its pods fill exactly.
type network struct {
	*testing.T
	*controlplane.ControlPlane
	client   kubernetes.Interface
	name     string // of its profile, and of its pods
	elect    bool   // it takes the lease, which one at a time can do
	repeats  bool   // failed creations are repeated
	proxy    *proxy.Proxy
	outboard *controlplane.Outboard
	pods     int
}

// Each fault is injected while pods are created, and removed; then all pods are bound, and the fault's own expectation
// is checked. All shims share one control plane, whose whole history is checked at the end.
func TestNetworkFaults(t *testing.T) {
	t.Parallel()
	if *against == "kube-scheduler" {
		t.Skip("kube-scheduler does not promise all of this")
	}
	c, client := startNetworks(t)
	others := controlplane.FakeNode(0)
	others.Name, others.Spec.Unschedulable = othersNode, true
	if _, err := client.CoreV1().Nodes().Create(t.Context(), others, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("faults", func(t *testing.T) {
		for _, f := range networkFaults {
			if !f.quick && !*networkAll {
				continue
			}
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				n := startNetwork(t, c, client, f.name, f.elect)
				began := time.Now()
				created := n.create()
				check := f.inject(n)
				if err := <-created; err != nil {
					t.Fatal(err)
				}
				n.proxy.Rule(nil)
				n.allBound(patience)
				if check != nil {
					check()
				}
				n.Logf("row %d: %d pods bound within %.1f s", f.row, n.pods, time.Since(began).Seconds())
			})
		}
	})
	checkNetwork(t, c, client)
}

func startNetworks(t *testing.T) (*controlplane.ControlPlane, kubernetes.Interface) {
	t.Helper()
	c := controlplane.ForTest(t, controlplane.Options{})
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c, client
}

func checkNetwork(t *testing.T, c *controlplane.ControlPlane, client kubernetes.Interface) {
	t.Helper()
	report, err := checker.Check(t.Context(), c.EtcdURL, client)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	// An event's request may get lost like every other one, and is not repeated for ever. Pods that others bound have
	// none.
	if faults := report.Faults() - report.NoEvent; faults > 0 {
		t.Errorf("%d faults", faults)
	}
}

// startNetwork starts a shim with its own profile behind a proxy, and creates its nodes.
func startNetwork(t *testing.T, c *controlplane.ControlPlane, client kubernetes.Interface, name string, elect bool) *network {
	t.Helper()
	n := &network{T: t, ControlPlane: c, client: client, name: name, elect: elect, proxy: startProxy(t, c, controlplane.OutboardUser)}
	n.pods = max(int(networkLoad.Seconds()*networkPodsASecond)/networkPodsOnANode, 1) * networkPodsOnANode
	for i := range n.pods / networkPodsOnANode {
		node := controlplane.FakeNode(i)
		node.Name, node.Labels = fmt.Sprintf("%s-%d", name, i), map[string]string{"of": name}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if n.outboard, err = c.StartOutboard(t.Context(), controlplane.OutboardOptions{Name: "-" + name, APIServer: n.proxy.URL,
		Config: controlplane.SchedulerConfig{Text: "profiles: [{schedulerName: " + name + "}]", LeaderElect: elect}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.outboard.Stop)
	onlyServing(t, n.outboard)
	return n
}

func startProxy(t *testing.T, c *controlplane.ControlPlane, user string) *proxy.Proxy {
	t.Helper()
	asUser, certificate, err := c.Proxied(user)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Options{Upstream: c.URL, Client: asUser, Certificate: certificate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// create creates all pods at a steady pace, and sends the result.
func (n *network) create() <-chan error {
	result := make(chan error, 1)
	go func() {
		pace := time.NewTicker(time.Second / networkPodsASecond)
		defer pace.Stop()
		for i := range n.pods {
			name := fmt.Sprintf("%s-%04d", n.name, i)
			err := n.createPod(name)
			for end := time.Now().Add(patience); n.repeats && err != nil && time.Now().Before(end); time.Sleep(100 * time.Millisecond) { // Poll interval.
				if err = n.createPod(name); apierrors.IsAlreadyExists(err) {
					err = nil
				}
			}
			if err != nil {
				result <- err
				return
			}
			<-pace.C
		}
		result <- nil
	}()
	return result
}

func (n *network) createPod(name string) error {
	_, err := n.client.CoreV1().Pods(namespace).Create(context.WithoutCancel(n.Context()), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": n.name}},
		Spec: corev1.PodSpec{SchedulerName: n.name, NodeSelector: map[string]string{"of": n.name},
			Containers: []corev1.Container{{Name: "main", Image: "example.com/app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}},
	}, metav1.CreateOptions{})
	return err
}

// unbound returns the names of the pods without a node, as the API server's cache shows them.
func (n *network) unbound() []string {
	n.Helper()
	names, err := n.unboundSince("0")
	if err != nil {
		n.Fatal(err)
	}
	return names
}

// unboundSince reads a state that is at least as new as a resource version; "" asks for the newest.
func (n *network) unboundSince(version string) ([]string, error) {
	list, err := n.client.CoreV1().Pods(namespace).List(n.Context(), metav1.ListOptions{ResourceVersion: version, LabelSelector: "of=" + n.name})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range list.Items {
		if pod.Spec.NodeName == "" {
			names = append(names, pod.Name)
		}
	}
	return names, nil
}

// allBound polls the API server's cache. The cache may lack the pods created last, so the newest state decides; that
// read fails while the API server has no etcd.
func (n *network) allBound(limit time.Duration) {
	n.Helper()
	n.until(limit, "all pods are bound", func() bool {
		if len(n.unbound()) > 0 {
			return false
		}
		names, err := n.unboundSince("")
		return err == nil && len(names) == 0
	})
}

// until waits for a condition.
func (n *network) until(limit time.Duration, what string, reached func() bool) {
	n.Helper()
	for end := time.Now().Add(limit); !reached(); time.Sleep(50 * time.Millisecond) { // Poll interval.
		if time.Now().After(end) {
			n.Fatalf("not within %v: %s; %d pods have no node; the shim's log:\n%s", limit, what, len(n.unbound()), n.outboard.Shim.LogTail())
		}
	}
}

// applied waits until the proxy has applied an action so often.
func (n *network) applied(name string, times int) {
	n.Helper()
	n.until(time.Minute, fmt.Sprintf("%d times %q", times, name), func() bool { return n.proxy.Applied(name) >= times })
}

// lists returns how often the API server sent complete states of a resource (empty: of any) since a moment. Others do
// not count: before 1.34 it does not serve resource.k8s.io/v1, for which the shim asks again and again.
func (n *network) lists(resource string, since time.Time) int {
	return len(n.proxy.Since(since, func(e proxy.Entry) bool {
		if resource != "" && e.Resource != resource || e.Status != http.StatusOK {
			return false
		}
		return e.Verb == "list" && !strings.Contains(e.Query, "continue=") || e.Verb == "watch" && strings.Contains(e.Query, "sendInitialEvents=true")
	}))
}

// listsFor returns the shim's own count of complete states of pods with a reason.
func (n *network) listsFor(reason string) (count float64) {
	n.Helper()
	metrics, err := n.outboard.Metrics(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	for _, metric := range metrics["outboard_informer_lists_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["resource"] == "pods" && labels["reason"] == reason {
			count += metric.GetCounter().GetValue()
		}
	}
	return count
}

// requests returns the requests about one pod, in order: "bind", or "get" for a consistent read.
func (n *network) requests(pod string) (all []proxy.Entry) {
	return n.proxy.Since(time.Time{}, func(e proxy.Entry) bool {
		return e.Name == pod && e.Resource == "pods" && (e.Subresource == "binding" || e.Verb == "get" && e.Query == "")
	})
}

func isBind(e proxy.Entry) bool { return e.Subresource == "binding" }

// hits collects the pods to which a rule was applied, at most `most`.
type hits struct {
	mutex sync.Mutex
	most  int
	pods  map[string]bool
}

// take tells whether this bind is one of the first, and each pod's first.
func (h *hits) take(r proxy.Request) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !r.IsBind() || len(h.pods) == h.most || h.pods[r.Name] {
		return false
	}
	if h.pods == nil {
		h.pods = map[string]bool{}
	}
	h.pods[r.Name] = true
	return true
}

// eachOnce applies an action to the first bind of each of several pods, waits for that, and checks the later requests
// about each of them: `want` gets them in order, the first one is the bind with the fault.
func eachOnce(most int, action proxy.Action, want func(n *network, pod string, requests []proxy.Entry) error) func(n *network) func() {
	return func(n *network) func() {
		action.Name = "bind"
		h := &hits{most: most}
		n.proxy.Rule(func(r proxy.Request) proxy.Action {
			if h.take(r) {
				return action
			}
			return proxy.Action{}
		})
		n.applied("bind", most)
		return func() {
			for pod := range h.pods {
				requests := n.requests(pod)
				if err := want(n, pod, requests); err != nil {
					n.Errorf("%s: %v; requests: %+v", pod, err, requests)
				}
			}
		}
	}
}

// onWatch applies an action to the watches of pods from now on, whose events have no limit of their number: it ends
// the present ones.
func onWatch(n *network, action proxy.Action) {
	n.proxy.Rule(func(r proxy.Request) proxy.Action {
		if r.Verb == "watch" && r.Resource == "pods" {
			return action
		}
		return proxy.Action{}
	})
	n.proxy.EndWatches()
}
