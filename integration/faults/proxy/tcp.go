package proxy

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// Direction is a way of bytes.
type Direction int

const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// TCP forwards bytes, without knowledge of what they are.
//
// Safe for concurrent use.
type TCP struct {
	// Address is the listener's.
	Address string

	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	context  context.Context
	end      context.CancelFunc

	mutex    sync.Mutex
	changed  *sync.Cond
	stalled  Direction
	refuse   bool
	delay    time.Duration
	pairs    map[*pair]struct{}
	accepted int
}

type pair struct{ client, server net.Conn }

// NewTCP forwards each connection of the listener (nil: of a free port of 127.0.0.1) to an address; the caller must
// Close it.
func NewTCP(listener net.Listener, address string) (*TCP, error) {
	return NewTCPTo(listener, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	})
}

// NewTCPTo is NewTCP with a function that connects to the server, for example from another network namespace.
func NewTCPTo(listener net.Listener, dial func(context.Context) (net.Conn, error)) (*TCP, error) {
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	t := &TCP{Address: listener.Addr().String(), listener: listener, dial: dial, pairs: map[*pair]struct{}{}}
	t.changed = sync.NewCond(&t.mutex)
	t.context, t.end = context.WithCancel(context.Background())
	go t.accept()
	return t, nil
}

// Close ends the proxy and resets its connections.
func (t *TCP) Close() {
	t.end()
	t.listener.Close()
	t.Reset()
	t.Stall(0)
}

// Stall holds back all bytes that go this way, of existing and of new connections, until it is called with 0. Nothing
// is lost, and the connections stay open. It replaces the effect of an earlier call.
func (t *TCP) Stall(way Direction) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.stalled = way
	t.changed.Broadcast()
}

// Delay holds back each piece of bytes, both ways, for this long: it limits the speed, too.
func (t *TCP) Delay(delay time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.delay = delay
}

// Reset resets all connections on both sides.
func (t *TCP) Reset() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for p := range t.pairs {
		reset(p.client)
		reset(p.server)
	}
}

// Refuse resets each new connection at once, as a load balancer without servers does, until it is called with false.
func (t *TCP) Refuse(refuse bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.refuse = refuse
}

// Accepted returns the number of connections so far, without refused ones.
func (t *TCP) Accepted() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.accepted
}

// Open returns the number of open connections.
func (t *TCP) Open() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return len(t.pairs)
}

func (t *TCP) accept() {
	for {
		client, err := t.listener.Accept()
		if err != nil {
			return
		}
		t.mutex.Lock()
		refuse := t.refuse
		t.mutex.Unlock()
		if refuse {
			reset(client)
			continue
		}
		go t.serve(client)
	}
}

func (t *TCP) serve(client net.Conn) {
	server, err := t.dial(t.context)
	if err != nil {
		reset(client) // As if the server had refused it.
		return
	}
	p := &pair{client, server}
	t.mutex.Lock()
	t.pairs[p] = struct{}{}
	t.accepted++
	t.mutex.Unlock()
	var ways sync.WaitGroup
	ways.Go(func() { t.copy(server, client, ToServer) })
	ways.Go(func() { t.copy(client, server, ToClient) })
	ways.Wait()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.pairs, p)
	client.Close()
	server.Close()
}

// copy passes on bytes and the end of the stream; an error resets both sides.
func (t *TCP) copy(to, from net.Conn, way Direction) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		delay := t.waitWhileStalled(way)
		pause(t.context, delay)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				reset(from)
				return
			}
		}
		switch {
		case err == io.EOF:
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			}
			return
		case err != nil:
			reset(to)
			return
		}
	}
}

// waitWhileStalled returns the delay.
func (t *TCP) waitWhileStalled(way Direction) time.Duration {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for t.stalled&way != 0 && t.context.Err() == nil {
		t.changed.Wait()
	}
	return t.delay
}
