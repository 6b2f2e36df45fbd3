package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
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
	// How often a draining host checks for remaining attempts.
	drainInterval = 20 * time.Millisecond
)

var sessionID = regexp.MustCompile("^[a-z0-9-]{1,63}$")

// host serves the services of the plugin's extension points. Lock order: host, session.
type host struct {
	handshake.UnimplementedHandshakeServiceServer
	pb.UnimplementedPluginHostServiceServer
	pb.UnimplementedClusterStateServiceServer
	pb.UnimplementedPreEnqueueServiceServer
	pb.UnimplementedPreFilterServiceServer
	pb.UnimplementedFilterServiceServer
	pb.UnimplementedPostFilterServiceServer
	pb.UnimplementedPreScoreServiceServer
	pb.UnimplementedScoreServiceServer
	pb.UnimplementedReserveServiceServer
	pb.UnimplementedPreBindServiceServer
	pb.UnimplementedCycleServiceServer

	instance, build, digest string
	started                 time.Time
	warn                    *warnings
	metrics                 *metrics // nil: off
	draining                atomic.Bool

	mu       sync.Mutex
	sessions map[string]*session
}

func newHost(instance, build, digest string) *host {
	return &host{instance: instance, build: build, digest: digest, started: time.Now(), warn: newWarnings(), sessions: map[string]*session{}}
}

func (h *host) register(server *grpc.Server) {
	handshake.RegisterHandshakeServiceServer(server, h)
	pb.RegisterPluginHostServiceServer(server, h)
	pb.RegisterClusterStateServiceServer(server, h)
	pb.RegisterPreEnqueueServiceServer(server, h)
	pb.RegisterPreFilterServiceServer(server, h)
	pb.RegisterFilterServiceServer(server, h)
	pb.RegisterPostFilterServiceServer(server, h)
	pb.RegisterPreScoreServiceServer(server, h)
	pb.RegisterScoreServiceServer(server, h)
	pb.RegisterReserveServiceServer(server, h)
	pb.RegisterPreBindServiceServer(server, h)
	pb.RegisterCycleServiceServer(server, h)
}

var codeOf = map[pb.CallError_Reason]codes.Code{
	pb.CallError_REASON_STALE: codes.FailedPrecondition, pb.CallError_REASON_ATTEMPT_UNKNOWN: codes.NotFound,
	pb.CallError_REASON_SESSION_UNKNOWN: codes.FailedPrecondition, pb.CallError_REASON_WRONG_INSTANCE: codes.FailedPrecondition,
	pb.CallError_REASON_NOT_CONFIGURED: codes.FailedPrecondition, pb.CallError_REASON_INVALID: codes.InvalidArgument,
	pb.CallError_REASON_OBJECT_UNKNOWN: codes.NotFound, pb.CallError_REASON_DRAINING: codes.Unavailable, pb.CallError_REASON_INTERNAL: codes.Internal,
}

// callError is the reason of a call without an answer.
type callError struct{ *pb.CallError }

func (e callError) Error() string { return e.GetMessage() }

func fail(reason pb.CallError_Reason, message string) error {
	return callError{&pb.CallError{Reason: reason, Message: cut(message)}}
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

// guarded converts errors to the contract's, and a panic to the failure of one call instead of the process.
func guarded(ctx context.Context, request any, call *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			logFault(call.FullMethod, fault)
			response, err = nil, toStatus(fail(pb.CallError_REASON_INTERNAL, fmt.Sprintf("%s: %v", call.FullMethod, fault)))
		}
	}()
	if response, err = handler(ctx, request); err != nil {
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
	return &pb.GetHostInfoResponse{
		Plugins:      []*pb.PluginInfo{info()},
		Capabilities: []pb.Capability{pb.Capability_CAPABILITY_FUSED_CYCLE, pb.Capability_CAPABILITY_QUEUEING_HINTS},
	}, nil
}

func (h *host) Configure(_ context.Context, request *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	if request.GetInstance() != h.instance {
		return nil, fail(pb.CallError_REASON_WRONG_INSTANCE, "this is instance "+h.instance)
	}
	if h.draining.Load() {
		return nil, fail(pb.CallError_REASON_DRAINING, "the host is about to exit")
	}
	if !sessionID.MatchString(request.GetSessionId()) {
		return nil, fail(pb.CallError_REASON_INVALID, "session_id ([a-z0-9-]{1,63}) is required")
	}
	profiles, problems := readProfiles(request.GetProfiles())
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[request.GetSessionId()]
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.draining {
			return nil, fail(pb.CallError_REASON_DRAINING, "the session is draining")
		}
	}
	if len(problems) > 0 {
		return &pb.ConfigureResponse{Problems: problems}, nil
	}
	oldest, full := "", false
	if s == nil {
		// It locks all sessions, so none may be locked here.
		if oldest, full = h.sessionToForget(); full && oldest == "" {
			return nil, fail(pb.CallError_REASON_INVALID, "too many sessions")
		}
	}
	if request.GetValidateOnly() {
		return &pb.ConfigureResponse{}, nil
	}
	if s == nil {
		if full {
			delete(h.sessions, oldest)
		}
		s = &session{id: request.GetSessionId(), metrics: h.metrics, changed: make(chan struct{})}
		s.forget()
		h.sessions[s.id] = s
	}
	s.profiles, s.lastHeard = profiles, time.Now()
	return &pb.ConfigureResponse{}, nil
}

