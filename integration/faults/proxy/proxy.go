// Package proxy stands between a shim and the API server, and makes the faults of networks and servers: for single
// requests (New) or for bytes (NewTCP).
package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Options configures New.
type Options struct {
	// Upstream is the API server's address, such as https://127.0.0.1:6443.
	Upstream string
	// Client verifies the API server and has the client certificate that all requests use: a client's own one cannot
	// be passed on.
	Client *tls.Config
	// Certificate is shown to clients.
	Certificate tls.Certificate
	// Listener accepts clients; nil: a free port of 127.0.0.1.
	Listener net.Listener
}

// Request is a request as the rule sees it, with the API server's own parse of it.
type Request struct {
	*apirequest.RequestInfo // Verb ("list", "watch", "create", ...), Resource, Subresource, Namespace, Name
	HTTP                    *http.Request
}

// IsBind tells whether the request binds a pod.
func (r Request) IsBind() bool { return r.Resource == "pods" && r.Subresource == "binding" }

// Action is what happens to a request. The zero value forwards it. Fields of different steps may be combined.
type Action struct {
	// Name is counted in Applied, and stands in Log.
	Name string
	// Delay waits before anything else.
	Delay time.Duration
	// Answer is given instead of the API server's.
	Answer *Answer
	// Drop never forwards the request, and never answers it.
	Drop bool
	// Reset never forwards the request, and resets the client's connection.
	Reset bool
	// LoseReply forwards the request, even if the client has given it up, and never answers it; with ResetAfter it
	// resets the client's connection instead.
	LoseReply, ResetAfter bool
	// ReplyDelay waits between the API server's answer and its first byte to the client.
	ReplyDelay time.Duration
	// CutAfter, if not zero, resets the connection after so many bytes of the body.
	CutAfter int
	// Slice, if not zero, sends the body in pieces of so many bytes.
	Slice int
	// Events replaces each event of a watch by the events that it returns: by none, by the event twice, by another
	// one. It may wait. It is called in the order of the events, by one goroutine for each watch.
	Events func(Event) []Event
}

// Answer is an HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Rule decides what happens to a request. It is called concurrently.
type Rule func(Request) Action

// Entry is a request in the proxy's log.
type Entry struct {
	At                          time.Time
	Verb, Resource, Subresource string
	Namespace, Name             string
	Query                       string
	// Action is the name of the applied action; Status the API server's status, zero without its answer.
	Action string
	Status int
}

// Proxy forwards requests over TLS, HTTP/1.1 and HTTP/2, and applies the rule to each.
//
// Safe for concurrent use.
type Proxy struct {
	// URL is the address for clients.
	URL string

	upstream  string
	transport *http.Transport
	server    *http.Server
	parser    *apirequest.RequestInfoFactory

	mutex       sync.Mutex
	rule        Rule
	applied     map[string]int
	log         []*Entry
	connections map[net.Conn]struct{}
	watches     map[*context.CancelFunc]struct{}
}

// New starts a proxy; the caller must Close it.
func New(options Options) (*Proxy, error) {
	listener := options.Listener
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	p := &Proxy{
		URL:      "https://" + listener.Addr().String(),
		upstream: options.Upstream,
		// Bodies pass as they are.
		transport: &http.Transport{TLSClientConfig: options.Client, ForceAttemptHTTP2: true, DisableCompression: true},
		parser: &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
			GrouplessAPIPrefixes: sets.NewString("api")},
		applied:     map[string]int{},
		connections: map[net.Conn]struct{}{},
		watches:     map[*context.CancelFunc]struct{}{},
	}
	p.server = &http.Server{
		Handler:   p,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{options.Certificate}},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
		ConnState: p.onConnection,
		ErrorLog:  nil,
	}
	p.server.ErrorLog = silentLog
	go p.server.ServeTLS(listener, "", "")
	return p, nil
}

// Close ends the proxy with all its connections.
func (p *Proxy) Close() {
	p.server.Close()
	p.transport.CloseIdleConnections()
}

// Rule sets the rule for later requests; nil forwards all. Watches keep the action with which they began: EndWatches
// and Reset let clients open them again.
func (p *Proxy) Rule(rule Rule) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.rule = rule
}

// Applied returns how often an action with this name was chosen.
func (p *Proxy) Applied(name string) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.applied[name]
}

// Log returns all requests so far, in the order of their arrival.
func (p *Proxy) Log() []Entry {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	entries := make([]Entry, len(p.log))
	for i, entry := range p.log {
		entries[i] = *entry
	}
	return entries
}

// Since returns the requests that arrived after a moment and match.
func (p *Proxy) Since(moment time.Time, matches func(Entry) bool) []Entry {
	return slices.DeleteFunc(p.Log(), func(e Entry) bool { return e.At.Before(moment) || !matches(e) })
}

// Reset resets all connections of clients, in the middle of a frame if one is being sent.
func (p *Proxy) Reset() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for connection := range p.connections {
		reset(connection)
	}
}

// EndWatches ends all watches as a server does whose timeout is over.
func (p *Proxy) EndWatches() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for cancel := range p.watches {
		(*cancel)()
	}
}

