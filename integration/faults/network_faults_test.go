package faults

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"outboard.dev/integration/faults/proxy"
)

const protobufStatus = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",%s}`

func answer(status int, rest string, header ...string) *proxy.Answer {
	a := &proxy.Answer{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: fmt.Sprintf(protobufStatus, rest)}
	for i := 0; i < len(header); i += 2 {
		a.Header.Set(header[i], header[i+1])
	}
	return a
}

// networkFaults are rows of the table of faults. `inject` returns a check for after all pods are bound, or nil.
var networkFaults = []struct {
	row    int
	quick  bool // runs without -networks.all, too
	elect  bool // the shim holds the lease; one fault only
	name   string
	inject func(n *network) func()
}{
	{1, true, false, "load-balancer-resets", func(n *network) func() {
		began := time.Now()
		n.proxy.Rule(func(proxy.Request) proxy.Action { return proxy.Action{Name: "reset", Reset: true} })
		n.proxy.Reset()
		n.applied("reset", 10)
		return func() {
			if lists := n.lists("", began); lists > 0 {
				n.Errorf("%d lists, although the API server had the history", lists)
			}
		}
	}},
	{4, false, false, "expired-answer", func(n *network) func() {
		return expired(n, proxy.Action{Answer: answer(410, `"reason":"Expired","code":410`)}, "expired")
	}},
	{4, true, false, "expired-event", func(n *network) func() {
		var said atomic.Bool
		return expired(n, proxy.Action{Events: func(e proxy.Event) []proxy.Event {
			if said.Swap(true) {
				return []proxy.Event{e}
			}
			return []proxy.Event{proxy.Expired()} // e is lost: only the list has it.
		}}, "expired")
	}},
	{5, false, false, "version-too-large", func(n *network) func() {
		return expired(n, proxy.Action{Answer: answer(504,
			`"reason":"Timeout","code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}`,
			"Retry-After", "1")}, "expired")
	}},
	{5, false, false, "versions-go-back", func(n *network) func() {
		var said atomic.Bool
		check := expired(n, proxy.Action{Events: func(e proxy.Event) []proxy.Event {
			if said.Swap(true) {
				return []proxy.Event{e}
			}
			return []proxy.Event{e, {Type: "BOOKMARK", Object: &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
				ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}}}
		}}, "rewound")
		return func() {
			check()
			waitForLine(n.T, n.outboard, "pods.*backwards|pods.*went back|Rewound")
		}
	}},
	{6, false, false, "one-byte-at-a-time", func(n *network) func() {
		onWatch(n, proxy.Action{Name: "sliced", Slice: 1})
		n.applied("sliced", 1)
		n.until(time.Minute, "half of the pods are bound from slices", func() bool { return n.binds() >= n.pods/2 })
		return nil
	}},
	{6, true, false, "cut-within-a-frame", func(n *network) func() {
		began := time.Now()
		var count, cuts atomic.Int64
		onWatch(n, proxy.Action{Events: func(e proxy.Event) []proxy.Event {
			if count.Add(1)%20 == 0 {
				cuts.Add(1)
				e.Cut = true
			}
			return []proxy.Event{e}
		}})
		n.until(time.Minute, "5 cuts", func() bool { return cuts.Load() >= 5 })
		return func() {
			if lists := n.lists("pods", began); lists > 0 {
				n.Errorf("%d lists, although the API server had the history", lists)
			}
		}
	}},
	{7, false, false, "no-compressed-watch", func(n *network) func() {
		var asked atomic.Int64
		n.proxy.Rule(func(r proxy.Request) proxy.Action {
			if r.Verb == "watch" && r.HTTP.Header.Get("Accept-Encoding") != "" {
				asked.Add(1)
			}
			return proxy.Action{Name: r.Verb}
		})
		n.proxy.EndWatches()
		n.applied("watch", 10)
		return func() {
			if asked.Load() > 0 {
				n.Errorf("%d watches ask for compression", asked.Load())
			}
		}
	}},
	{8, false, false, "events-twice-and-late", func(n *network) func() {
		// Each event comes twice, and once more after two later ones: it is stale then.
		var changed atomic.Int64
		var last []proxy.Event
		onWatch(n, proxy.Action{Name: "twice", Events: func(e proxy.Event) []proxy.Event {
			if e.Type == "BOOKMARK" {
				return []proxy.Event{e}
			}
			changed.Add(1)
			events := []proxy.Event{e, e}
			if len(last) == 2 {
				events, last = append(events, last[0]), last[1:]
			}
			last = append(last, e)
			return events
		}})
		n.until(time.Minute, "200 events", func() bool { return changed.Load() >= 200 })
		return nil
	}},
	{8, false, false, "events-late", func(n *network) func() {
		onWatch(n, proxy.Action{Events: func(e proxy.Event) []proxy.Event {
			if e.Type == "MODIFIED" {
				time.Sleep(20 * time.Millisecond) // The fault: watch events fall behind, far behind in the end.
			}
			return []proxy.Event{e}
		}})
		n.until(time.Minute, "half of the pods are bound", func() bool { return n.binds() >= n.pods/2 })
		return nil
	}},
	{8, false, false, "events-dropped", func(n *network) func() {
		// A pod whose first event is lost is unknown until the next list, for kube-scheduler, too.
		var dropped atomic.Int64
		onWatch(n, proxy.Action{Events: func(e proxy.Event) []proxy.Event {
			if e.Type == "ADDED" && strings.HasSuffix(e.Meta().GetName(), "0") && strings.HasPrefix(e.Meta().GetName(), n.name) {
				dropped.Add(1)
				return nil
			}
			return []proxy.Event{e}
		}})
		n.until(time.Minute, "5 dropped events", func() bool { return dropped.Load() >= 5 })
		n.until(time.Minute, "the others are bound", func() bool { return n.binds() >= n.pods*8/10 })
		if unbound := n.unbound(); len(unbound) < int(dropped.Load())/2 {
			n.Errorf("%d events were dropped, but only %d pods have no node", dropped.Load(), len(unbound))
		}
		expired(n, proxy.Action{Answer: answer(410, `"reason":"Expired","code":410`)}, "expired")
		return nil
	}},
	{9, false, false, "no-end-of-the-initial-events", func(n *network) func() {
		began := time.Now()
		var starts atomic.Int64
		n.proxy.Rule(func(r proxy.Request) proxy.Action {
			if r.Verb != "watch" || r.Resource != "pods" {
				return proxy.Action{}
			}
			if !strings.Contains(r.HTTP.URL.RawQuery, "sendInitialEvents=true") {
				if starts.Load() > 0 {
					return proxy.Action{} // It has got over it.
				}
				return proxy.Action{Answer: answer(410, `"reason":"Expired","code":410`)}
			}
			starts.Add(1)
			return proxy.Action{Name: "endless", Events: func(e proxy.Event) []proxy.Event {
				if e.Type == "BOOKMARK" {
					return nil
				}
				return []proxy.Event{e}
			}}
		})
		n.proxy.EndWatches()
		n.applied("endless", 1)
		n.until(patience, "a list instead", func() bool {
			return len(n.proxy.Since(began, func(e proxy.Entry) bool { return e.Verb == "list" && e.Resource == "pods" && e.Status == 200 })) > 0
		})
		n.Logf("a list %.1f s after the state without an end began", time.Since(began).Seconds())
		return nil
	}},
	{10, true, false, "429-to-binds", eachOnce(10, proxy.Action{Answer: &proxy.Answer{Status: 429, Header: http.Header{"Retry-After": {"2"}, "Content-Type": {"text/plain"}},
		Body: "Too many requests, please try again later.\n"}}, func(n *network, pod string, requests []proxy.Entry) error {
		if len(requests) != 2 || !isBind(requests[1]) {
			return fmt.Errorf("want one more bind, and nothing else")
		}
		if waited := requests[1].At.Sub(requests[0].At); waited < 1900*time.Millisecond || waited > 15*time.Second {
			return fmt.Errorf("sent again after %v, told 2 s", waited)
		}
		if len(n.proxy.Since(requests[0].At, func(e proxy.Entry) bool { return isBind(e) && e.Status == 201 && e.At.Before(requests[1].At) })) == 0 {
			return fmt.Errorf("no other bind meanwhile")
		}
		return nil
	})},
	{10, false, false, "429-to-watches", func(n *network) func() {
		began := time.Now()
		onWatch(n, proxy.Action{Name: "busy", Answer: &proxy.Answer{Status: 429, Header: http.Header{"Retry-After": {"2"}}, Body: "Too many requests"}})
		n.applied("busy", 2)
		return func() {
			watches := n.proxy.Since(began, func(e proxy.Entry) bool { return e.Verb == "watch" && e.Resource == "pods" })
			for i, watch := range watches[1:] {
				if waited := watch.At.Sub(watches[i].At); watches[i].Action == "busy" && waited < 1900*time.Millisecond {
					n.Errorf("the next watch came after %v, told 2 s", waited)
				}
			}
			if lists := n.lists("pods", began); lists > 0 {
				n.Errorf("%d lists", lists)
			}
		}
	}},
	{10, false, false, "503-to-binds", eachOnce(20, proxy.Action{Answer: answer(503, `"reason":"ServiceUnavailable","code":503`)}, settledAsNotBound)},
	{10, false, false, "500-to-a-third-of-all", func(n *network) func() {
		var count atomic.Int64
		n.proxy.Rule(func(r proxy.Request) proxy.Action {
			if count.Add(1)%3 == 0 {
				return proxy.Action{Name: "500", Answer: answer(500, `"reason":"InternalError","code":500`)}
			}
			return proxy.Action{}
		})
		n.proxy.EndWatches()
		n.applied("500", 100)
		return nil
	}},
	{10, true, false, "409-to-binds", eachOnce(10, proxy.Action{Answer: answer(409, `"reason":"Conflict","code":409,"message":"not now"`)},
		func(n *network, pod string, requests []proxy.Entry) error {
			// A conflict is read back before it is believed; then the pod goes through the queue.
			if len(requests) < 3 || requests[1].Verb != "get" || !isBind(requests[2]) {
				return fmt.Errorf("want a read, and a bind later")
			}
			return nil
		})},
	{10, false, false, "slow-answers", func(n *network) func() {
		n.proxy.Rule(func(proxy.Request) proxy.Action { return proxy.Action{Name: "slow", Delay: 300 * time.Millisecond} })
		n.until(time.Minute, "half of the pods are bound", func() bool { return n.binds() >= n.pods/2 })
		return nil
	}},
	{11, true, false, "bind-done-connection-reset", eachOnce(10, proxy.Action{ResetAfter: true}, settledAsBound)},
	{11, true, false, "bind-done-answer-lost", eachOnce(10, proxy.Action{LoseReply: true}, settledAsBound)},
	{12, true, false, "bind-lost-connection-reset", eachOnce(10, proxy.Action{Reset: true}, settledAfterAReset)},
	{12, false, false, "bind-lost", eachOnce(10, proxy.Action{Drop: true}, settledAsNotBound)},
	{14, true, false, "bound-by-another", func(n *network) func() {
		h := &hits{most: 10}
		n.proxy.Rule(func(r proxy.Request) proxy.Action {
			if !h.take(r) {
				return proxy.Action{}
			}
			// Another scheduler is faster by the time that this request takes.
			if err := n.client.CoreV1().Pods(namespace).Bind(n.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: r.Name},
				Target: corev1.ObjectReference{Kind: "Node", Name: othersNode}}, metav1.CreateOptions{}); err != nil {
				n.Error(err)
			}
			return proxy.Action{Name: "raced"}
		})
		n.applied("raced", h.most)
		return func() {
			for pod := range h.pods {
				requests := n.requests(pod)
				if len(requests) == 0 || requests[0].Status != 409 || slices.ContainsFunc(requests[1:], isBind) {
					n.Errorf("%s is another scheduler's, want one bind with 409: %+v", pod, requests)
				}
			}
			// Their places are free: as many pods fit.
			for i := range h.most {
				if err := n.createPod(fmt.Sprintf("%s-more-%d", n.name, i)); err != nil {
					n.Fatal(err)
				}
			}
			n.allBound(30 * time.Second)
		}
	}},
	{21, true, true, "lease-touched-and-deleted", func(n *network) func() {
		leases := n.client.CoordinationV1().Leases("kube-system")
		var last metav1.MicroTime
		renewed := func() bool { // since the last call
			lease, err := leases.Get(n.Context(), leaseName, metav1.GetOptions{})
			if err != nil || lease.Spec.RenewTime == nil {
				return false
			}
			previous := last
			last = *lease.Spec.RenewTime
			return !previous.IsZero() && last.After(previous.Time)
		}
		n.until(patience, "the lease is renewed", renewed)
		conflicts := func() int {
			return len(n.proxy.Since(time.Time{}, func(e proxy.Entry) bool { return e.Resource == "leases" && e.Status == 409 }))
		}
		// Another client writes it again and again, but does not take it.
		n.until(patience, "a renewal meets a conflict", func() bool {
			_, err := leases.Patch(n.Context(), leaseName, types.MergePatchType,
				[]byte(fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, time.Now().UnixNano())), metav1.PatchOptions{})
			if err != nil {
				n.Fatal(err)
			}
			return conflicts() > 0
		})
		n.until(patience, "it is renewed after the conflict", renewed)
		if err := leases.Delete(n.Context(), leaseName, metav1.DeleteOptions{}); err != nil {
			n.Fatal(err)
		}
		last = metav1.MicroTime{}
		n.until(patience, "it is created again, and renewed", renewed)
		return func() {
			select {
			case <-n.outboard.Shim.Exited():
				n.Errorf("the leader has ended:\n%s", n.outboard.Shim.LogTail())
			default:
			}
		}
	}},
}

