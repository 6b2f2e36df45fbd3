package controlplane_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"

	controlplane "outboard.dev/integration/control_plane"
)

// Clients of every port send 1 GiB without end, in a body or in a header: the connection ends, and the process keeps
// next to nothing of it.
func TestRequestsWithoutEnd(t *testing.T) {
	t.Parallel()
	extender, metrics := controlplane.FreeAddress(t), controlplane.FreeAddress(t)
	p := servePages(t, controlplane.OutboardOptions{
		HostArgs: []string{"--metrics-address", metrics},
		Shim:     fmt.Sprintf("extender: {address: %q, profile: default-scheduler, admitsBindings: true}", extender),
	})
	pages := []string{"/", "/healthz", "/livez", "/readyz", "/metrics", "/configz", "/version", "/explain", "/queue", "/hosts", "/hosts/swap", "/hosts/rollback", "/hosts/clear-quarantine", "/unknown"}
	for _, port := range []struct {
		name, address string
		secure        bool
		process       *controlplane.Process
		paths         []string
		mib           int64 // that the process may grow
	}{
		{"pages", strings.TrimPrefix(p.outboard.URL(), "http://"), false, p.outboard.Shim, pages, 8},
		{"pages over TLS", p.address, true, p.outboard.Shim, pages, 8},
		{"metrics of the host", metrics, false, p.outboard.Host, []string{"/", "/metrics", "/unknown"}, 8},
		{"extender", extender, false, p.outboard.Shim, []string{"/", "/filter", "/prioritize", "/bind", "/admit", "/unknown"}, 8},
	} {
		t.Run(port.name, func(t *testing.T) {
			before := peak(t, port.process)
			for _, path := range port.paths {
				for _, kind := range []struct{ name, head, piece string }{
					{"a chunked body", "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", "10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n"},
					{"a header", "GET " + path + " HTTP/1.1\r\nHost: x\r\nLong: ", strings.Repeat("x", 1<<16)},
				} {
					sent := sendWithoutEnd(t, port.address, port.secure, kind.head, kind.piece)
					if sent >= 1<<30 {
						t.Errorf("%s: %s of 1 GiB was taken", path, kind.name)
					}
				}
			}
			grown := (peak(t, port.process) - before) >> 20
			t.Logf("%d paths: it grew by %d MiB", len(port.paths), grown)
			if grown > port.mib {
				t.Errorf("it grew by %d MiB, want at most %d", grown, port.mib)
			}
		})
	}
}

func peak(t *testing.T, process *controlplane.Process) int64 {
	t.Helper()
	usage, err := process.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return usage.PeakRSS
}

// sendWithoutEnd sends the head, and then the piece again and again until the connection ends or 1 GiB is sent, and
// returns how many bytes were sent.
func sendWithoutEnd(t *testing.T, address string, secure bool, head, piece string) (sent int) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if secure {
		connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true}) // Self-signed.
	}
	pieces := bytes.Repeat([]byte(piece), 16)
	for data := []byte(head); sent < 1<<30; data = pieces {
		n, err := connection.Write(data)
		sent += n
		if err != nil {
			break
		}
	}
	return sent
}
