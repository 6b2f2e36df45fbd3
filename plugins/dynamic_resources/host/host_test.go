package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "outboard.dev/contract/v1beta1"
)

func TestArgs(t *testing.T) {
	for text, want := range map[string]string{
		``:                       "10s 10m0s []",
		`{}`:                     "10s 10m0s []",
		`{"filterTimeout":null}`: "10s 10m0s []",
		`{"filterTimeout":"0s","bindingTimeout":"1s"}`: "0s 1s []",
		`{"filterTimeout":"-1s"}`:                      `-1s 10m0s [{filterTimeout Invalid value: "-1s": must be zero or positive}]`,
		`{"bindingTimeout":"999ms"}`:                   `10s 999ms [{bindingTimeout Invalid value: "999ms": must be at least 1 second}]`,
		`{"other":1}`:                                  "10s 10m0s [{other unknown field}]",
		`{} {}`:                                        "10s 10m0s [{ more than one JSON value}]",
	} {
		read, problems := readArgs(text)
		expect(t, text, fmt.Sprintf("%v %v %v", read.filterTimeout, read.bindingTimeout, problems), want)
	}
	for _, text := range []string{"{", "[1]", `"words"`, `{"filterTimeout":5}`, `{"filterTimeout":"soon"}`, "\xc3\xa9\x01"} {
		if _, problems := readArgs(text); len(problems) == 0 {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestFlags(t *testing.T) {
	for line, want := range map[string]string{
		"":                            "--listen is required, for example --listen unix:host.sock",
		"--listen 127.0.0.1:1":        "--listen HOST:PORT needs --tls-cert, --tls-key and --tls-client-ca: the network mode is mutual TLS only",
		"--listen unix:x --tls-key y": "TLS files are for --listen HOST:PORT only",
		"--probe --listen 127.0.0.1:1 --tls-cert a --tls-key b --tls-client-ca c": "--probe needs --listen unix:PATH",
		"--listen":                                                   "--listen needs a value",
		"--listen=":                                                  `invalid value "" for --listen`,
		"--nonsense":                                                 "unknown argument --nonsense",
		"--listen unix:x --drain-timeout -1s":                        `invalid value "-1s" for --drain-timeout`,
		"--listen unix:x --socket-mode 0777":                         `invalid value "0777" for --socket-mode`,
		"--listen unix:x --allowed-uids 1,x":                         `invalid value "1,x" for --allowed-uids`,
		"--listen unix:x --metrics-unprotected":                      "--metrics-unprotected needs --metrics-address",
		"--listen unix:x --metrics-address 0.0.0.0:1":                "--metrics-address 0.0.0.0:1: must be 127.0.0.1:PORT or [::1]:PORT, because it has neither TLS nor authorisation",
		"--listen unix:x --metrics-address localhost:1":              "--metrics-address localhost:1: must be 127.0.0.1:PORT or [::1]:PORT, because it has neither TLS nor authorisation",
		"--listen unix:x --metrics-unprotected --metrics-address :1": "--metrics-address :1: must be IP:PORT or [IP]:PORT",
	} {
		_, err := parseFlags(strings.Fields(line))
		expect(t, line, fmt.Sprint(err), want)
	}
	flags, err := parseFlags(strings.Fields("--listen=unix:x --drain-timeout=3s --socket-mode 660 --allowed-uids 1,2 --log-level debug"))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "values", fmt.Sprint(flags.listen, flags.drainTimeout, flags.socketMode, flags.allowedUIDs, flags.level), "unix:x3s -rw-rw---- [1 2] DEBUG")
	for _, line := range []string{"--metrics-address 127.0.0.1:0", "--metrics-address [::1]:10274", "--metrics-address 0.0.0.0:10274 --metrics-unprotected", "--metrics-address [::]:10274 --metrics-unprotected"} {
		if _, err := parseFlags(append([]string{"--listen=unix:x"}, strings.Fields(line)...)); err != nil {
			t.Error(err)
		}
	}
	expect(t, "usage", Main([]string{"--nonsense"}), exitUsage)
	expect(t, "help", Main([]string{"--help"}), 0)
}

// Objects come from people and drivers: a malformed one counts as absent, and the others are not affected.
func TestObjectsThatCannotBeRead(t *testing.T) {
	p := podUsing("p", "c")
	nodeless := newSlice("node-0", devices(1)...)
	nodeless.Name, nodeless.Spec.NodeName, nodeless.Spec.Pool.Name = "nodeless", nil, "nodeless"
	duplicate := newSlice("node-1", device("gpu-0"), device("gpu-0"))
	s := newShim(t, 2, upsertText(claimResource, "default", "bad", "u1", `{"spec": 5}`), upsertText(claimResource, "default", "worse", "u2", "\x00"),
		upsertText(sliceResource, "", "bad", "u3", `{"spec":{"devices":[{"capacity":{"memory":{"value":"lots"}}}]}}`),
		upsertText(classResource, "", "bad", "u4", `[]`), upsertText(claimResource, "default", "nameless", "u5", `{}`),
		upsertText("widgets.v1.example.com", "default", "w", "u6", `{}`),
		upsert(t, classResource, gpuClass()), upsert(t, sliceResource, nodeless), upsert(t, sliceResource, duplicate),
		upsert(t, claimResource, newClaim("c", exactly1("gpu", "gpu"))), upsertPod(p))
	_, reason := s.try(podAgain(s, "q", "bad"))
	expect(t, "counts as absent", reason, `could not find ResourceClaim "default/bad"`)
	feasible, reason := s.try(p)
	expect(t, "slices of no node, and pools with a device twice", fmt.Sprint(feasible, reason), "[]cannot allocate all claims")
	// A placement's effects may be malformed, too.
	s.delta(placed(p, pb.PlacementState_PLACEMENT_STATE_ASSUMED, 0, &pb.Effect{Key: "x", Plugin: pluginName, Action: &pb.Effect_PatchObject{PatchObject: &pb.PatchObject{
		Resource: claimResource, Namespace: "default", Name: "c", Status: true, Json: "{",
	}}}))
	// An object that becomes malformed counts as removed.
	s.delta(upsertText(claimResource, "default", "c", "uid-claim-c", `{"metadata":7}`))
	_, reason = s.try(p)
	expect(t, "no more", reason, `could not find ResourceClaim "default/c"`)
}

func TestFilterTimeout(t *testing.T) {
	p := podUsing("p", "c")
	// 26 devices of one group, but 25 exist: the allocator tries every choice.
	request := exactly1("gpu", "gpu")
	request.Exactly.Count = 26
	c := newClaim("c", request)
	attribute := "gpu.example.com/group"
	c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, matchAttribute(attribute))
	all := devices(75)
	for i := range all {
		group := int64(i % 3)
		all[i].Attributes["group"] = intAttribute(group)
	}
	s := joinShim(t, startHost(t), "slow", `{"filterTimeout":"50ms"}`, 1, upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", all...)),
		upsert(t, claimResource, c), upsertPod(p))
	began := time.Now()
	_, reason := s.try(p)
	expect(t, "given up", reason, `error: running "DynamicResources" filter plugin: node node-0: timed out trying to allocate devices`)
	if took := time.Since(began); took > 10*time.Second {
		t.Error(took)
	}
	// Other calls are answered in the meantime.
	q, done := podAgain(s, "q"), make(chan string, 1)
	slow := joinShim(t, s.connection, "slower", `{"filterTimeout":"2s"}`, 1, upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", all...)),
		upsert(t, claimResource, c), upsertPod(p), upsertPod(q))
	slow.attempt++
	call(slow, pb.NewPreFilterServiceClient(s.connection).PreFilter, &pb.PreFilterRequest{Header: slow.header(), PodUid: p.GetUid()})
	header := slow.header()
	go func() {
		_, err := pb.NewFilterServiceClient(s.connection).Filter(context.Background(), searchOf(header, 1))
		done <- fmt.Sprint(err)
	}()
	feasible, _ := slow.try(q)
	expect(t, "a pod without claims, in the same session", feasible, []string{"node-0"})
	select {
	case early := <-done:
		t.Error("the slow one was first:", early)
	default:
	}
	expect(t, "the slow one", await(t, done), "<nil>")
}

func TestErrorsOfTheContract(t *testing.T) {
	p := podUsing("p")
	s := newShim(t, 1, upsertPod(p))
	filter := pb.NewFilterServiceClient(s.connection).Filter
	for what, test := range map[string]struct {
		change func(*pb.CallHeader)
		want   pb.CallError_Reason
	}{
		"no session": {func(h *pb.CallHeader) { h.SessionId = "other" }, pb.CallError_REASON_SESSION_UNKNOWN},
		"no attempt": {func(h *pb.CallHeader) { h.AttemptId = 77 }, pb.CallError_REASON_ATTEMPT_UNKNOWN},
		"behind":     {func(h *pb.CallHeader) { h.Version = &pb.CallHeader_ExactVersion{ExactVersion: h.GetExactVersion() + 1} }, pb.CallError_REASON_STALE},
		"no version": {func(h *pb.CallHeader) { h.Version = nil }, pb.CallError_REASON_INVALID},
	} {
		header := s.header()
		test.change(header)
		// An answer that waits for another version leaves 20 ms before the deadline. On a busy machine it may be late.
		var err error
		for timeout := 100 * time.Millisecond; timeout < 10*time.Second; timeout *= 2 {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			_, err = filter(ctx, searchOf(header, 1))
			cancel()
			if status.Code(err) != codes.DeadlineExceeded {
				break
			}
		}
		if code, reason := errorOf(t, err); code != codeOf[test.want] || reason != test.want {
			t.Errorf("%s: %v %v", what, err, reason)
		}
	}
	s.try(p)
	for what, test := range map[string]struct {
		request *pb.FilterRequest
		says    string
	}{
		"no question":          {&pb.FilterRequest{}, "search or simulation is required"},
		"no number":            {searchOf(nil, 0), "search.num_feasible_nodes_to_find is required"},
		"continues other node": {simulationOf(&pb.SimulatedNode{Continues: true}), "a simulated node continues another node"},
	} {
		test.request.Header = s.header()
		_, err := filter(context.Background(), test.request)
		code, reason := errorOf(t, err)
		expect(t, what, fmt.Sprint(code, reason, status.Convert(err).Message()), fmt.Sprint(codes.InvalidArgument, pb.CallError_REASON_INVALID, test.says))
	}
	call(s, pb.NewPluginHostServiceClient(s.connection).EndSession, &pb.EndSessionRequest{SessionId: s.session})
	s.attempt++
	preFilter := pb.NewPreFilterServiceClient(s.connection).PreFilter
	_, err := preFilter(context.Background(), &pb.PreFilterRequest{Header: s.header(), PodUid: p.GetUid()})
	code, reason := errorOf(t, err)
	expect(t, "ended", reason, pb.CallError_REASON_DRAINING)
	expect(t, "ended", code, codes.Unavailable)

	sync, err := pb.NewClusterStateServiceClient(s.connection).Sync(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := sync.Send(&pb.SyncRequest{SessionId: "unknown"}); err != nil {
		t.Fatal(err)
	}
	_, err = sync.Recv()
	_, reason = errorOf(t, err)
	expect(t, "a stream of an unknown session", reason, pb.CallError_REASON_SESSION_UNKNOWN)
}

func TestAConfigurationForAnotherInstanceChangesNothing(t *testing.T) {
	p := podUsing("p")
	s := newShim(t, 1, upsertPod(p))
	plugins := pb.NewPluginHostServiceClient(s.connection)
	for _, session := range []string{s.session, "new"} {
		for _, instance := range []string{"other", ""} {
			_, err := plugins.Configure(t.Context(), &pb.ConfigureRequest{SessionId: session, Instance: instance})
			code, reason := errorOf(t, err)
			expect(t, session+" at "+instance, fmt.Sprint(code, reason), fmt.Sprint(codes.FailedPrecondition, pb.CallError_REASON_WRONG_INSTANCE))
		}
	}
	feasible, _ := s.try(p) // With the profile that it had.
	expect(t, "the configuration of before", feasible, []string{"node-0"})
	probe := call(s, plugins.Probe, &pb.ProbeRequest{SessionId: "new"})
	expect(t, "no session", probe.GetState(), pb.ProbeResponse_STATE_INITIALIZING)
}

func simulationOf(nodes ...*pb.SimulatedNode) *pb.FilterRequest {
	return &pb.FilterRequest{What: &pb.FilterRequest_Simulation{Simulation: &pb.NodeSimulation{Nodes: nodes}}}
}

func TestSearchAndSimulation(t *testing.T) {
	p := podUsing("p")
	s := newShim(t, 4, upsertPod(p))
	s.try(p)
	filter := func(request *pb.FilterRequest) string {
		request.Header = s.header()
		answer := call(s, pb.NewFilterServiceClient(s.connection).Filter, request)
		return fmt.Sprint(answer.GetProcessed(), answer.GetFeasible())
	}
	expect(t, "one is enough", filter(searchOf(nil, 1)), "1 [1]")
	expect(t, "more than there are", filter(searchOf(nil, 5)), "4 [15]")
	expect(t, "every simulated node", filter(simulationOf(&pb.SimulatedNode{Slot: 2}, &pb.SimulatedNode{Slot: 0, AddedPodUids: []string{p.GetUid()}})), "2 [3]")

	cycle := func(request *pb.CycleRequest) *pb.CycleResponse {
		stream, err := pb.NewCycleServiceClient(s.connection).Cycle(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.attempt++
		request.Header, request.DeadlineMicros = s.header(), 5e6
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	found := cycle(&pb.CycleRequest{PodUid: p.GetUid(), Search: &pb.NodeSearch{NumFeasibleNodesToFind: 2, StartOffset: 1}})
	expect(t, "a cycle's number", found.GetEvaluation().GetFilter().GetProcessed(), 2)
	found = cycle(&pb.CycleRequest{PodUid: p.GetUid(), Search: &pb.NodeSearch{}, PercentageOfNodesToScore: 1})
	expect(t, "a percentage of few nodes", found.GetEvaluation().GetFilter().GetProcessed(), 4)
	expect(t, "an unknown pod", cycle(&pb.CycleRequest{PodUid: "x"}).GetError().GetReason(), pb.CallError_REASON_OBJECT_UNKNOWN)
	q := podAgain(s, "q", "missing")
	rejected := cycle(&pb.CycleRequest{PodUid: q.GetUid(), Search: &pb.NodeSearch{}})
	expect(t, "PreFilter rejects", rejected.GetRejection().GetPreFilter().GetRejectedBy(), []string{pluginName})
	for _, test := range []struct{ count, percentage, want int }{
		{99, 1, 99}, {100, 1, 100}, {1000, 5, 100}, {1000, 20, 200}, {1000, 100, 1000}, {1000, 200, 1000}, {1000, 0, 420}, {10000, 0, 500},
	} {
		expect(t, fmt.Sprint(test), numFeasibleNodesToFind(test.count, test.percentage), test.want)
	}
}

func TestValidateOnlyChangesNothing(t *testing.T) {
	s := newShim(t, 1)
	plugins := pb.NewPluginHostServiceClient(s.connection)
	check := func(session, args string) string {
		answer := call(s, plugins.Configure, &pb.ConfigureRequest{
			SessionId: session, Instance: s.instance, ValidateOnly: true,
			Profiles: []*pb.ProfileConfig{{Name: "other", Args: []*pb.PluginArgs{{Plugin: pluginName, ArgsJson: args}}}},
		})
		var fields []string
		for _, problem := range answer.GetProblems() {
			fields = append(fields, problem.GetField())
		}
		return fmt.Sprint(fields)
	}
	expect(t, "a fault", check("new", `{"filterTimeout":"-1s"}`), "[filterTimeout]")
	for i := range 2 * maxSessions {
		expect(t, "sound", check(fmt.Sprint("new-", i), ""), "[]")
	}
	probe := call(s, plugins.Probe, &pb.ProbeRequest{SessionId: "new-0"})
	expect(t, "no session", probe.GetState(), pb.ProbeResponse_STATE_INITIALIZING)
	expect(t, "sound for this session", check(s.session, ""), "[]")
	p := podUsing("p")
	s.delta(upsertPod(p))
	feasible, _ := s.try(p) // With the profile that it had.
	expect(t, "the configuration of before", feasible, []string{"node-0"})
	_, err := pb.NewPreFilterServiceClient(s.connection).PreFilter(context.Background(), &pb.PreFilterRequest{
		Header: &pb.CallHeader{SessionId: "new-0"}})
	_, reason := errorOf(t, err)
	expect(t, "no session", reason, pb.CallError_REASON_SESSION_UNKNOWN)
}

func TestASessionIsConfiguredAgainWhileAllPlacesAreTaken(t *testing.T) {
	s := newShim(t, 1)
	plugins := pb.NewPluginHostServiceClient(s.connection)
	for i := range maxSessions - 1 {
		call(s, plugins.Configure, &pb.ConfigureRequest{SessionId: fmt.Sprint("other-", i), Instance: s.instance})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := plugins.Configure(ctx, &pb.ConfigureRequest{SessionId: s.session, Instance: s.instance}); err != nil {
		t.Fatal(err)
	}
}

// Drain is about the host: all its sessions, and those to come.
func TestDrainAsksTheHostToLeave(t *testing.T) {
	p := podUsing("p")
	first := newShim(t, 1, upsertPod(p))
	second := joinShim(t, first.connection, "session-2", "", 1, upsertPod(p))
	first.try(p)
	second.try(p)
	plugins := pb.NewPluginHostServiceClient(first.connection)
	expect(t, "attempts of all sessions", call(first, plugins.Drain, &pb.DrainRequest{}).GetAttemptsInFlight(), 2)
	for _, session := range []string{first.session, second.session, "", "session-3"} {
		probe := call(first, plugins.Probe, &pb.ProbeRequest{SessionId: session})
		expect(t, "the state for session "+session, probe.GetState(), pb.ProbeResponse_STATE_DRAINING)
	}
	_, err := plugins.Configure(context.Background(), &pb.ConfigureRequest{SessionId: "session-3", Instance: first.instance})
	_, reason := errorOf(t, err)
	expect(t, "a new session", reason, pb.CallError_REASON_DRAINING)
	_, err = pb.NewFilterServiceClient(first.connection).Filter(context.Background(), searchOf(second.header(), 1))
	expect(t, "attempts go on", err, error(nil))
	second.attempt++
	_, err = pb.NewPreFilterServiceClient(first.connection).PreFilter(context.Background(), &pb.PreFilterRequest{Header: second.header(), PodUid: p.GetUid()})
	_, reason = errorOf(t, err)
	expect(t, "a new attempt", reason, pb.CallError_REASON_DRAINING)
}

// errorOf reads the contract's error as any client in Go does.
func errorOf(t *testing.T, err error) (codes.Code, pb.CallError_Reason) {
	t.Helper()
	result := status.Convert(err)
	for _, detail := range result.Details() {
		if call, ok := detail.(*pb.CallError); ok {
			return result.Code(), call.GetReason()
		}
	}
	t.Errorf("no error of the contract: %v", err)
	return result.Code(), pb.CallError_REASON_UNSPECIFIED
}

// certificate writes NAME.crt and NAME.key, signed by the authority, or by itself without one.
func certificate(t *testing.T, dir, name string, authority *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: authority == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if authority == nil {
		authority, signer = made, key
	}
	der, err := x509.CreateCertificate(rand.Reader, made, authority, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for kind, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(filepath.Join(dir, name+kind), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, key
}

func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	authority, signer := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "host", authority, signer)
	certificate(t, dir, "shim", authority, signer)
	certificate(t, dir, "stranger", nil, nil)
	file := func(name string) string { return filepath.Join(dir, name) }
	config, err := tlsConfig(&flagSet{cert: file("host.crt"), key: file("host.key"), clientCA: file("ca.crt")})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	newHost("claims-test", "test", "").register(server)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	trusted := x509.NewCertPool()
	trusted.AddCert(authority)
	for name, want := range map[string]codes.Code{"shim": codes.OK, "stranger": codes.Unavailable, "": codes.Unavailable} {
		own := &tls.Config{RootCAs: trusted, ServerName: "host"}
		if name != "" {
			pair, err := tls.LoadX509KeyPair(file(name+".crt"), file(name+".key"))
			if err != nil {
				t.Fatal(err)
			}
			own.Certificates = []tls.Certificate{pair}
		}
		expect(t, "a client that is "+name, status.Code(askWho(t, listener.Addr().String(), credentials.NewTLS(own))), want)
	}
	expect(t, "one without TLS", status.Code(askWho(t, listener.Addr().String(), insecure.NewCredentials())), codes.Unavailable)
}

func askWho(t *testing.T, address string, with credentials.TransportCredentials) error {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(with))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = pb.NewPluginHostServiceClient(connection).GetHostInfo(ctx, &pb.GetHostInfoRequest{})
	return err
}

// A peer whose machine vanished answers no ping. This one says what each client says first, and then nothing.
func TestAPeerThatAnswersNoPingIsDropped(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(pings(time.Second)...)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	peer, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	const emptySettings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	if _, err := io.WriteString(peer, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+emptySettings); err != nil {
		t.Fatal(err)
	}
	if err := peer.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	received, err := io.ReadAll(peer)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal("it is still connected:", err)
	}
	if ping := []byte("\x00\x00\x08\x06\x00\x00\x00\x00\x00"); !bytes.Contains(received, ping) {
		t.Errorf("dropped without a ping: %q", received)
	}
}

func TestServesUntilStopped(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "claims@{instance}.sock")
	stale := filepath.Join(dir, "claims@gone.sock")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	old.Close()
	code := make(chan int, 1)
	go func() { code <- Main([]string{"--listen", "unix:" + path, "--drain-timeout", "1s"}) }()
	deadline := time.Now().Add(10 * time.Second)
	for Main([]string{"--probe", "--listen", "unix:" + path}) != 0 {
		if time.Now().After(deadline) {
			t.Fatal("it does not listen")
		}
		time.Sleep(10 * time.Millisecond)
	}
	found := socketsLike(path)
	if len(found) != 1 || found[0] == stale {
		t.Fatal(found)
	}
	if info, err := os.Stat(found[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if err := askWho(t, "unix:"+found[0], insecure.NewCredentials()); err != nil {
		t.Error(err)
	}
	expect(t, "a live socket is rejected", Main([]string{"--listen", "unix:" + found[0]}), exitCannotServe)
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expect(t, "drained", await(t, code), 0)
	expect(t, "no host", Main([]string{"--probe", "--listen", "unix:" + path}), exitCannotServe)
}
