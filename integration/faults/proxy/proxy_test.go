package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// upstream is an API server that knows three pods, and counts the binds that it executes.
type upstream struct {
	*httptest.Server
	binds atomic.Int64
	end   chan struct{}
}

func newUpstream(t *testing.T, binaryFrames bool) *upstream {
	t.Helper()
	u := &upstream{end: make(chan struct{})}
	u.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			u.binds.Add(1)
			w.WriteHeader(http.StatusCreated)
		case r.URL.Query().Get("watch") == "true":
			w.Header().Set("Content-Type", map[bool]string{true: "application/vnd.kubernetes.protobuf;stream=watch", false: "application/json"}[binaryFrames])
			for i := range 3 {
				event := Event{Type: "ADDED", Object: &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
					ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i)), ResourceVersion: string(rune('1' + i))}}}
				frame, err := encode(event, binaryFrames)
				if err != nil {
					t.Error(err)
				}
				w.Write(frame)
			}
			http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-u.end:
			}
		default:
			io.WriteString(w, "0123456789")
		}
	}))
	u.EnableHTTP2 = true
	u.StartTLS()
	t.Cleanup(u.Close)
	t.Cleanup(func() { close(u.end) })
	return u
}

// clients are one for HTTP/2 and one for HTTP/1.1, through a proxy before the server.
func clients(t *testing.T, u *upstream) (*Proxy, map[string]*http.Client) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(u.Certificate())
	p, err := New(Options{Upstream: u.URL, Client: &tls.Config{RootCAs: roots}, Certificate: u.TLS.Certificates[0]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	all := map[string]*http.Client{}
	for name, modern := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: modern}
		if !modern {
			transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		t.Cleanup(transport.CloseIdleConnections)
		all[name] = &http.Client{Transport: transport, Timeout: 3 * time.Second}
	}
	return p, all
}

func TestActions(t *testing.T) {
	u := newUpstream(t, true)
	p, all := clients(t, u)
	const bind, list = "/api/v1/namespaces/n/pods/p/binding", "/api/v1/pods"
	for _, test := range []struct {
		name   string
		action Action
		// What the client sees; the status 0: an error.
		status int
		body   string
		binds  int64
	}{
		{"nothing", Action{}, 201, "", 1},
		{"answer", Action{Answer: &Answer{Status: 429, Header: http.Header{"Retry-After": {"2"}}, Body: "later"}}, 429, "later", 0},
		{"reset", Action{Reset: true}, 0, "", 0},
		{"reset after", Action{ResetAfter: true}, 0, "", 1},
	} {
		for version, client := range all {
			t.Run(test.name+" "+version, func(t *testing.T) {
				u.binds.Store(0)
				action := test.action
				action.Name = test.name + version
				p.Rule(func(r Request) Action {
					if r.IsBind() && r.Name == "p" && r.Namespace == "n" {
						return action
					}
					return Action{}
				})
				response, err := client.Post(p.URL+bind, "application/json", strings.NewReader("{}"))
				if err != nil {
					response = &http.Response{Body: io.NopCloser(strings.NewReader(""))}
				}
				defer response.Body.Close()
				body, _ := io.ReadAll(response.Body)
				if response.StatusCode != test.status || string(body) != test.body || u.binds.Load() != test.binds || p.Applied(action.Name) != 1 {
					t.Errorf("%d %q (%v), %d binds, applied %d times", response.StatusCode, body, err, u.binds.Load(), p.Applied(action.Name))
				}
				if test.status == 0 && !errors.Is(err, syscall.ECONNRESET) && version == "HTTP/1.1" {
					t.Errorf("not a reset: %v", err)
				}
			})
		}
	}
	for version, client := range all {
		p.Rule(func(Request) Action { return Action{CutAfter: 4, Slice: 1} })
		response, err := client.Get(p.URL + list)
		if err != nil {
			t.Fatal(version, err)
		}
		if body, err := io.ReadAll(response.Body); string(body) != "0123" || err == nil {
			t.Errorf("%s: cut: %q %v", version, body, err)
		}
		response.Body.Close()
		client.Timeout = 300 * time.Millisecond
		u.binds.Store(0)
		for _, action := range []Action{{Drop: true}, {LoseReply: true}} {
			p.Rule(func(Request) Action { return action })
			if _, err := client.Post(p.URL+bind, "application/json", nil); err == nil {
				t.Errorf("%s: an answer to %+v", version, action)
			}
		}
		if u.binds.Load() != 1 {
			t.Errorf("%s: %d binds by one dropped request and one lost reply", version, u.binds.Load())
		}
	}
}

func TestEvents(t *testing.T) {
	for encoding, binaryFrames := range map[string]bool{"protobuf": true, "JSON": false} {
		u := newUpstream(t, binaryFrames)
		p, all := clients(t, u)
		for version, client := range all {
			t.Run(encoding+" "+version, func(t *testing.T) {
				p.Rule(func(r Request) Action {
					if r.Verb != "watch" {
						t.Errorf("the verb is %s", r.Verb)
					}
					return Action{Slice: 7, Events: func(e Event) []Event {
						switch e.Meta().GetName() {
						case "a":
							return nil
						case "b":
							return []Event{e, e.WithVersion("9"), Expired()}
						}
						e.Cut = true
						return []Event{e}
					}}
				})
				response, err := client.Get(p.URL + "/api/v1/pods?watch=true")
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				if err == nil {
					t.Error("the watch ended without a reset")
				}
				// Exactly the frames that stand for these events, and half of the last one.
				var want bytes.Buffer
				pod := func(name, version string) Event {
					return Event{Type: "ADDED", Object: &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
						ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}}
				}
				for _, e := range []Event{pod("b", "2"), pod("b", "9"), Expired()} {
					frame, err := encode(e, binaryFrames)
					if err != nil {
						t.Fatal(err)
					}
					want.Write(frame)
				}
				last, err := encode(pod("c", "3"), binaryFrames)
				if err != nil {
					t.Fatal(err)
				}
				want.Write(last[:len(last)/2])
				if !bytes.Equal(body, want.Bytes()) {
					t.Errorf("got\n%q, want\n%q", body, want.Bytes())
				}
			})
		}
	}
}

func TestTCP(t *testing.T) {
	u := newUpstream(t, true)
	p, err := NewTCP(nil, u.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	client := u.Client()
	get := func() error {
		client.Timeout = 300 * time.Millisecond
		response, err := client.Get("https://" + p.Address + "/api/v1/pods")
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	for _, way := range []Direction{ToServer, ToClient, Both} {
		p.Stall(way)
		if get() == nil {
			t.Errorf("an answer while %v is stalled", way)
		}
		p.Stall(0)
		if err := get(); err != nil {
			t.Errorf("after a stall of %v: %v", way, err)
		}
	}
	before := p.Accepted()
	p.Reset()
	client.CloseIdleConnections()
	if err := get(); err != nil || p.Accepted() != before+1 {
		t.Errorf("%v after a reset, %d new connections", err, p.Accepted()-before)
	}
	p.Refuse(true)
	p.Reset()
	client.CloseIdleConnections()
	if get() == nil {
		t.Error("an answer although connections are refused")
	}
}
