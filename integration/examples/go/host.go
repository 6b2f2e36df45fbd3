package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handshake "outboard.dev/contract/handshake/v1"
	pb "outboard.dev/contract/v1beta1"
)

const (
	contractVersion = "v1beta1"
	maxSessions     = 8
)

var sessionID = regexp.MustCompile("^[a-z0-9-]{1,63}$")

// session is one shim: its configuration, its cluster cache, and its attempts. Guarded by the host's lock.
type session struct {
	profiles  map[string]bool
	cache     *clusterCache     // nil: no Sync yet
	cancel    func()            // ends the stream that feeds the cluster cache; nil: no stream
	attempts  map[uint64]string // pods' uids
	draining  bool
	lastHeard time.Time
	changed   chan struct{} // closed and replaced when the cluster cache changes
}

// host serves all services that a plugin at filter and score needs.
type host struct {
	handshake.UnimplementedHandshakeServiceServer
	pb.UnimplementedPluginHostServiceServer
	pb.UnimplementedClusterStateServiceServer
	pb.UnimplementedPreFilterServiceServer
	pb.UnimplementedFilterServiceServer
	pb.UnimplementedPreScoreServiceServer
	pb.UnimplementedScoreServiceServer

	instance, build, digest string
	started                 time.Time
	now                     func() time.Time

	mu       sync.Mutex
	sessions map[string]*session
	draining bool
	idle     chan struct{} // closed when the host drains and no attempt is left
}

func (h *host) register(server *grpc.Server) {
	handshake.RegisterHandshakeServiceServer(server, h)
	pb.RegisterPluginHostServiceServer(server, h)
	pb.RegisterClusterStateServiceServer(server, h)
	pb.RegisterPreFilterServiceServer(server, h)
	pb.RegisterFilterServiceServer(server, h)
	pb.RegisterPreScoreServiceServer(server, h)
	pb.RegisterScoreServiceServer(server, h)
}

var codeOf = map[pb.CallError_Reason]codes.Code{
	pb.CallError_REASON_STALE: codes.FailedPrecondition, pb.CallError_REASON_ATTEMPT_UNKNOWN: codes.NotFound,
	pb.CallError_REASON_SESSION_UNKNOWN: codes.FailedPrecondition, pb.CallError_REASON_WRONG_INSTANCE: codes.FailedPrecondition,
	pb.CallError_REASON_NOT_CONFIGURED: codes.FailedPrecondition, pb.CallError_REASON_INVALID: codes.InvalidArgument,
	pb.CallError_REASON_OBJECT_UNKNOWN: codes.NotFound, pb.CallError_REASON_DRAINING: codes.Unavailable, pb.CallError_REASON_INTERNAL: codes.Internal,
}

// callError is the error of a call.
type callError struct{ *pb.CallError }

func (e callError) Error() string { return e.GetMessage() }

func fail(reason pb.CallError_Reason, message string) error {
	return callError{&pb.CallError{Reason: reason, Message: message[:min(len(message), 1024)]}}
}

// toStatus makes a CallError the detail of a gRPC status, by default with the code of its reason.
func toStatus(err error, code ...codes.Code) error {
	var call callError
	if !errors.As(err, &call) {
		return err
	}
	result := status.New(append(code, codeOf[call.GetReason()])[0], call.GetMessage())
	if detailed, err := result.WithDetails(call.CallError); err == nil {
		result = detailed
	}
	return result.Err()
}

func unaryErrors(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, request)
	if err != nil {
		return nil, toStatus(err)
	}
	return response, nil
}

func (h *host) Handshake(context.Context, *handshake.HandshakeRequest) (*handshake.HandshakeResponse, error) {
	return &handshake.HandshakeResponse{
		ContractVersions: []string{contractVersion}, Instance: h.instance, Build: h.build, BuildDigest: h.digest,
		StartedUnixMicros: h.started.UnixMicro(),
	}, nil
}

func (h *host) GetHostInfo(context.Context, *pb.GetHostInfoRequest) (*pb.GetHostInfoResponse, error) {
	return &pb.GetHostInfoResponse{Plugins: []*pb.PluginInfo{info()}}, nil
}