func (p *Proxy) onConnection(connection net.Conn, state http.ConnState) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch state {
	case http.StateNew:
		p.connections[connection] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(p.connections, connection)
	}
}

type connectionKey struct{}

// reset sends an RST, not a FIN.
func reset(connection net.Conn) {
	if secure, ok := connection.(*tls.Conn); ok {
		connection = secure.NetConn()
	}
	if plain, ok := connection.(*net.TCPConn); ok {
		plain.SetLinger(0)
	}
	connection.Close()
}

// decide parses the request and asks the rule.
func (p *Proxy) decide(r *http.Request) (Action, *Entry, error) {
	info, err := p.parser.NewRequestInfo(r)
	if err != nil {
		return Action{}, nil, fmt.Errorf("%s %s: %w", r.Method, r.URL, err)
	}
	p.mutex.Lock()
	rule := p.rule
	p.mutex.Unlock()
	action := Action{}
	if rule != nil {
		action = rule(Request{info, r})
	}
	entry := &Entry{At: time.Now(), Verb: info.Verb, Resource: info.Resource, Subresource: info.Subresource,
		Namespace: info.Namespace, Name: info.Name, Query: r.URL.RawQuery, Action: action.Name}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.log = append(p.log, entry)
	if action.Name != "" {
		p.applied[action.Name]++
	}
	return action, entry, nil
}

// ServeHTTP handles one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Bodies of requests are small. All of it is read before the rule, so that a client never waits with the rest.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	action, entry, err := p.decide(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pause(r.Context(), action.Delay)
	switch {
	case action.Answer != nil:
		for name, values := range action.Answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(action.Answer.Status)
		io.WriteString(w, action.Answer.Body)
		return
	case action.Drop:
		<-r.Context().Done()
		return
	case action.Reset:
		resetClient(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	if action.LoseReply || action.ResetAfter {
		ctx, cancel = context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
	}
	defer cancel()
	answer, err := p.forward(ctx, r, body)
	if err != nil {
		resetClient(r) // As if the client's connection had broken.
	}
	defer answer.Body.Close()
	p.mutex.Lock()
	entry.Status = answer.StatusCode
	p.mutex.Unlock()
	if action.LoseReply || action.ResetAfter {
		io.Copy(io.Discard, answer.Body) // The API server has done what it was asked for.
		if action.ResetAfter {
			resetClient(r)
		}
		<-r.Context().Done()
		return
	}
	pause(r.Context(), action.ReplyDelay)
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	if action.CutAfter > 0 || action.Events != nil {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(answer.StatusCode)
	if entry.Verb == "watch" && answer.StatusCode == http.StatusOK {
		p.mutex.Lock()
		p.watches[&cancel] = struct{}{}
		p.mutex.Unlock()
		defer func() {
			p.mutex.Lock()
			defer p.mutex.Unlock()
			delete(p.watches, &cancel)
		}()
	}
	out := &writer{response: w, request: r, action: action}
	if action.Events != nil && entry.Verb == "watch" && answer.StatusCode == http.StatusOK {
		err = copyEvents(out, answer.Body, answer.Header.Get("Content-Type"), action.Events)
	} else {
		_, err = io.Copy(out, answer.Body)
	}
	if err != nil && ctx.Err() == nil {
		resetClient(r) // The API server's connection broke.
	}
}

// forward sends the request to the API server with the proxy's own credentials.
func (p *Proxy) forward(ctx context.Context, r *http.Request, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, p.upstream+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	for _, name := range []string{"Authorization", "Connection", "Keep-Alive", "Upgrade", "Transfer-Encoding"} {
		request.Header.Del(name)
	}
	return p.transport.RoundTrip(request)
}

// resetClient resets the request's connection, and ends its handler.
func resetClient(r *http.Request) {
	reset(r.Context().Value(connectionKey{}).(net.Conn))
	panic(http.ErrAbortHandler)
}

func pause(ctx context.Context, duration time.Duration) {
	if duration <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// writer sends a body at once, in pieces, or only its beginning.
type writer struct {
	response http.ResponseWriter
	request  *http.Request
	action   Action
	sent     int
}

func (w *writer) Write(data []byte) (written int, err error) {
	for len(data) > 0 {
		piece := data
		if w.action.Slice > 0 && len(piece) > w.action.Slice {
			piece = piece[:w.action.Slice]
		}
		if left := w.action.CutAfter - w.sent; w.action.CutAfter > 0 && len(piece) > left {
			piece = piece[:left]
		}
		n, err := w.response.Write(piece)
		written, w.sent = written+n, w.sent+n
		if err == nil {
			err = http.NewResponseController(w.response).Flush()
		}
		if err != nil {
			return written, err
		}
		if w.action.CutAfter > 0 && w.sent >= w.action.CutAfter {
			w.cut()
		}
		data = data[len(piece):]
	}
	return written, nil
}

// cut resets the connection once the client's kernel has what was sent: a reset discards what it still has to send.
func (w *writer) cut() {
	pause(w.request.Context(), 20*time.Millisecond)
	resetClient(w.request)
}
