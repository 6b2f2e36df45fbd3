package main

import (
	"context"
	"fmt"

	pb "outboard.dev/contract/v1beta1"
)

// The contract's limit for one call.
const maxHypotheses = 65536

// PreFilter begins an attempt. The plugin does not reject here, but later calls name the attempt.
func (h *host) PreFilter(ctx context.Context, request *pb.PreFilterRequest) (*pb.PreFilterResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader())
	if err != nil {
		return nil, err
	}
	defer leave()
	if h.draining || s.draining {
		return nil, fail(pb.CallError_REASON_DRAINING, "the host accepts no new attempts")
	}
	if request.GetHeader().GetAttemptId() == 0 {
		return nil, fail(pb.CallError_REASON_INVALID, "attempt_id is required")
	}
	if s.cache.pods[request.GetPodUid()] == nil {
		return nil, fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no pod "+request.GetPodUid())
	}
	s.attempts[request.GetHeader().GetAttemptId()] = request.GetPodUid()
	return &pb.PreFilterResponse{}, nil
}

// attempt returns the pod of a call's attempt.
func attempt(s *session, header *pb.CallHeader) (*pb.Pod, error) {
	uid, known := s.attempts[header.GetAttemptId()]
	if !known {
		return nil, fail(pb.CallError_REASON_ATTEMPT_UNKNOWN, fmt.Sprintf("no attempt %d", header.GetAttemptId()))
	}
	if pod := s.cache.pods[uid]; pod != nil {
		return pod, nil
	}
	return nil, fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no pod "+uid)
}

func checkNodes(m *clusterCache, slots []uint32) error {
	seen := map[uint32]bool{}
	for _, slot := range slots {
		if m.nodes[slot] == nil {
			return fail(pb.CallError_REASON_OBJECT_UNKNOWN, fmt.Sprintf("no node in slot %d", slot))
		}
		if seen[slot] {
			return fail(pb.CallError_REASON_INVALID, fmt.Sprintf("slot %d is named twice", slot))
		}
		seen[slot] = true
	}
	return nil
}

// enoughNodes returns the number of feasible nodes that ends the search; see
// FilterRequest.percentage_of_nodes_to_score.
func enoughNodes(count, percentage int, firstOnly bool) int {
	switch {
	case firstOnly:
		return 1
	case count < 100:
		return count
	case percentage == 0:
		percentage = max(5, 50-count/125)
	}
	if percentage >= 100 {
		return count
	}
	return max(100, count*percentage/100)
}

// packer builds a FilterResponse.
type packer struct {
	answer   pb.FilterResponse
	feasible int
	reasons  map[string]uint32
}

func (p *packer) add(verdict *pb.PluginStatus) {
	i := p.answer.Processed
	p.answer.Processed++
	if i%8 == 0 {
		p.answer.Feasible = append(p.answer.Feasible, 0)
	}
	if verdict == nil {
		p.answer.Feasible[i/8] |= 1 << (i % 8)
		p.feasible++
		return
	}
	index, known := p.reasons[verdict.GetReasons()[0]]
	if !known {
		index = uint32(len(p.answer.Reasons))
		p.reasons[verdict.GetReasons()[0]] = index
		p.answer.Reasons = append(p.answer.Reasons, verdict)
	}
	p.answer.Rejected = append(p.answer.Rejected, index)
}

