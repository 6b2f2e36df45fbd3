package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handshake "outboard.dev/contract/handshake/v1"
	pb "outboard.dev/contract/v1beta1"
)

const maxSessions = 8

var sessionID = regexp.MustCompile("^[a-z0-9-]{1,63}$")

// session is one shim: its configuration, its cluster cache, and its attempts. Guarded by the host's lock.
type session struct {
	profiles  map[string]bool
	cache     *clusterCache
	cancel    func()             // ends the stream that feeds the cluster cache; nil: no stream
	attempts  map[uint64]*pb.Pod // the pods of attempts in progress
	draining  bool
	lastHeard time.Time
}

// host serves all services that a plugin at filter and score needs. Its lock is held while it answers a call, except
// for Sync.
type host struct {
	handshake.UnimplementedHandshakeServiceServer
	pb.UnimplementedPluginHostServiceServer
	pb.UnimplementedClusterStateServiceServer
	pb.UnimplementedPreFilterServiceServer
	pb.UnimplementedFilterServiceServer
	pb.UnimplementedScoreServiceServer

	instance, digest string
	started          time.Time

	mu       sync.Mutex
	sessions map[string]*session
	draining bool
}

func (h *host) register(server *grpc.Server) {
	handshake.RegisterHandshakeServiceServer(server, h)
	pb.RegisterPluginHostServiceServer(server, h)
	pb.RegisterClusterStateServiceServer(server, h)
	pb.RegisterPreFilterServiceServer(server, h)
	pb.RegisterFilterServiceServer(server, h)
	pb.RegisterScoreServiceServer(server, h)
}

var codeOf = map[pb.CallError_Reason]codes.Code{
	pb.CallError_REASON_ATTEMPT_UNKNOWN: codes.NotFound, pb.CallError_REASON_SESSION_UNKNOWN: codes.FailedPrecondition,
	pb.CallError_REASON_WRONG_INSTANCE: codes.FailedPrecondition,
	pb.CallError_REASON_NOT_CONFIGURED: codes.FailedPrecondition, pb.CallError_REASON_INVALID: codes.InvalidArgument,
	pb.CallError_REASON_OBJECT_UNKNOWN: codes.NotFound, pb.CallError_REASON_DRAINING: codes.Unavailable,
}

// callError is the error of a call.
type callError struct{ *pb.CallError }

func (e callError) Error() string { return e.GetMessage() }

func fail(reason pb.CallError_Reason, format string, values ...any) error {
	message := fmt.Sprintf(format, values...)
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

// answer surrounds every call but Sync: it holds the lock, and checks the header of a call about an attempt.
func (h *host) answer(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if about, ok := request.(interface{ GetHeader() *pb.CallHeader }); ok {
		if err := h.check(about.GetHeader()); err != nil {
			return nil, toStatus(err)
		}
	}
	response, err := handler(ctx, request)
	return response, toStatus(err)
}

// check ignores the version: this host acknowledges every version, so it is at that version already.
func (h *host) check(header *pb.CallHeader) error {
	s := h.sessions[header.GetSessionId()]
	switch {
	case s == nil:
		return fail(pb.CallError_REASON_SESSION_UNKNOWN, "no session %s", header.GetSessionId())
	case !s.profiles[header.GetProfile()]:
		return fail(pb.CallError_REASON_NOT_CONFIGURED, "no profile %s", header.GetProfile())
	}
	return nil
}

func (h *host) Handshake(context.Context, *handshake.HandshakeRequest) (*handshake.HandshakeResponse, error) {
	return &handshake.HandshakeResponse{
		ContractVersions: []string{"v1beta1"}, Instance: h.instance, Build: "example", BuildDigest: h.digest, StartedUnixMicros: h.started.UnixMicro(),
	}, nil
}

func (h *host) GetHostInfo(context.Context, *pb.GetHostInfoRequest) (*pb.GetHostInfoResponse, error) {
	return &pb.GetHostInfoResponse{
		Plugins: []*pb.PluginInfo{info()}, Capabilities: []pb.Capability{pb.Capability_CAPABILITY_ACKS_EVERY_VERSION},
	}, nil
}

func (h *host) Configure(_ context.Context, request *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	if request.GetInstance() != h.instance {
		return nil, fail(pb.CallError_REASON_WRONG_INSTANCE, "this is instance %s", h.instance)
	}
	s := h.sessions[request.GetSessionId()]
	if h.draining || s != nil && s.draining {
		return nil, fail(pb.CallError_REASON_DRAINING, "the host accepts no new attempts")
	}
	if !sessionID.MatchString(request.GetSessionId()) {
		return nil, fail(pb.CallError_REASON_INVALID, "session_id ([a-z0-9-]{1,63}) is required")
	}
	profiles, problems := checkProfiles(request.GetProfiles())
	if len(problems) > 0 || request.GetValidateOnly() {
		return &pb.ConfigureResponse{Problems: problems}, nil
	}
	if s == nil {
		h.makeRoom()
		s = &session{cache: newClusterCache()}
		h.sessions[request.GetSessionId()] = s
	}
	s.profiles, s.lastHeard = profiles, time.Now()
	return &pb.ConfigureResponse{}, nil
}

func checkProfiles(all []*pb.ProfileConfig) (profiles map[string]bool, problems []*pb.ConfigProblem) {
	profiles = map[string]bool{}
	for _, profile := range all {
		profiles[profile.GetName()] = true
		problem := func(plugin, message string) {
			problems = append(problems, &pb.ConfigProblem{Profile: profile.GetName(), Plugin: plugin, Message: message})
		}
		for _, point := range profile.GetPoints() {
			for _, plugin := range point.GetPlugins() {
				if plugin != pluginName || !slices.Contains(info().GetExtensionPoints(), point.GetExtensionPoint()) {
					problem(plugin, "this host has no such plugin at "+point.GetExtensionPoint().String())
				}
			}
		}
		for _, args := range profile.GetArgs() {
			if args.GetPlugin() != pluginName {
				problem(args.GetPlugin(), "args for an unknown plugin")
			} else if args.GetArgsJson() != "" && args.GetArgsJson() != "{}" {
				problem(pluginName, "the plugin takes no arguments")
			}
		}
	}
	return profiles, problems
}

// makeRoom forgets the session that has been without a stream for the longest time if there are too many.
func (h *host) makeRoom() {
	oldest := ""
	for id, s := range h.sessions {
		if s.cancel == nil && (oldest == "" || s.lastHeard.Before(h.sessions[oldest].lastHeard)) {
			oldest = id
		}
	}
	if len(h.sessions) >= maxSessions {
		delete(h.sessions, oldest)
	}
}

func (h *host) Probe(_ context.Context, request *pb.ProbeRequest) (*pb.ProbeResponse, error) {
	response := &pb.ProbeResponse{Instance: h.instance, State: pb.ProbeResponse_STATE_READY}
	s := h.sessions[request.GetSessionId()]
	if s != nil {
		response.SnapshotVersion, response.AttemptsInFlight = s.cache.version, uint32(len(s.attempts))
	}
	if h.draining || s != nil && s.draining {
		response.State, response.Reason = pb.ProbeResponse_STATE_DRAINING, "the host is draining"
	} else if request.GetSessionId() != "" && response.SnapshotVersion == 0 {
		response.State, response.Reason = pb.ProbeResponse_STATE_INITIALIZING, "not configured, or waiting for a snapshot"
	}
	return response, nil
}

func (h *host) EndSession(_ context.Context, request *pb.EndSessionRequest) (*pb.EndSessionResponse, error) {
	s := h.sessions[request.GetSessionId()]
	if s == nil {
		return &pb.EndSessionResponse{}, nil
	}
	s.draining = true
	return &pb.EndSessionResponse{AttemptsInFlight: uint32(len(s.attempts))}, nil
}

func (h *host) Drain(context.Context, *pb.DrainRequest) (*pb.DrainResponse, error) {
	h.draining = true
	response := &pb.DrainResponse{}
	for _, s := range h.sessions {
		response.AttemptsInFlight += uint32(len(s.attempts))
	}
	return response, nil
}

// startDraining is Drain for this process itself; it returns how many attempts are left.
func (h *host) startDraining() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	response, _ := h.Drain(context.Background(), nil)
	return response.GetAttemptsInFlight()
}

