package main

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	pb "outboard.dev/contract/v1beta1"
)

// The maximum number of pods in a call.
const maxPods = 4096

// PreEnqueue holds pods whose claims cannot be used yet.
func (h *host) PreEnqueue(ctx context.Context, request *pb.PreEnqueueRequest) (*pb.PreEnqueueResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), atLeast)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := s.checkPods(h, request.GetHeader(), request.GetPodUids()); err != nil {
		return nil, err
	}
	response := &pb.PreEnqueueResponse{}
	for _, uid := range request.GetPodUids() {
		measured := h.metrics.at(pb.ExtensionPoint_EXTENSION_POINT_PRE_ENQUEUE)
		verdict := &pb.PluginStatus{Code: pb.Code_CODE_SUCCESS}
		if _, err := s.cache.claims.of(s.cache.pods[uid].get()); err != nil {
			verdict = unresolvable(err.Error())
		}
		measured()
		response.Verdicts = append(response.Verdicts, verdict)
	}
	return response, nil
}

func (s *session) checkPods(h *host, header *pb.CallHeader, uids []string) error {
	if _, err := s.args(header); err != nil {
		return err
	}
	if h.draining.Load() {
		return fail(pb.CallError_REASON_DRAINING, "the host is about to exit")
	}
	if len(uids) > maxPods {
		return fail(pb.CallError_REASON_INVALID, fmt.Sprintf("%d pods", len(uids)))
	}
	for _, uid := range uids {
		if _, err := s.pod(uid); err != nil {
			return err
		}
	}
	return nil
}

// PreFilter begins an attempt.
func (h *host) PreFilter(ctx context.Context, request *pb.PreFilterRequest) (*pb.PreFilterResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), exactly)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer h.metrics.at(pb.ExtensionPoint_EXTENSION_POINT_PRE_FILTER)()
	with, err := s.args(request.GetHeader())
	if err != nil {
		return nil, err
	}
	if err := h.takesAttempts(s); err != nil {
		return nil, err
	}
	id := request.GetHeader().GetAttemptId()
	if id == 0 {
		return nil, fail(pb.CallError_REASON_INVALID, "attempt_id is required")
	}
	p, err := s.pod(request.GetPodUid())
	if err != nil {
		return nil, err
	}
	s.end(id)
	if !p.holdsPlace() {
		// Left from a Reserve whose Unreserve never arrived.
		s.cache.claims.dropInFlight(request.GetPodUid())
	}
	a, rejection := begin(s.cache.claims, request.GetPodUid(), p.get(), with)
	if rejection == nil && len(a.claims) > 0 && s.hasPendingWrite(request.GetPodUid()) {
		// Pending writes must not overtake those of this attempt. The claim's change retries the pod.
		a.close(s.cache.claims)
		a.claims, a.allocates, rejection = nil, false, unresolvable("the pod's resource claims are being released")
	}
	s.attempts[id] = a
	if rejection != nil {
		a.close(s.cache.claims)
		return &pb.PreFilterResponse{Rejection: failing(`PreFilter plugin "`+pluginName+`"`, rejection), RejectedBy: []string{pluginName}}, nil
	}
	return &pb.PreFilterResponse{}, nil
}

// PostFilter looks for a claim of the pod that could be allocated again.
func (h *host) PostFilter(ctx context.Context, request *pb.PostFilterRequest) (*pb.PostFilterResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), exactly)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer h.metrics.at(pb.ExtensionPoint_EXTENSION_POINT_POST_FILTER)()
	a, err := s.attempt(request.GetHeader())
	if err != nil {
		return nil, err
	}
	p, err := s.pod(a.podUID)
	if err != nil {
		return nil, err
	}
	rejection := &pb.PreemptionRejection{Status: reject(pb.Code_CODE_UNSCHEDULABLE, "%s", s.makeRoomFor(p, a))}
	return &pb.PostFilterResponse{Outcome: &pb.PostFilterResponse_Rejection{Rejection: rejection}}, nil
}

// nothingToDeallocate is the answer for pods without claims; the host never sees most of them.
const nothingToDeallocate = "no new claims to deallocate"