func (h *host) Configure(_ context.Context, request *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return nil, fail(pb.CallError_REASON_DRAINING, "the host is about to exit")
	}
	if !sessionID.MatchString(request.GetSessionId()) {
		return nil, fail(pb.CallError_REASON_INVALID, "session_id ([a-z0-9-]{1,63}) is required")
	}
	if s := h.sessions[request.GetSessionId()]; s != nil && s.draining {
		return nil, fail(pb.CallError_REASON_DRAINING, "the session is draining")
	}
	response := &pb.ConfigureResponse{}
	problem := func(profile, plugin, field, message string) {
		response.Problems = append(response.Problems, &pb.ConfigProblem{Profile: profile, Plugin: plugin, Field: field, Message: message})
	}
	profiles := map[string]bool{}
	for _, profile := range request.GetProfiles() {
		profiles[profile.GetName()] = true
		for _, point := range profile.GetPoints() {
			for _, plugin := range point.GetPlugins() {
				if plugin != pluginName {
					problem(profile.GetName(), plugin, "", "this host has no such plugin")
				} else if p := point.GetExtensionPoint(); p != pb.ExtensionPoint_EXTENSION_POINT_FILTER && p != pb.ExtensionPoint_EXTENSION_POINT_SCORE {
					problem(profile.GetName(), plugin, "", "the plugin is not at "+p.String())
				}
			}
		}
		for _, args := range profile.GetArgs() {
			if args.GetPlugin() != pluginName {
				problem(profile.GetName(), args.GetPlugin(), "", "args for an unknown plugin")
			} else if args.GetArgsJson() != "" && args.GetArgsJson() != "{}" {
				problem(profile.GetName(), args.GetPlugin(), "", "the plugin takes no arguments")
			}
		}
	}
	if len(response.Problems) > 0 {
		return response, nil
	}
	s := h.sessions[request.GetSessionId()]
	if s == nil {
		if !h.makeRoom() {
			return nil, fail(pb.CallError_REASON_INVALID, "too many sessions")
		}
		s = &session{changed: make(chan struct{}), attempts: map[uint64]string{}}
		h.sessions[request.GetSessionId()] = s
	}
	s.profiles, s.draining, s.lastHeard = profiles, false, h.now()
	return response, nil
}

// makeRoom removes the session with the oldest call if there are too many; false if all are connected.
func (h *host) makeRoom() bool {
	if len(h.sessions) < maxSessions {
		return true
	}
	oldest := ""
	for id, s := range h.sessions {
		if s.cancel == nil && (oldest == "" || s.lastHeard.Before(h.sessions[oldest].lastHeard)) {
			oldest = id
		}
	}
	delete(h.sessions, oldest)
	return oldest != ""
}

func (h *host) Probe(_ context.Context, request *pb.ProbeRequest) (*pb.ProbeResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	response := &pb.ProbeResponse{Instance: h.instance, State: pb.ProbeResponse_STATE_READY}
	s := h.sessions[request.GetSessionId()]
	switch {
	case h.draining || s != nil && s.draining:
		response.State, response.Reason = pb.ProbeResponse_STATE_DRAINING, "the host is draining"
	case request.GetSessionId() == "":
	case s == nil || s.cache == nil || s.cache.version == 0:
		response.State, response.Reason = pb.ProbeResponse_STATE_INITIALIZING, "not configured, or waiting for a snapshot"
	}
	if s != nil {
		response.AttemptsInFlight = uint32(len(s.attempts))
		if s.cache != nil {
			response.SnapshotVersion = s.cache.version
		}
	}
	return response, nil
}

func (h *host) Drain(_ context.Context, request *pb.DrainRequest) (*pb.DrainResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[request.GetSessionId()]
	if s == nil {
		return &pb.DrainResponse{}, nil
	}
	s.draining = true
	return &pb.DrainResponse{AttemptsInFlight: uint32(len(s.attempts))}, nil
}

// drain rejects new attempts; the channel is closed when none is left.
func (h *host) drain() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	idle := make(chan struct{})
	h.draining, h.idle = true, idle
	h.noteAttempts()
	return idle
}

// noteAttempts must be called where attempts may have ended.
func (h *host) noteAttempts() {
	if !h.draining || h.idle == nil {
		return
	}
	for _, s := range h.sessions {
		if len(s.attempts) > 0 {
			return
		}
	}
	close(h.idle)
	h.idle = nil
}

