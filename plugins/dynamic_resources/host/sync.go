package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "outboard.dev/contract/v1beta1"
)

// How long acknowledgements of changes wait for more: calls name their version, so the delay blocks nothing.
const ackDelay = 20 * time.Millisecond

// outbox holds the pushes for a Sync stream. Thread-safe.
type outbox struct {
	mu     sync.Mutex
	waits  []*pb.SyncResponse
	signal chan struct{} // has one entry while pushes wait
}

func newOutbox() *outbox { return &outbox{signal: make(chan struct{}, 1)} }

func (o *outbox) put(pushes ...*pb.SyncResponse) {
	if len(pushes) == 0 {
		return
	}
	o.mu.Lock()
	o.waits = append(o.waits, pushes...)
	o.mu.Unlock()
	select {
	case o.signal <- struct{}{}:
	default:
	}
}

func (o *outbox) take() []*pb.SyncResponse {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.waits
	o.waits = nil
	return taken
}

// Sync feeds a session's cluster cache until its stream ends. A new stream replaces the old one and its cluster cache.
func (h *host) Sync(stream grpc.BidiStreamingServer[pb.SyncRequest, pb.SyncResponse]) error {
	request, err := stream.Recv()
	if err != nil {
		return nil // It ended before the first message.
	}
	if request.GetSessionId() == "" {
		return toStatus(fail(pb.CallError_REASON_INVALID, "the first message must name the session"))
	}
	s := h.find(request.GetSessionId())
	if s == nil {
		return toStatus(fail(pb.CallError_REASON_SESSION_UNKNOWN, "configure the session first"))
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	s.mu.Lock()
	if ctx.Err() != nil { // It has ended already, and may be older than the stream that feeds the cluster cache.
		s.mu.Unlock()
		return nil
	}
	mine, pushes := s.start(cancel, h.warn)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cache == mine {
			s.cancel, s.lastHeard = nil, time.Now()
			s.forget()
		}
	}()
	if err := h.feed(ctx, stream, s, mine, pushes, request); err != nil {
		return err
	}
	return nil
}

// received is a message, with its objects decoded.
type received struct {
	request *pb.SyncRequest
	decoded []any
}

// feed applies messages, and sends the pushes that they and calls produce, until the stream ends.
func (h *host) feed(ctx context.Context, stream grpc.BidiStreamingServer[pb.SyncRequest, pb.SyncResponse], s *session, mine *clusterCache, pushes *outbox, first *pb.SyncRequest) error {
	// A separate goroutine receives and decodes: the stream can end without a message, and the next one is read during
	// apply.
	messages := make(chan received, 4)
	go func() {
		defer close(messages)
		for request := first; ; {
			select {
			case messages <- received{request, decodeAll(request, h.warn)}:
			case <-ctx.Done():
				return
			}
			var err error
			if request, err = stream.Recv(); err != nil {
				return // io.EOF, or the shim has ended.
			}
		}
	}()
	ticker := time.NewTicker(writeInterval)
	defer ticker.Stop()
	var ack *pb.Ack // the next to send
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return status.Error(codes.Aborted, "the stream was replaced")
		case <-ticker.C:
			s.mu.Lock()
			s.pushWrites()
			s.mu.Unlock()
		case <-pushes.signal:
		case <-due:
			due = nil
			pushes.put(&pb.SyncResponse{Push: &pb.SyncResponse_Ack{Ack: ack}})
		case message, open := <-messages:
			if !open {
				return nil
			}
			reached, err := s.take(mine, pushes, message)
			if err != nil {
				return toStatus(fail(pb.CallError_REASON_INVALID, err.Error()), codes.FailedPrecondition)
			}
			switch {
			case reached == nil:
			case message.request.GetPhase() != pb.SyncRequest_PHASE_DELTA || message.request.GetTimeUnixMicros() != 0: // The shim waits for it.
				ack, due = reached, nil
				pushes.put(&pb.SyncResponse{Push: &pb.SyncResponse_Ack{Ack: ack}})
			default:
				if ack = reached; due == nil {
					due = time.After(ackDelay)
				}
			}
		}
		for _, push := range pushes.take() {
			if err := stream.Send(push); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}
	}
}

// take applies a message; it returns the acknowledgement to send, if any.
func (s *session) take(mine *clusterCache, pushes *outbox, message received) (*pb.Ack, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache != mine {
		return nil, nil // Replaced; the stream is about to end.
	}
	request := message.request
	s.takePushResults(request.GetPushResults(), mine.warn)
	// First, so that nothing has to be copied for them.
	for _, id := range request.GetEndedAttempts() {
		s.end(id)
	}
	if request.GetPhase() == pb.SyncRequest_PHASE_SNAPSHOT_BEGIN {
		for id := range s.attempts {
			s.end(id)
		}
		s.forget()
	}
	if err := mine.apply(request, message.decoded); err != nil {
		return nil, err
	}
	phase := request.GetPhase()
	if phase != pb.SyncRequest_PHASE_DELTA && phase != pb.SyncRequest_PHASE_SNAPSHOT_END {
		return nil, nil
	}
	s.checkPendingWrites()
	pushes.put(s.hints.take(mine, request)...)
	s.pushWrites()
	close(s.changed)
	s.changed = make(chan struct{})
	return &pb.Ack{Version: mine.version, TimeUnixMicros: mine.time}, nil
}
