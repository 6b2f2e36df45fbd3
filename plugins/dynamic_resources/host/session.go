package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "outboard.dev/contract/v1beta1"
)

// session is one shim: its configuration, its cluster cache, and its attempts.
type session struct {
	id      string
	metrics *metrics // the host's

	mu        sync.Mutex
	profiles  map[string]args
	cache     *clusterCache // nil: no Sync yet
	cancel    func()        // ends the stream that feeds the cluster cache; nil: no stream
	outbox    *outbox       // of that stream
	attempts  map[uint64]*attempt
	writes    map[string]*backgroundWrite
	lastPush  uint64                // SyncResponse.push_id of the last push that has one
	pushed    map[uint64]*pb.Effect // by push_id, until the shim says what became of it
	hints     *hints
	draining  bool
	lastHeard time.Time
	changed   chan struct{} // closed, and replaced, at every change of the cluster cache
}

// start handles a new stream: the cluster cache and everything derived from it start empty.
func (s *session) start(cancel func(), warn *warnings) (*clusterCache, *outbox) {
	if s.cancel != nil {
		s.cancel()
	}
	s.cache, s.cancel, s.outbox, s.pushed = newClusterCache(warn), cancel, newOutbox(), map[uint64]*pb.Effect{}
	s.forget()
	return s.cache, s.outbox
}

func (s *session) forget() {
	s.attempts, s.writes, s.hints = map[uint64]*attempt{}, map[string]*backgroundWrite{}, newHints()
}

// end drops an attempt.
func (s *session) end(id uint64) {
	if a := s.attempts[id]; a != nil {
		a.close(s.cache.claims)
		delete(s.attempts, id)
	}
}

// now is the session's time: the machine's, or a simulation's.
func (s *session) now() time.Time {
	if s.cache != nil && s.cache.time != 0 {
		return time.UnixMicro(s.cache.time)
	}
	return time.Now()
}

// pod of the cluster cache.
func (s *session) pod(uid string) (*pod, error) {
	if p := s.cache.pods[uid]; p != nil {
		return p, nil
	}
	return nil, fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no pod "+uid)
}

func (s *session) attempt(header *pb.CallHeader) (*attempt, error) {
	if a := s.attempts[header.GetAttemptId()]; a != nil {
		return a, nil
	}
	return nil, fail(pb.CallError_REASON_ATTEMPT_UNKNOWN, fmt.Sprintf("no attempt %d", header.GetAttemptId()))
}

// versions is a call's requirement on the cluster cache.
type versions int

const (
	exactly versions = iota // The header's version.
	atLeast                 // The header's version or a later one, if it has one.
)

// enter locks the caller's session once its cluster cache has the required version; `leave` unlocks.
func (h *host) enter(ctx context.Context, header *pb.CallHeader, wants versions) (s *session, leave func(), err error) {
	if s, err = h.session(header); err != nil {
		return nil, nil, err
	}
	version := header.GetMinVersion()
	if wants == exactly {
		if version = header.GetExactVersion(); version <= 0 {
			return nil, nil, fail(pb.CallError_REASON_INVALID, "exact_version is required")
		}
	}
	latest := lastMoment(ctx)
	s.mu.Lock()
	for {
		have := int64(0)
		if s.cache != nil {
			have = s.cache.version
		}
		if have > 0 && (have == version || wants == atLeast && have > version) {
			return s, s.mu.Unlock, nil
		}
		err = callError{&pb.CallError{Reason: pb.CallError_REASON_STALE, Message: "the cluster cache has another version", HaveVersion: have}}
		changed := s.changed
		s.mu.Unlock()
		if have > version || !wait(ctx, latest, changed) {
			return nil, nil, err
		}
		s.mu.Lock()
	}
}

// lastMoment is when an answer must leave to meet the call's deadline (CallHeader.exact_version).
func lastMoment(ctx context.Context) time.Time {
	deadline, set := ctx.Deadline()
	if !set {
		deadline = time.Now().Add(time.Second)
	}
	return deadline.Add(-min(time.Until(deadline)/5, 20*time.Millisecond))
}

// wait waits for a change; false: the answer must leave now.
func wait(ctx context.Context, latest time.Time, changed <-chan struct{}) bool {
	timer := time.NewTimer(time.Until(latest))
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// args of the caller's profile.
func (s *session) args(header *pb.CallHeader) (args, error) {
	if found, configured := s.profiles[header.GetProfile()]; configured {
		return found, nil
	}
	return args{}, fail(pb.CallError_REASON_NOT_CONFIGURED, "no profile "+header.GetProfile())
}

func (h *host) session(header *pb.CallHeader) (*session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions[header.GetSessionId()]; s != nil {
		return s, nil
	}
	return nil, fail(pb.CallError_REASON_SESSION_UNKNOWN, "no session "+header.GetSessionId())
}

// takesAttempts returns an error if no new attempts may start.
func (h *host) takesAttempts(s *session) error {
	if h.draining.Load() || s.draining {
		return fail(pb.CallError_REASON_DRAINING, "the host accepts no new attempts")
	}
	return nil
}
