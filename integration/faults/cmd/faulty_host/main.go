// Command faulty_host is a plugin host with one fault: a real host behind a proxy that forwards every call unchanged
// except for that fault. Of the contract it knows only the names of methods and the numbers of a few fields. Arguments
// after the flags are the real host's.
package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

var (
	listen  = flag.String("listen", "", "unix:PATH, or HOST:PORT with the three files")
	cert    = flag.String("tls-cert", "", "the certificate")
	key     = flag.String("tls-key", "", "its key")
	clients = flag.String("tls-client-ca", "", "the authority of shims' certificates")
	program = flag.String("host", "outboard-host", "the real host's program")
	fault   = flag.String("fault", "", "crash-in-warm-up, crash-in-shadow (at its first cycle), wrong-in-shadow (each third cycle), one-percent (fails each 100th cycle, after the first 100), flood (pushes without end once it has the cluster), lying-reserve, or one of faults.go")
	digest  = flag.String("digest", "", "the digest of its build; empty: the name of the fault. A quarantined digest is not tried again")
	lie     = flag.String("lie", "", "with lying-reserve: a file with the ReserveResponse that replaces each answer that has effects, while it exists")
)

// frame is a message that is forwarded unchanged.
type frame []byte

type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*frame), nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*frame) = append(frame(nil), data...)
	return nil
}
func (rawCodec) Name() string { return "proto" }

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "faulty_host:", err)
		os.Exit(1)
	}
}

func run() error {
	network, address := "tcp", *listen
	if path, isUnix := strings.CutPrefix(strings.ReplaceAll(*listen, "{instance}", cmp.Or(*digest, *fault)), "unix:"); isUnix {
		network, address = "unix", path
	}
	secured, err := security()
	if err != nil {
		return err
	}
	// Beside its own socket, in a folder that the test removes: this process is often killed.
	parent := ""
	if network == "unix" {
		parent = filepath.Dir(address)
	}
	dir, err := os.MkdirTemp(parent, "faulty-host")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	behind := filepath.Join(dir, "host.sock")
	host := exec.Command(*program, append([]string{"--listen", "unix:" + behind}, flag.Args()...)...)
	host.Stderr = os.Stderr
	host.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := host.Start(); err != nil {
		return err
	}
	for _, err := os.Stat(behind); err != nil; _, err = os.Stat(behind) {
		time.Sleep(time.Millisecond)
	}
	connection, err := grpc.NewClient("unix:"+behind, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.Creds(secured), grpc.ForceServerCodec(rawCodec{}), grpc.MaxRecvMsgSize(64<<20),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return pass(connection, stream) }))
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	return server.Serve(listener)
}

// security is mutual TLS where there are files for it.
func security() (credentials.TransportCredentials, error) {
	if *cert == "" {
		return insecure.NewCredentials(), nil
	}
	own, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(*clients)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}), nil
}

// pass forwards one call.
func pass(host *grpc.ClientConn, shim grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(shim)
	ctx := shim.Context()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md.Copy())
	}
	onward, err := host.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for messages := 0; ; messages++ {
			if *fault == "deaf" && messages > 0 {
				waitUntilDeaf(method)
			}
			var message frame
			if err := shim.RecvMsg(&message); err != nil {
				onward.CloseSend()
				return
			}
			// The first message starts a snapshot.
			if *fault == "crash-in-warm-up" && strings.HasSuffix(method, "/Sync") && messages == 1 {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			if *fault == "crash-in-shadow" && isCycle(method) {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			if onward.SendMsg(&message) != nil {
				return
			}
		}
	}()
	for {
		var message frame
		if err := onward.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if *fault == "deaf" && strings.HasSuffix(method, "/Sync") {
			hasCluster.Store(true)
		}
		message, err := spoil(method, message)
		if err != nil {
			return err
		}
		if isCycle(method) {
			if message, err = spoilCycle(ctx, shim, message); err != nil {
				return err
			}
			if message == nil {
				continue
			}
		}
		if err := shim.SendMsg(&message); err != nil {
			return err
		}
		if *fault == "flood" && strings.HasSuffix(method, "/Sync") {
			return flood(shim)
		}
	}
}

// flood pushes that the gates of an unknown pod have changed, until the shim ends the stream.
func flood(shim grpc.ServerStream) error {
	const (
		gateChanged = 4 // of SyncResponse
		podUIDs     = 1 // of GateChanged
	)
	change := protowire.AppendTag(nil, podUIDs, protowire.BytesType)
	change = protowire.AppendString(change, strings.Repeat("x", 1000))
	var push frame = protowire.AppendTag(nil, gateChanged, protowire.BytesType)
	push = protowire.AppendBytes(push, change)
	for {
		if err := shim.SendMsg(&push); err != nil {
			return err
		}
	}
}

var cycles atomic.Int64

// spoil appends a field to a message, which replaces the existing field or is merged into it.
func spoil(method string, message frame) (frame, error) {
	const (
		buildDigest     = 4 // of HandshakeResponse
		filter          = 2 // of CycleEvaluation
		filterProcessed = 1 // of FilterResponse
	)
	switch {
	case strings.HasSuffix(method, "/Handshake"):
		// A different build.
		message = protowire.AppendTag(message, buildDigest, protowire.BytesType)
		return protowire.AppendString(message, cmp.Or(*digest, *fault)), nil
	case *fault == "lying-reserve" && strings.HasSuffix(method, "/Reserve") && len(message) > 0:
		if text, err := os.ReadFile(*lie); err == nil {
			return text, nil
		}
	case isCycle(method):
		count := cycles.Add(1)
		if *fault == "one-percent" && count > 100 && count%100 == 0 {
			return nil, status.Error(codes.Internal, "one call in a hundred fails")
		}
		if *fault == "wrong-in-shadow" && count%3 == 0 {
			wrong := protowire.AppendTag(nil, filterProcessed, protowire.VarintType)
			wrong = protowire.AppendVarint(wrong, 7_000_000)
			message = answerCycle(message, evaluation, protowire.AppendBytes(protowire.AppendTag(nil, filter, protowire.BytesType), wrong))
		}
	}
	return message, nil
}
