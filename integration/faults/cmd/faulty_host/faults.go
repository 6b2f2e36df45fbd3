package main

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// The deadline of a cycle in the configuration of the tests.
const cycleDeadline = time.Second

// hasCluster is set when the real host acknowledges the first snapshot.
var hasCluster atomic.Bool

// waitUntilDeaf blocks for good when a host that is deaf has to stop reading a stream: once it has the cluster.
func waitUntilDeaf(method string) {
	if hasCluster.Load() && (strings.HasSuffix(method, "/Sync") || isCycle(method)) {
		select {}
	}
}

// isCycle: the shim calls Plan in place of Cycle.
func isCycle(method string) bool {
	return strings.HasSuffix(method, "/Cycle") || strings.HasSuffix(method, "/Plan")
}

// spoilCycle changes an answer to a cycle; nil: it is not sent.
func spoilCycle(ctx context.Context, shim grpc.ServerStream, answer frame) (frame, error) {
	const (
		attemptID  = 1 // of CycleResponse and PlanResponse
		plan       = 6
		filter     = 2 // of CycleEvaluation
		score      = 4
		placements = 2 // of CyclePlan
		processed  = 1 // of FilterResponse
		plugins    = 1 // of ScoreResponse
		plugin     = 1 // of PluginScores
		scores     = 2
		podUID     = 1 // of PlannedPlacement
		slot       = 2
	)
	number := func(message []byte, field protowire.Number, value uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(message, field, protowire.VarintType), value)
	}
	text := func(message []byte, field protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(message, field, protowire.BytesType), value)
	}
	switch *fault {
	case "silent", "deaf":
		return nil, nil
	case "undecodable":
		return frame(strings.Repeat("\xff", 1000)), nil
	case "wrong-count":
		return answerCycle(answer, evaluation, text(nil, filter, string(number(nil, processed, 7_000_000)))), nil
	case "score-out-of-range":
		return answerCycle(answer, evaluation, text(nil, score, string(text(nil, plugins, string(text(text(nil, plugin, "NodeAffinity"), scores, "\xff\xff")))))), nil
	case "unknown-node":
		return answerCycle(answer, plan, text(nil, placements, string(number(text(nil, podUID, "another"), slot, 4_000_000_000)))), nil
	case "another-attempt":
		return number(answer, attemptID, 1<<40), nil
	case "late":
		return answer, sleep(ctx, 2*cycleDeadline)
	case "flapping": // Twice late, once in time.
		if cycles.Load()%3 != 0 {
			return answer, sleep(ctx, 2*cycleDeadline)
		}
	case "answers-without-end":
		for {
			if err := shim.SendMsg(&answer); err != nil {
				return nil, err
			}
		}
	}
	return answer, nil
}

// evaluation is a field of CycleResponse and PlanResponse: the outcome that is one.
const evaluation = 5

// answerCycle appends an outcome to a CycleResponse or PlanResponse: its fields are merged into the outcome there if that
// is of the same kind, and replace it otherwise.
func answerCycle(answer []byte, kind protowire.Number, outcome []byte) []byte {
	const preFilter = 1 // of each kind of outcome, required
	outcome = protowire.AppendBytes(protowire.AppendTag(outcome, preFilter, protowire.BytesType), nil)
	return protowire.AppendBytes(protowire.AppendTag(answer, kind, protowire.BytesType), outcome)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