// Filter evaluates nodes in order, until enough are feasible. The verdicts do not depend on pods. So nodes with
// nominated pods need no second evaluation, and a simulated node is evaluated as its node.
func (h *host) Filter(ctx context.Context, request *pb.FilterRequest) (*pb.FilterResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader())
	if err != nil {
		return nil, err
	}
	defer leave()
	if _, err := attempt(s, request.GetHeader()); err != nil {
		return nil, err
	}
	p := packer{reasons: map[string]uint32{}}
	now := h.now()
	if len(request.GetSimulatedNodes()) > maxHypotheses {
		return nil, fail(pb.CallError_REASON_INVALID, fmt.Sprintf("%d hypotheses", len(request.GetSimulatedNodes())))
	}
	if len(request.GetSimulatedNodes()) > 0 {
		for i, hypothesis := range request.GetSimulatedNodes() {
			if hypothesis.GetContinues() && (i == 0 || request.GetSimulatedNodes()[i-1].GetSlot() != hypothesis.GetSlot()) {
				return nil, fail(pb.CallError_REASON_INVALID, "a hypothesis continues a hypothesis about another node")
			}
			if err := checkHypothesis(s.cache, hypothesis); err != nil {
				return nil, err
			}
			verdict, err := checkMaintenance(s.cache.nodes[hypothesis.GetSlot()], now)
			if err != nil { // A plugin's error rejects the node.
				verdict = &pb.PluginStatus{Plugin: pluginName, Code: pb.Code_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, Reasons: []string{err.Error()}}
			}
			p.add(verdict)
		}
		return &p.answer, nil
	}
	slots := s.cache.order
	if request.Nodes != nil {
		slots = request.GetNodes().GetSlots()
		if err := checkNodes(s.cache, slots); err != nil {
			return nil, err
		}
	}
	enough := enoughNodes(len(slots), int(request.GetPercentageOfNodesToScore()), request.GetFirstFeasibleOnly())
	for i := range slots {
		verdict, err := checkMaintenance(s.cache.nodes[slots[(int(request.GetStartOffset())+i)%len(slots)]], now)
		if err != nil {
			p.answer.Error = &pb.PluginStatus{Plugin: pluginName, Code: pb.Code_CODE_ERROR, Reasons: []string{err.Error()}}
			break
		}
		if verdict == nil && p.feasible == enough {
			break
		}
		p.add(verdict)
	}
	return &p.answer, nil
}

func checkHypothesis(m *clusterCache, hypothesis *pb.SimulatedNode) error {
	if m.nodes[hypothesis.GetSlot()] == nil {
		return fail(pb.CallError_REASON_OBJECT_UNKNOWN, fmt.Sprintf("no node in slot %d", hypothesis.GetSlot()))
	}
	for _, uid := range hypothesis.GetRemovedPodUids() {
		if at, placed := m.places[uid]; !hypothesis.GetContinues() && (!placed || at.slot != hypothesis.GetSlot() || at.nominated) {
			return fail(pb.CallError_REASON_OBJECT_UNKNOWN, "pod "+uid+" is not there")
		}
	}
	for _, uids := range [][]string{hypothesis.GetRemovedPodUids(), hypothesis.GetAddedPodUids()} {
		for _, uid := range uids {
			if m.pods[uid] == nil {
				return fail(pb.CallError_REASON_OBJECT_UNKNOWN, "no pod "+uid)
			}
		}
	}
	return nil
}

// PreScore has nothing to prepare.
func (h *host) PreScore(ctx context.Context, request *pb.PreScoreRequest) (*pb.PreScoreResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader())
	if err != nil {
		return nil, err
	}
	defer leave()
	if _, err := attempt(s, request.GetHeader()); err != nil {
		return nil, err
	}
	return &pb.PreScoreResponse{}, nil
}

// Score answers one byte for each node, in the requested order.
func (h *host) Score(ctx context.Context, request *pb.ScoreRequest) (*pb.ScoreResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader())
	if err != nil {
		return nil, err
	}
	defer leave()
	pod, err := attempt(s, request.GetHeader())
	if err != nil {
		return nil, err
	}
	slots := request.GetNodes().GetSlots()
	if err := checkNodes(s.cache, slots); err != nil {
		return nil, err
	}
	return &pb.ScoreResponse{Plugins: []*pb.PluginScores{{Plugin: pluginName, Scores: scores(s.cache, pod, slots)}}}, nil
}