// Sync updates a session's cluster cache while its stream is open. A new stream replaces the old one and its cache.
func (h *host) Sync(stream grpc.BidiStreamingServer[pb.SyncRequest, pb.SyncResponse]) error {
	request, err := stream.Recv()
	if err != nil {
		return nil // It ended before its first message.
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	h.mu.Lock()
	s := h.sessions[request.GetSessionId()]
	if request.GetSessionId() == "" {
		h.mu.Unlock()
		return toStatus(fail(pb.CallError_REASON_INVALID, "the first message must name the session"))
	}
	if s == nil {
		h.mu.Unlock()
		return toStatus(fail(pb.CallError_REASON_SESSION_UNKNOWN, "configure the session first"))
	}
	if ctx.Err() != nil { // This stream has ended and may be older than the cluster cache's stream.
		h.mu.Unlock()
		return nil
	}
	if s.cancel != nil {
		s.cancel()
	}
	mine := newClusterCache()
	s.cache, s.cancel, s.attempts = mine, cancel, map[uint64]string{}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if s.cache == mine {
			s.cancel, s.attempts, s.lastHeard = nil, map[uint64]string{}, h.now()
			h.noteAttempts()
		}
	}()

	// Received in a goroutine, so that the stream can end while no message arrives.
	requests := make(chan *pb.SyncRequest)
	go func() {
		defer close(requests)
		for {
			select {
			case requests <- request:
			case <-ctx.Done():
				return
			}
			if request, err = stream.Recv(); err != nil {
				return // io.EOF, or the shim has disconnected.
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return status.Error(codes.Aborted, "the stream was replaced")
		case request, open := <-requests:
			if !open {
				return nil
			}
			version, err := h.take(s, mine, request)
			if err != nil {
				return toStatus(fail(pb.CallError_REASON_INVALID, err.Error()), codes.FailedPrecondition)
			}
			if phase := request.GetPhase(); phase != pb.SyncRequest_PHASE_DELTA && phase != pb.SyncRequest_PHASE_SNAPSHOT_END {
				continue
			}
			ack := &pb.SyncResponse{Push: &pb.SyncResponse_Ack{Ack: &pb.Ack{Version: version}}}
			if err := stream.Send(ack); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
	}
}

func (h *host) take(s *session, mine *clusterCache, request *pb.SyncRequest) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := mine.apply(request); err != nil {
		return 0, err
	}
	for _, attempt := range request.GetEndedAttempts() {
		delete(s.attempts, attempt)
	}
	h.noteAttempts()
	close(s.changed)
	s.changed = make(chan struct{})
	return mine.version, nil
}

// version returns the cluster cache's version; 0: no cluster cache.
func (s *session) version() int64 {
	if s.cache == nil {
		return 0
	}
	return s.cache.version
}

// enter locks the host and finds the caller's session at exactly the version of the call; `leave` unlocks.
func (h *host) enter(ctx context.Context, header *pb.CallHeader) (s *session, leave func(), err error) {
	// The answer must be sent before the deadline.
	deadline, set := ctx.Deadline()
	if !set {
		deadline = time.Now().Add(time.Second)
	}
	latest := deadline.Add(-min(time.Until(deadline)/5, 20*time.Millisecond))
	h.mu.Lock()
	for {
		if s, err = h.check(header); err != nil {
			h.mu.Unlock()
			return nil, nil, err
		}
		have := s.version()
		if have == header.GetExactVersion() {
			if !s.profiles[header.GetProfile()] {
				h.mu.Unlock()
				return nil, nil, fail(pb.CallError_REASON_NOT_CONFIGURED, "no profile "+header.GetProfile())
			}
			return s, h.mu.Unlock, nil
		}
		err = callError{&pb.CallError{Reason: pb.CallError_REASON_STALE, Message: "the cluster cache has another version", HaveVersion: have}}
		if have > header.GetExactVersion() {
			h.mu.Unlock()
			return nil, nil, err
		}
		changed := s.changed
		h.mu.Unlock()
		timer := time.NewTimer(time.Until(latest))
		select {
		case <-changed:
			timer.Stop()
		case <-timer.C:
			return nil, nil, err
		case <-ctx.Done():
			timer.Stop()
			return nil, nil, err
		}
		h.mu.Lock()
	}
}

func (h *host) check(header *pb.CallHeader) (*session, error) {
	if header.GetInstance() != h.instance {
		return nil, fail(pb.CallError_REASON_WRONG_INSTANCE, "this is instance "+h.instance)
	}
	s := h.sessions[header.GetSessionId()]
	if s == nil {
		return nil, fail(pb.CallError_REASON_SESSION_UNKNOWN, "no session "+header.GetSessionId())
	}
	if header.GetExactVersion() <= 0 {
		return nil, fail(pb.CallError_REASON_INVALID, "exact_version is required")
	}
	return s, nil
}
