package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"
)

const help = `outboard-claims-host serves plugin DynamicResources to outboard-shim over gRPC: it allocates the devices of ResourceSlices
to the ResourceClaims of pods, as kube-scheduler v1.36 does.

  outboard-claims-host --listen unix:/run/outboard/hosts/claims@{instance}.sock

The host holds no Kubernetes credentials and no persistent state: the shim sends it the cluster, asks it where a pod can run,
and writes claims for it. List it before outboard-host in the shim's configuration, and allow what it needs in
customResources:

  socketDirectory: /run/outboard/hosts
  hosts: [{name: claims}, {name: main}]
  customResources:
  - {resource: resourceclaims.v1.resource.k8s.io, verbs: [create, delete, patch, patchStatus]}
  - {resource: resourceslices.v1.resource.k8s.io}
  - {resource: deviceclasses.v1.resource.k8s.io}

Where to listen:
  --listen unix:PATH        a Unix socket (the usual choice). A stale socket is replaced, a live one is an error. {instance} in PATH
                            is replaced by this instance's id. A shim that watches DIR treats unix:DIR/NAME@{instance}.sock as an
                            instance of host NAME; the instance that started last serves.
  --listen HOST:PORT        the network, only with mutual TLS: needs the three files below.
  --tls-cert FILE           the host's certificate chain, PEM
  --tls-key FILE            its private key, PEM
  --tls-client-ca FILE      the authority that signed the shims' certificates, PEM. New connections use changed files.
  --socket-mode MODE        permissions of the socket: 0600 (default), or 0660 to include its group
  --allowed-uids A,B        users whose processes may connect to the socket (default: the host's own and root)

Probe instead of serving:
  --probe --listen unix:PATH  exit 0 if a host listens there ({instance}: any instance in this container)

How to run:
  --metrics-address ADDRESS Prometheus metrics at http://ADDRESS/metrics (default: off). ADDRESS is 127.0.0.1:PORT or [::1]:PORT; with
                            port 0 the log names the port
  --metrics-unprotected     with --metrics-address: ADDRESS may be any IP:PORT, such as 0.0.0.0:10274. Every client that reaches it reads
                            the metrics; only a firewall or a NetworkPolicy protects them
  --drain-timeout DURATION  how long running attempts may take to end after SIGTERM (default 20s)
  --log-level LEVEL         debug, info (default), warn or error
  --help, --version

Exit codes: 0 after a drain or a successful probe, 1 if it cannot listen or the probe fails, 2 for an invalid command line.
`

type flagSet struct {
	listen, cert, key, clientCA string
	socketMode                  os.FileMode
	allowedUIDs                 []uint32
	drainTimeout                time.Duration
	level                       slog.Level
	metricsAddress              string // empty: none
	metricsUnprotected          bool
	help, version, probe        bool
}

func (f *flagSet) tls() bool { return !strings.HasPrefix(f.listen, "unix:") }

func parseFlags(arguments []string) (*flagSet, error) {
	f := &flagSet{socketMode: 0o600, drainTimeout: 20 * time.Second}
	for i := 0; i < len(arguments); i++ {
		name, value, joined := strings.Cut(arguments[i], "=")
		switch name {
		case "--help", "-h":
			f.help = true
			continue
		case "--version":
			f.version = true
			continue
		case "--probe":
			f.probe = true
			continue
		case "--metrics-unprotected":
			f.metricsUnprotected = true
			continue
		}
		set := f.setter(name)
		if set == nil {
			return nil, fmt.Errorf("unknown argument %s", arguments[i])
		}
		if !joined {
			if i++; i == len(arguments) {
				return nil, fmt.Errorf("%s needs a value", name)
			}
			value = arguments[i]
		}
		if value == "" || set(value) != nil {
			return nil, fmt.Errorf("invalid value %q for %s", value, name)
		}
	}
	if f.help || f.version {
		return f, nil
	}
	return f, f.check()
}

func (f *flagSet) setter(name string) func(string) error {
	text := func(into *string) func(string) error {
		return func(value string) error {
			*into = value
			return nil
		}
	}
	switch name {
	case "--listen":
		return text(&f.listen)
	case "--tls-cert":
		return text(&f.cert)
	case "--tls-key":
		return text(&f.key)
	case "--tls-client-ca":
		return text(&f.clientCA)
	case "--metrics-address":
		return text(&f.metricsAddress)
	case "--socket-mode":
		return func(value string) error {
			switch strings.TrimPrefix(value, "0") {
			case "600":
				f.socketMode = 0o600
			case "660":
				f.socketMode = 0o660
			default:
				return errors.New("neither 0600 nor 0660")
			}
			return nil
		}
	case "--allowed-uids":
		return func(value string) error {
			for _, part := range strings.Split(value, ",") {
				uid, err := strconv.ParseUint(part, 10, 32)
				if err != nil {
					return err
				}
				f.allowedUIDs = append(f.allowedUIDs, uint32(uid))
			}
			return nil
		}
	case "--drain-timeout":
		return func(value string) (err error) {
			if f.drainTimeout, err = time.ParseDuration(value); err == nil && f.drainTimeout < 0 {
				err = errors.New("negative")
			}
			return err
		}
	case "--log-level":
		return func(value string) error { return f.level.UnmarshalText([]byte(value)) }
	}
	return nil
}

func (f *flagSet) check() error {
	files := 0
	for _, file := range []string{f.cert, f.key, f.clientCA} {
		if file != "" {
			files++
		}
	}
	switch {
	case f.listen == "":
		return errors.New("--listen is required, for example --listen unix:host.sock")
	case f.probe && f.tls():
		return errors.New("--probe needs --listen unix:PATH")
	case !f.tls() && files > 0:
		return errors.New("TLS files are for --listen HOST:PORT only")
	case f.tls() && files < 3:
		return errors.New("--listen HOST:PORT needs --tls-cert, --tls-key and --tls-client-ca: the network mode is mutual TLS only")
	case f.metricsUnprotected && f.metricsAddress == "":
		return errors.New("--metrics-unprotected needs --metrics-address")
	case f.metricsAddress != "":
		return checkMetricsAddress(f.metricsAddress, f.metricsUnprotected)
	}
	return nil
}
