// A plugin host in Go, from the contract alone: rejects nodes under maintenance, and spreads an
// app's pods over power domains. It has a cluster cache, and keeps a single session.
package main

import (
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
	// The contract's limit for one message of a shim.
	maxMessageBytes = 16 << 20
	// How long a host that stops answers yet. A shim probes once a second, and then uses another
	// instance.
	drainTime = 2 * time.Second
)

func main() {
	listen := flag.String("listen", "", "unix:PATH; {instance} in PATH stands for this instance's id")
	flag.Parse()
	if err := run(*listen); err != nil {
		log.Fatal(err)
	}
}

func run(listen string) error {
	h := &host{instance: fmt.Sprintf("go-%016x", rand.Uint64()), started: time.Now()}
	path := strings.ReplaceAll(strings.TrimPrefix(listen, "unix:"), "{instance}", h.instance)
	old := syscall.Umask(0o177) // Only this user may connect.
	listener, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return err
	}
	// A shim may ping every 10 s, also without calls. By default gRPC would close its connection.
	pings := keepalive.EnforcementPolicy{MinTime: 9 * time.Second, PermitWithoutStream: true}
	server := grpc.NewServer(grpc.UnaryInterceptor(h.answer), grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.KeepaliveEnforcementPolicy(pings))
	h.register(server)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		h.drain()
		time.Sleep(drainTime)
		server.Stop()
	}()
	log.Printf("instance %s listens on unix:%s with %s", h.instance, path, pluginName)
	return server.Serve(listener)
}
