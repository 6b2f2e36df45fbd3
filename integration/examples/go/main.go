// A plugin host in Go, from the contract alone: rejects nodes under maintenance, and spreads an app's pods over power
// domains.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	// The contract's limit for one message of a shim; pieces of a snapshot are smaller.
	maxMessageBytes = 16 << 20
	// How often a draining host checks for remaining attempts.
	drainInterval = 20 * time.Millisecond
)

func main() {
	listen := flag.String("listen", "", "unix:PATH; {instance} in PATH stands for this instance's id")
	drainTimeout := flag.Duration("drain-timeout", 20*time.Second, "time limit for attempts in flight after SIGTERM")
	flag.Parse()
	if err := run(*listen, *drainTimeout); err != nil {
		log.Fatal(err)
	}
}

func run(listen string, drainTimeout time.Duration) error {
	instance := fmt.Sprintf("go-%016x", rand.Uint64())
	path := strings.ReplaceAll(strings.TrimPrefix(listen, "unix:"), "{instance}", instance)
	// Only this user may connect.
	old := syscall.Umask(0o177)
	listener, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return err
	}
	h := &host{instance: instance, digest: digestOfProgram(), started: time.Now(), sessions: map[string]*session{}}
	server := grpc.NewServer(grpc.UnaryInterceptor(h.answer), grpc.MaxRecvMsgSize(maxMessageBytes),
		// A shim may ping every 10 s, also without calls. By default gRPC would close its connection after a few.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 9 * time.Second, PermitWithoutStream: true}))
	h.register(server)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		// The shims notice within a second, and finish their attempts.
		for end := time.Now().Add(drainTimeout); h.startDraining() > 0 && time.Now().Before(end); {
			time.Sleep(drainInterval)
		}
		server.Stop()
	}()
	log.Printf("instance %s listens on unix:%s with %s", instance, path, pluginName)
	return server.Serve(listener)
}

// digestOfProgram distinguishes builds.
func digestOfProgram() string {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(program))[:40]
}
