package main

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	pb "outboard.dev/contract/v1beta1"
)

// The contract's limit for one call.
const maxSimulatedNodes = 65536

// PreFilter begins an attempt. The plugin does not reject here, but later calls name the attempt.
func (h *host) PreFilter(_ context.Context, request *pb.PreFilterRequest) (
	*pb.PreFilterResponse, error) {
	cache, attempt := h.session.cache, request.GetHeader().GetAttemptId()
	pod := cache.pods[request.GetPodUid()]
	switch {
	case h.draining:
		return nil, fail(codes.Unavailable, pb.CallError_REASON_DRAINING, "the host is draining")
	case attempt == 0:
		return nil, invalid("attempt_id is required")
	case pod == nil:
		return nil, unknownObject("no pod %s", request.GetPodUid())
	}
	cache.attempts[attempt] = pod
	return &pb.PreFilterResponse{}, nil
}

// podOf returns the pod of a call's attempt.
func (m *clusterCache) podOf(header *pb.CallHeader) (*pb.Pod, error) {
	if pod := m.attempts[header.GetAttemptId()]; pod != nil {
		return pod, nil
	}
	return nil, fail(codes.NotFound, pb.CallError_REASON_ATTEMPT_UNKNOWN, "no attempt %d",
		header.GetAttemptId())
}

func (m *clusterCache) checkSlots(slots []uint32) error {
	seen := map[uint32]bool{}
	for _, slot := range slots {
		if m.nodes[slot] == nil {
			return unknownObject("no node in slot %d", slot)
		}
		if seen[slot] {
			return invalid("slot %d is named twice", slot)
		}
		seen[slot] = true
	}
	return nil
}

// Filter evaluates nodes. The verdicts do not depend on pods. So nodes with nominated pods need no
// second evaluation, and a simulated node is evaluated as its node.
func (h *host) Filter(_ context.Context, request *pb.FilterRequest) (*pb.FilterResponse, error) {
	cache, search := h.session.cache, request.GetSearch()
	if _, err := cache.podOf(request.GetHeader()); err != nil {
		return nil, err
	}
	if simulation := request.GetSimulation(); simulation != nil {
		slots, err := cache.simulated(simulation.GetNodes())
		if err != nil {
			return nil, err
		}
		return cache.evaluate(slots, len(slots), true), nil
	}
	enough := int(search.GetNumFeasibleNodesToFind())
	if enough == 0 {
		return nil, invalid("simulation or search.num_feasible_nodes_to_find is required")
	}
	slots := cache.order
	if search.GetNodes() != nil {
		slots = search.GetNodes().GetSlots()
		if err := cache.checkSlots(slots); err != nil {
			return nil, err
		}
	}
	if start := int(search.GetStartOffset()); len(slots) > 0 {
		slots = slices.Concat(slots[start%len(slots):], slots[:start%len(slots)])
	}
	return cache.evaluate(slots, enough, false), nil
}

// simulated returns the slots of simulated nodes, which have other pods than the cache has.
func (m *clusterCache) simulated(nodes []*pb.SimulatedNode) (slots []uint32, err error) {
	if len(nodes) > maxSimulatedNodes {
		return nil, invalid("%d simulated nodes", len(nodes))
	}
	for i, node := range nodes {
		slot := node.GetSlot()
		if m.nodes[slot] == nil {
			return nil, unknownObject("no node in slot %d", slot)
		}
		if node.GetContinues() && (i == 0 || slots[i-1] != slot) {
			return nil, invalid("a simulated node continues another node")
		}
		for _, uid := range node.GetRemovedPodUids() {
			at, placed := m.place(m.pods[uid])
			if !node.GetContinues() && (!placed || at != slot) {
				return nil, unknownObject("pod %s is not on the node in slot %d", uid, slot)
			}
		}
		slots = append(slots, slot)
	}
	return slots, nil
}

// evaluate asks the plugin about nodes, in order, until one more than enough would be feasible.
// Each distinct rejection is in the answer once. A plugin that fails ends a search; in a simulation
// it rejects the node.
func (m *clusterCache) evaluate(slots []uint32, enough int, simulated bool) *pb.FilterResponse {
	answer, positions, now := &pb.FilterResponse{}, map[string]uint32{}, time.Now()
	for _, slot := range slots {
		rejection, err := checkMaintenance(m.nodes[slot], now)
		if err != nil {
			rejection = &pb.PluginStatus{Plugin: pluginName, Code: pb.Code_CODE_ERROR,
				Reasons: []string{err.Error()}}
			if !simulated {
				answer.Error = rejection
				return answer
			}
			rejection.Code = pb.Code_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE
		}
		if rejection == nil {
			if enough--; enough < 0 {
				return answer
			}
			answer.Verdicts = append(answer.Verdicts, 0)
			continue
		}
		reason := rejection.GetReasons()[0]
		if positions[reason] == 0 {
			answer.Reasons = append(answer.Reasons, rejection)
			positions[reason] = uint32(len(answer.Reasons))
		}
		answer.Verdicts = append(answer.Verdicts, positions[reason])
	}
	return answer
}

// Score answers one byte for each node, in the requested order.
func (h *host) Score(_ context.Context, request *pb.ScoreRequest) (*pb.ScoreResponse, error) {
	cache, slots := h.session.cache, request.GetNodes().GetSlots()
	pod, err := cache.podOf(request.GetHeader())
	if err != nil {
		return nil, err
	}
	if err := cache.checkSlots(slots); err != nil {
		return nil, err
	}
	return &pb.ScoreResponse{Plugins: []*pb.PluginScores{
		{Plugin: pluginName, Scores: scores(cache, pod, slots)}}}, nil
}
