package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const probeTimeout = 2 * time.Second

// listen also returns the address, for logs.
func listen(flags *flagSet, instance string) (net.Listener, string, error) {
	if flags.tls() {
		listener, err := net.Listen("tcp", flags.listen)
		if err != nil {
			return nil, "", err
		}
		return listener, listener.Addr().String(), nil
	}
	template := strings.TrimPrefix(flags.listen, "unix:")
	path := strings.ReplaceAll(template, "{instance}", instance)
	for _, found := range socketsLike(template) {
		if alive(found) {
			if found == path {
				return nil, "", fmt.Errorf("another process listens on %s", path)
			}
		} else if info, err := os.Lstat(found); err == nil && info.Mode()&os.ModeSocket != 0 {
			_ = os.Remove(found) // Left from a host that has ended.
		}
	}
	old := syscall.Umask(0o177 &^ int(flags.socketMode&0o060))
	listener, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, "", err
	}
	return &guardedListener{listener.(*net.UnixListener), flags.allowedUIDs}, "unix:" + path, nil
}

// socketsLike finds sockets of this name, of any instance.
func socketsLike(template string) []string {
	found, err := filepath.Glob(strings.ReplaceAll(template, "{instance}", "*"))
	if err != nil {
		return nil
	}
	return found
}

func alive(path string) bool {
	connection, err := net.DialTimeout("unix", path, probeTimeout)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist)
	}
	connection.Close()
	return true
}

// probe returns an error unless a host listens.
func probe(listen string) error {
	template := strings.TrimPrefix(listen, "unix:")
	for _, path := range socketsLike(template) {
		if connection, err := net.DialTimeout("unix", path, probeTimeout); err == nil {
			return connection.Close()
		}
	}
	return fmt.Errorf("no host listens on %s", template)
}

// guardedListener accepts connections only from some users.
type guardedListener struct {
	*net.UnixListener
	allowed []uint32 // empty: this process' user and root
}

// Accept implements net.Listener.
func (l *guardedListener) Accept() (net.Conn, error) {
	for {
		connection, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := userOf(connection)
		if err == nil && l.allows(uid) {
			return connection, nil
		}
		slog.Warn("connection rejected", "uid", uid, "error", err)
		connection.Close()
	}
}

func (l *guardedListener) allows(uid uint32) bool {
	if len(l.allowed) > 0 {
		return slices.Contains(l.allowed, uid)
	}
	return uid == 0 || uid == uint32(os.Getuid())
}

func userOf(connection *net.UnixConn) (uint32, error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *syscall.Ucred
	var failure error
	if err := raw.Control(func(fd uintptr) {
		credentials, failure = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failure != nil {
		return 0, failure
	}
	return credentials.Uid, nil
}

// tlsConfig reads the files now, to reject invalid ones early, and again for each connection.
func tlsConfig(flags *flagSet) (*tls.Config, error) {
	read := func() (*tls.Config, error) {
		certificate, err := tls.LoadX509KeyPair(flags.cert, flags.key)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(flags.clientCA)
		if err != nil {
			return nil, err
		}
		authority := x509.NewCertPool()
		if !authority.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("no certificate in %s", flags.clientCA)
		}
		return &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, ClientCAs: authority, ClientAuth: tls.RequireAndVerifyClientCert,
			NextProtos: []string{"h2"},
		}, nil
	}
	config, err := read()
	if err != nil {
		return nil, err
	}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return read() }
	return config, nil
}
