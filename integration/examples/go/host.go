package main

import (
	"context"
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

var sessionID = regexp.MustCompile("^[a-z0-9-]{1,63}$")

// session is the shim that has this host: its configuration, and its cluster cache.
type session struct {
	id        string
	profiles  map[string]bool
	cache     *clusterCache
	connected bool // a stream feeds the cache
}

// host serves all services that a plugin at filter and score needs. Its lock is held while it
// answers a call, except for Sync.
type host struct {
	handshake.UnimplementedHandshakeServiceServer
	pb.UnimplementedPluginHostServiceServer
	pb.UnimplementedClusterStateServiceServer
	pb.UnimplementedPreFilterServiceServer
	pb.UnimplementedFilterServiceServer
	pb.UnimplementedScoreServiceServer

	instance string
	started  time.Time

	mu       sync.Mutex
	session  *session // nil: none
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

// fail returns the error of a call: a gRPC status, with the CallError as its detail.
func fail(code codes.Code, reason pb.CallError_Reason, format string, values ...any) error {
	message := fmt.Sprintf(format, values...)
	message = message[:min(len(message), 1024)]
	result, err := status.New(code, message).WithDetails(
		&pb.CallError{Reason: reason, Message: message})
	if err != nil {
		return err
	}
	return result.Err()
}

func unknownSession(format string, values ...any) error {
	return fail(codes.FailedPrecondition, pb.CallError_REASON_SESSION_UNKNOWN, format, values...)
}

func unknownObject(format string, values ...any) error {
	return fail(codes.NotFound, pb.CallError_REASON_OBJECT_UNKNOWN, format, values...)
}

func invalid(format string, values ...any) error {
	return fail(codes.InvalidArgument, pb.CallError_REASON_INVALID, format, values...)
}

// answer surrounds every call but Sync: it holds the lock, and checks the header of a call about a
// pod. It ignores the version: this host acknowledges each version, so it is at that version.
func (h *host) answer(ctx context.Context, request any, _ *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if call, ok := request.(interface{ GetHeader() *pb.CallHeader }); ok {
		header := call.GetHeader()
		if !h.has(header.GetSessionId()) {
			return nil, unknownSession("no session %s", header.GetSessionId())
		}
		if !h.session.profiles[header.GetProfile()] {
			return nil, fail(codes.FailedPrecondition, pb.CallError_REASON_NOT_CONFIGURED,
				"no profile %s", header.GetProfile())
		}
	}
	return handler(ctx, request)
}

func (h *host) has(id string) bool { return h.session != nil && h.session.id == id }

func (h *host) Handshake(context.Context, *handshake.HandshakeRequest) (
	*handshake.HandshakeResponse, error) {
	return &handshake.HandshakeResponse{ContractVersions: []string{"v1beta1"}, Instance: h.instance,
		Build: "example", StartedUnixMicros: h.started.UnixMicro()}, nil
}

func (h *host) GetHostInfo(context.Context, *pb.GetHostInfoRequest) (
	*pb.GetHostInfoResponse, error) {
	return &pb.GetHostInfoResponse{Plugins: []*pb.PluginInfo{info()},
		Capabilities: []pb.Capability{pb.Capability_CAPABILITY_ACKS_EVERY_VERSION,
			pb.Capability_CAPABILITY_SINGLE_SESSION}}, nil
}

func (h *host) Configure(_ context.Context, request *pb.ConfigureRequest) (
	*pb.ConfigureResponse, error) {
	if request.GetInstance() != h.instance {
		return nil, fail(codes.FailedPrecondition, pb.CallError_REASON_WRONG_INSTANCE,
			"this is instance %s", h.instance)
	}
	if h.draining {
		return nil, fail(codes.Unavailable, pb.CallError_REASON_DRAINING, "the host is draining")
	}
	if !sessionID.MatchString(request.GetSessionId()) {
		return nil, invalid("session_id ([a-z0-9-]{1,63}) is required")
	}
	profiles, problems := checkProfiles(request.GetProfiles())
	if len(problems) > 0 || request.GetValidateOnly() {
		return &pb.ConfigureResponse{Problems: problems}, nil
	}
	if !h.has(request.GetSessionId()) {
		h.session = &session{id: request.GetSessionId(), cache: newClusterCache()}
	}
	h.session.profiles = profiles
	return &pb.ConfigureResponse{}, nil
}

func checkProfiles(all []*pb.ProfileConfig) (map[string]bool, []*pb.ConfigProblem) {
	profiles, problems := map[string]bool{}, []*pb.ConfigProblem{}
	for _, profile := range all {
		profiles[profile.GetName()] = true
		problem := func(plugin, message string) {
			problems = append(problems, &pb.ConfigProblem{
				Profile: profile.GetName(), Plugin: plugin, Message: message})
		}
		for _, point := range profile.GetPoints() {
			served := slices.Contains(info().GetExtensionPoints(), point.GetExtensionPoint())
			for _, plugin := range point.GetPlugins() {
				if plugin != pluginName || !served {
					problem(plugin, "this host has no such plugin at "+
						point.GetExtensionPoint().String())
				}
			}
		}
		for _, args := range profile.GetArgs() {
			if args.GetPlugin() != pluginName || args.GetArgsJson() != "{}" {
				problem(args.GetPlugin(), "no such plugin, or it takes no arguments")
			}
		}
	}
	return profiles, problems
}

func (h *host) Probe(_ context.Context, request *pb.ProbeRequest) (*pb.ProbeResponse, error) {
	response := &pb.ProbeResponse{Instance: h.instance, State: pb.ProbeResponse_STATE_READY}
	if h.session != nil && h.session.connected {
		response.CurrentSessionId = h.session.id
	}
	about := request.GetSessionId()
	if h.draining {
		response.State, response.Reason = pb.ProbeResponse_STATE_DRAINING, "the host is draining"
	} else if about != "" && (!h.has(about) || h.session.cache.version == 0) {
		response.State, response.Reason = pb.ProbeResponse_STATE_INITIALIZING, "no snapshot yet"
	}
	return response, nil
}

func (h *host) EndSession(_ context.Context, request *pb.EndSessionRequest) (
	*pb.EndSessionResponse, error) {
	if h.has(request.GetSessionId()) {
		h.session = nil
	}
	return &pb.EndSessionResponse{}, nil
}

// drain is for SIGTERM: no new session, and no new attempt.
func (h *host) drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
}

// Sync feeds the session's cluster cache while its stream is open.
func (h *host) Sync(stream grpc.BidiStreamingServer[pb.SyncRequest, pb.SyncResponse]) error {
	request, err := stream.Recv()
	if err != nil {
		return nil // It ended before its first message.
	}
	cache, err := h.connect(request.GetSessionId())
	if err != nil {
		return err
	}
	defer h.disconnect(cache)
	for ; err == nil; request, err = stream.Recv() {
		version, err := h.apply(cache, request)
		if err != nil {
			return err
		}
		if version == 0 { // Within a snapshot.
			continue
		}
		ack := &pb.SyncResponse_Ack{Ack: &pb.Ack{Version: version}}
		if err := stream.Send(&pb.SyncResponse{Push: ack}); err != nil {
			return err
		}
	}
	return nil
}

// connect gives a new stream a cache, which replaces that of the session's earlier stream.
func (h *host) connect(id string) (*clusterCache, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id == "" {
		return nil, invalid("the first message must name the session")
	}
	if !h.has(id) {
		return nil, unknownSession("no session %s", id)
	}
	h.session.cache, h.session.connected = newClusterCache(), true
	return h.session.cache, nil
}

func (h *host) disconnect(cache *clusterCache) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != nil && h.session.cache == cache {
		h.session.connected, cache.attempts = false, map[uint64]*pb.Pod{}
	}
}

// apply returns the version that the cache has afterwards.
func (h *host) apply(cache *clusterCache, request *pb.SyncRequest) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == nil || h.session.cache != cache {
		return 0, unknownSession("another session or stream replaced this one")
	}
	if err := cache.apply(request); err != nil {
		return 0, fail(codes.FailedPrecondition, pb.CallError_REASON_INVALID, "%v", err)
	}
	return cache.version, nil
}