// makeRoomFor deallocates a claim of the pod that nodes could not use, and returns kube-scheduler's text for it.
// kube-scheduler picks one of several at random; this host picks the first.
func (s *session) makeRoomFor(p *pod, a *attempt) string {
	if len(a.claims) == 0 {
		return nothingToDeallocate
	}
	for i, c := range a.claims {
		if !a.unavailable[i] || c == a.special || !onlyFor(c, a.pod.UID) {
			continue
		}
		s.deallocate(p, c)
		s.pushWrites()
		return "deallocation of ResourceClaim completed"
	}
	if a.special != nil && !a.fresh {
		s.removeExtended(p)
		s.pushWrites()
		return "deletion of ResourceClaim completed"
	}
	return "still not schedulable"
}

// PreScore prepares nothing.
func (h *host) PreScore(ctx context.Context, request *pb.PreScoreRequest) (*pb.PreScoreResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), exactly)
	if err != nil {
		return nil, err
	}
	defer leave()
	if _, err := s.attempt(request.GetHeader()); err != nil {
		return nil, err
	}
	if _, err := s.nodes(request.GetNodes()); err != nil {
		return nil, err
	}
	return &pb.PreScoreResponse{}, nil
}

// Score prefers nodes that satisfy the first alternatives of requests.
func (h *host) Score(ctx context.Context, request *pb.ScoreRequest) (*pb.ScoreResponse, error) {
	s, leave, err := h.enter(ctx, request.GetHeader(), exactly)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer h.metrics.at(pb.ExtensionPoint_EXTENSION_POINT_SCORE)()
	a, err := s.attempt(request.GetHeader())
	if err != nil {
		return nil, err
	}
	nodes, err := s.nodes(request.GetNodes())
	if err != nil {
		return nil, err
	}
	raw := make([]int64, len(nodes))
	most := int64(0)
	if alternatives(a.claims) {
		for i, n := range nodes {
			raw[i] = a.score(n)
			most = max(most, raw[i])
		}
	}
	plugin := &pb.PluginScores{Plugin: pluginName, Scores: make([]byte, len(nodes))}
	for i, score := range raw {
		if most > 0 {
			plugin.Scores[i] = byte(100 * score / most)
		}
		if request.GetExplain() {
			plugin.Terms = append(plugin.Terms, &pb.ScoreTerms{Terms: []*pb.ScoreTerm{{Name: "alternatives", Value: float64(score)}}})
		}
	}
	return &pb.ScoreResponse{Plugins: []*pb.PluginScores{plugin}}, nil
}

// alternatives returns whether any claim has a request with alternatives: only these have a score.
func alternatives(claims []*claim) bool {
	return slices.ContainsFunc(claims, func(c *claim) bool {
		return slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool { return len(r.FirstAvailable) > 0 })
	})
}

// score adds up the ranks of the chosen alternatives.
func (a *attempt) score(n *node) int64 {
	found, known := a.allocations[n.slot]
	if !known {
		return 0
	}
	score, next := int64(0), 0
	for _, c := range a.claims {
		allocation := c.Status.Allocation
		if allocation == nil {
			if next >= len(found.results) {
				return score
			}
			allocation = &found.results[next]
			next++
		}
		chosen := map[string]bool{}
		for i := range allocation.Devices.Results {
			chosen[allocation.Devices.Results[i].Request] = true
		}
		for _, request := range c.Spec.Devices.Requests {
			if request.Exactly != nil {
				continue
			}
			for place, sub := range request.FirstAvailable {
				if chosen[resourceclaim.CreateSubRequestRef(request.Name, sub.Name)] {
					score += int64(resourceapi.FirstAvailableDeviceRequestMaxSize - place)
				}
			}
		}
	}
	return score
}

// nodes returns the nodes of a set; each occurs once.
func (s *session) nodes(set *pb.NodeSet) ([]*node, error) {
	found := make([]*node, 0, len(set.GetSlots()))
	seen := make(map[uint32]bool, len(set.GetSlots()))
	for _, slot := range set.GetSlots() {
		n := s.cache.nodes[slot]
		if n == nil {
			return nil, fail(pb.CallError_REASON_OBJECT_UNKNOWN, fmt.Sprintf("no node in slot %d", slot))
		}
		if seen[slot] {
			return nil, fail(pb.CallError_REASON_INVALID, fmt.Sprintf("slot %d is named twice", slot))
		}
		seen[slot] = true
		found = append(found, n)
	}
	return found, nil
}
