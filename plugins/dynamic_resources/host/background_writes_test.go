package main

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	pb "outboard.dev/contract/v1beta1"
)

// logged collects the log while a test runs. Thread-safe: servers of other tests may still log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func captureLog(t *testing.T) *logged {
	l := &logged{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

func (l *logged) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// take returns the lines about background writes since the last call.
func (l *logged) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, "background write") {
			lines = append(lines, line)
		}
	}
	l.text.Reset()
	return lines
}

func TestRefusedWritesAreLogged(t *testing.T) {
	p := podUsing("p", "c")
	c := newClaim("c", exactly1("gpu", "gpu"))
	s := newShim(t, 1, upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", devices(1)...)), upsert(t, claimResource, c), upsertPod(p))
	log := captureLog(t)
	s.try(p)
	shown := showing(t, c, s.reserve(p, "node-0"))
	s.delta(upsert(t, claimResource, shown))
	s.unreserve(p, "node-0")
	push := await(t, s.pushes)
	results := []*pb.PushResult{{PushId: push, Outcome: pb.PushResult_OUTCOME_FORBIDDEN, Message: "patchStatus is not allowed"}, {PushId: push + 7, Outcome: pb.PushResult_OUTCOME_FAILED}}
	s.tell(&pb.SyncRequest{PushResults: results})
	lines := log.take()
	if len(lines) != 1 {
		t.Fatalf("%d warnings, want 1: %q", len(lines), lines)
	}
	for _, part := range []string{
		"level=WARN", "purpose=unreserve", "kind=" + claimResource, "object=default/c", "outcome=FORBIDDEN", `error="patchStatus is not allowed"`,
	} {
		if !strings.Contains(lines[0], part) {
			t.Errorf("%q without %q", lines[0], part)
		}
	}
}

func TestRefusedWritesAreLoggedOncePerPurposeAndOutcome(t *testing.T) {
	log, warn := captureLog(t), newWarnings()
	s := &session{}
	_, pushes := s.start(func() {}, warn)
	push := func(key string) uint64 {
		t.Helper()
		s.requestWrite(key, &backgroundWrite{next: func(*clusterCache) (*pb.Effect, bool) {
			return &pb.Effect{Key: key, Action: &pb.Effect_DeleteObject{DeleteObject: &pb.DeleteObject{Namespace: "default", Name: key}}}, true
		}})
		s.pushWrites()
		sent := pushes.take()
		if len(sent) != 1 {
			t.Fatalf("%d pushes, want one: %v", len(sent), sent)
		}
		return sent[0].GetPushId()
	}
	for _, test := range []struct {
		key     string
		outcome pb.PushResult_Outcome
		logs    bool
	}{
		{"remove-1", pb.PushResult_OUTCOME_APPLIED, false},
		{"remove-2", pb.PushResult_OUTCOME_SUPERSEDED, false},
		{"remove-3", pb.PushResult_OUTCOME_CONFLICT, true},
		{"remove-4", pb.PushResult_OUTCOME_CONFLICT, false},
		{"remove-5", pb.PushResult_OUTCOME_FAILED, true},
		{"release-6", pb.PushResult_OUTCOME_FAILED, true},
		{"release-7", 99, true}, // A later version's.
	} {
		s.takePushResults([]*pb.PushResult{{PushId: push(test.key), Outcome: test.outcome}}, warn)
		lines := log.take()
		if (len(lines) == 1) != test.logs || test.logs && !strings.Contains(lines[0], "object=default/"+test.key) {
			t.Errorf("%s, %v: %q", test.key, test.outcome, lines)
		}
	}
	expect(t, "numbers that wait for a result", len(s.pushed), 0)
	first := push("remove-again-0")
	for range 2 * maxPushed {
		s.writes = map[string]*backgroundWrite{} // Each is a write of its own.
		push("remove-again")
	}
	expect(t, "not more than", len(s.pushed), maxPushed)
	s.takePushResults([]*pb.PushResult{{PushId: first}}, warn)
	if push("remove-8") == 0 {
		t.Error("no number although there is room")
	}
}
