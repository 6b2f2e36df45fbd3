package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	pb "outboard.dev/contract/v1beta1"
)

const (
	metricsPatience = 2 * time.Second
	// Further clients wait.
	maxMetricsClients = 8
)

// metrics are those of every plugin host (docs/metrics.md), and those of Go's runtime. Threading: thread-safe. Nil: off.
type metrics struct {
	page      http.Handler // all of them, as text
	durations *prometheus.HistogramVec
	writes    *prometheus.CounterVec
}

func newMetrics(h *host) *metrics {
	const prefix = "outboard_plugin_host_"
	instance := prometheus.Labels{"instance": h.instance}
	gauge := func(name, help string, labels prometheus.Labels, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value)
	}
	registry := prometheus.NewRegistry()
	m := &metrics{
		page: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "plugin_duration_seconds", Help: "Time that a plugin took at a point for a pod; at Filter and Score for all its nodes.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 2, 22), // outboard-host's.
		}, []string{"plugin", "extension_point"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "writes_total",
			Help: "Background writes of plugins that the shim answered, by outcome: applied, forbidden, conflict, superseded, unknown, failed.",
		}, []string{"plugin", "outcome"}),
	}
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m.durations, m.writes,
		gauge("outboard_build_info", "1 for the build that runs.", prometheus.Labels{"version": h.build}, func() float64 { return 1 }),
		gauge(prefix+"sessions", "Number of sessions of shims that are connected to an instance.", instance, func() float64 { return float64(h.connectedSessions()) }),
		gauge(prefix+"attempts_in_flight", "Number of attempts that an instance keeps, over all sessions.", instance, func() float64 { return float64(h.attemptsInFlight()) }),
	)
	return m
}

// at measures a call, from now until the result is called.
func (m *metrics) at(point pb.ExtensionPoint) (done func()) {
	if m == nil {
		return func() {}
	}
	began := time.Now()
	return func() { m.durations.WithLabelValues(pluginName, pointName(point)).Observe(time.Since(began).Seconds()) }
}

// pointName is the one in kube-scheduler's messages, such as PreFilter.
func pointName(point pb.ExtensionPoint) string {
	var name strings.Builder
	for word := range strings.SplitSeq(strings.TrimPrefix(point.String(), "EXTENSION_POINT_"), "_") {
		name.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return name.String()
}

func (m *metrics) wrote(result *pb.PushResult) {
	if m == nil {
		return
	}
	outcome := result.GetOutcome()
	if _, known := pb.PushResult_Outcome_name[int32(outcome)]; !known || outcome == pb.PushResult_OUTCOME_UNSPECIFIED {
		outcome = pb.PushResult_OUTCOME_FAILED
	}
	m.writes.WithLabelValues(pluginName, strings.ToLower(strings.TrimPrefix(outcome.String(), "OUTCOME_"))).Inc()
}

// connectedSessions counts the shims with a Sync stream.
func (h *host) connectedSessions() int {
	return h.sum(func(s *session) int {
		if s.cancel == nil {
			return 0
		}
		return 1
	})
}

// ServeHTTP answers GET /metrics. No request has a body.
func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		http.Error(w, "no body is read", http.StatusRequestEntityTooLarge)
	case r.URL.Path != "/metrics":
		http.NotFound(w, r)
	default:
		m.page.ServeHTTP(w, r)
	}
}

// checkMetricsAddress: without TLS and authorization only processes of this machine or pod may read, unless an operator
// allows more.
func checkMetricsAddress(address string, unprotected bool) error {
	at, err := netip.ParseAddrPort(address)
	switch {
	case unprotected && err != nil:
		return fmt.Errorf("--metrics-address %s: must be IP:PORT or [IP]:PORT", address)
	case !unprotected && (err != nil || at.Addr() != netip.MustParseAddr("127.0.0.1") && at.Addr() != netip.IPv6Loopback()):
		return fmt.Errorf("--metrics-address %s: must be 127.0.0.1:PORT or [::1]:PORT, because it has neither TLS nor authorisation", address)
	}
	return nil
}

// serveMetrics listens, and serves until the server is closed. The server has the actual address. `patience`: how long
// a client may take to send its request, and to read the answer.
func serveMetrics(address string, m *metrics, patience time.Duration) (*http.Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-address %s: cannot listen there: %w", address, err)
	}
	server := &http.Server{
		Addr: listener.Addr().String(), Handler: m, ReadTimeout: patience, WriteTimeout: patience, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
	server.SetKeepAlivesEnabled(false) // Scrapes are rare; a connection left open would take a client's place.
	slog.Info("serving metrics", "url", "http://"+server.Addr+"/metrics")
	go func() {
		if err := server.Serve(netutil.LimitListener(listener, maxMetricsClients)); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the metrics server stopped", "err", err)
		}
	}()
	return server, nil
}
