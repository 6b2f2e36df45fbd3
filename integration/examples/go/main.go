// A plugin host in Go, from the contract alone: rejects nodes under maintenance, and spreads an app's pods over power
// domains.
package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// The contract's limit for one message of a shim; pieces of a snapshot are smaller.
const maxMessageBytes = 16 << 20

func main() {
	listen := flag.String("listen", "", "unix:PATH; {instance} in PATH stands for this instance's id")
	drainTimeout := flag.Duration("drain-timeout", 20*time.Second, "time limit for attempts in flight after SIGTERM")
	flag.Parse()
	if err := run(*listen, *drainTimeout); err != nil {
		log.Fatal(err)
	}
}

func run(listen string, drainTimeout time.Duration) error {
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	instance := "go-" + hex.EncodeToString(id[:])
	path := strings.ReplaceAll(strings.TrimPrefix(listen, "unix:"), "{instance}", instance)
	// Only this user may connect.
	old := syscall.Umask(0o177)
	listener, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return err
	}
	h := &host{
		instance: instance, build: "example", digest: digestOfProgram(), started: time.Now(), now: time.Now, sessions: map[string]*session{},
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(unaryErrors), grpc.MaxRecvMsgSize(maxMessageBytes),
		// A shim may ping every 10 s, also without calls. By default gRPC would close its connection after a few.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 9 * time.Second, PermitWithoutStream: true}))
	h.register(server)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		// The shim notices within a second, and finishes its attempts.
		select {
		case <-h.drain():
		case <-time.After(drainTimeout):
		}
		server.Stop()
	}()
	log.Printf("instance %s listens on unix:%s with %s", instance, path, pluginName)
	return server.Serve(listener)
}

// digestOfProgram distinguishes builds.
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