func readProfiles(from []*pb.ProfileConfig) (map[string]args, []*pb.ConfigProblem) {
	profiles := map[string]args{}
	var problems []*pb.ConfigProblem
	for _, profile := range from {
		complain := func(plugin, field, message string) {
			problems = append(problems, &pb.ConfigProblem{Profile: profile.GetName(), Plugin: plugin, Field: field, Message: message})
		}
		for _, point := range profile.GetPoints() {
			for _, plugin := range point.GetPlugins() {
				if plugin != pluginName {
					complain(plugin, "", "this host has no such plugin")
				} else if !slices.Contains(points, point.GetExtensionPoint()) {
					complain(plugin, "", "the plugin is not at "+point.GetExtensionPoint().String())
				}
			}
		}
		read := defaultArgs
		for _, given := range profile.GetArgs() {
			if given.GetPlugin() != pluginName {
				complain(given.GetPlugin(), "", "args for an unknown plugin")
				continue
			}
			var faults []problem
			read, faults = readArgs(given.GetArgsJson())
			for _, fault := range faults {
				complain(pluginName, fault.field, fault.message)
			}
		}
		profiles[profile.GetName()] = read
	}
	return profiles, problems
}

// sessionToForget returns whether a new session needs the place of another one, and of which: the least recently
// active shim's, empty if all are connected.
func (h *host) sessionToForget() (oldest string, full bool) {
	if len(h.sessions) < maxSessions {
		return "", false
	}
	for id, s := range h.sessions {
		s.mu.Lock()
		connected := s.cancel != nil
		s.mu.Unlock()
		if !connected && (oldest == "" || s.lastHeard.Before(h.sessions[oldest].lastHeard)) {
			oldest = id
		}
	}
	return oldest, true
}

func (h *host) find(id string) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

func (h *host) Probe(_ context.Context, request *pb.ProbeRequest) (*pb.ProbeResponse, error) {
	response := &pb.ProbeResponse{Instance: h.instance, State: pb.ProbeResponse_STATE_READY}
	s := h.find(request.GetSessionId())
	draining, ready := h.draining.Load(), false
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		draining = draining || s.draining
		response.AttemptsInFlight = uint32(len(s.attempts))
		if s.cache != nil {
			response.SnapshotVersion = s.cache.version
			ready = s.cache.version > 0
		}
	}
	if draining {
		response.State, response.Reason = pb.ProbeResponse_STATE_DRAINING, "the host is draining"
	} else if request.GetSessionId() != "" && !ready {
		response.State, response.Reason = pb.ProbeResponse_STATE_INITIALIZING, "not configured, or waiting for a snapshot"
	}
	return response, nil
}

func (h *host) EndSession(_ context.Context, request *pb.EndSessionRequest) (*pb.EndSessionResponse, error) {
	s := h.find(request.GetSessionId())
	if s == nil {
		return &pb.EndSessionResponse{}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	return &pb.EndSessionResponse{AttemptsInFlight: uint32(len(s.attempts))}, nil
}

func (h *host) Drain(context.Context, *pb.DrainRequest) (*pb.DrainResponse, error) {
	h.draining.Store(true)
	return &pb.DrainResponse{AttemptsInFlight: h.attemptsInFlight()}, nil
}

// drain rejects new attempts, and returns when none is left, or after the timeout; false: some were left.
func (h *host) drain(timeout time.Duration) bool {
	h.draining.Store(true)
	end := time.After(timeout)
	ticker := time.NewTicker(drainInterval)
	defer ticker.Stop()
	for h.attemptsInFlight() > 0 {
		select {
		case <-end:
			return false
		case <-ticker.C:
		}
	}
	return true
}

// attemptsInFlight counts the attempts of all sessions.
func (h *host) attemptsInFlight() uint32 {
	return uint32(h.sum(func(s *session) int { return len(s.attempts) }))
}

// sum adds up what `of` returns for each session, which is locked.
func (h *host) sum(of func(*session) int) (total int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		s.mu.Lock()
		total += of(s)
		s.mu.Unlock()
	}
	return total
}