// binds returns the number of binds that the API server has executed.
func (n *network) binds() int {
	return len(n.proxy.Since(time.Time{}, func(e proxy.Entry) bool { return isBind(e) && e.Status == 201 }))
}

// expired applies an action to the first watch of pods, and expects exactly one list, with this reason.
func expired(n *network, action proxy.Action, reason string) func() {
	n.Helper()
	began, before := time.Now(), n.listsFor(reason)
	var first atomic.Bool
	action.Name = "expired"
	n.proxy.Rule(func(r proxy.Request) proxy.Action {
		if r.Verb == "watch" && r.Resource == "pods" && !first.Swap(true) {
			return action
		}
		return proxy.Action{}
	})
	n.proxy.EndWatches()
	n.until(time.Minute, "a complete state", func() bool { return n.listsFor(reason) > before })
	return func() {
		if lists, counted := n.lists("pods", began), n.listsFor(reason)-before; lists != 1 || counted != 1 {
			n.Errorf("%d lists of pods, %v counted as %s; want one", lists, counted, reason)
		}
	}
}

// settledAsBound: a read or the watch settles the bind. What is sent again right after a reset (libcurl does so when no
// byte of an answer has come) has no effect, because a bind names the pod's UID.
func settledAsBound(_ *network, _ string, requests []proxy.Entry) error {
	// A read may come before it: an earlier bind was on a connection that was reset for another pod, before it was read.
	first := slices.IndexFunc(requests, isBind)
	if first < 0 || requests[first].Status != 201 || len(bindsThatTookEffect(requests)) != 1 {
		return fmt.Errorf("want one bind that takes effect: the first")
	}
	return nil
}

// settledAsNotBound: a read settles the bind, and only then the shim sends it again.
func settledAsNotBound(_ *network, _ string, requests []proxy.Entry) error {
	took := bindsThatTookEffect(requests)
	if len(took) != 1 || took[0] < 2 || requests[1].Verb != "get" {
		return fmt.Errorf("want a read, and then a bind")
	}
	return nil
}

// settledAfterAReset: of what is sent again, see settledAsBound, one request takes effect, perhaps without an answer,
// because a reset hits all requests of the connection.
func settledAfterAReset(_ *network, _ string, requests []proxy.Entry) error {
	if len(requests) < 2 || len(bindsThatTookEffect(requests)) > 1 {
		return fmt.Errorf("want more requests, and one bind that takes effect")
	}
	return nil
}

// bindsThatTookEffect returns their indices.
func bindsThatTookEffect(requests []proxy.Entry) (all []int) {
	for i, request := range requests {
		if isBind(request) && request.Status == 201 {
			all = append(all, i)
		}
	}
	return all
}
