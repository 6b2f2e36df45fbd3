package controlplane_test

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	controlplane "outboard.dev/integration/control_plane"
)

var slowClients = flag.Int("slow-clients.connections", 100, "slow connections to each port at a time")

// 100 slow clients a port, on all of its paths in turn, connect again whenever they are disconnected. Half of them send
// a byte of a header now and then, half read nothing of their answer. Meanwhile all paths are answered to another
// client, and the process keeps next to nothing of the slow ones.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	extender, metrics := controlplane.FreeAddress(t), controlplane.FreeAddress(t)
	p := servePages(t, controlplane.OutboardOptions{
		HostArgs: []string{"--metrics-address", metrics},
		Shim:     fmt.Sprintf("extender: {address: %q, profile: default-scheduler, admitsBindings: true}", extender),
	})
	pages := []string{"/", "/healthz", "/livez", "/readyz", "/metrics", "/configz", "/version", "/explain", "/queue", "/hosts", "/unknown"}
	for _, port := range []struct {
		name, address, method string
		secure                bool
		process               *controlplane.Process
		paths                 []string
	}{
		{"pages", strings.TrimPrefix(p.outboard.URL(), "http://"), http.MethodGet, false, p.outboard.Shim, pages},
		{"pages over TLS", p.address, http.MethodGet, true, p.outboard.Shim, pages},
		{"metrics of the host", metrics, http.MethodGet, false, p.outboard.Host, []string{"/", "/metrics", "/unknown"}},
		{"extender", extender, http.MethodPost, false, p.outboard.Shim, []string{"/", "/filter", "/prioritize", "/bind", "/admit", "/unknown"}},
	} {
		t.Run(port.name, func(t *testing.T) {
			request := func(path string) (int, error) {
				transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
				defer transport.CloseIdleConnections()
				scheme := map[bool]string{false: "http", true: "https"}[port.secure]
				request, err := http.NewRequest(port.method, scheme+"://"+port.address+path, nil)
				if err != nil {
					return 0, err
				}
				response, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(request)
				if err != nil {
					return 0, err
				}
				defer response.Body.Close()
				_, err = io.Copy(io.Discard, response.Body)
				return response.StatusCode, err
			}
			wanted := map[string]int{} // The answers without slow clients; this also fills buffers and caches.
			for _, path := range port.paths {
				status, err := request(path)
				if err != nil {
					t.Fatal(path, err)
				}
				wanted[path] = status
			}
			before := peak(t, port.process)

			ctx, cancel := context.WithCancel(t.Context())
			var slow, others sync.WaitGroup
			var connections atomic.Int64
			for i := range *slowClients {
				path := port.paths[i/2%len(port.paths)]
				slow.Go(func() {
					for ctx.Err() == nil {
						connections.Add(1)
						beSlow(ctx, port.address, port.secure, port.method, path, i%2 == 0)
					}
				})
			}
			for connections.Load() < int64(*slowClients) {
				time.Sleep(time.Millisecond) // Poll interval.
			}
			var longest atomic.Int64
			// Over TLS an address gets at most 8 connections, and a closed one counts until the server has noticed it.
			atATime := make(chan struct{}, 4)
			for _, path := range port.paths {
				others.Go(func() {
					atATime <- struct{}{}
					defer func() { <-atATime }()
					for range 2 {
						began := time.Now()
						status, err := request(path)
						if err != nil || status != wanted[path] {
							t.Errorf("%s: %d %v after %v, want %d", path, status, err, time.Since(began), wanted[path])
						}
						for took, now := int64(time.Since(began)), longest.Load(); took > now && !longest.CompareAndSwap(now, took); now = longest.Load() {
						}
					}
				})
			}
			others.Wait()
			cancel()
			slow.Wait()
			grown := (peak(t, port.process) - before) >> 20
			t.Logf("%d slow connections, %d at a time: the longest answer to another client took %v, the process grew by %d MiB",
				connections.Load(), *slowClients, time.Duration(longest.Load()).Round(time.Millisecond), grown)
			if grown > 16 {
				t.Errorf("it grew by %d MiB, want at most 16", grown)
			}
		})
	}
}

// beSlow keeps a connection until the server ends it: it sends its request slowly and without an end, or at once
// without reading the answer.
func beSlow(ctx context.Context, address string, secure bool, method, path string, sends bool) {
	// Another address than that of the other client: over TLS an address gets at most half of the threads.
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { connection.Close() })()
	if secure {
		connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true}) // Self-signed.
	}
	head := method + " " + path + " HTTP/1.1\r\nHost: x\r\n"
	if sends {
		_, err = io.WriteString(connection, head+"Slow: ")
	} else {
		_, err = io.WriteString(connection, head+"Content-Length: 0\r\n\r\n")
	}
	for err == nil && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond) // As slow as it is.
		_, err = io.WriteString(connection, "x")
	}
}
