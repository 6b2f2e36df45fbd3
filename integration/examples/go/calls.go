package main

import (
	"context"
	"time"

	pb "outboard.dev/contract/v1beta1"
)

// The contract's limit for one call.
const maxSimulatedNodes = 65536

// PreFilter begins an attempt. The plugin does not reject here, but later calls name the attempt.
func (h *host) PreFilter(_ context.Context, request *pb.PreFilterRequest) (*pb.PreFilterResponse, error) {
	s, attempt := h.sessions[request.GetHeader().GetSessionId()], request.GetHeader().GetAttemptId()
	pod := s.cache.pods[request.GetPodUid()]
	switch {
	case h.draining || s.draining:
		return nil, fail(pb.CallError_REASON_DRAINING, "the host accepts no new attempts")
	case attempt == 0:
		return nil, fail(pb.CallError_REASON_INVALID, "attempt_id is required")
	case pod == nil:
		return nil, fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no pod %s", request.GetPodUid())
	}
	s.attempts[attempt] = pod
	return &pb.PreFilterResponse{}, nil
}

// attempt returns the session of a call and the pod of its attempt.
func (h *host) attempt(header *pb.CallHeader) (*session, *pb.Pod, error) {
	s := h.sessions[header.GetSessionId()]
	pod := s.attempts[header.GetAttemptId()]
	if pod == nil {
		return nil, nil, fail(pb.CallError_REASON_ATTEMPT_UNKNOWN, "no attempt %d", header.GetAttemptId())
	}
	return s, pod, nil
}

func (m *clusterCache) checkSlots(slots []uint32) error {
	seen := map[uint32]bool{}
	for _, slot := range slots {
		if m.nodes[slot] == nil {
			return fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no node in slot %d", slot)
		}
		if seen[slot] {
			return fail(pb.CallError_REASON_INVALID, "slot %d is named twice", slot)
		}
		seen[slot] = true
	}
	return nil
}

// verdicts builds a FilterResponse.
type verdicts struct {
	answer   pb.FilterResponse
	feasible int
	reasons  map[string]uint32
}

func (v *verdicts) add(verdict *pb.PluginStatus) {
	if verdict == nil {
		v.feasible++
		v.answer.Verdicts = append(v.answer.Verdicts, 0)
		return
	}
	reason := verdict.GetReasons()[0]
	if v.reasons[reason] == 0 {
		v.answer.Reasons = append(v.answer.Reasons, verdict)
		v.reasons[reason] = uint32(len(v.answer.Reasons))
	}
	v.answer.Verdicts = append(v.answer.Verdicts, v.reasons[reason])
}

// Filter evaluates nodes. The verdicts do not depend on pods. So nodes with nominated pods need no second evaluation,
// and a simulated node is evaluated as its node.
func (h *host) Filter(_ context.Context, request *pb.FilterRequest) (*pb.FilterResponse, error) {
	s, _, err := h.attempt(request.GetHeader())
	if err != nil {
		return nil, err
	}
	switch what := request.GetWhat().(type) {
	case *pb.FilterRequest_Search:
		return s.cache.search(what.Search)
	case *pb.FilterRequest_Simulation:
		return s.cache.simulate(what.Simulation.GetNodes())
	}
	return nil, fail(pb.CallError_REASON_INVALID, "search or simulation is required")
}

// search evaluates nodes in order, until enough are feasible.
func (m *clusterCache) search(search *pb.NodeSearch) (*pb.FilterResponse, error) {
	slots, enough := m.order, int(search.GetNumFeasibleNodesToFind())
	if enough == 0 {
		return nil, fail(pb.CallError_REASON_INVALID, "search.num_feasible_nodes_to_find is required")
	}
	if search.GetNodes() != nil {
		slots = search.GetNodes().GetSlots()
		if err := m.checkSlots(slots); err != nil {
			return nil, err
		}
	}
	v, now := verdicts{reasons: map[string]uint32{}}, time.Now()
	for i := range slots {
		verdict, err := checkMaintenance(m.nodes[slots[(int(search.GetStartOffset())+i)%len(slots)]], now)
		if err != nil {
			v.answer.Error = &pb.PluginStatus{Plugin: pluginName, Code: pb.Code_CODE_ERROR, Reasons: []string{err.Error()}}
			break
		}
		if verdict == nil && v.feasible == enough {
			break
		}
		v.add(verdict)
	}
	return &v.answer, nil
}

// simulate evaluates every node; a plugin's error rejects the node.
func (m *clusterCache) simulate(nodes []*pb.SimulatedNode) (*pb.FilterResponse, error) {
	if len(nodes) > maxSimulatedNodes {
		return nil, fail(pb.CallError_REASON_INVALID, "%d simulated nodes", len(nodes))
	}
	v, now := verdicts{reasons: map[string]uint32{}}, time.Now()
	for i, simulated := range nodes {
		node := m.nodes[simulated.GetSlot()]
		if node == nil {
			return nil, fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no node in slot %d", simulated.GetSlot())
		}
		if simulated.GetContinues() && (i == 0 || nodes[i-1].GetSlot() != simulated.GetSlot()) {
			return nil, fail(pb.CallError_REASON_INVALID, "a simulated node continues another node")
		}
		for _, uid := range simulated.GetRemovedPodUids() {
			if slot, placed := m.places[uid]; !simulated.GetContinues() && (!placed || slot != simulated.GetSlot()) {
				return nil, fail(pb.CallError_REASON_OBJECT_UNKNOWN, "pod %s is not on node %s", uid, node.GetName())
			}
		}
		verdict, err := checkMaintenance(node, now)
		if err != nil {
			verdict = &pb.PluginStatus{Plugin: pluginName, Code: pb.Code_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, Reasons: []string{err.Error()}}
		}
		v.add(verdict)
	}
	return &v.answer, nil
}

// Score answers one byte for each node, in the requested order.
func (h *host) Score(_ context.Context, request *pb.ScoreRequest) (*pb.ScoreResponse, error) {
	s, pod, err := h.attempt(request.GetHeader())
	if err != nil {
		return nil, err
	}
	slots := request.GetNodes().GetSlots()
	if err := s.cache.checkSlots(slots); err != nil {
		return nil, err
	}
	return &pb.ScoreResponse{Plugins: []*pb.PluginScores{{Plugin: pluginName, Scores: scores(s.cache, pod, slots)}}}, nil
}