// Sync feeds a session's cluster cache while its stream is open. A new stream replaces the old one and its cache.
func (h *host) Sync(stream grpc.BidiStreamingServer[pb.SyncRequest, pb.SyncResponse]) error {
	request, err := stream.Recv()
	if err != nil {
		return nil // It ended before its first message.
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	s, mine, err := h.connect(ctx, cancel, request.GetSessionId())
	if err != nil {
		return toStatus(err)
	}
	defer h.disconnect(s, mine)
	// Received in a goroutine, so that the stream can end while no message arrives.
	requests := make(chan *pb.SyncRequest)
	go func() {
		defer close(requests)
		for ; err == nil; request, err = stream.Recv() {
			select {
			case requests <- request:
			case <-ctx.Done():
				return
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
			version, err := h.apply(s, mine, request)
			if err != nil {
				return toStatus(fail(pb.CallError_REASON_INVALID, "%v", err), codes.FailedPrecondition)
			}
			if version == 0 { // Within a snapshot.
				continue
			}
			if err := stream.Send(&pb.SyncResponse{Push: &pb.SyncResponse_Ack{Ack: &pb.Ack{Version: version}}}); err != nil {
				return err
			}
		}
	}
}

// connect starts a cluster cache for the session's new stream.
func (h *host) connect(ctx context.Context, cancel func(), id string) (*session, *clusterCache, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	switch {
	case id == "":
		return nil, nil, fail(pb.CallError_REASON_INVALID, "the first message must name the session")
	case s == nil:
		return nil, nil, fail(pb.CallError_REASON_SESSION_UNKNOWN, "configure the session first")
	case ctx.Err() != nil: // This stream has ended and may be older than the cluster cache's stream.
		return nil, nil, ctx.Err()
	case s.cancel != nil:
		s.cancel()
	}
	s.cache, s.cancel, s.attempts = newClusterCache(), cancel, map[uint64]*pb.Pod{}
	return s, s.cache, nil
}

func (h *host) disconnect(s *session, mine *clusterCache) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.cache == mine {
		s.cancel, s.attempts, s.lastHeard = nil, map[uint64]*pb.Pod{}, time.Now()
	}
}

// apply returns the version that the cluster cache has afterwards.
func (h *host) apply(s *session, mine *clusterCache, request *pb.SyncRequest) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := mine.apply(request); err != nil {
		return 0, err
	}
	if s.cache == mine {
		for _, attempt := range request.GetEndedAttempts() {
			delete(s.attempts, attempt)
		}
	}
	return mine.version, nil
}
