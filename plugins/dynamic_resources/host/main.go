// outboard-claims-host serves plugin DynamicResources to Outboard: which nodes have devices for a pod's ResourceClaims,
// and which devices the claims get.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"k8s.io/klog/v2"
)

const (
	// The contract's limit for a shim's message.
	maxMessageBytes = 16 << 20

	gcPercent = 300
	// The share of the container's memory limit from which garbage is collected more often, because gcPercent alone would
	// let a heap of a quarter of the limit reach it.
	heapShare = 0.9

	// Over the network: how long a shim may be silent before a ping, and may take to answer it.
	pingInterval = 10 * time.Second

	exitCannotServe = 1
	exitUsage       = 2
)

// version of the build, set by the linker.
var version = "dev"

func main() { os.Exit(Main(os.Args[1:])) }

// Main returns the exit code.
func Main(arguments []string) int {
	flags, err := parseFlags(arguments)
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "outboard-claims-host: %v\nTry: outboard-claims-host --help\n", err)
		return exitUsage
	case flags.help:
		fmt.Print(help)
		return 0
	case flags.version:
		fmt.Println("outboard-claims-host", version)
		return 0
	case flags.probe:
		if err := probe(flags.listen); err != nil {
			fmt.Fprintf(os.Stderr, "outboard-claims-host: %v\n", err)
			return exitCannotServe
		}
		return 0
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent) // Most of the heap is the cluster cache, which is long-lived.
	}
	handler := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: flags.level})
	slog.SetDefault(slog.New(handler))
	klog.SetSlogLogger(slog.Default())
	limitHeap()
	if err := serve(flags); err != nil {
		fmt.Fprintf(os.Stderr, "outboard-claims-host: %v\n", err)
		return exitCannotServe
	}
	return 0
}

// limitHeap sets the soft limit of the heap, unless GOMEMLIMIT does.
func limitHeap() {
	limit, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(heapShare), memlimit.WithProvider(memlimit.FromCgroup))
	switch {
	case err == nil && limit > 0:
		slog.Info("soft limit of the heap", "bytes", limit)
	case err != nil && !errors.Is(err, memlimit.ErrNoLimit) && !errors.Is(err, memlimit.ErrNoCgroup) && !errors.Is(err, memlimit.ErrCgroupsNotSupported):
		slog.Warn("the memory limit of this container is unknown, so the heap has none", "err", err)
	}
}

func serve(flags *flagSet) error {
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	instance := "claims-" + hex.EncodeToString(id[:])
	// Before it listens: once the socket is visible, a signal may arrive.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	listener, where, err := listen(flags, instance)
	if err != nil {
		return err
	}
	options := []grpc.ServerOption{
		grpc.UnaryInterceptor(guarded), grpc.MaxRecvMsgSize(maxMessageBytes), grpc.MaxSendMsgSize(maxMessageBytes), grpc.MaxHeaderListSize(64 << 10),
		grpc.NumStreamWorkers(4),
	}
	if flags.tls() {
		config, err := tlsConfig(flags)
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
		options = append(options, pings(pingInterval)...)
	}
	server := grpc.NewServer(options...)
	h := newHost(instance, version, digestOfProgram())
	if flags.metricsAddress != "" {
		h.metrics = newMetrics(h)
		pages, err := serveMetrics(flags.metricsAddress, h.metrics, metricsPatience)
		if err != nil {
			return err
		}
		defer pages.Close()
	}
	h.register(server)
	go func() {
		<-ctx.Done()
		// The shim notices within a second, and lets attempts end.
		if !h.drain(flags.drainTimeout) {
			slog.Warn("drain timed out with attempts in progress; exiting", "timeout", flags.drainTimeout)
		}
		server.Stop()
	}()
	slog.Info("listening", "instance", instance, "address", where, "plugin", pluginName, "version", version)
	if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// pings drops peers that answer nothing: one whose machine or network vanished closes no connection, and gRPC pings only
// after two hours by default. Peers may ping, too, also without calls, for which gRPC would drop them by default.
func pings(interval time.Duration) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: interval, Timeout: interval}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: interval * 9 / 10, PermitWithoutStream: true}),
	}
}

// digestOfProgram identifies the build.
func digestOfProgram() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil))[:40]
}

func logFault(where string, fault any) {
	slog.Error("panic; the call failed", "where", where, "fault", fault, "stack", string(debug.Stack()))
}
